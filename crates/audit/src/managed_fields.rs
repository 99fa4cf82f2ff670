//! Objects without the word of who owns their fields.
//!
//! In: the compact JSON of an object, a list or a Table. Out: the same without `managedFields` in the
//! metadata of the object, of each item, or of what each row shows. Never: a tree; more nesting than that.

use bytes::Bytes;
use forebay_apimachinery::json::{Reader, Unexpected};

/// What of a value is looked into.
#[derive(Clone, Copy)]
enum Look {
    Whole,
    Items,
    Rows,
    Item,
    Row,
    Metadata,
}

/// See the module's doc. What is no object is let be.
pub(crate) fn without(json: Bytes) -> Bytes {
    const NAME: &[u8] = b"\"managedFields\":";
    // Mostly all of it is looked through once, and nothing found.
    if !json.windows(NAME.len()).any(|part| part == NAME) {
        return json;
    }
    let mut out = Vec::with_capacity(json.len());
    match copy(&mut Reader::new(&json), Look::Whole, &mut out) {
        Ok(()) => out.into(),
        Err(_) => json,
    }
}

fn copy(json: &mut Reader<'_>, look: Look, out: &mut Vec<u8>) -> Result<(), Unexpected> {
    match (look, json.peek()) {
        (Look::Items | Look::Rows, Some(b'[')) => elements(json, look, out),
        (Look::Whole | Look::Item | Look::Row | Look::Metadata, Some(b'{')) => members(json, look, out),
        _ => verbatim(json, out),
    }
}

fn elements(json: &mut Reader<'_>, look: Look, out: &mut Vec<u8>) -> Result<(), Unexpected> {
    let each = if matches!(look, Look::Rows) { Look::Row } else { Look::Item };
    json.begin(b'[')?;
    out.push(b'[');
    let mut count = 0;
    while json.element(count)? {
        if count > 0 {
            out.push(b',');
        }
        count += 1;
        copy(json, each, out)?;
    }
    out.push(b']');
    Ok(())
}

fn members(json: &mut Reader<'_>, look: Look, out: &mut Vec<u8>) -> Result<(), Unexpected> {
    json.begin(b'{')?;
    out.push(b'{');
    let (mut count, mut from, mut is_first) = (0, json.at(), true);
    while let Some(name) = json.member(count)? {
        let within = match (look, &*name) {
            (Look::Metadata, b"managedFields") => {
                json.skip()?;
                (count, from) = (count + 1, json.at());
                continue;
            }
            (Look::Whole | Look::Item, b"metadata") => Some(Look::Metadata),
            (Look::Whole, b"items") => Some(Look::Items),
            (Look::Whole, b"rows") => Some(Look::Rows),
            (Look::Row, b"object") => Some(Look::Item),
            _ => None,
        };
        if !is_first {
            out.push(b',');
        }
        // The name as it stands there, with its colon and without the comma before it.
        let head = &json.bytes()[from..json.at()];
        out.extend_from_slice(head.strip_prefix(b",").unwrap_or(head));
        match within {
            Some(within) => copy(json, within, out)?,
            None => verbatim(json, out)?,
        }
        (count, from, is_first) = (count + 1, json.at(), false);
    }
    out.push(b'}');
    Ok(())
}

fn verbatim(json: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Unexpected> {
    let from = json.at();
    json.skip()?;
    out.extend_from_slice(&json.bytes()[from..json.at()]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &'static str, want: &str) {
        assert_eq!(without(json.into()), want.as_bytes(), "{json}");
    }

    #[test]
    fn an_object_its_items_and_what_rows_show_lose_it_and_nothing_else_does() {
        check(r#"{"metadata":{"name":"x"}}"#, r#"{"metadata":{"name":"x"}}"#);
        check(
            r#"{"kind":"P","metadata":{"name":"x","managedFields":[{"a":"}"}],"uid":"u"},"spec":{"managedFields":1}}"#,
            r#"{"kind":"P","metadata":{"name":"x","uid":"u"},"spec":{"managedFields":1}}"#,
        );
        check(
            r#"{"metadata":{"managedFields":[]},"items":[{"metadata":{"managedFields":[1],"a":2}},7],"z":[]}"#,
            r#"{"metadata":{},"items":[{"metadata":{"a":2}},7],"z":[]}"#,
        );
        check(
            r#"{"rows":[{"cells":[1],"object":{"metadata":{"a":1,"managedFields":[]}}},{"object":null}]}"#,
            r#"{"rows":[{"cells":[1],"object":{"metadata":{"a":1}}},{"object":null}]}"#,
        );
        check(r#"{"data":{"managedFields":"x"}}"#, r#"{"data":{"managedFields":"x"}}"#);
    }

    #[test]
    fn what_is_no_json_is_let_be() {
        check(r#"{"metadata":{"managedFields":[}"#, r#"{"metadata":{"managedFields":[}"#);
    }
}
