//! Why it is not known who uses a server, in words for whoever typed the command.

use std::io;
use std::time::Duration;

/// See the module's doc.
#[derive(Debug, thiserror::Error)]
pub enum TopError {
    #[error("kubeconfig")]
    Kubeconfig(#[source] kube::config::KubeconfigError),
    /// What the kubeconfig says cannot be used: a certificate that is none.
    #[error("kubeconfig")]
    Connect(#[source] forebay_connector::Error),
    #[error("cannot reach {address}")]
    Unreachable {
        address: String,
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("{address} did not answer within {} s", limit.as_secs())]
    Slow { address: String, limit: Duration },
    #[error("{address} does not know who asks (401): {message}")]
    Unauthorized { address: String, message: String },
    #[error(
        "{message}; whoever may \"get\" the nonResourceURL {path} may see who uses the server: a rule of a \
         ClusterRole, with nonResourceURLs: [\"{path}\"] and verbs: [\"get\"]"
    )]
    Forbidden { path: &'static str, message: String },
    #[error("{address} is not Forebay, or older than this command: it has no {path}")]
    NotForebay { address: String, path: &'static str },
    #[error("{address} refuses for now (429)")]
    Refused { address: String, pause: Option<Duration> },
    #[error("{address} answered {code}: {message}")]
    Answered { address: String, code: u16, message: String },
    #[error("terminal")]
    Terminal(#[source] io::Error),
}

impl TopError {
    /// Whether it may be otherwise next time, without anybody doing something about it.
    pub fn passes(&self) -> bool {
        match self {
            TopError::Unreachable { .. } | TopError::Slow { .. } | TopError::Refused { .. } => true,
            TopError::Answered { code, .. } => *code >= 500,
            _ => false,
        }
    }

    /// How long the server asked to be left alone.
    pub fn pause(&self) -> Option<Duration> {
        match self {
            TopError::Refused { pause, .. } => *pause,
            _ => None,
        }
    }

    /// The error and what caused it, on one line.
    pub fn line(&self) -> String {
        let mut line = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            line = format!("{line}: {error}");
            cause = error.source();
        }
        line
    }
}
