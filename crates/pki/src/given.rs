//! Certificates that somebody gave: `--tls-cert-file` and `--tls-sni-cert-key` with their keys, and the
//! authorities of `--client-ca-file`.
//!
//! They are checked as far as serving needs it, and never written.

use std::net::IpAddr;

use jiff::Timestamp;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::path::Path;
use x509_parser::prelude::{X509Certificate, X509Version};

use crate::error::Error;
use crate::key_pair::KeyPairPem;
use crate::names::{CertificateFiles, ServingNames};
use crate::private_files;
use crate::{files, leaf, pem};

/// A given serving certificate, and what clients need to know to trust it.
#[derive(Debug, Clone)]
pub struct GivenServing {
    pub pair: KeyPairPem,
    /// The certificate to trust, in PEM: the authority where it is known, else the certificate itself.
    pub authority: String,
    /// By which clients ask for it, where nobody says others.
    pub asked_by: Vec<String>,
    names: ServingNames,
}

impl GivenServing {
    /// Reads the pair.
    ///
    /// - `client_ca`: authorities, one of which may have signed it too.
    ///
    /// # Errors
    /// A file cannot be read, or the key is not that of the certificate.
    pub fn read(
        files: &CertificateFiles,
        client_ca: Option<&str>,
        now: Timestamp,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let pair =
            KeyPairPem { cert: private_files::read(&files.cert)?, key: private_files::read(&files.key)? };
        let chain = files::certificates(&files.cert, &pair.cert)?;
        check_key(files, &chain, &pair.key)?;
        let cert = files::parsed(&files.cert, &chain[0])?;
        warn_of_its_time(&files.cert, &cert, now, warnings);
        let (names, asked_by) = (leaf::names_of(&cert), leaf::asked_by(&cert));
        let authority = authority(&files.cert, &chain, client_ca)?;
        Ok(Self { pair, authority, asked_by, names })
    }

    /// The name under which a client that connects to `address` has to check the certificate; `None`: the
    /// address.
    pub fn tls_server_name(&self, address: IpAddr) -> Option<String> {
        if self.names.ips.contains(&address) {
            return None;
        }
        let dns = self.names.dns.iter().find(|name| !name.starts_with('*')).cloned();
        dns.or_else(|| self.names.ips.first().map(IpAddr::to_string))
    }
}

/// Reads a pair that is shown to other servers. Unlike one that is served, its certificate may be of X.509
/// version 1, as `openssl x509 -req` makes them.
///
/// # Errors
/// A file cannot be read, or the key is not that of the certificate.
pub fn read_client(
    files: &CertificateFiles,
    now: Timestamp,
    warnings: &mut Vec<String>,
) -> Result<KeyPairPem, Error> {
    let pair = KeyPairPem { cert: private_files::read(&files.cert)?, key: private_files::read(&files.key)? };
    let chain = files::certificates(&files.cert, &pair.cert)?;
    let cert = files::parsed(&files.cert, &chain[0])?;
    match cert.version() {
        X509Version::V1 => check_old_key(files, &cert, &pair.key)?,
        _ => check_key(files, &chain, &pair.key)?,
    }
    warn_of_its_time(&files.cert, &cert, now, warnings);
    Ok(pair)
}

fn warn_of_its_time(file: &Path, cert: &X509Certificate<'_>, now: Timestamp, warnings: &mut Vec<String>) {
    let (begins, expires) = files::validity(cert);
    if now < begins || now >= expires {
        let file = file.display();
        warnings.push(format!("certificate {file} is valid from {begins} to {expires} only"));
    }
}

/// What serves does not read such a certificate, so its key is compared here.
fn check_old_key(files: &CertificateFiles, cert: &X509Certificate<'_>, key: &str) -> Result<(), Error> {
    let wrong = |reason: String| Error::unfit(&files.key, reason);
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|cause| wrong(format!("not a private key in PEM: {cause}")))?;
    let key = ring::default_provider().key_provider.load_private_key(key);
    let key = key.map_err(|cause| wrong(format!("cannot be used: {cause}")))?;
    match key.public_key().is_none_or(|public| public.as_ref() == cert.public_key().raw) {
        true => Ok(()),
        false => Err(not_the_key(files)),
    }
}

fn not_the_key(files: &CertificateFiles) -> Error {
    Error::unfit(&files.key, format!("is not the private key of the certificate in {}", files.cert.display()))
}

/// With the code that will serve it, so that what passes here serves.
fn check_key(files: &CertificateFiles, chain: &[CertificateDer<'static>], key: &str) -> Result<(), Error> {
    let wrong = |reason: String| Error::unfit(&files.key, reason);
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|cause| wrong(format!("not a private key in PEM: {cause}")))?;
    match CertifiedKey::from_der(chain.to_vec(), key, &ring::default_provider()) {
        Ok(_) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => Err(not_the_key(files)),
        Err(cause) => Err(wrong(format!("cannot be used: {cause}"))),
    }
}

fn authority(path: &Path, chain: &[CertificateDer<'_>], client_ca: Option<&str>) -> Result<String, Error> {
    let leaf = files::parsed(path, &chain[0])?;
    if let Some(last) = chain.get(1..).and_then(<[_]>::last)
        && files::parsed(path, last)?.is_ca()
    {
        return Ok(pem::certificate(last));
    }
    for authority in CertificateDer::pem_slice_iter(client_ca.unwrap_or_default().as_bytes()).flatten() {
        if leaf::is_signed_by(&leaf, path, &authority)? {
            return Ok(pem::certificate(&authority));
        }
    }
    // kubectl trusts a certificate that is among the authorities itself.
    Ok(pem::certificate(&chain[0]))
}

/// Reads a file of authorities, at least one.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn read_authorities(path: &Path) -> Result<String, Error> {
    let pem = private_files::read(path)?;
    files::certificates(path, &pem)?;
    Ok(pem)
}

/// Reads a file of authorities of client certificates; one that is not in its time vouches for nobody, which
/// is a warning.
///
/// # Errors
/// As [`read_authorities`].
pub fn read_client_authorities(
    path: &Path,
    now: Timestamp,
    warnings: &mut Vec<String>,
) -> Result<String, Error> {
    let pem = read_authorities(path)?;
    for authority in files::certificates(path, &pem)? {
        let parsed = files::parsed(path, &authority)?;
        let ((begins, expires), subject) = (files::validity(&parsed), parsed.subject());
        if now < begins || now >= expires {
            let file = path.display();
            warnings.push(format!(
                "authority {subject} in {file} is valid from {begins} to {expires} only: it vouches for nobody"
            ));
        }
    }
    Ok(pem)
}
