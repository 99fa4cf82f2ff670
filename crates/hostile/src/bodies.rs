//! What bodies are made of: texts that repeat, and protobuf by hand.

use std::fmt::Write;

use forebay_apimachinery::varint;

/// `count` texts with `gap` between them.
pub fn joined(count: usize, gap: &str, text: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut all, index| {
        if index > 0 {
            all.push_str(gap);
        }
        let _ = write!(all, "{}", text(index));
        all
    })
}

/// A ConfigMap called `name` with these further members.
pub fn config_map(name: &str, members: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}{}{members}}}"#,
        if members.is_empty() { "" } else { "," }
    )
}

/// A pod called `name` with these further members of its spec beside a container.
pub fn pod(name: &str, members: &str) -> String {
    let gap = if members.is_empty() { "" } else { "," };
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}"}},"spec":{{"containers":[{{"name":"c","image":"i"}}]{gap}{members}}}}}"#
    )
}

/// A definition of `plural` in the group `hostile.dev` with `schema` as its schema and these further members
/// of its version.
pub fn definition(plural: &str, schema: &str, version: &str) -> String {
    let kind = kind_of(plural);
    let gap = if version.is_empty() { "" } else { "," };
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"{plural}.hostile.dev"}},"spec":{{"group":"hostile.dev","scope":"Namespaced","names":{{"plural":"{plural}","singular":"{plural}one","kind":"{kind}","listKind":"{kind}List"}},"versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}{gap}{version}}}]}}}}"#
    )
}

/// An object of a [`definition`], with these members beside its type and name.
pub fn custom(plural: &str, name: &str, members: &str) -> String {
    let gap = if members.is_empty() { "" } else { "," };
    format!(
        r#"{{"apiVersion":"hostile.dev/v1","kind":"{}","metadata":{{"name":"{name}"}}{gap}{members}}}"#,
        kind_of(plural)
    )
}

pub fn custom_path(plural: &str) -> String {
    format!("/apis/hostile.dev/v1/namespaces/hostile/{plural}")
}

fn kind_of(plural: &str) -> String {
    let mut kind = plural.to_owned();
    kind[..1].make_ascii_uppercase();
    kind
}

/// A schema of type object with these properties.
pub fn object_schema(properties: &str) -> String {
    format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)
}

/// A number as protobuf has it.
pub fn varint(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::write(number, &mut bytes);
    bytes
}

/// A field that has a length: a message, a text or bytes.
pub fn field(number: u64, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A message as kube-apiserver sends it: its type, and `raw`.
pub fn unknown(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let types = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &types), field(2, raw)].concat()
}

/// The `metadata` of a message, with a name.
pub fn named(name: &str) -> Vec<u8> {
    field(1, &field(1, name.as_bytes()))
}

/// `depth` messages, each the only field of the one around it.
pub fn nested(number: u64, depth: usize) -> Vec<u8> {
    // From the inside out, backwards: each length stands in front of what it counts.
    let mut backwards = Vec::new();
    for _ in 0..depth {
        let mut head = [varint(number << 3 | 2), varint(backwards.len() as u64)].concat();
        head.reverse();
        backwards.extend(head);
    }
    backwards.reverse();
    backwards
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protobuf_is_as_its_specification_has_it() {
        assert_eq!(varint(300), [0xac, 0x02]);
        assert_eq!(field(2, b"testing"), b"\x12\x07testing");
        assert_eq!(nested(1, 3), [0x0a, 4, 0x0a, 2, 0x0a, 0]);
        assert_eq!(nested(1, 3), field(1, &field(1, &field(1, b""))));
    }

    #[test]
    fn what_is_put_together_is_json() {
        for text in [
            config_map("a", ""),
            config_map("a", r#""data":{}"#),
            pod("a", r#""volumes":[]"#),
            definition("things", &object_schema(""), r#""subresources":{"status":{}}"#),
            custom("things", "a", r#""spec":{}"#),
        ] {
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        }
    }
}
