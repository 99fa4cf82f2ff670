//! What was typed: flags over the environment over the configuration file, by flag.
//!
//! Each layer says which flags it gives and with which values; the highest layer that gives a flag gives all
//! of it. Values are not looked at here: that is [`crate::config`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use super::nearest::nearest;
use super::spec::{Class, Flag, FlagType};
use super::{config_file, table};
use crate::error::Error;

/// Who said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Typed,
    Environment,
    File(PathBuf),
    Default,
}

impl Origin {
    /// The flag, in the words of the place where it was given.
    pub fn naming(&self, flag: &str) -> String {
        match self {
            Self::Typed | Self::Default => format!("--{flag}"),
            Self::Environment => table::find(flag).map_or_else(|| flag.to_owned(), Flag::variable),
            Self::File(path) => format!("{flag} in {}", path.display()),
        }
    }
}

/// The values of one flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// One for a flag that takes one; the elements of a list.
    pub values: Vec<String>,
    pub origin: Origin,
}

/// What one origin says.
#[derive(Debug)]
pub struct Layer {
    origin: Origin,
    // flag name -> its values
    given: BTreeMap<&'static str, Given>,
}

impl Default for Layer {
    fn default() -> Self {
        Self::new(Origin::Typed)
    }
}

impl Layer {
    pub fn new(origin: Origin) -> Self {
        Self { origin, given: BTreeMap::new() }
    }

    /// Takes one value as it was written, with the meaning of the flag's kind.
    pub fn add(&mut self, flag: &'static Flag, value: String) {
        let origin = &self.origin;
        let given = self
            .given
            .entry(flag.name)
            .or_insert_with(|| Given { values: Vec::new(), origin: origin.clone() });
        match flag.kind {
            FlagType::Bool | FlagType::One => given.values = vec![value],
            FlagType::Each => given.values.push(value),
            FlagType::List => given.values.extend(elements(&value)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Given)> {
        self.given.iter().map(|(name, given)| (*name, given))
    }

    fn one(&self, name: &str) -> Option<&str> {
        self.given.get(name).and_then(|given| given.values.first()).map(String::as_str)
    }
}

fn elements(value: &str) -> impl Iterator<Item = String> {
    value.split(',').map(str::trim).filter(|element| !element.is_empty()).map(str::to_owned)
}

/// What was typed, all layers together.
#[derive(Debug, Default)]
pub struct Raw {
    // flag name -> its values from the highest layer that has it
    given: BTreeMap<&'static str, Given>,
    /// For the log, once there is one.
    pub warnings: Vec<String>,
}

impl Raw {
    /// Puts the layers together; reads the configuration file if one is named.
    ///
    /// # Errors
    /// The configuration file cannot be read, or names a flag that nobody has.
    pub fn collect(
        typed: Layer,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Error> {
        let mut warnings = Vec::new();
        let environment = environment_layer(environment, &mut warnings)?;
        let file = match typed.one("config").or_else(|| environment.one("config")) {
            None | Some("") => Layer::default(),
            Some(path) => config_file::read(path.as_ref())?,
        };
        let mut given = file.given;
        given.extend(environment.given);
        given.extend(typed.given);
        Ok(Self { given, warnings })
    }

    pub fn get(&self, name: &str) -> Option<&Given> {
        self.given.get(name)
    }

    /// Gives a flag that nobody gave: another default than the table's.
    pub fn unless_given(&mut self, name: &str, value: &str) {
        let mut layer = Layer::new(Origin::Default);
        layer.add(
            table::find(name).unwrap_or_else(|| panic!("--{name} is not in the table")),
            value.to_owned(),
        );
        for (name, given) in layer.given {
            self.given.entry(name).or_insert(given);
        }
    }

    /// Takes a flag out, for those who deal with it themselves; whether it was given.
    pub fn set_aside(&mut self, name: &str) -> bool {
        self.given.remove(name).is_some()
    }

    /// Refuses what would do harm to ignore, and returns the names of the flags that have no effect.
    ///
    /// # Errors
    /// [`Error::NotServed`] for the first such flag.
    pub fn without_effect(&self) -> Result<Vec<&'static str>, Error> {
        let mut harmless = Vec::new();
        for flag in table::all() {
            let Some(given) = self.given.get(flag.name) else { continue };
            // An empty value asks for nothing: templates write such flags.
            let empty = given.values.iter().all(String::is_empty);
            let refusal = match &flag.class {
                Class::Served(_) => continue,
                Class::Harmless(_) => None,
                Class::Refused(why) => (!empty).then_some(*why),
                Class::Judged(judge) => given.values.iter().find_map(|value| judge(value).err()),
            };
            if let Some(why) = refusal {
                return Err(Error::NotServed { flag: flag.name, origin: given.origin.clone(), why });
            }
            harmless.push(flag.name);
        }
        Ok(harmless)
    }
}

const PREFIX: &str = "FOREBAY_";

fn environment_layer(
    variables: impl Iterator<Item = (OsString, OsString)>,
    warnings: &mut Vec<String>,
) -> Result<Layer, Error> {
    let mut layer = Layer::new(Origin::Environment);
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        let flag_name = name[PREFIX.len()..].to_ascii_lowercase().replace('_', "-");
        match table::find(&flag_name) {
            Some(flag) => {
                let value = value
                    .into_string()
                    .map_err(|_| Error::Usage(format!("environment variable {name} is not UTF-8")))?;
                // Empty is how a shell or a compose file says "not set".
                if !value.is_empty() {
                    layer.add(flag, value);
                }
            }
            None => warnings.extend(unknown_variable(name, &flag_name)),
        }
    }
    Ok(layer)
}

/// A stray variable is no error: Kubernetes itself sets some in every pod beside a Service called forebay.
fn unknown_variable(name: &str, flag_name: &str) -> Option<String> {
    if flag_name.starts_with("service-") || flag_name == "port" || flag_name.starts_with("port-") {
        return None;
    }
    let near = nearest(flag_name, table::all().map(|flag| flag.name)).and_then(table::find);
    let hint = near.map_or_else(String::new, |flag| format!("; did you mean {}?", flag.variable()));
    Some(format!("environment variable {name} names no flag{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(typed: &[(&str, &str)], environment: &[(&str, &str)]) -> Result<Raw, Error> {
        let mut layer = Layer::default();
        for (name, value) in typed {
            layer.add(table::find(name).expect("a flag"), (*value).to_owned());
        }
        Raw::collect(
            layer,
            environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))),
        )
    }

    #[test]
    fn the_highest_layer_gives_all_of_a_flag() {
        let raw = collect(
            &[("api-audiences", "typed")],
            &[("FOREBAY_API_AUDIENCES", "a,b"), ("FOREBAY_DATA_DIR", "there"), ("FOREBAY_V", "")],
        )
        .expect("collects");
        let of = |name: &str| raw.get(name).map(|given| (given.values.join("|"), given.origin.clone()));
        assert_eq!(of("api-audiences"), Some(("typed".to_owned(), Origin::Typed)));
        assert_eq!(of("data-dir"), Some(("there".to_owned(), Origin::Environment)));
        assert_eq!(of("v"), None);
        assert_eq!(of("secure-port"), None);
        assert!(raw.warnings.is_empty());
    }

    #[test]
    fn another_default_counts_where_nobody_gave_the_flag() {
        let mut raw = collect(&[("secure-port", "1")], &[]).expect("collects");
        raw.unless_given("secure-port", "2");
        raw.unless_given("bind-address", "0.0.0.0");
        raw.unless_given("controllers", "");
        let values = |name| raw.get(name).map(|given| given.values.join("|"));
        assert_eq!(values("secure-port").as_deref(), Some("1"));
        assert_eq!(values("bind-address").as_deref(), Some("0.0.0.0"));
        assert_eq!(values("controllers").as_deref(), Some(""), "an empty list is none, not the table's");
    }

    #[test]
    fn a_stray_variable_is_a_warning_and_a_service_link_is_nothing() {
        let raw = collect(
            &[],
            &[
                ("FOREBAY_DATA_DRI", "x"),
                ("FOREBAY_SERVICE_HOST", "10.0.0.7"),
                ("FOREBAY_PORT_6443_TCP", "tcp://10.0.0.7:6443"),
                ("FOREBAY_PORT", "tcp://10.0.0.7:6443"),
                ("OTHER", "x"),
            ],
        )
        .expect("collects");
        assert_eq!(
            raw.warnings,
            ["environment variable FOREBAY_DATA_DRI names no flag; did you mean FOREBAY_DATA_DIR?"]
        );
    }

    #[test]
    fn harmless_flags_are_listed_and_harmful_ones_refused() {
        let rows: &[(&[(&str, &str)], &str)] = &[
            (
                &[("profiling", "false"), ("kubelet-timeout", "1s"), ("data-dir", "x")],
                "kubelet-timeout profiling",
            ),
            (&[("etcd-servers-overrides", "")], "etcd-servers-overrides"),
            (
                &[("etcd-servers-overrides", "x")],
                "--etcd-servers-overrides is not served yet: all objects are kept in one store",
            ),
            (&[("runtime-config", "api/all=true,batch/v1=true")], "runtime-config"),
            (
                &[("runtime-config", "api/all=true,batch/v1=false")],
                "--runtime-config is not served yet: the API would be served all the same",
            ),
            (&[("storage-backend", "etcd3")], "storage-backend"),
            (
                &[("storage-backend", "etcd2")],
                "--storage-backend is not served yet: the data would be kept in another store",
            ),
        ];
        for (typed, want) in rows {
            let got = collect(typed, &[]).and_then(|raw| raw.without_effect());
            let got = got.map_or_else(|error| error.to_string(), |names| names.join(" "));
            assert_eq!(got, *want);
        }
    }

    #[test]
    fn a_refused_flag_is_named_where_it_was_given() {
        let raw = collect(&[], &[("FOREBAY_ETCD_SERVERS_OVERRIDES", "x")]).expect("collects");
        let error = raw.without_effect().expect_err("refused");
        assert_eq!(
            error.to_string(),
            "FOREBAY_ETCD_SERVERS_OVERRIDES is not served yet: all objects are kept in one store"
        );
        assert_eq!(error.exit_code(), 1);
    }
}
