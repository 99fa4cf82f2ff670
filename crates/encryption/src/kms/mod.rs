//! KMS v2: a plugin on this machine encrypts the seed that values are encrypted with.
//!
//! In: values and what is kept of them. Out: the other of both, and what a plugin has to be asked first.
//! Never: a plugin's own key; the older KMS v1, which upstream has turned off.
//!
//! Source: apiserver v0.36.3 `storage/value/encrypt/envelope/kmsv2`, `server/options/encryptionconfig`.

mod client;
mod envelope;
mod keys;
mod messages;
mod provider;

pub use envelope::DataKeyRef;
pub use provider::KmsProvider;

pub(crate) use provider::KmsSettings;

use ring::digest::{SHA256, digest};

/// As logs and metrics tell names of keys: `sha256:…`; nothing for nothing.
pub(crate) fn hashed(text: &str) -> String {
    if text.is_empty() { String::new() } else { hashed_bytes(text.as_bytes()) }
}

/// The same of bytes.
pub(crate) fn hashed_bytes(bytes: &[u8]) -> String {
    let mut out = String::from("sha256:");
    for byte in digest(&SHA256, bytes).as_ref() {
        out.push_str(&format!("{byte:02x}"));
    }
    out
}
