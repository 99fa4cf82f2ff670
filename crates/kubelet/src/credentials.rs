//! Who this server is to kubelets, and who vouches for them: replaced while it runs.
//!
//! In: a certificate with its key, authorities. Out: what the next connection goes by, and how often that was
//! replaced. Never: reads a file.
//!
//! Owner: whoever replaces it; readers have it under its lock, for a line.

use std::sync::{Arc, Mutex, PoisonError};

use forebay_proxy::{ClientIdentity, Trust};

/// Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct KubeletCredentials(Arc<Inner>);

struct Inner {
    identity: ClientIdentity,
    // How often it was replaced.
    trust: Mutex<(Trust, u64)>,
}

impl KubeletCredentials {
    /// - `cert`, `key`: PEM.
    /// - `authority`: who vouches for kubelets, in PEM. `None`: nobody needs to, as kube-apiserver has it.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub fn from_pem(cert: &str, key: &str, authority: Option<&str>) -> Result<KubeletCredentials, String> {
        let (identity, trust) = (ClientIdentity::from_pem(cert, key)?, Mutex::new((trust(authority), 0)));
        Ok(KubeletCredentials(Arc::new(Inner { identity, trust })))
    }

    /// Goes by these from now on. What is connected already stays so; whoever asks next connects anew.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together; what was gone by still is.
    pub fn replace(&self, cert: &str, key: &str, authority: Option<&str>) -> Result<(), String> {
        self.0.identity.replace(cert, key)?;
        let mut known = self.0.trust.lock().unwrap_or_else(PoisonError::into_inner);
        *known = (trust(authority), known.1 + 1);
        Ok(())
    }

    pub(crate) fn identity(&self) -> ClientIdentity {
        self.0.identity.clone()
    }

    /// Who vouches for kubelets, and how often it was replaced.
    pub(crate) fn trust(&self) -> (Trust, u64) {
        self.0.trust.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn trust(authority: Option<&str>) -> Trust {
    authority.map_or(Trust::Anybody, |pem| Trust::Bundle(pem.as_bytes().to_vec()))
}
