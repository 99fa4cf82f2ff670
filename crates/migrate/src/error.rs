//! Why a state cannot be moved, saved or restored, in words for whoever asked for it.

use std::io;
use std::path::{Path, PathBuf};

/// What stopped it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory cannot be read, made or written.
    #[error(transparent)]
    File(#[from] forebay_pki::Error),
    /// The data directory cannot be used.
    #[error("data directory {}: {reason}", path.display())]
    DataDir { path: PathBuf, reason: String },
    /// What is there already, or is not there, forbids it; nothing was changed.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Failed(String),
    #[error("write to standard output")]
    Output(#[from] io::Error),
}

impl Error {
    /// For `map_err` on the way out of a file operation.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
        let wrong = forebay_pki::Error::file(doing, path.to_owned());
        move |cause| Error::File(wrong(cause))
    }
}

/// What went wrong, and why, as one line.
pub(crate) fn failed(error: impl std::error::Error) -> Error {
    Error::Failed(line(&error))
}

/// An error and what caused it, on one line.
pub fn line(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    line
}
