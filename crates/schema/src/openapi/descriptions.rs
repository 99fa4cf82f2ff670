//! What types and fields are for, in a sentence or two.
//!
//! In: `data/descriptions.txt`, written by hand:
//!
//! ```text
//! # comment
//! package ALIAS                    of the types that follow, as in the table
//! type NAME [like TYPE]: TEXT      TYPE: a NAME of the same package or ALIAS.NAME
//!  JSON-NAME: TEXT
//! any kind | any list              the fields that follow are those of every kind or list
//! ```
//!
//! A type that is like another has the texts of its fields where it has none of its own. Out: the texts.
//! Never: kept in memory; who makes a document reads the file for it and lets go.

use std::collections::HashMap;

use crate::builtin::{Table, TypeId};

pub(super) static TEXT: &str = include_str!("../../data/descriptions.txt");

/// The texts, by type and field.
#[derive(Debug, Default)]
pub struct Descriptions {
    types: HashMap<TypeId, Described>,
    any_kind: Fields,
    any_list: Fields,
}

/// JSON name -> text, one for each described field of a type.
type Fields = HashMap<&'static str, &'static str>;

#[derive(Debug, Default)]
struct Described {
    text: &'static str,
    like: Option<TypeId>,
    fields: Fields,
}

/// What the fields that are read belong to.
enum Place {
    Nothing,
    Type(TypeId),
    AnyKind,
    AnyList,
}

impl Descriptions {
    /// Reads the file (a fraction of a millisecond).
    ///
    /// # Panics
    /// If the committed file is malformed, which a test rules out.
    pub fn of(table: &Table) -> Descriptions {
        match parsed(table, TEXT) {
            Ok(descriptions) => descriptions,
            Err(problem) => panic!("the committed descriptions are malformed: {problem}"),
        }
    }

    /// What the type is for.
    pub fn of_type(&self, ty: TypeId) -> Option<&'static str> {
        self.types.get(&ty).map(|described| described.text)
    }

    /// What the field of the type is for.
    pub fn of_field(&self, table: &Table, ty: TypeId, name: &str) -> Option<&'static str> {
        let described = self.types.get(&ty);
        let like = described.and_then(|described| self.types.get(&described.like?));
        let own = [described, like].into_iter().flatten().find_map(|described| described.fields.get(name));
        own.copied().or_else(|| self.of_any(table, ty, name))
    }

    /// What a field of every kind is for.
    pub fn of_any_kind(&self, name: &str) -> Option<&'static str> {
        self.any_kind.get(name).copied()
    }

    /// What a field of every list of a kind is for.
    pub fn of_any_list(&self, name: &str) -> Option<&'static str> {
        self.any_list.get(name).copied()
    }

    /// What the field is for because the type is a kind or a list of one.
    fn of_any(&self, table: &Table, ty: TypeId, name: &str) -> Option<&'static str> {
        if !table.has_type_meta(ty) {
            return None;
        }
        let metadata = table.member(ty, "metadata").map(|field| field.ty);
        let is = |meta: &str| metadata.is_some() && metadata == table.type_named("meta/v1", meta);
        match name {
            _ if is("ListMeta") && table.member(ty, "items").is_some() => self.of_any_list(name),
            "apiVersion" | "kind" => self.of_any_kind(name),
            _ if is("ObjectMeta") => self.of_any_kind(name),
            _ => None,
        }
    }
}

fn parsed(table: &Table, text: &'static str) -> Result<Descriptions, String> {
    let mut out = Descriptions::default();
    let (mut package, mut place) = ("", Place::Nothing);
    for (at, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {what}", at + 1);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match line {
            "any kind" => place = Place::AnyKind,
            "any list" => place = Place::AnyList,
            _ if line.starts_with("package ") => {
                (package, place) = (&line["package ".len()..], Place::Nothing);
            }
            _ => {
                let (head, text) = line.split_once(": ").ok_or_else(|| wrong("no text"))?;
                if let Some(name) = head.strip_prefix(' ') {
                    out.field(table, &place, name, text).map_err(|problem| wrong(&problem))?;
                } else {
                    place = Place::Type(out.named(table, package, head, text).map_err(|what| wrong(&what))?);
                }
            }
        }
    }
    Ok(out)
}

impl Descriptions {
    fn named(
        &mut self,
        table: &Table,
        package: &str,
        head: &'static str,
        text: &'static str,
    ) -> Result<TypeId, String> {
        let find = |name: &str| {
            let (package, name) = name.rsplit_once('.').unwrap_or((package, name));
            table.type_named(package, name).ok_or_else(|| format!("no type {name} in {package}"))
        };
        let names = head.strip_prefix("type ").ok_or("neither a type nor a field")?;
        let (name, like) = match names.split_once(" like ") {
            Some((name, like)) => (name, Some(find(like)?)),
            None => (names, None),
        };
        let ty = find(name)?;
        match self.types.insert(ty, Described { text, like, fields: Fields::new() }) {
            None => Ok(ty),
            Some(_) => Err(format!("{name} stands twice")),
        }
    }

    fn field(
        &mut self,
        table: &Table,
        place: &Place,
        name: &'static str,
        text: &'static str,
    ) -> Result<(), String> {
        let fields = match place {
            Place::AnyKind => &mut self.any_kind,
            Place::AnyList => &mut self.any_list,
            Place::Type(ty) if table.member(*ty, name).is_some() => {
                &mut self.types.entry(*ty).or_default().fields
            }
            Place::Type(_) => return Err(format!("the type has no field {name}")),
            Place::Nothing => return Err(format!("the field {name} is of no type")),
        };
        match fields.insert(name, text) {
            None => Ok(()),
            Some(_) => Err(format!("{name} stands twice")),
        }
    }
}
