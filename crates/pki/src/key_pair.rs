//! A certificate and its key, as text.

use std::fmt;

/// A certificate, followed by its chain, and its private key.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPairPem {
    pub cert: String,
    pub key: String,
}

/// Without the key.
impl fmt::Debug for KeyPairPem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPairPem").field("cert", &self.cert).finish_non_exhaustive()
    }
}
