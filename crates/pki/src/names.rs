//! What a certificate is for, and where a pair of files is.

use std::net::IpAddr;
use std::path::PathBuf;

/// A certificate and its key, as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The same, and by which names clients ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFiles {
    pub files: CertificateFiles,
    /// `api.example.org`, `*.example.org`, `10.0.0.1`; none: those that the certificate has.
    pub names: Vec<String>,
}

/// The subject alternative names of the serving certificate, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServingNames {
    pub dns: Vec<String>,
    pub ips: Vec<IpAddr>,
}
