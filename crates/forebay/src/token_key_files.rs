//! Files of keys for service accounts' tokens that somebody gave.
//!
//! They are checked with the code that will use them, and never written.

use std::path::Path;

use forebay_endpoints::config::{KeyError, SigningKey, public_halves};
use forebay_pki::private_files;

use crate::error::Error;

/// Reads a file of keys for service account tokens: private or public ones, or certificates.
///
/// # Errors
/// The file cannot be read, or holds none.
pub fn read_verifying(path: &Path) -> Result<String, Error> {
    let pem = private_files::read(path)?;
    public_halves(&pem).map_err(|cause| Error::pki(path, cause.to_string()))?;
    Ok(pem)
}

/// Reads the private key that signs service account tokens.
///
/// # Errors
/// The file cannot be read, or is not such a key.
pub fn read_signing(path: &Path) -> Result<String, Error> {
    let pem = private_files::read(path)?;
    match SigningKey::from_pem(&pem) {
        Ok(_) => Ok(pem),
        Err(KeyError::None) => Err(Error::pki(path, "not a private key in PEM")),
        Err(cause) => Err(Error::pki(path, format!("cannot sign tokens: it {cause}"))),
    }
}
