//! `EncryptionConfiguration` of `apiserver.config.k8s.io/v1`: what a file says, checked as upstream checks
//! it.
//!
//! In: the bytes of a file. Out: a configuration whose every part can be used, or all that is wrong with it
//! in upstream's words. Never: a key in an error or a log.
//!
//! Source: apiserver v0.36.3 `apis/apiserver/v1/types_encryption.go`, `defaults.go`,
//! `validation/validation_encryption.go`.

mod decode;
#[cfg(test)]
mod tests;
mod validate;

use std::fmt;
use std::time::Duration;

pub use decode::decode;
pub use validate::validate;

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncryptionConfiguration {
    /// In order: the first rule for a resource counts.
    pub rules: Vec<EncryptionRule>,
}

/// How some resources are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncryptionRule {
    /// `secrets`, `pandas.awesome.bears.example`, `*.apps`, `*.`, `*.*`.
    pub resources: Vec<String>,
    /// The first one writes; all read.
    pub providers: Vec<ProviderConfiguration>,
}

/// One element of `providers`, which should have one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderConfiguration {
    pub aesgcm: Option<Vec<NamedKey>>,
    pub aescbc: Option<Vec<NamedKey>>,
    pub secretbox: Option<Vec<NamedKey>>,
    pub identity: bool,
    pub kms: Option<KmsConfiguration>,
}

/// A key by its name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NamedKey {
    pub name: String,
    /// In base64.
    pub secret: String,
}

/// A plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KmsConfiguration {
    pub api_version: String,
    pub name: String,
    /// Of v1.
    pub cache_size: Option<i64>,
    /// `unix:///var/run/plugin.sock`
    pub endpoint: String,
    /// In nanoseconds; not above 0 in a configuration that is refused.
    pub timeout_ns: i64,
}

/// What a plugin has to answer within, unless it is said.
const TIMEOUT_NS: i64 = 3_000_000_000;

impl Default for KmsConfiguration {
    fn default() -> KmsConfiguration {
        KmsConfiguration {
            api_version: "v1".to_owned(),
            name: String::new(),
            cache_size: None,
            endpoint: String::new(),
            timeout_ns: TIMEOUT_NS,
        }
    }
}

impl KmsConfiguration {
    pub fn timeout(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.timeout_ns).unwrap_or(0))
    }
}

/// A key is not for logs.
impl fmt::Debug for NamedKey {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Name: {}, Secret: [REDACTED]", self.name)
    }
}

/// Whether the file is read again while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    Never,
    Automatic,
}
