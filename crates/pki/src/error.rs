//! Why a file of certificates or keys cannot be used, in words for whoever runs the server.

use std::io;
use std::path::PathBuf;

/// What befell a file; none was changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read, made or written.
    #[error("{doing} {}", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    /// It is not what it should be.
    #[error("{}: {reason}", path.display())]
    Unfit { path: PathBuf, reason: String },
}

impl Error {
    /// That the file at `path` is not what it should be.
    pub fn unfit(path: impl Into<PathBuf>, reason: impl Into<String>) -> Error {
        Error::Unfit { path: path.into(), reason: reason.into() }
    }

    /// For `map_err` on the way out of a file operation.
    pub fn file<P: Into<PathBuf>>(doing: &'static str, path: P) -> impl FnOnce(io::Error) -> Error + use<P> {
        let path = path.into();
        move |cause| Error::File { doing, path, cause }
    }

    /// With what caused it.
    #[cfg(test)]
    pub(crate) fn line(&self) -> String {
        let cause = std::error::Error::source(self).map(|cause| format!(": {cause}"));
        format!("{self}{}", cause.unwrap_or_default())
    }
}
