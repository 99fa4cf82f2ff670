//! What this server shows to the servers that it passes requests on to: a certificate of an authority that
//! vouches for nothing else.
//!
//! A directory or none and the time go in; PEM comes out. Made on first start, kept, renewed in time, as the
//! other certificates are. Never: the authority of clients, lest a client be taken for a proxy.

use std::path::Path;

use jiff::Timestamp;

use crate::authority::{Authority, FRONT_PROXY_NAME};
use crate::error::Error;
use crate::files::Key;
use crate::key_pair::KeyPairPem;
use crate::leaf::{Leaf, Signer};
use crate::private_files;

pub use crate::leaf::FRONT_PROXY_CLIENT;

/// Everything in the directory but the authority's key.
#[derive(Debug, Clone)]
pub struct FrontProxy {
    pub ca_cert: String,
    pub client: KeyPairPem,
}

/// Loads the directory's files and makes what is missing or expiring.
///
/// - `warnings`: gets what somebody should look after.
///
/// # Errors
/// [`Error::Unfit`] for a file that is broken or does not fit another; [`Error::File`].
pub fn ensure(dir: &Path, now: Timestamp, warnings: &mut Vec<String>) -> Result<FrontProxy, Error> {
    private_files::create_dir(dir)?;
    if let Some(exposure) = private_files::exposure_of_dir(dir)? {
        return Err(Error::unfit(dir, exposure));
    }
    let path = dir.join("ca.crt");
    let cert = private_files::read_if_there(&path)?;
    if cert.is_some() && !dir.join("ca.key").exists() {
        return Err(Error::unfit(
            dir.join("ca.key"),
            "missing, though ca.crt is there; restore it, or remove the directory to begin with a new authority",
        ));
    }
    let (key, client) = (Key::ensure(dir, "ca.key")?, Key::ensure(dir, "client.key")?);
    if key.is_new || client.is_new {
        private_files::sync_dir(dir)?;
    }
    let (authority, is_new) = match cert {
        Some(cert) => (Authority::load(&path, cert, key.pair, now, warnings)?, false),
        None => (Authority::make(&path, FRONT_PROXY_NAME, key.pair, now)?, true),
    };
    let signer = Signer { dir, authority: &authority, now };
    let found = signer.find(&Leaf::FrontProxy, &client)?;
    let any_is_new = is_new || !found.is_good();
    let shown = signer.settle(&Leaf::FrontProxy, &client, found)?;
    if any_is_new {
        private_files::sync_dir(dir)?;
    }
    Ok(FrontProxy { ca_cert: authority.cert, client: KeyPairPem { cert: shown, key: client.pem } })
}

/// Makes everything for a server that keeps nothing.
///
/// # Errors
/// The reason; none is known but a system without random numbers.
pub fn in_memory(now: Timestamp) -> Result<FrontProxy, String> {
    let (key, client) = (Key::new()?, Key::new()?);
    let authority = Authority::new(FRONT_PROXY_NAME, key.pair, now)?;
    let cert = Leaf::FrontProxy.sign(&client.pair, &authority, now)?;
    Ok(FrontProxy { ca_cert: authority.cert, client: KeyPairPem { cert, key: client.pem } })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use forebay_scratch::Scratch;

    use super::*;

    #[test]
    fn what_was_made_is_kept_and_what_is_missing_made_again() {
        let (scratch, now) = (Scratch::new(), Timestamp::from_second(1_800_000_000).expect("a time"));
        let dir = scratch.path().join("front-proxy");
        let first = ensure(&dir, now, &mut Vec::new()).expect("made");
        let again = ensure(&dir, now, &mut Vec::new()).expect("kept");
        assert_eq!((&first.ca_cert, &first.client), (&again.ca_cert, &again.client));
        fs::remove_file(dir.join("client.crt")).expect("removed");
        let third = ensure(&dir, now, &mut Vec::new()).expect("made");
        assert_eq!((&first.ca_cert, &first.client.key), (&third.ca_cert, &third.client.key));
        assert_ne!(first.client.cert, third.client.cert);
        fs::remove_file(dir.join("ca.key")).expect("removed");
        assert!(ensure(&dir, now, &mut Vec::new()).is_err(), "nobody is cut off");
    }
}
