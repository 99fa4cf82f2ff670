//! How objects are kept in etcd: as kube-apiserver keeps them, so that both can stand on the same etcd.
//!
//! In: keys, and values as the registry has them, JSON that begins with `kind` and `apiVersion`. Out: `k8s\0` and a protobuf message for built-in
//! kinds, JSON for definitions of custom resources, for custom resources, and for what has no message; and back.
//! Never: another version than the one that is stored here; a value that cannot be read is said to be so, by key.
//!
//! Source: reference §6; apiserver v1.36.3 `storage/etcd3`.

use bytes::Bytes;
use forebay_apimachinery::resource::split_api_version;
use forebay_etcd::Codec;
use forebay_schema::builtin::{TypeId, codec, protobuf, table};
use serde_json::Value;

use crate::stored_definition;

/// See the module's doc.
pub struct AsKubernetes {
    /// Where objects are: `/registry`.
    prefix: String,
    /// Places of built-in kinds below it, each with a slash behind: `pods/`. Sorted.
    built_in: Vec<String>,
}

/// A built-in kind that has a message.
struct Kind<'a> {
    ty: TypeId,
    kind: &'a str,
    api_version: &'a str,
}

impl AsKubernetes {
    pub fn new(prefix: &str) -> AsKubernetes {
        let places = table().resources().iter().filter_map(|resource| resource.storage_prefix);
        // Where servers say where they are: Endpoints, in a place that no resource has.
        let mut built_in: Vec<_> = places.chain(["masterleases"]).map(|place| format!("{place}/")).collect();
        built_in.sort();
        built_in.dedup();
        AsKubernetes { prefix: prefix.to_string(), built_in }
    }

    /// Whether a built-in kind is kept at `key`. Custom resources may have the name of a built-in kind.
    fn is_built_in(&self, key: &str) -> bool {
        let below = key.strip_prefix(&self.prefix).and_then(|below| below.strip_prefix('/'));
        below.is_some_and(|below| {
            // Places are one or two names deep.
            let ends = below.match_indices('/').map(|(at, _)| at + 1).take(2);
            ends.into_iter()
                .any(|end| self.built_in.binary_search_by(|place| place.as_str().cmp(&below[..end])).is_ok())
        })
    }
}

impl Codec for AsKubernetes {
    fn to_stored(&self, key: &str, value: &Bytes) -> Result<Bytes, String> {
        if !self.is_built_in(key) {
            return Ok(value.clone());
        }
        let Some((kind, api_version)) = type_of(value) else {
            return Err("it does not begin with its kind".to_string());
        };
        let Some(kind) = message_kind(api_version, kind) else { return Ok(value.clone()) };
        let mut message = Vec::with_capacity(value.len());
        protobuf::encode_json(kind.ty, value, &mut message).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        protobuf::Envelope::new(kind.api_version, kind.kind).write(&message, &mut out);
        Ok(out.into())
    }

    fn to_value(&self, _key: &str, stored: Bytes) -> Result<Bytes, (Bytes, String)> {
        if stored.starts_with(&protobuf::ENCRYPTED_PREFIX) {
            return Err((stored, "it is encrypted".to_string()));
        }
        if !stored.starts_with(&protobuf::ENVELOPE_PREFIX) {
            return match stored.first() {
                // Go's encoder ends a value with a new line.
                Some(b'{') => match type_of(&stored) {
                    Some((_, stored_definition::OLD_VERSION)) => {
                        from_old_definition(&stored).map_err(|why| (stored, why))
                    }
                    _ => Ok(stored.slice(..stored.trim_ascii_end().len())),
                },
                _ => Err((stored, "it is neither JSON nor protobuf".to_string())),
            };
        }
        from_message(&stored).map_err(|why| (stored, why))
    }
}

/// The JSON of a message in its envelope.
fn from_message(stored: &[u8]) -> Result<Bytes, String> {
    let unknown = protobuf::decode_envelope(stored).map_err(|error| error.to_string())?;
    let (api_version, kind) = (&*unknown.api_version, &*unknown.kind);
    let known =
        message_kind(api_version, kind).ok_or_else(|| format!("no kind {kind} of {api_version} is known"))?;
    let mut out = Vec::with_capacity(stored.len() * 2 + 128);
    write_head(&known, &mut out);
    if protobuf::stored_json(known.ty, unknown.raw, &mut out).is_some() {
        return Ok(Bytes::copy_from_slice(&out));
    }
    let value = protobuf::decode(known.ty, unknown.raw).map_err(|error| error.to_string())?;
    canonical(known, value)
}

/// The JSON of a definition in the form that kube-apiserver keeps.
fn from_old_definition(stored: &[u8]) -> Result<Bytes, String> {
    let mut value: Value = serde_json::from_slice(stored).map_err(|error| error.to_string())?;
    stored_definition::renew(&mut value);
    let (group, version) = split_api_version(stored_definition::VERSION);
    let kind = "CustomResourceDefinition";
    let known = table().kind(group, version, kind).ok_or("definitions are not known")?;
    canonical(Kind { ty: known.ty, kind, api_version: stored_definition::VERSION }, value)
}

/// A value as it is written here.
fn canonical(known: Kind<'_>, mut value: Value) -> Result<Bytes, String> {
    codec::normalize(known.ty, &mut value).map_err(|error| error.to_string())?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    let mut out = Vec::new();
    write_head(&known, &mut out);
    codec::encode(known.ty, &value, &mut out).map_err(|error| error.to_string())?;
    Ok(out.into())
}

/// What a value begins with.
fn write_head(known: &Kind<'_>, out: &mut Vec<u8>) {
    for part in ["{\"kind\":\"", known.kind, "\",\"apiVersion\":\"", known.api_version, "\","] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// The built-in kind, if its objects are kept as messages.
fn message_kind<'a>(api_version: &'a str, kind: &'a str) -> Option<Kind<'a>> {
    let (group, version) = split_api_version(api_version);
    let ty = table().kind(group, version, kind)?.ty;
    let kept = protobuf::is_message(ty) && !table().stored_as_json(ty);
    kept.then_some(Kind { ty, kind, api_version })
}

/// The kind and version with which values of built-in kinds begin.
fn type_of(value: &[u8]) -> Option<(&str, &str)> {
    let rest = value.strip_prefix(b"{\"kind\":\"")?;
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let end = rest.iter().position(|byte| *byte == b'"')?;
    let kind = text(&rest[..end])?;
    let rest = rest[end..].strip_prefix(b"\",\"apiVersion\":\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    Some((kind, text(&rest[..end])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":[{"name":"c","image":"i","resources":{}}]},"status":{}}"#;

    #[test]
    fn built_in_kinds_are_messages_and_everything_else_is_as_it_is() {
        let codec = AsKubernetes::new("/registry");
        let stored = |key: &str, value: &str| codec.to_stored(key, &Bytes::from(value.to_owned()));
        let pod = stored("/registry/pods/default/web", POD).expect("a pod");
        assert!(pod.starts_with(b"k8s\0"));
        assert_eq!(codec.to_value("/registry/pods/default/web", pod).expect("a pod"), POD);
        // A custom resource by the same name is kept elsewhere.
        let custom = r#"{"apiVersion":"g.io/v1","kind":"Pod","metadata":{"name":"web"}}"#;
        for (key, value) in [
            ("/registry/g.io/pods/default/web", custom),
            ("/registry/ranges/servicenodeports/30000", r#"{"kind":"NodePort"}"#),
            (
                "/registry/apiextensions.k8s.io/customresourcedefinitions/a.b",
                r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{}}"#,
            ),
        ] {
            assert_eq!(stored(key, value).expect("as it is"), value, "{key}");
        }
        assert!(stored("/registry/pods/default/web", "{}").is_err());
        let theirs = codec.to_value("/registry/g.io/pods/default/web", format!("{custom}\n").into());
        assert_eq!(theirs.expect("JSON"), custom);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let codec = AsKubernetes::new("/registry");
        let cases: [(&[u8], &str); 5] = [
            (b"k8s:enc:aescbc:v1:key1:xyz", "it is encrypted"),
            (b"\xd9\xd9\xf7\xa0", "it is neither JSON nor protobuf"),
            (b"", "it is neither JSON nor protobuf"),
            (b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Foo", "no kind Foo of v1 is known"),
            (b"k8s\0\xff", ""),
        ];
        for (stored, why) in cases {
            let (back, cause) = codec.to_value("/registry/x/y", stored.into()).expect_err("unreadable");
            assert_eq!(back, stored, "handed on as it is");
            assert!(cause.contains(why), "{cause}");
        }
    }
}
