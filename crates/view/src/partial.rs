//! Objects of which no more than metadata is held, as a server has them that is asked for that alone.
//!
//! In: an object's bytes. Out: whether they are so. Never: makes one; whoever holds the objects does.

/// How the bytes of such an object begin.
pub const PARTIAL_HEAD: &[u8] = br#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata""#;

pub(crate) fn is_partial(body: &[u8]) -> bool {
    body.starts_with(PARTIAL_HEAD)
}
