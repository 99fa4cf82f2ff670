//! Answers of two servers made comparable: what each chooses itself gets a name.
//!
//! In: a code, warnings and a body. Out: a text, the same for both if they did the same: members in their
//! order, byte for byte, but for uids, versions by when they were first seen, times, addresses. Entries of
//! managedFields stand in an order of ours where nothing but a second decides theirs. Never: a difference of
//! what a client sent.

use super::tree::Tree;
use crate::pair::RawAnswer;

/// How the name of a version begins.
const VERSION: &str = "<rv";

/// What one server chose in one sequence.
#[derive(Debug)]
pub(super) struct Canonical {
    /// Whether times tell steps apart.
    keeps_order: bool,
    // in the order in which they were seen
    versions: Vec<String>,
    times: Vec<String>,
}

impl Canonical {
    /// - `keeps_order`: whether the order of entries and times is to be equal, as steps are seconds apart.
    pub(super) fn new(keeps_order: bool) -> Canonical {
        Canonical { keeps_order, versions: Vec::new(), times: Vec::new() }
    }

    /// The text of `answer`, its code first.
    pub(super) fn text(&mut self, answer: &RawAnswer) -> String {
        let body = match Tree::read(&answer.body) {
            Ok(mut tree) => {
                self.walk(&mut tree, "");
                sort_causes(&mut tree);
                tree.text()
            }
            Err(_) => named(&String::from_utf8_lossy(&answer.body)),
        };
        let mut warnings: Vec<String> = answer.warnings.iter().map(|warning| named(warning)).collect();
        warnings.sort();
        format!("{} {warnings:?} {body}", answer.code)
    }

    fn walk(&mut self, tree: &mut Tree, name: &str) {
        match tree {
            Tree::Object(members) => {
                for (member, value) in members.iter_mut() {
                    match (name, member.as_str()) {
                        ("metadata", "resourceVersion") => {
                            number(&mut self.versions, value, "rv");
                        }
                        ("metadata", "managedFields") => self.entries(value),
                        (_, "clusterIP" | "clusterIPs") => address(value),
                        (_, "nodePort") => *value = Tree::Leaf("<port>".to_owned()),
                        _ => self.walk(value, member),
                    }
                }
            }
            // What an item is named by is its list.
            Tree::List(items) => items.iter_mut().for_each(|item| self.walk(item, name)),
            // What is to be named is longer than most.
            Tree::Leaf(text) if text.len() < TIME_BYTES => {}
            Tree::Leaf(text) => *text = said(&named(text)),
        }
    }

    fn entries(&mut self, tree: &mut Tree) {
        let Tree::List(entries) = tree else { return };
        for entry in entries.iter_mut() {
            let Tree::Object(members) = entry else { continue };
            for (member, value) in members {
                match member.as_str() {
                    "time" if self.keeps_order => number(&mut self.times, value, "time"),
                    _ => self.walk(value, member),
                }
            }
        }
        if !self.keeps_order {
            entries.sort_by_cached_key(identity);
        }
    }
}

/// Gives the next version that each of two servers shows the same name, though one has shown more of them.
pub(super) fn align(one: &mut Canonical, other: &mut Canonical) {
    let most = one.versions.len().max(other.versions.len());
    for canonical in [one, other] {
        // No version is this.
        canonical.versions.resize(most, String::new());
    }
}

/// The text of an answer with every version alike.
pub(super) fn without_versions(text: &str) -> String {
    let mut parts = text.split(VERSION);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(VERSION);
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '));
    }
    out
}

/// Sorts the causes of a Status, and what its message lists of them: kube-apiserver has both in the order of
/// a map, which changes from call to call.
fn sort_causes(status: &mut Tree) {
    let Tree::Object(members) = status else { return };
    let mut is_list = false;
    for (name, value) in members.iter_mut() {
        match value {
            Tree::Object(details) if name == "details" => {
                for (_, value) in details.iter_mut().filter(|(name, _)| name == "causes") {
                    if let Tree::List(causes) = value {
                        is_list = causes.len() > 1;
                        causes.sort_by_cached_key(Tree::text);
                    }
                }
            }
            _ => {}
        }
    }
    let message = members.iter_mut().find(|(name, _)| name == "message");
    if let Some((_, Tree::Leaf(text))) = message.filter(|_| is_list)
        && let Some((head, list)) = text.split_once('[')
    {
        let list = list.strip_suffix('"').unwrap_or(list);
        let mut parts: Vec<&str> = list.strip_suffix(']').unwrap_or(list).split(", ").collect();
        parts.sort_unstable();
        *text = format!("{head}[{}]\"", parts.join(", "));
    }
}

/// Leaves out which of several fields kube-apiserver found first that are not in the schema, and sorts what
/// it found of others: it walks a map. Leaves out an object that stands in a message as a text, as its
/// entries are in an order of seconds, and a port that was chosen.
fn said(text: &str) -> String {
    if text.len() < MESSAGE_BYTES {
        return text.to_owned();
    }
    const ERRORS: &str = "errors:\\n  ";
    const DUPLICATE: &str = "Duplicate value: 3";
    const UNDECLARED: &str = ": field not declared in schema";
    const OBJECT: &str = "Invalid value: \\\"{";
    if let Some(end) = text.find(UNDECLARED)
        && let Some(from) = text[..end].rfind("): ")
    {
        return format!("{}): <fields>{UNDECLARED}\"", &text[..from]);
    }
    if let Some((head, errors)) = text.split_once(ERRORS) {
        let mut lines: Vec<&str> = errors.trim_end_matches('"').split("\\n  ").collect();
        lines.sort_unstable();
        return format!("{head}{ERRORS}{}\"", lines.join("\\n  "));
    }
    if let Some((head, after)) = text.split_once(DUPLICATE) {
        return format!(
            "{head}Duplicate value: <port>{}",
            after.trim_start_matches(|c: char| c.is_ascii_digit())
        );
    }
    if let Some(from) = text.find(OBJECT)
        && let Some(end) = text.rfind("}\\\"")
    {
        return format!("{}<an object>{}", &text[..from + OBJECT.len() - 1], &text[end + 1..]);
    }
    text.to_owned()
}

/// What tells entries apart, and then all of the entry.
fn identity(entry: &Tree) -> String {
    let members = ["operation", "manager", "apiVersion", "subresource"];
    let leaf = |name: &str| entry.get(name).map(Tree::text).unwrap_or_default();
    let own: Vec<String> = members.into_iter().map(leaf).collect();
    format!("{}\u{0}{}", own.join("\u{0}"), entry.text())
}

/// Names a leaf by its place among those that were seen.
fn number(seen: &mut Vec<String>, tree: &mut Tree, name: &str) {
    let Tree::Leaf(text) = tree else { return };
    let at = seen.iter().position(|known| known == text).unwrap_or_else(|| {
        seen.push(text.clone());
        seen.len() - 1
    });
    *text = format!("\"<{name} {at}>\"");
}

/// Names addresses that a server gave.
fn address(tree: &mut Tree) {
    match tree {
        Tree::List(items) => items.iter_mut().for_each(address),
        Tree::Leaf(text) if !matches!(text.as_str(), "\"\"" | "\"None\"" | "null") => {
            "\"<address>\"".clone_into(text);
        }
        Tree::Leaf(_) | Tree::Object(_) => {}
    }
}

/// `text` with uids and times of a server named. Uids that a client sends are not of version 4, its times at
/// midnight.
fn named(text: &str) -> String {
    let mut named = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let bytes = rest.as_bytes();
        if let Some(window) = bytes.get(..UUID_BYTES).filter(|window| is_uuid(window)) {
            named.push_str("<uid>");
            rest = &rest[window.len()..];
        } else if let Some(len) = time_len(bytes) {
            named.push_str("<time>");
            rest = &rest[len..];
        } else {
            named.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    named
}

const UUID_BYTES: usize = 36;
/// `2026-01-01T01:02:03Z`, the shortest of what is named.
const TIME_BYTES: usize = 20;
/// A message that holds one of the texts that are looked for is longer.
const MESSAGE_BYTES: usize = 24;

fn is_uuid(window: &[u8]) -> bool {
    window[8] == b'-'
        && window.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            14 => *byte == b'4',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
        })
}

/// Bytes of the time that `bytes` begin with, unless it is at midnight.
fn time_len(bytes: &[u8]) -> Option<usize> {
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'd' => byte.is_ascii_digit(),
        shape => byte == shape,
    };
    if bytes.get(4) != Some(&b'-') {
        return None;
    }
    let head = bytes.get(..SHAPE.len()).filter(|head| head.iter().zip(SHAPE).all(fits))?;
    if head.ends_with(b"T00:00:00") {
        return None;
    }
    let fraction = bytes[SHAPE.len()..].iter().take_while(|byte| **byte == b'.' || byte.is_ascii_digit());
    let end = SHAPE.len() + fraction.count();
    (bytes.get(end) == Some(&b'Z')).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(canonical: &mut Canonical, body: &str) -> String {
        let body = body.as_bytes().to_vec();
        canonical.text(&RawAnswer { code: 200, warnings: Vec::new(), body })
    }

    #[test]
    fn what_a_server_chose_is_named_and_nothing_else() {
        let mut canonical = Canonical::new(false);
        let body = r#"{"metadata":{"uid":"0a1b2c3d-0000-4000-8000-000000000000","resourceVersion":"41","creationTimestamp":"2026-01-01T01:02:03Z"},"at":"2020-01-01T00:00:00Z","m":"b at 2026-01-01T01:02:03.5Z","n":1.0}"#;
        assert_eq!(
            text(&mut canonical, body),
            r#"200 [] {"metadata":{"uid":"<uid>","resourceVersion":"<rv 0>","creationTimestamp":"<time>"},"at":"2020-01-01T00:00:00Z","m":"b at <time>","n":1.0}"#
        );
        assert!(text(&mut canonical, r#"{"metadata":{"resourceVersion":"42"}}"#).contains("<rv 1>"));
        assert!(text(&mut canonical, r#"{"metadata":{"resourceVersion":"41"}}"#).contains("<rv 0>"));
    }

    #[test]
    fn who_has_written_once_more_is_compared_from_there_on() {
        let (mut one, mut other) = (Canonical::new(false), Canonical::new(false));
        let version = |number: u32| format!(r#"{{"metadata":{{"resourceVersion":"{number}"}},"a":1}}"#);
        assert_eq!(text(&mut one, &version(5)), text(&mut other, &version(70)));
        // The other has written, the one not.
        let (ours, theirs) = (text(&mut one, &version(5)), text(&mut other, &version(71)));
        assert_ne!(ours, theirs);
        assert_eq!(without_versions(&ours), without_versions(&theirs));
        assert_ne!(without_versions(&ours), without_versions(&theirs.replace(":1}", ":2}")));
        align(&mut one, &mut other);
        assert_eq!(text(&mut one, &version(6)), text(&mut other, &version(72)));
    }

    #[test]
    fn what_a_map_in_go_orders_is_equal_in_any_order() {
        let mut canonical = Canonical::new(false);
        let causes = |first: &str, other: &str| {
            format!(
                r#"{{"message":"x is invalid: [{first}: no, {other}: no]","details":{{"causes":[{{"field":"{first}"}},{{"field":"{other}"}}]}}}}"#
            )
        };
        assert_eq!(text(&mut canonical, &causes("a", "b")), text(&mut canonical, &causes("b", "a")));
        let quoted = |field: &str| format!(r#"{field}: \"no\""#);
        let (a, b) = (causes(&quoted("a"), "b"), causes("b", &quoted("a")));
        assert_eq!(
            text(&mut canonical, &a),
            text(&mut canonical, &b),
            "a quote at the end is the message's own"
        );
        let message = |field: &str| {
            format!(r#"{{"message":"failed (/x; v1, Kind=X): .{field}: field not declared in schema"}}"#)
        };
        assert_eq!(text(&mut canonical, &message("a")), text(&mut canonical, &message("b.c")));
        let message =
            |first: &str, other: &str| format!(r#"{{"message":"errors:\n  .{first}: no\n  .{other}: no"}}"#);
        assert_eq!(text(&mut canonical, &message("a", "b")), text(&mut canonical, &message("b", "a")));
        let message = |version: &str| {
            format!(r#"{{"message":"is invalid: patch: Invalid value: \"{{\\\"v\\\":{version}}}\": no"}}"#)
        };
        assert_eq!(text(&mut canonical, &message("1")), text(&mut canonical, &message("2")));
        assert!(text(&mut canonical, &message("1")).ends_with(r#"Invalid value: \"<an object>\": no"}"#));
    }

    #[test]
    fn entries_are_in_an_order_of_their_own_unless_times_tell_them_apart() {
        let entries = |first: &str, other: &str| {
            let entry = |manager: &str| {
                format!(
                    r#"{{"manager":"{manager}","operation":"Update","time":"2026-01-01T01:02:0{}Z"}}"#,
                    manager.len()
                )
            };
            format!(r#"{{"metadata":{{"managedFields":[{},{}]}}}}"#, entry(first), entry(other))
        };
        let (one, other) = (entries("a", "bb"), entries("bb", "a"));
        let mut canonical = Canonical::new(false);
        assert_eq!(text(&mut canonical, &one), text(&mut canonical, &other));
        let mut canonical = Canonical::new(true);
        assert_ne!(text(&mut canonical, &one), text(&mut canonical, &other));
    }
}
