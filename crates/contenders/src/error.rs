//! Why there are no figures, in words for whoever asked for them.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a scenario has no figures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not where it should be; the text says how to get it.
    #[error("{program} is not at {}: {how}", path.display())]
    Missing { program: &'static str, path: PathBuf, how: &'static str },
    /// A server ended by itself.
    #[error("{name} ended ({status}); the end of its log:\n{log}")]
    Died { name: &'static str, status: String, log: String },
    /// A server did not become ready, or did not end, in time.
    #[error("{name} did not {what} within {limit:?}: {last}\nthe end of its log:\n{log}")]
    Late { name: &'static str, what: &'static str, limit: Duration, last: String, log: String },
    /// Another process has the port that the server was to take.
    #[error("{name} does not listen on port {port} itself; another process does")]
    NotOurs { name: &'static str, port: u16 },
    /// An answer that makes the figures worthless.
    #[error("{what}: {answer}")]
    Answer { what: String, answer: String },
    /// The connection, below HTTP.
    #[error("connection: {0}")]
    Connection(String),
    #[error("{what} {}", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    #[error(
        "there is nothing to draw: --svg is for the scenario storm, --curves for curve, --arrivals for avalanche"
    )]
    NothingToDraw,
    #[error("certificates: {0}")]
    Pki(String),
    #[error("proc: {0}")]
    Proc(String),
}

impl Error {
    pub fn file(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |cause| Error::File { what, path, cause }
    }
}
