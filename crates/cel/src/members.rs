//! What a map or an object has: looked up, listed, compared.
//!
//! In: members of a tree with what is declared of them, or entries of our own. Out: values, or whether two
//! maps are equal. Never: a copy of a tree.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::sync::Arc;

use serde_json::Value as Json;

use crate::decl::{Decl, DeclField, DeclKind};
use crate::error::Error;
use crate::spent::Spent;
use crate::value::{Map, MapKey, TextValue, Value};

impl<'a> Map<'a> {
    pub fn len(&self) -> usize {
        match self {
            Map::Owned(entries) => entries.len(),
            Map::Tree(members, _) => members.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    ///
    /// # Errors
    /// If it is not of its format.
    pub fn get(&self, key: &MapKey<'a>) -> Result<Option<Value<'a>>, Error> {
        match (self, key) {
            (Map::Owned(entries), _) => Ok(entries.get(key).cloned()),
            (Map::Tree(members, decl), MapKey::String(text)) => member(members, *decl, text),
            (Map::Tree(..), _) => Ok(None),
        }
    }

    pub(crate) fn get_text(&self, name: &str) -> Result<Option<Value<'a>>, Error> {
        match self {
            Map::Owned(entries) => {
                // A key that lives as short as `name`, in a map that may live as short.
                let entries: &BTreeMap<MapKey<'_>, Value<'a>> = entries;
                Ok(entries.get(&MapKey::String(TextValue::Borrowed(name))).cloned())
            }
            Map::Tree(members, decl) => member(members, *decl, name),
        }
    }

    /// Its keys, one after the other: what an object declares and does not have is looked at, and counted.
    pub(crate) fn keys<'m>(&'m self, spent: &'m Spent) -> Keys<'m, 'a> {
        match self {
            Map::Owned(entries) => Keys::Owned(entries.keys()),
            Map::Tree(members, Some(Decl { kind: DeclKind::Object(fields), .. })) => {
                Keys::Declared(fields.iter(), members, spent)
            }
            Map::Tree(members, _) => Keys::Members(members.keys()),
        }
    }

    pub(crate) fn equals(&self, other: &Map<'a>, spent: &Spent) -> Result<bool, Error> {
        if self.len() != other.len() {
            return Ok(false);
        }
        if let (
            Map::Tree(ones, Some(Decl { kind: DeclKind::Object(fields), .. })),
            Map::Tree(twos, Some(other)),
        ) = (self, other)
        {
            return same_members(ones, twos, fields, other, spent);
        }
        for key in self.keys(spent) {
            let Some(key) = key?.key() else { return Ok(false) };
            let same = match (self.get(&key)?, other.get(&key)?) {
                (Some(one), Some(two)) => one.equals(&two, spent)?,
                (one, two) => one.is_none() && two.is_none(),
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// See [`Map::keys`].
pub(crate) enum Keys<'m, 'a> {
    Owned(btree_map::Keys<'m, MapKey<'a>, Value<'a>>),
    Declared(btree_map::Iter<'a, Arc<str>, DeclField>, &'a serde_json::Map<String, Json>, &'m Spent),
    Members(serde_json::map::Keys<'a>),
}

impl<'a> Iterator for Keys<'_, 'a> {
    type Item = Result<Value<'a>, Error>;

    fn next(&mut self) -> Option<Result<Value<'a>, Error>> {
        match self {
            Keys::Owned(keys) => keys.next().map(|key| Ok(key.value())),
            Keys::Declared(fields, members, spent) => loop {
                let (name, field) = fields.next()?;
                if let Err(error) = spent.walk(0) {
                    return Some(Err(error));
                }
                if members.contains_key(&*field.key) {
                    return Some(Ok(Value::text(name.clone())));
                }
            },
            Keys::Members(names) => {
                names.next().map(|name| Ok(Value::String(TextValue::Borrowed(name.as_str()))))
            }
        }
    }
}

/// What is declared is compared as it is declared, what is not as it is.
fn same_members<'a>(
    ones: &'a serde_json::Map<String, Json>,
    twos: &'a serde_json::Map<String, Json>,
    fields: &'a BTreeMap<Arc<str>, DeclField>,
    other: &'a Decl,
    spent: &Spent,
) -> Result<bool, Error> {
    let mut declared = 0;
    spent.walk_all(fields.len())?;
    for (name, field) in fields {
        let Some(one) = ones.get(&*field.key) else { continue };
        declared += 1;
        let two = twos.get(&*field.key).filter(|two| !two.is_null()).zip(other.field(name));
        let same = match (two, one.is_null()) {
            (Some((two, other)), false) => {
                let (one, two) =
                    (Value::from_declared(one, &field.decl)?, Value::from_declared(two, &other.decl)?);
                one.equals(&two, spent)?
            }
            (two, is_null) => two.is_none() && is_null,
        };
        if !same {
            return Ok(false);
        }
    }
    if declared == ones.len() {
        return Ok(true);
    }
    spent.walk_all(fields.len() + ones.len())?;
    let keys: BTreeSet<&str> = fields.values().map(|field| &*field.key).collect();
    for (name, one) in ones.iter().filter(|(name, _)| !keys.contains(name.as_str())) {
        if let Some(two) = twos.get(name)
            && !Value::from_tree(one).equals(&Value::from_tree(two), spent)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn member<'a>(
    members: &'a serde_json::Map<String, Json>,
    decl: Option<&'a Decl>,
    name: &str,
) -> Result<Option<Value<'a>>, Error> {
    match decl.map(|decl| &decl.kind) {
        // A field that is null is not there.
        Some(DeclKind::Object(_)) => {
            let Some(field) = decl.and_then(|decl| decl.field(name)) else { return Ok(None) };
            let json = members.get(&*field.key).filter(|json| !json.is_null());
            json.map(|json| Value::from_declared(json, &field.decl)).transpose()
        }
        Some(DeclKind::Map(values)) => {
            members.get(name).map(|json| Value::from_declared(json, values)).transpose()
        }
        _ => Ok(members.get(name).map(Value::from_tree)),
    }
}
