//! The certificates and keys that a server needs and nobody gave it: made on first start, kept, renewed in
//! time.
//!
//! A directory or none, names and the time go in; PEM comes out. Every key is made once and stays; a
//! certificate of the server's own making is made again when it is about to expire or does not cover a name.
//! The authority is never replaced: whoever trusts it would be cut off. What is broken is an error that names
//! the file, and stays as it is.
//!
//! Order on disk: keys are durable before certificates, so that a crash leaves at worst a key without a
//! certificate, which the next start completes.

mod authority;
mod error;
mod files;
pub mod front_proxy;
pub mod given;
mod key_pair;
mod leaf;
mod names;
mod pem;
pub mod private_files;
pub mod signing;
pub mod trust;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;

pub use error::Error;
pub use key_pair::KeyPairPem;
pub use names::{CertificateFiles, NamedFiles, ServingNames};

use authority::{Authority, COMMON_NAME};
use files::Key;
use leaf::{Leaf, Signer};
use signing::SigningAuthority;

/// Everything in the directory.
#[derive(Debug, Clone)]
pub struct Pki {
    /// Signs the two below, and what is asked for and approved.
    pub ca_cert: String,
    pub signing: Arc<SigningAuthority>,
    pub serving: KeyPairPem,
    /// `kubernetes-admin` of `system:masters`.
    pub admin: KeyPairPem,
    pub service_account_key: ServiceAccountKey,
}

/// A private key in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceAccountKey(pub String);

/// Without the key.
impl fmt::Debug for ServiceAccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceAccountKey")
    }
}

/// Loads the directory's files and makes what is missing, expiring or no longer enough.
///
/// - `names`: what the serving certificate has to cover.
/// - `warnings`: gets what somebody should look after.
///
/// # Errors
/// [`Error::Unfit`] for a file that is broken or does not fit another; [`Error::File`].
pub fn ensure(
    dir: &Path,
    names: &ServingNames,
    now: Timestamp,
    warnings: &mut Vec<String>,
) -> Result<Pki, Error> {
    private_files::create_dir(dir)?;
    if let Some(exposure) = private_files::exposure_of_dir(dir)? {
        return Err(Error::unfit(dir, exposure));
    }
    let ca_path = dir.join("ca.crt");
    let ca_cert = private_files::read_if_there(&ca_path)?;
    if ca_cert.is_some() && !dir.join("ca.key").exists() {
        return Err(Error::unfit(
            dir.join("ca.key"),
            "missing, though ca.crt is there; restore it, or remove the directory to begin with a new authority",
        ));
    }
    let keys = Keys::ensure(dir)?;
    let (authority, ca_is_new) = match ca_cert {
        Some(cert) => (Authority::load(&ca_path, cert, keys.ca.pair, now, warnings)?, false),
        None => (Authority::make(&ca_path, COMMON_NAME, keys.ca.pair, now)?, true),
    };
    let signer = Signer { dir, authority: &authority, now };
    // Both are looked at before either is touched, so that an error leaves the directory as it was.
    let serving = signer.find(&Leaf::Serving(names), &keys.serving)?;
    let admin = signer.find(&Leaf::Admin, &keys.admin)?;
    let any_is_new = ca_is_new || !serving.is_good() || !admin.is_good();
    let serving = signer.settle(&Leaf::Serving(names), &keys.serving, serving)?;
    let admin = signer.settle(&Leaf::Admin, &keys.admin, admin)?;
    if any_is_new {
        private_files::sync_dir(dir)?;
    }
    let ca_cert = authority.cert.clone();
    let signing =
        SigningAuthority::of(authority).map_err(|reason| Error::unfit(dir.join("ca.key"), reason))?;
    Ok(Pki {
        ca_cert,
        signing: Arc::new(signing),
        serving: KeyPairPem { cert: serving, key: keys.serving.pem },
        admin: KeyPairPem { cert: admin, key: keys.admin.pem },
        service_account_key: ServiceAccountKey(keys.service_account.pem),
    })
}

/// The certificates of the directory as they are now, for a server that runs: nothing is made, and those that
/// do not belong together are on their way to be replaced. The authority's, the server's pair, the
/// administrator's.
///
/// # Errors
/// [`Error::Unfit`] for what is missing, broken, or does not fit another; [`Error::File`].
pub fn read_certificates(dir: &Path) -> Result<(String, KeyPairPem, KeyPairPem), Error> {
    let ca_path = dir.join("ca.crt");
    let ca_cert = given::read_authorities(&ca_path)?;
    let authority = files::certificates(&ca_path, &ca_cert)?.swap_remove(0);
    let pair = |name: &str| {
        let (path, key_name) = (dir.join(format!("{name}.crt")), format!("{name}.key"));
        let (cert, key) = (private_files::read(&path)?, read_key(dir, &key_name)?);
        let der = files::certificates(&path, &cert)?.swap_remove(0);
        let parsed = files::parsed(&path, &der)?;
        files::check_match(&path, &parsed, &key.pair, &key_name)?;
        if !leaf::is_signed_by(&parsed, &path, &authority)? {
            return Err(Error::unfit(&path, "was not signed by ca.crt"));
        }
        Ok(KeyPairPem { cert, key: key.pem })
    };
    Ok((ca_cert.clone(), pair("apiserver")?, pair("admin")?))
}

/// The key of the directory for service accounts' tokens as it is now.
///
/// # Errors
/// As [`read_certificates`].
pub fn read_service_account_key(dir: &Path) -> Result<ServiceAccountKey, Error> {
    read_key(dir, "sa.key").map(|key| ServiceAccountKey(key.pem))
}

fn read_key(dir: &Path, name: &str) -> Result<Key, Error> {
    Key::load(dir, name)?.ok_or_else(|| Error::unfit(dir.join(name), "is missing"))
}

/// Makes everything for a server that keeps nothing.
///
/// # Errors
/// The reason; none is known but a system without random numbers.
pub fn in_memory(names: &ServingNames, now: Timestamp) -> Result<Pki, String> {
    let Keys { ca, serving, admin, service_account } = Keys::new()?;
    let authority = Authority::new(COMMON_NAME, ca.pair, now)?;
    let signed = |leaf: Leaf<'_>, key: Key| {
        Ok::<_, String>(KeyPairPem { cert: leaf.sign(&key.pair, &authority, now)?, key: key.pem })
    };
    Ok(Pki {
        serving: signed(Leaf::Serving(names), serving)?,
        admin: signed(Leaf::Admin, admin)?,
        service_account_key: ServiceAccountKey(service_account.pem),
        ca_cert: authority.cert.clone(),
        signing: Arc::new(SigningAuthority::of(authority)?),
    })
}

struct Keys {
    ca: Key,
    serving: Key,
    admin: Key,
    service_account: Key,
}

impl Keys {
    /// Makes all keys.
    fn new() -> Result<Self, String> {
        Ok(Self { ca: Key::new()?, serving: Key::new()?, admin: Key::new()?, service_account: Key::new()? })
    }

    /// Loads all keys and makes the missing ones, durably.
    fn ensure(dir: &Path) -> Result<Self, Error> {
        let keys = Self {
            ca: Key::ensure(dir, "ca.key")?,
            serving: Key::ensure(dir, "apiserver.key")?,
            admin: Key::ensure(dir, "admin.key")?,
            service_account: Key::ensure(dir, "sa.key")?,
        };
        if [&keys.ca, &keys.serving, &keys.admin, &keys.service_account].iter().any(|key| key.is_new) {
            private_files::sync_dir(dir)?;
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests;
