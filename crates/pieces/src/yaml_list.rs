//! A list's JSON, as YAML, item by item.
//!
//! In: another source's JSON of one object with one long list in it. Out: the YAML of that object, keys in
//! order, as [`forebay_yaml`] writes it. Holds the short members and one item, whatever the length of the
//! list.

use forebay_apimachinery::json;
use forebay_reads::SeenObjects;
use forebay_transport::BodySource;
use forebay_transport::limits::CHUNK_BYTES;
use forebay_yaml::{flow_item, item, length, member};
use serde_json::{Map, Value};

use crate::limits::YAML_GROWTH_MAX;
use crate::source::OfList;

/// Another source's list, as YAML.
#[derive(Clone)]
pub struct YamlList<S> {
    inner: S,
    piece: Vec<u8>,
    // Of the piece, read already.
    taken: usize,
    // There may be another piece.
    more: bool,
    scan: Scan,
    state: State,
}

/// How far the reading has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// What comes before the list.
    Head,
    Items,
    /// What comes behind the list.
    Tail,
    Done,
}

/// Where in the JSON the scan is, and what it holds.
#[derive(Clone, Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    // What was read since the last thing was taken out.
    held: Vec<u8>,
    head: Map<String, Value>,
    list: String,
    // Items so far.
    items: usize,
}

impl<S: BodySource> YamlList<S> {
    pub fn new(inner: S) -> YamlList<S> {
        let (scan, state) = (Scan::default(), State::Head);
        YamlList { inner, piece: Vec::new(), taken: 0, more: true, scan, state }
    }
}

impl<S: BodySource> BodySource for YamlList<S> {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        if self.state == State::Done {
            return false;
        }
        if self.taken == self.piece.len() {
            self.piece.clear();
            self.taken = 0;
            self.more = self.inner.fill(&mut self.piece);
        }
        let mut text = String::new();
        // Many items in one piece may each become long.
        for &byte in &self.piece[self.taken..] {
            if text.len() >= CHUNK_BYTES {
                break;
            }
            self.state = self.scan.push(byte, self.state, &mut text);
            self.taken += 1;
        }
        if !self.more && self.taken == self.piece.len() {
            self.scan.finish(&mut text);
            self.state = State::Done;
        }
        out.extend_from_slice(text.as_bytes());
        true
    }
}

impl<S: OfList> OfList for YamlList<S> {
    fn seen(&self) -> SeenObjects {
        self.inner.seen()
    }

    fn held_bytes(&self) -> usize {
        self.piece.len() + self.scan.held.len() + self.inner.held_bytes()
    }
}

impl Scan {
    fn push(&mut self, byte: u8, state: State, text: &mut String) -> State {
        let quiet = self.in_string || byte == b'"';
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
        } else if byte == b'"' {
            self.in_string = true;
        }
        if quiet {
            self.held.push(byte);
            return state;
        }
        match byte {
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        match (state, byte, self.depth) {
            // The long list begins: the only one right below the object that is called so.
            (State::Head, b'[', 2) if self.begins_list() => {
                self.begin(text);
                State::Items
            }
            (State::Items, b',', 2) | (State::Items, b']', 1) => {
                self.item(text);
                if byte == b']' { State::Tail } else { State::Items }
            }
            _ => {
                self.held.push(byte);
                state
            }
        }
    }

    fn begins_list(&self) -> bool {
        self.held.ends_with(b"\"items\":") || self.held.ends_with(b"\"rows\":")
    }

    /// Takes the members before the list, and writes those that come before it in order.
    fn begin(&mut self, text: &mut String) {
        let name = if self.held.ends_with(b"\"rows\":") { "rows" } else { "items" };
        self.list = name.to_string();
        let end = self.held.len() - name.len() - 3;
        let mut json = self.held[..end].trim_ascii().to_vec();
        if json.ends_with(b",") {
            json.pop();
        }
        json.push(b'}');
        self.take_members(&json);
        let early: Vec<String> = self.head.keys().filter(|key| key.as_str() < name).cloned().collect();
        for key in early {
            if let Some(value) = self.head.remove(&key) {
                member(&key, &value, 0, text);
            }
        }
        text.push_str(name);
        text.push(':');
    }

    /// Reads an object's members.
    fn take_members(&mut self, json: &[u8]) {
        self.held.clear();
        // Our own lists are well formed.
        if let Ok(Value::Object(members)) = serde_json::from_slice(json) {
            self.head.extend(members);
        }
    }

    fn item(&mut self, text: &mut String) {
        let value = json::read(&self.held);
        if let Ok(value) = value {
            if self.items == 0 {
                text.push('\n');
            }
            self.items += 1;
            let grows = length::of_json(&self.held) > YAML_GROWTH_MAX * self.held.len() + CHUNK_BYTES;
            match grows {
                true => flow_item(&value, text),
                false => item(&value, 0, text),
            }
        }
        self.held.clear();
    }

    /// Writes the members behind the list.
    fn finish(&mut self, text: &mut String) {
        if self.items == 0 && !self.list.is_empty() {
            text.push_str(" []\n");
        }
        let held = std::mem::take(&mut self.held);
        let members = held.trim_ascii();
        let members = members.strip_prefix(b",").unwrap_or(members);
        // Without a list, everything is still held, from the first brace on.
        let open: &[u8] = if self.list.is_empty() { b"" } else { b"{" };
        self.take_members(&[open, members].concat());
        for (key, value) in &self.head {
            member(key, value, 0, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::testing::{Pieces, all};

    fn check(json: &str) {
        let want = forebay_yaml::from_json(json.as_bytes()).expect("JSON");
        for size in [1, 7, json.len()] {
            let pieces: Vec<&[u8]> = json.as_bytes().chunks(size).collect();
            let got = all(YamlList::new(Pieces::of(&pieces)));
            assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(&want), "{json} by {size}");
        }
    }

    #[test]
    fn what_its_depth_makes_long_stands_on_one_line_and_a_piece_stays_short() {
        let item = |depth: usize, inner: &str| format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth));
        let words = serde_json::to_string(&"a \"\u{7f} ".repeat(3_000)).expect("a string");
        // Many that become some 25 KB each, then one that would become 6 MB.
        let many = vec![item(100, &vec!["0"; 100].join(",")); 200].join(",");
        let json = format!(r#"{{"kind":"L","items":[{many},{}]}}"#, item(400, &words));
        let mut source = YamlList::new(Pieces::of(&[json.as_bytes()]));
        let (mut all, mut more, mut pieces) = (Vec::new(), true, 0);
        while more {
            let mut piece = Vec::new();
            more = source.fill(&mut piece);
            assert!(piece.len() < 3 * CHUNK_BYTES, "{}", piece.len());
            pieces += 1;
            all.append(&mut piece);
        }
        assert!(pieces > 20, "{pieces}");
        let text = String::from_utf8(all).expect("UTF-8");
        let last = text.lines().rfind(|line| line.starts_with("- ")).expect("an item");
        let want = format!("- {}\"a \\\"\\x7F a", "[".repeat(400));
        assert!(last.starts_with(&want) && last.len() < 2 * words.len(), "{}", &last[..last.len().min(500)]);
    }

    #[test]
    fn a_list_comes_out_as_one_object_would() {
        for json in [
            r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}"#,
            r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"a":[1,{"items":[2]}],"s":"]}\",["},{}]}"#,
            r#"{"apiVersion":"g/v1","items":[{"x":1},{"y":null}],"kind":"FooList","metadata":{"continue":""}}"#,
            r#"{"kind":"Table","columnDefinitions":[{"name":"A"}],"rows":[{"cells":[1]}]}"#,
        ] {
            check(json);
        }
    }
}
