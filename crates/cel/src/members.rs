//! What a map or an object has: looked up, listed, compared.
//!
//! In: members of a tree with what is declared of them, or entries of our own. Out: values, or whether two
//! maps are equal. Never: a copy of a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use crate::decl::{Decl, DeclField, DeclKind};
use crate::error::Error;
use crate::steps::Steps;
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

    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Owned(entries) => entries.keys().map(MapKey::value).collect(),
            Map::Tree(members, Some(Decl { kind: DeclKind::Object(fields), .. })) => {
                let there = fields.iter().filter(|(_, field)| members.contains_key(&*field.key));
                there.map(|(name, _)| Value::text(name.clone())).collect()
            }
            Map::Tree(members, _) => {
                members.keys().map(|name| Value::String(TextValue::Borrowed(name.as_str()))).collect()
            }
        }
    }

    pub(crate) fn equals(&self, other: &Map<'a>, steps: &Steps) -> Result<bool, Error> {
        if self.len() != other.len() {
            return Ok(false);
        }
        if let (
            Map::Tree(ones, Some(Decl { kind: DeclKind::Object(fields), .. })),
            Map::Tree(twos, Some(other)),
        ) = (self, other)
        {
            return same_members(ones, twos, fields, other, steps);
        }
        for key in self.keys() {
            let Some(key) = key.key() else { return Ok(false) };
            let same = match (self.get(&key)?, other.get(&key)?) {
                (Some(one), Some(two)) => one.equals(&two, steps)?,
                (one, two) => one.is_none() && two.is_none(),
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What is declared is compared as it is declared, what is not as it is.
fn same_members<'a>(
    ones: &'a serde_json::Map<String, Json>,
    twos: &'a serde_json::Map<String, Json>,
    fields: &'a BTreeMap<Arc<str>, DeclField>,
    other: &'a Decl,
    steps: &Steps,
) -> Result<bool, Error> {
    let mut declared = 0;
    for (name, field) in fields {
        let Some(one) = ones.get(&*field.key) else { continue };
        declared += 1;
        let two = twos.get(&*field.key).filter(|two| !two.is_null()).zip(other.field(name));
        let same = match (two, one.is_null()) {
            (Some((two, other)), false) => {
                let (one, two) =
                    (Value::from_declared(one, &field.decl)?, Value::from_declared(two, &other.decl)?);
                one.equals(&two, steps)?
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
    let keys: BTreeSet<&str> = fields.values().map(|field| &*field.key).collect();
    for (name, one) in ones.iter().filter(|(name, _)| !keys.contains(name.as_str())) {
        if let Some(two) = twos.get(name)
            && !Value::from_tree(one).equals(&Value::from_tree(two), steps)?
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
