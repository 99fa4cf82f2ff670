//! What a JSON value takes in memory: how much its parts are charged for while it is made, or copied.
//!
//! In: the shape of a value. Out: bytes, from above. The figures are those of `serde_json::Value` on
//! jemalloc: a value has 32 B where it stands; an object is a B-tree whose first node, of 11 members, has 640
//! B; one that grows in order has 7 members for each node; an array doubles as it grows; a string has a size
//! class of its own.

use serde_json::Value;

use super::string_end;
use crate::lease::{Exhausted, Lease};

/// An object that is not empty.
pub const OBJECT_BYTES: usize = 704;

/// Members that an object's first node has room for, and what each one beyond takes.
pub const NODE_MEMBERS: usize = 11;
pub const MEMBER_BYTES: usize = 112;

/// An array that is not empty, and each of its items.
pub const ARRAY_BYTES: usize = 64;
pub const ITEM_BYTES: usize = 64;

/// A string of so many bytes.
pub const fn text(len: usize) -> usize {
    (len + len / 8).next_multiple_of(16)
}

/// An object of so many members, without what these are.
pub const fn object(members: usize) -> usize {
    match members {
        0 => 0,
        _ => OBJECT_BYTES + MEMBER_BYTES * members.saturating_sub(NODE_MEMBERS),
    }
}

/// An array of so many items, without what these are.
pub const fn array(items: usize) -> usize {
    match items {
        0 => 0,
        _ => ARRAY_BYTES + ITEM_BYTES * items,
    }
}

/// A value, with all that is in it. Cost: a walk over it, as deep as it is.
pub fn of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(string) => text(string.len()),
        Value::Array(items) => array(items.len()) + items.iter().map(of).sum::<usize>(),
        Value::Object(members) => {
            object(members.len())
                + members.iter().map(|(name, value)| text(name.len()) + of(value)).sum::<usize>()
        }
    }
}

/// A copy of `value`, charged before it is made.
///
/// # Errors
/// [`Exhausted`].
pub fn copy(value: &Value, lease: &Lease) -> Result<Value, Exhausted> {
    lease.meter().charge(of(value))?;
    Ok(value.clone())
}

/// What a text becomes when it is read: from above, without reading it. Cost: a pass over it.
pub fn of_text(json: &[u8]) -> usize {
    let (mut objects, mut values, mut strings, mut at) = (0, 0, 0, 0);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'{' => objects += 1,
            // Each value but the first stands behind one of them.
            b',' | b'[' => values += 1,
            b'"' => {
                strings += 1;
                at += string_len(&json[at + 1..]);
            }
            _ => {}
        }
        at += 1;
    }
    objects * OBJECT_BYTES + values * MEMBER_BYTES + strings * 16 + json.len() + json.len() / 8
}

/// Bytes of a string behind its opening quote, the closing one among them.
pub fn string_len(text: &[u8]) -> usize {
    string_end(text, 0).unwrap_or(text.len())
}

/// How long a JSON text is with a line for each value, two spaces a level. Cost: one pass.
///
/// - `more`: by how much a text grows, its closing quote with it, at its depth.
pub fn on_lines(json: &[u8], more: impl Fn(&[u8], usize) -> usize) -> usize {
    let (mut bytes, mut depth, mut at) = (json.len(), 0_usize, 0);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let text = &json[at + 1..];
                let len = string_len(text);
                bytes += more(&text[..len], depth);
                at += len;
            }
            _ => {}
        }
        if matches!(byte, b'{' | b'[' | b'}' | b']' | b',' | b':') {
            bytes += 1 + if byte == b':' { 0 } else { 2 * depth };
        }
        at += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::lease::{Ledger, TREE_BYTES_MAX};

    struct Endless;

    impl Ledger for Endless {
        fn try_take(&mut self, _bytes: usize) -> bool {
            true
        }
    }

    #[test]
    fn what_is_read_is_charged_as_what_it_is() {
        for text in [
            "null",
            "[]",
            "[{}]",
            r#"{"a":{"b":[1,2,"a long text of more than sixteen bytes"]},"":""}"#,
            r#"[[[0]],{"a\n":"b\u0041"}]"#,
            &format!("{{{}\"z\":0}}", (0..100).map(|n| format!("\"a{n}\":\"{n}\",")).collect::<String>()),
        ] {
            let lease = Lease::new(Endless, 0);
            let parsed = json::parse(text.as_bytes(), &lease).expect("JSON");
            let (charged, weight) = (lease.used(), of(&parsed.value));
            // A string with an escape has room to spare.
            assert!(charged >= weight && charged <= weight + 128, "{charged} {weight} {text}");
            assert!(of_text(text.as_bytes()) >= weight, "{text}");
        }
    }

    #[test]
    fn the_smallest_objects_are_refused_before_they_are_all_there() {
        let bomb = [b"[".as_slice(), &br#"{"a":0},"#.repeat(390_000), b"0]"].concat();
        let lease = Lease::new(Endless, 0);
        let refused = json::parse(&bomb, &lease).expect_err("too much");
        assert_eq!(refused, json::ParseError::Exhausted(Exhausted::TooLarge));
        assert!(
            lease.used() <= TREE_BYTES_MAX,
            "what is over is given back but for what was made: {}",
            lease.used()
        );
        assert_eq!(lease.exhausted(), Some(Exhausted::TooLarge));
        // As many bytes of what objects usually are fit.
        let pods = [
            b"[".as_slice(),
            &br#"{"name":"a-name","value":"some value of usual length"},"#.repeat(50_000),
            b"0]",
        ];
        assert!(json::parse(&pods.concat(), &Lease::new(Endless, 0)).is_ok());
    }
}
