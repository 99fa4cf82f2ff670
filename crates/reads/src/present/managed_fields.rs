//! Objects without `metadata.managedFields`, for clients that say so (KEP-5958).
//!
//! In: the JSON of an object, just written. Out: the same without that member. Never: a tree.

use std::ops::Range;

use forebay_apimachinery::json::{Reader, Unexpected};

/// Cuts the member out of the object that begins at `from` and ends where `out` does.
///
/// Cost: a walk up to it, which passes over what stands before `metadata`, and a copy of what is behind it.
pub(super) fn cut(from: usize, out: &mut Vec<u8>) {
    if let Ok(Some(member)) = find(&out[from..]) {
        out.drain(from + member.start..from + member.end);
    }
}

/// Where the member is, with the comma that goes with it.
fn find(object: &[u8]) -> Result<Option<Range<usize>>, Unexpected> {
    let mut text = Reader::new(object);
    if !enter(&mut text, b"metadata")? {
        return Ok(None);
    }
    text.begin(b'{')?;
    let mut index = 0;
    loop {
        let before = text.at();
        let Some(name) = text.member(index)? else { return Ok(None) };
        let is_it = *name == *b"managedFields";
        text.skip()?;
        if is_it {
            let comma_behind = index == 0 && text.peek() == Some(b',');
            return Ok(Some(before..text.at() + usize::from(comma_behind)));
        }
        index += 1;
    }
}

/// Goes to the value of the object's member `name`; whether there is one.
fn enter(text: &mut Reader<'_>, name: &[u8]) -> Result<bool, Unexpected> {
    text.begin(b'{')?;
    let mut index = 0;
    while let Some(found) = text.member(index)? {
        if *found == *name {
            return Ok(true);
        }
        text.skip()?;
        index += 1;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_member_goes() {
        for (object, want) in [
            (
                r#"{"kind":"a","metadata":{"name":"b","managedFields":[{"fieldsV1":{"f:x":{}},"manager":"}]\""}]},"spec":{}}"#,
                r#"{"kind":"a","metadata":{"name":"b"},"spec":{}}"#,
            ),
            (r#"{"metadata":{"managedFields":[],"name":"b"}}"#, r#"{"metadata":{"name":"b"}}"#),
            (r#"{"metadata":{"managedFields":null}}"#, r#"{"metadata":{}}"#),
            (
                r#"{"a":{"managedFields":[1]},"metadata":{"labels":{"managedFields":"x"},"managedFields":[1],"name":"b"}}"#,
                r#"{"a":{"managedFields":[1]},"metadata":{"labels":{"managedFields":"x"},"name":"b"}}"#,
            ),
            (
                r#"{"metadata":{"name":"b"},"managedFields":[1]}"#,
                r#"{"metadata":{"name":"b"},"managedFields":[1]}"#,
            ),
            (r#"{"metadata":null}"#, r#"{"metadata":null}"#),
            ("{}", "{}"),
        ] {
            let mut out = [b"before", object.as_bytes()].concat();
            cut(b"before".len(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), format!("before{want}"));
        }
    }
}
