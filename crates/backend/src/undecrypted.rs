//! Values that are kept encrypted and cannot be decrypted: what is handed on in the place of one.
//!
//! In: why it cannot. Out: a value that nobody takes for another one, and from it why. Whoever reads it knows
//! that something is there: it is neither nothing nor anything that could be read. Never: a key, or what is
//! kept.

use std::borrow::Cow;

use bytes::Bytes;

/// What all that is encrypted begins with, as kube-apiserver keeps it.
const ENCRYPTED: &[u8] = b"k8s:enc:";
/// What says why: no provider has an empty name.
const SAID: &[u8] = b"k8s:enc:\0";

/// What kube-apiserver says where nobody may decrypt anything.
const NOBODY_DECRYPTS: &str = "identity transformer tried to read encrypted data";

/// What stands for a value that cannot be decrypted.
pub fn undecrypted(why: &str) -> Bytes {
    [SAID, why.as_bytes()].concat().into()
}

/// Why `value` was not decrypted; `None` of every other value.
pub fn why_undecrypted(value: &[u8]) -> Option<Cow<'_, str>> {
    match value.strip_prefix(SAID) {
        Some(why) => Some(String::from_utf8_lossy(why)),
        None => value.starts_with(ENCRYPTED).then_some(NOBODY_DECRYPTS.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_decrypted_says_why_and_nothing_else_does() {
        assert_eq!(why_undecrypted(&undecrypted("no key")).as_deref(), Some("no key"));
        assert_eq!(why_undecrypted(b"k8s:enc:aescbc:v1:key1:x").as_deref(), Some(NOBODY_DECRYPTS));
        for other in [&b"{}"[..], b"k8s\0", b"", b"k8s:en"] {
            assert_eq!(why_undecrypted(other), None);
        }
    }
}
