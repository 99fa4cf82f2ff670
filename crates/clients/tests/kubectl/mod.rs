//! The one server of this file, and the sessions on it.

use std::sync::OnceLock;

use forebay_clients::{ControlPlane, Session};

/// The command that shows who owns what, an entry a line: not in the order of their times, which are whole
/// seconds.
macro_rules! managers {
    ($of:literal) => {
        concat!(
            "kubectl get ",
            $of,
            r#" --show-managed-fields -o jsonpath='{range .metadata.managedFields[*]}{.manager} {.operation} {.subresource} {.fieldsV1}{"\n"}{end}' | sort"#
        )
    };
}

mod apply;
mod apply_sets;
mod change;
mod crd;
mod diff;
mod discover;
mod errors;
mod fixtures;
mod identity;
mod kustomize;
mod read;
mod take_over;
mod wait;
mod watch;
mod write;

/// A session in the namespace `name`, or a skip.
fn session(name: &str) -> Option<Session<'static>> {
    // Statics are not dropped: the watchdog ends this server with the test process.
    static SERVER: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
    forebay_clients::needs::kubectl()?;
    let server = SERVER.get_or_init(ControlPlane::start).as_ref().unwrap_or_else(|why| panic!("{why}"));
    let session = Session::new(server, name)?;
    fixtures::write(&session);
    Some(session)
}
