//! What whoever operates the server wants of it beside its API: how long certificates that are asked for
//! live, and pods on lost nodes, where traces go, and what `/flagz` shows.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use forebay_registry::LostNodes;

use super::reader::Reader;
use crate::error::Error;
use crate::flags::layers::Given;
use crate::flags::spec::{Class, FlagType};
use crate::flags::{table, values};

/// See the module's doc.
#[derive(Debug, Clone)]
pub struct Operating {
    /// How long a certificate lives at most that somebody asked for and somebody approved.
    pub signing_duration: Duration,
    /// How long pods stay on a node that is lost.
    pub lost_nodes: LostNodes,
    /// A TracingConfiguration.
    pub tracing_file: Option<PathBuf>,
    /// Flags by name, each as it counts.
    pub flags: BTreeMap<String, String>,
}

/// # Errors
/// A value that makes no sense.
pub(super) fn decide(read: &Reader) -> Result<Operating, Error> {
    Ok(Operating {
        signing_duration: read.parsed("cluster-signing-duration", |value| {
            match values::duration(value)? {
                Duration::ZERO => Err("must be more than 0".to_owned()),
                duration => Ok(duration),
            }
        })?,
        lost_nodes: LostNodes {
            not_ready_seconds: read.parsed("default-not-ready-toleration-seconds", seconds)?,
            unreachable_seconds: read.parsed("default-unreachable-toleration-seconds", seconds)?,
        },
        tracing_file: read.path("tracing-config-file"),
        flags: shown(read),
    })
}

/// As Go reads it; a negative number is at once.
fn seconds(value: &str) -> Result<i64, String> {
    value.parse().map_err(|_| "not a whole number".to_owned())
}

/// What is served, and what was given; a list in brackets, as pflag shows it.
fn shown(read: &Reader) -> BTreeMap<String, String> {
    let value = |kind: FlagType, given: Option<&Given>, default: &str| match (kind, given) {
        (FlagType::List | FlagType::Each, Some(given)) => format!("[{}]", given.values.join(",")),
        (FlagType::List | FlagType::Each, None) => format!("[{default}]"),
        (_, Some(given)) => given.values.first().cloned().unwrap_or_default(),
        (FlagType::Bool, None) if default.is_empty() => "false".to_owned(),
        (_, None) => default.to_owned(),
    };
    let all = table::all().filter_map(|flag| {
        let given = read.raw.get(flag.name);
        let default = match &flag.class {
            Class::Served(help) => help.default,
            _ if given.is_some() => "",
            _ => return None,
        };
        Some((flag.name.to_owned(), value(flag.kind, given, default)))
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::flags::argv;
    use crate::flags::layers::Raw;

    #[test]
    fn every_served_flag_is_shown_and_what_was_given_beside() {
        let typed = ["--authorization-mode=RBAC,AlwaysAllow", "--goaway-chance=0.1", "--v=3"];
        let typed = argv::parse(typed.into_iter().map(OsString::from)).expect("flags").flags;
        let raw = Raw::collect(typed, std::iter::empty()).expect("collected");
        let shown = shown(&Reader { raw: &raw });
        assert_eq!(shown["authorization-mode"], "[RBAC,AlwaysAllow]");
        assert_eq!((&*shown["goaway-chance"], &*shown["v"]), ("0.1", "3"));
        assert_eq!((&*shown["secure-port"], &*shown["controllers"]), ("6443", "[*]"));
        assert_eq!(shown["disable-http2-serving"], "false");
        assert!(!shown.contains_key("watch-cache"), "nobody gave it, and it has no effect");
        assert!(table::served().all(|flag| shown.contains_key(flag.name)));
    }
}
