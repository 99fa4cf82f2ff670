//! Which rule a key of the store falls under: from a key to its resource, and from a resource to how it is
//! kept.
//!
//! In: the rules of a configuration, in order, and keys. Out: for each key, the rule that counts and the
//! resource as metrics name it. Never: a value.
//!
//! Source: apiserver v0.36.3 `server/options/encryptionconfig/config.go` (`transformerFromOverrides`).

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_schema::builtin::{StoredAs, table};

/// What a rule names: `secrets`, `pandas.example.com`, `*.apps`, `*.`, `*.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourcePattern<'a> {
    pub group: &'a str,
    pub resource: &'a str,
}

/// Every resource of every group.
pub const ANY: ResourcePattern<'static> = ResourcePattern { group: "*", resource: "*" };

impl<'a> ResourcePattern<'a> {
    pub fn parse(text: &'a str) -> ResourcePattern<'a> {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        ResourcePattern { group, resource }
    }

    /// As it is written in a configuration.
    pub fn shown(self) -> String {
        match (self.group, self.resource) {
            ("", "*") => "*.".to_owned(),
            ("", resource) => resource.to_owned(),
            (group, resource) => format!("{resource}.{group}"),
        }
    }
}

/// How resources are kept, by rule.
pub struct ResourceRules<T> {
    // group -> resource -> all that rules say of it, in order.
    of: BTreeMap<String, BTreeMap<String, T>>,
}

impl<T> Default for ResourceRules<T> {
    fn default() -> ResourceRules<T> {
        ResourceRules { of: BTreeMap::new() }
    }
}

impl<T> ResourceRules<T> {
    /// What is said of `pattern`, to be added to.
    ///
    /// # Errors
    /// An earlier rule leaves nothing of it.
    pub fn entry(
        &mut self,
        pattern: ResourcePattern<'_>,
        none: impl FnOnce() -> T,
    ) -> Result<&mut T, String> {
        for earlier in [ResourcePattern { resource: "*", ..pattern }, ANY] {
            if self.get(earlier).is_some() {
                let (pattern, earlier) = (pattern.shown(), earlier.shown());
                return Err(format!("resource \"{pattern}\" is masked by earlier rule \"{earlier}\""));
            }
        }
        let of_group = self.of.entry(pattern.group.to_owned()).or_default();
        Ok(of_group.entry(pattern.resource.to_owned()).or_insert_with(none))
    }

    /// What counts for a resource.
    pub fn of(&self, group: &str, resource: &str) -> Option<&T> {
        let exact = ResourcePattern { group, resource };
        [exact, ResourcePattern { resource: "*", ..exact }, ANY].into_iter().find_map(|known| self.get(known))
    }

    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> ResourceRules<U> {
        let mut of_group = |of: BTreeMap<String, T>| -> BTreeMap<String, U> {
            of.into_iter().map(|(resource, said)| (resource, make(said))).collect()
        };
        ResourceRules { of: self.of.into_iter().map(|(group, of)| (group, of_group(of))).collect() }
    }

    fn get(&self, pattern: ResourcePattern<'_>) -> Option<&T> {
        self.of.get(pattern.group)?.get(pattern.resource)
    }
}

/// Where objects are.
pub struct Places {
    /// Of all keys of objects, without a slash behind: `/registry`.
    prefix: String,
    // Of built-in resources, below it, with a slash behind. Sorted.
    built_in: Vec<(String, Arc<ResourceName>)>,
}

/// The resource of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceName {
    pub group: String,
    pub resource: String,
    /// `pandas.example.com`
    pub label: Arc<str>,
}

impl ResourceName {
    pub(crate) fn new(group: &str, resource: &str) -> ResourceName {
        let label = ResourcePattern { group, resource }.shown().into();
        ResourceName { group: group.to_owned(), resource: resource.to_owned(), label }
    }
}

/// Which resource a key is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace<'a> {
    /// By its number among the built-in ones.
    BuiltIn(usize),
    Custom {
        group: &'a str,
        resource: &'a str,
    },
    /// Of none: what servers keep beside objects, which upstream does not encrypt either.
    None,
}

impl Places {
    pub fn new(prefix: &str) -> Places {
        let stored = table().resources().iter().filter(|resource| StoredAs::of(resource).is_none());
        let mut built_in: Vec<_> = stored
            .filter_map(|resource| {
                let name = ResourceName::new(resource.group, resource.plural);
                Some((format!("{}/", resource.storage_prefix?), Arc::new(name)))
            })
            .collect();
        built_in.sort_by(|one, other| one.0.cmp(&other.0));
        Places { prefix: prefix.to_owned(), built_in }
    }

    /// All built-in resources, by number.
    pub fn built_in(&self) -> impl Iterator<Item = &Arc<ResourceName>> {
        self.built_in.iter().map(|(_, name)| name)
    }

    /// The resource of a number as metrics name it.
    pub fn label(&self, number: usize) -> Arc<str> {
        self.built_in.get(number).map_or_else(|| "".into(), |(_, name)| name.label.clone())
    }

    pub fn of<'k>(&self, key: &'k str) -> KeyPlace<'k> {
        let below = key.strip_prefix(self.prefix.as_str()).and_then(|below| below.strip_prefix('/'));
        let Some(below) = below else { return KeyPlace::None };
        // Places are one or two names deep.
        let mut ends = below.match_indices('/').map(|(at, _)| at + 1).take(2);
        let found = ends.find_map(|end| {
            self.built_in.binary_search_by(|(place, _)| place.as_str().cmp(&below[..end])).ok()
        });
        if let Some(number) = found {
            return KeyPlace::BuiltIn(number);
        }
        let mut names = below.splitn(3, '/');
        match (names.next(), names.next(), names.next()) {
            // The group of a custom resource has a dot.
            (Some(group), Some(resource), Some(_)) if group.contains('.') => {
                KeyPlace::Custom { group, resource }
            }
            _ => KeyPlace::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_of_the_resource_that_is_kept_there() {
        let places = Places::new("/registry");
        let of = |key: &str| match places.of(key) {
            KeyPlace::BuiltIn(number) => places.built_in[number].1.label.to_string(),
            KeyPlace::Custom { group, resource } => format!("custom {resource} of {group}"),
            KeyPlace::None => "none".to_owned(),
        };
        for (key, expected) in [
            ("/registry/secrets/default/a", "secrets"),
            ("/registry/minions/a", "nodes"),
            ("/registry/services/specs/default/a", "services"),
            ("/registry/services/endpoints/default/a", "endpoints"),
            ("/registry/events/default/a", "events"),
            ("/registry/deployments/default/a", "deployments.apps"),
            (
                "/registry/apiextensions.k8s.io/customresourcedefinitions/a",
                "customresourcedefinitions.apiextensions.k8s.io",
            ),
            ("/registry/example.com/pandas/default/a", "custom pandas of example.com"),
            ("/registry/example.com/pandas", "none"),
            ("/registry/masterleases/10.0.0.1", "none"),
            ("/registry/ranges/serviceips", "none"),
            ("/registry/forebay/servers/a", "none"),
            ("/other/secrets/default/a", "none"),
        ] {
            assert_eq!(of(key), expected, "{key}");
        }
    }

    #[test]
    fn the_narrowest_rule_counts_and_what_an_earlier_one_masks_is_refused() {
        let mut rules = ResourceRules::default();
        let mut add = |name: &'static str| {
            let said = rules.entry(ResourcePattern::parse(name), String::new)?;
            said.push_str(name);
            Ok::<_, String>(())
        };
        for name in ["events", "pandas.example.com", "*.apps", "*.*"] {
            assert_eq!(add(name), Ok(()), "{name}");
        }
        assert_eq!(add("secrets"), Err(r#"resource "secrets" is masked by earlier rule "*.*""#.to_owned()));
        let masked = r#"resource "daemonsets.apps" is masked by earlier rule "*.apps""#;
        assert_eq!(add("daemonsets.apps"), Err(masked.to_owned()));
        for (group, resource, expected) in [
            ("", "events", "events"),
            ("apps", "deployments", "*.apps"),
            ("example.com", "pandas", "pandas.example.com"),
            ("example.com", "bears", "*.*"),
            ("", "secrets", "*.*"),
        ] {
            assert_eq!(rules.of(group, resource).map(String::as_str), Some(expected), "{resource}");
        }
    }

    #[test]
    fn the_same_resource_in_two_rules_has_the_providers_of_both() {
        let mut rules: ResourceRules<Vec<u8>> = ResourceRules::default();
        for number in [1, 2] {
            rules.entry(ResourcePattern::parse("secrets"), Vec::new).expect("not masked").push(number);
        }
        assert_eq!(rules.of("", "secrets"), Some(&vec![1, 2]));
    }
}
