//! Why the command cannot do what was asked, in words for whoever typed it.

use std::io;
use std::path::PathBuf;

use crate::flags::layers::Origin;

/// Everything that stops the command before or while it runs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither this command nor kube-apiserver has this flag.
    #[error("unknown {what}: {given}{}", suggestion(nearest.as_deref()))]
    Unknown { what: &'static str, given: String, nearest: Option<String> },
    #[error("flag needs an argument: --{flag}")]
    NeedsArgument { flag: &'static str },
    /// Not a flag, a command or a value at this place.
    #[error("{0}")]
    Usage(String),
    /// The value of a flag cannot be read.
    #[error("invalid argument {value:?} for {}: {reason}", origin.naming(flag))]
    Invalid { flag: &'static str, value: String, origin: Origin, reason: String },
    /// Flags that are fine alone and not together, or not here.
    #[error("{0}")]
    Conflict(String),
    /// A flag of kube-apiserver whose absence would do harm.
    #[error("{} is not served yet: {why}", origin.naming(flag))]
    NotServed { flag: &'static str, origin: Origin, why: &'static str },
    /// The configuration file is not a mapping of flags.
    #[error("configuration file {}: {reason}", path.display())]
    ConfigFile { path: PathBuf, reason: String },
    /// A file or directory cannot be read, made or written.
    #[error("{doing} {}", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    /// A state cannot be moved, saved or restored, or the data directory cannot be used.
    #[error(transparent)]
    Migrate(#[from] forebay_migrate::Error),
    /// A file of certificates or keys cannot be used; nothing was changed.
    #[error(transparent)]
    Pki(#[from] forebay_pki::Error),
    /// What admission plugins are told cannot be used.
    #[error("admission configuration {}: {reason}", path.display())]
    AdmissionFile { path: PathBuf, reason: String },
    /// Who vouches for tokens elsewhere cannot be used as it is said.
    #[error("authentication configuration {}: {reason}", path.display())]
    AuthenticationFile { path: PathBuf, reason: String },
    /// Who is asked whether somebody may is not said, or not well.
    #[error("authorization configuration {}: {reason}", path.display())]
    AuthorizationFile { path: PathBuf, reason: String },
    /// What is told of requests, and where, cannot be used.
    #[error("tracing configuration {}: {reason}", path.display())]
    TracingFile { path: PathBuf, reason: String },
    /// What says which requests are noted, or where, cannot be used.
    #[error("{doing}: {reason}: from file {}", path.display())]
    AuditFile { doing: &'static str, path: PathBuf, reason: String },
    #[error("token file {}: line {line}: {reason}", path.display())]
    TokenFile { path: PathBuf, line: u64, reason: String },
    /// A server does not say who uses it.
    #[error(transparent)]
    Top(#[from] forebay_top::TopError),
    #[error("{0}")]
    Serve(String),
    #[error("write to standard output")]
    Output(#[from] io::Error),
}

impl Error {
    /// 2 for what was typed wrong, as is the custom; 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Unknown { .. }
            | Self::NeedsArgument { .. }
            | Self::Usage(_)
            | Self::Invalid { .. }
            | Self::ConfigFile { .. } => 2,
            Self::Conflict(_)
            | Self::NotServed { .. }
            | Self::File { .. }
            | Self::Migrate(_)
            | Self::Pki(_)
            | Self::AdmissionFile { .. }
            | Self::AuthenticationFile { .. }
            | Self::AuthorizationFile { .. }
            | Self::TracingFile { .. }
            | Self::AuditFile { .. }
            | Self::TokenFile { .. }
            | Self::Top(_)
            | Self::Serve(_)
            | Self::Output(_) => 1,
        }
    }

    /// The error and what caused it, on one line.
    pub fn line(&self) -> String {
        forebay_migrate::line(self)
    }

    /// For `map_err` on the way out of a file operation.
    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |cause| Self::File { doing, path, cause }
    }

    pub(crate) fn pki(path: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Pki(forebay_pki::Error::unfit(path, reason))
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}
