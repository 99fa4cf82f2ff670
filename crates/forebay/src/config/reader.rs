//! Typed reading of what was typed: a flag's value or its default, or an error that names flag and place.

use std::path::PathBuf;

use crate::error::Error;
use crate::flags::layers::{Given, Origin, Raw};
use crate::flags::spec::{Flag, FlagType};
use crate::flags::table;

pub(super) struct Reader<'a> {
    pub raw: &'a Raw,
}

impl Reader<'_> {
    /// One value through `parse`; its default when not given or empty.
    pub fn parsed<T>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, Error> {
        match self.given(name) {
            Some((value, origin)) => parse(value).map_err(|reason| invalid(name, value, origin, reason)),
            None => {
                let value = default(name);
                parse(value).map_err(|reason| invalid(name, value, &Origin::Default, reason))
            }
        }
    }

    /// One value through `parse`, if given and not empty.
    pub fn optional<T>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        let Some((value, origin)) = self.given(name) else { return Ok(None) };
        parse(value).map(Some).map_err(|reason| invalid(name, value, origin, reason))
    }

    pub fn path(&self, name: &'static str) -> Option<PathBuf> {
        self.given(name).map(|(value, _)| PathBuf::from(value))
    }

    /// Whether somebody has said anything of it.
    pub fn is_given(&self, name: &str) -> bool {
        self.raw.get(name).is_some()
    }

    /// All values of a list, or its default.
    pub fn list(&self, name: &'static str) -> Vec<String> {
        match self.raw.get(name) {
            Some(given) => given.values.clone(),
            None => {
                Some(default(name)).filter(|value| !value.is_empty()).map(str::to_owned).into_iter().collect()
            }
        }
    }

    /// The error for the flag as it was given, its whole value named.
    pub fn refuse(&self, name: &'static str, reason: String) -> Error {
        match self.raw.get(name) {
            Some(Given { values, origin }) => invalid(name, &values.join(","), origin, reason),
            None => invalid(name, default(name), &Origin::Default, reason),
        }
    }

    fn given(&self, name: &'static str) -> Option<(&str, &Origin)> {
        debug_assert!(matches!(flag(name).kind, FlagType::Bool | FlagType::One), "{name} is a list");
        let given = self.raw.get(name)?;
        let value = given.values.first().filter(|value| !value.is_empty())?;
        Some((value, &given.origin))
    }
}

fn invalid(flag: &'static str, value: &str, origin: &Origin, reason: String) -> Error {
    Error::Invalid { flag, value: value.to_owned(), origin: origin.clone(), reason }
}

fn default(name: &str) -> &'static str {
    flag(name).default()
}

/// The names come from this crate, so a wrong one is a fault here.
fn flag(name: &str) -> &'static Flag {
    table::find(name).unwrap_or_else(|| panic!("--{name} is read and not in the table"))
}
