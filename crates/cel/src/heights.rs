//! What has values in it, and how high it is: whoever goes through a value recurses by its height, and so
//! does its end.
//!
//! In: values. Out: lists, maps and what is in optionals. Never: one that is higher than
//! [`VALUE_HEIGHT_MAX`]: variables, comprehensions and functions put values in each other without an
//! expression that is as high.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::error::Error;
use crate::limits::VALUE_HEIGHT_MAX;
use crate::value::{MapKey, Value};

/// The elements of a list that was made.
#[derive(Clone, Debug, Default)]
pub struct Items<'a> {
    items: Vec<Value<'a>>,
    height: u16,
}

/// The entries of a map that was made.
#[derive(Clone, Debug, Default)]
pub struct Entries<'a> {
    entries: BTreeMap<MapKey<'a>, Value<'a>>,
    height: u16,
}

/// What an optional has.
#[derive(Clone, Debug)]
pub struct Inner<'a> {
    value: Value<'a>,
    height: u16,
}

/// The height of what has `value` in it.
pub(crate) fn above(value: &Value<'_>) -> Result<u16, Error> {
    let height = value.height() + 1;
    if height > VALUE_HEIGHT_MAX {
        return Err(Error::new(format!("values are within each other more than {VALUE_HEIGHT_MAX} times")));
    }
    Ok(height)
}

impl<'a> Items<'a> {
    pub(crate) fn of(items: Vec<Value<'a>>) -> Result<Items<'a>, Error> {
        let mut height = 1;
        for item in &items {
            height = height.max(above(item)?);
        }
        Ok(Items { items, height })
    }

    /// Of what has nothing in it.
    pub(crate) fn flat(items: Vec<Value<'a>>) -> Items<'a> {
        Items { items, height: 1 }
    }

    pub(crate) fn height(&self) -> u16 {
        self.height
    }

    pub(crate) fn push(&mut self, item: Value<'a>) -> Result<(), Error> {
        self.height = self.height.max(above(&item)?);
        self.items.push(item);
        Ok(())
    }

    /// Puts `item` in the place of that at `at`.
    pub(crate) fn replace(&mut self, at: usize, item: Value<'a>) -> Result<(), Error> {
        self.height = self.height.max(above(&item)?);
        self.items[at] = item;
        Ok(())
    }
}

impl<'a> Deref for Items<'a> {
    type Target = [Value<'a>];

    fn deref(&self) -> &[Value<'a>] {
        &self.items
    }
}

impl<'a> Entries<'a> {
    pub(crate) fn of(entries: BTreeMap<MapKey<'a>, Value<'a>>) -> Result<Entries<'a>, Error> {
        let mut height = 1;
        for value in entries.values() {
            height = height.max(above(value)?);
        }
        Ok(Entries { entries, height })
    }

    pub(crate) fn height(&self) -> u16 {
        self.height
    }

    pub(crate) fn insert(&mut self, key: MapKey<'a>, value: Value<'a>) -> Result<(), Error> {
        self.height = self.height.max(above(&value)?);
        self.entries.insert(key, value);
        Ok(())
    }

    pub(crate) fn into_map(self) -> BTreeMap<MapKey<'a>, Value<'a>> {
        self.entries
    }
}

impl<'a> Deref for Entries<'a> {
    type Target = BTreeMap<MapKey<'a>, Value<'a>>;

    fn deref(&self) -> &BTreeMap<MapKey<'a>, Value<'a>> {
        &self.entries
    }
}

impl<'a> Inner<'a> {
    pub(crate) fn of(value: Value<'a>) -> Result<Inner<'a>, Error> {
        let height = above(&value)?;
        Ok(Inner { value, height })
    }

    pub(crate) fn height(&self) -> u16 {
        self.height
    }

    pub(crate) fn into_value(self) -> Value<'a> {
        self.value
    }
}

impl<'a> Deref for Inner<'a> {
    type Target = Value<'a>;

    fn deref(&self) -> &Value<'a> {
        &self.value
    }
}
