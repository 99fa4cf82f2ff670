//! Names of keys and contents of files as logs and metrics tell them: by their hash.
//!
//! In: text or bytes. Out: `sha256:…`. Never: what it is a hash of.

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
