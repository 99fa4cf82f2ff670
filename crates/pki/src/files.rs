//! Keys and certificates in files: reading them with errors that name the file.

use std::path::Path;

use jiff::Timestamp;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::certificate::X509Certificate;

use crate::error::Error;
use crate::private_files::{self, Readers};

/// A private key of the directory.
pub struct Key {
    pub pair: KeyPair,
    pub pem: String,
    /// It was just made; its name is not durable yet.
    pub is_new: bool,
}

impl Key {
    /// Makes a key: ECDSA on P-256, which every client knows and which takes no time to make.
    ///
    /// # Errors
    /// The reason.
    pub fn new() -> Result<Self, String> {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
            .map_err(|cause| format!("no key could be made: {cause}"))?;
        Ok(Self { pem: pair.serialize_pem(), pair, is_new: true })
    }

    /// Loads the key, if there is one.
    pub fn load(dir: &Path, name: &str) -> Result<Option<Self>, Error> {
        let path = dir.join(name);
        let Some(pem) = private_files::read_secret_if_there(&path)? else { return Ok(None) };
        let pair = KeyPair::from_pem(&pem)
            .map_err(|cause| Error::unfit(&path, format!("not a private key in PEM (PKCS #8): {cause}")))?;
        Ok(Some(Self { pair, pem, is_new: false }))
    }

    /// Loads the key, or makes one.
    pub fn ensure(dir: &Path, name: &str) -> Result<Self, Error> {
        let path = dir.join(name);
        if let Some(key) = Self::load(dir, name)? {
            return Ok(key);
        }
        let made = Self::new().map_err(|reason| Error::unfit(&path, reason))?;
        private_files::write(&path, made.pem.as_bytes(), Readers::Owner)?;
        Ok(made)
    }
}

/// The certificates in a PEM file, at least one, each of them readable.
pub fn certificates(path: &Path, pem: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let certs: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|cause| Error::unfit(path, format!("not a certificate in PEM: {cause}")))?;
    if certs.is_empty() {
        return Err(Error::unfit(path, "holds no certificate in PEM"));
    }
    for cert in &certs {
        parsed(path, cert)?;
    }
    Ok(certs)
}

/// The fields of a certificate.
pub fn parsed<'a>(path: &Path, der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, Error> {
    match x509_parser::parse_x509_certificate(der) {
        Ok(([], cert)) => Ok(cert),
        Ok(_) => Err(Error::unfit(path, "not a certificate: bytes left over")),
        Err(cause) => Err(Error::unfit(path, format!("not a certificate: {cause}"))),
    }
}

/// The first certificate is that of the key.
pub fn check_match(
    path: &Path,
    cert: &X509Certificate<'_>,
    key: &KeyPair,
    key_name: &str,
) -> Result<(), Error> {
    if cert.public_key().raw == key.subject_public_key_info() {
        Ok(())
    } else {
        Err(Error::unfit(path, format!("does not belong to the private key in {key_name}")))
    }
}

/// When the certificate becomes valid and when it expires.
pub fn validity(cert: &X509Certificate<'_>) -> (Timestamp, Timestamp) {
    let time = |seconds| Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    (time(cert.validity().not_before.timestamp()), time(cert.validity().not_after.timestamp()))
}
