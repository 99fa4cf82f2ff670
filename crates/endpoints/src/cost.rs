//! What requests take while they are answered, in bytes: estimates from above, made before anything is.
//!
//! In: a request's shape, or a body. Out: bytes to ask a [`forebay_room::Room`] for. Never: exact.

use forebay_apimachinery::accept::{ContentType, Media};
use forebay_apimachinery::json::weight;
use forebay_apimachinery::lease::TREE_BYTES_MAX;
use forebay_pieces::indented_len;
use forebay_reads::Weight;
use forebay_yaml::length;
use http::request::Parts;

use crate::limits::{FORM_BYTES, LIST_BYTES, LIST_CHEAP_BYTES};
use crate::negotiate::Form;

/// What a request's head takes as long as it is answered: its options are taken apart, and may be many.
pub fn head(parts: &Parts) -> usize {
    const OPTION_BYTES: usize = 80;
    // A value of a selector.
    const TERM_BYTES: usize = 32;
    let headers: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let query = parts.uri.query().unwrap_or_default();
    let options = query.bytes().filter(|byte| *byte == b'&').count();
    // A comma as it is, or escaped.
    let terms = query.bytes().filter(|byte| matches!(byte, b',' | b'%')).count();
    headers + query.len() + OPTION_BYTES * options + TERM_BYTES * terms
}

/// What a list has to do besides walking its snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListWork {
    /// Its items are made: Table, metadata alone, YAML, indented, protobuf.
    pub form: bool,
    /// Objects of the resource, in whichever namespace, and their bytes.
    pub objects: usize,
    pub bytes: usize,
}

impl ListWork {
    /// - `is_as_stored`: nothing is made of the objects but what is stored of them.
    pub fn of(Weight { of, .. }: Weight, is_as_stored: bool) -> ListWork {
        ListWork { form: !is_as_stored, objects: of.objects, bytes: of.bytes }
    }
}

/// What a list holds while it is sent; `None` for one that is as cheap as a GET.
///
/// A piece ends behind an object: where objects are large it is about as long as the longest of them, of
/// which only the average is known. Compressing it takes more only for as long as a thread is at it.
pub fn list(work: ListWork) -> Option<usize> {
    if work.bytes <= LIST_CHEAP_BYTES {
        return None;
    }
    let average = work.bytes / work.objects.max(1);
    let piece = 2 * average.min(work.bytes);
    let form = if work.form { FORM_BYTES + 2 * piece } else { 0 };
    Some(LIST_BYTES + piece + form)
}

/// What an object of YAML may take once it is read, for each of its lines, and what a value does.
const LINE_BYTES: usize = weight::OBJECT_BYTES / 2 + weight::ITEM_BYTES;
/// A protobuf message of so many bytes may hold another object; see `forebay_schema::builtin::protobuf`.
const MESSAGE_BYTES_AN_OBJECT: usize = 16;

/// Copies of the object while it is written: normalized, encoded, in the store's queue, in the answer.
const COPIES: usize = 4;

/// What it takes to work on a body: the tree that it is read into, and the forms of the object that it
/// becomes. A tree that would take more than one may is refused while it is read.
pub fn body(bytes: &[u8], content_type: Option<ContentType>) -> usize {
    let tree = match content_type {
        Some(ContentType::Protobuf) => bytes.len() / MESSAGE_BYTES_AN_OBJECT * weight::OBJECT_BYTES,
        Some(ContentType::Yaml) => lines(bytes) * LINE_BYTES,
        _ => weight::of_text(bytes),
    };
    tree.min(TREE_BYTES_MAX) + COPIES * bytes.len()
}

/// What it takes to change an object that is there: its tree and the changed one, and their texts, some of
/// them with room to grow.
pub fn change(json: &[u8]) -> usize {
    const TEXTS: usize = COPIES + 2;
    2 * weight::of_text(json).min(TREE_BYTES_MAX) + TEXTS * json.len()
}

/// What an object takes in the form that it is answered in.
pub fn answer(json: &[u8], form: Form) -> usize {
    match (form.media, form.pretty) {
        (Media::Yaml, _) => length::of_json(json),
        (Media::Json, true) => indented_len(json),
        (Media::Json, false) | (Media::Protobuf, _) => json.len(),
    }
}

/// YAML's nodes: most stand on a line of their own, others behind commas and brackets.
fn lines(yaml: &[u8]) -> usize {
    1 + yaml.iter().filter(|byte| matches!(byte, b'\n' | b',' | b'{' | b'[')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_little_is_cheap_and_more_work_costs_more() {
        let work = |objects, bytes, form| ListWork { form, objects, bytes };
        assert_eq!(list(work(0, 0, true)), None);
        assert_eq!(list(work(10, LIST_CHEAP_BYTES, false)), None);
        let pods = |form| list(work(20_000, 160 << 20, form)).expect("not cheap");
        assert!(pods(false) < 2 * LIST_BYTES && pods(true) > pods(false));
        let secrets = list(work(400, 400 << 20, false)).expect("not cheap");
        assert!(secrets > 2 << 20, "pieces are as long as objects: {secrets}");
    }

    #[test]
    fn a_body_costs_what_its_tree_takes() {
        let json = Some(ContentType::Json);
        let pod = br#"{"kind":"Pod","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"containers":[{"name":"a"}]}}"#;
        let cost = body(pod, json);
        assert!((5 * weight::OBJECT_BYTES..8 * weight::OBJECT_BYTES).contains(&cost), "{cost}");
        // 3 MiB of the smallest objects there are would become some 280 MB, and are refused on the way.
        let bomb = [b"[".as_slice(), &br#"{"a":0},"#.repeat(390_000), b"0]"].concat();
        assert!(body(&bomb, json) >= TREE_BYTES_MAX);
        // The same inside a string is one value.
        let text = serde_json::to_vec(&String::from_utf8(bomb).expect("ASCII")).expect("a string");
        assert!(body(&text, json) < 6 * text.len());
        let cut = &text[..text.len() - 1];
        assert!(body(cut, json) < 6 * text.len(), "an open string ends with the body");
    }

    #[test]
    fn other_types_are_weighed_by_what_they_may_become() {
        let message = vec![0; 3 << 20];
        assert!(body(&message, Some(ContentType::Protobuf)) >= TREE_BYTES_MAX);
        let yaml = b"a: 1\nb: [1, 2]\n".repeat(100);
        assert!(body(&yaml, Some(ContentType::Yaml)) > 400 * weight::ITEM_BYTES);
    }
}
