//! What all objects of a collection are.

use forebay_apimachinery::json::write_string;

/// A kind and its `apiVersion`. One for each collection; its objects' handles share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMeta {
    kind: String,
    api_version: String,
    // `{"kind":"Pod","apiVersion":"v1",`: what stands before the body of a built-in kind.
    head: Vec<u8>,
}

impl TypeMeta {
    /// - `kind`: `Deployment`.
    /// - `api_version`: `apps/v1`, or `v1` for the core group.
    pub fn new(kind: &str, api_version: &str) -> TypeMeta {
        let mut head = b"{\"kind\":".to_vec();
        write_string(kind, &mut head);
        head.extend_from_slice(b",\"apiVersion\":");
        write_string(api_version, &mut head);
        head.push(b',');
        TypeMeta { kind: kind.into(), api_version: api_version.into(), head }
    }

    pub fn kind(&self) -> &str {
        &self.kind
    }

    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The beginning that an object's `body` goes without.
    pub(crate) fn head_of(&self, body: &[u8]) -> &[u8] {
        if is_whole(body) { &[] } else { &self.head }
    }
}

/// Whether the bytes of an object are all of it; those of a built-in kind begin behind its type.
pub(crate) fn is_whole(body: &[u8]) -> bool {
    body.first() == Some(&b'{')
}
