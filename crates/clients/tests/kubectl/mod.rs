//! The one server of this file, and the sessions on it.

use std::sync::OnceLock;

use forebay_clients::{Server, Session};

mod change;
mod crd;
mod discover;
mod errors;
mod fixtures;
mod identity;
mod read;
mod wait;
mod watch;
mod write;

/// A session in the namespace `name`, or a skip.
fn session(name: &str) -> Option<Session<'static>> {
    // Statics are not dropped: the watchdog ends this server with the test process.
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    forebay_clients::needs::kubectl()?;
    let server = SERVER.get_or_init(Server::start).as_ref().unwrap_or_else(|why| panic!("{why}"));
    let session = Session::new(server, name)?;
    fixtures::write(&session);
    Some(session)
}
