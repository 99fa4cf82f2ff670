//! A body in YAML, as JSON.
//!
//! The first document counts, as in kube-apiserver. Of members that come twice the last one counts for who
//! reads the JSON, and it is said in which lines they are. What was read lies in one row, in which an alias
//! is a number: it costs nothing until it is written, and what is written is counted. How deep anything goes
//! is bounded here, not by what comes.

use std::collections::HashMap;

use forebay_apimachinery::json::{write_sorted, write_string};
use forebay_apimachinery::lease::{Exhausted, Lease, Meter};
use granit_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::Value;

use crate::expand::{Written, written_out};
use crate::limits::{DEPTH_MAX, JSON_BYTES_MAX, NODES_MAX};
use crate::resolve::{Scalar, resolve};
use crate::tape::{Node, Place, Tape, Text};
use crate::words::syntax;

/// What a node and an anchor take while the document is read, in rows that double as they grow.
const NODE_BYTES: usize = 2 * (size_of::<Node>() + size_of::<u32>());
const ANCHOR_BYTES: usize = 64;

/// Why a body is no YAML that can be taken.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    /// - `line`: 0 where none is named.
    #[error("yaml: {}{what}", named(*line))]
    Syntax { line: usize, what: String },
    #[error("yaml: invalid UTF-8")]
    Utf8,
    #[error("yaml: document contains excessive aliasing")]
    Aliasing,
    #[error("yaml: document is too large or too deep")]
    TooLarge,
    #[error("yaml: unsupported map key")]
    Key,
    #[error("yaml: map merge requires map or sequence of maps as the value")]
    Merge,
    #[error("json: unsupported value: {0}")]
    Number(f64),
    /// It would take more memory than its request may hold.
    #[error("yaml: {0}")]
    Exhausted(#[from] Exhausted),
}

/// How many bytes reading it is work on, from above: with an alias, which may stand for all that came before,
/// as many as it may become; each line is a node, and takes as long as many bytes of JSON.
pub fn work(yaml: &[u8]) -> usize {
    const LINE_WORK: usize = 64;
    match yaml.contains(&b'*') {
        true => JSON_BYTES_MAX,
        false => yaml.len() + LINE_WORK * yaml.iter().filter(|byte| matches!(byte, b'\n' | b',')).count(),
    }
}

/// A document as compact JSON.
#[derive(Debug)]
pub struct Json {
    pub text: Vec<u8>,
    /// What yaml.v2 says of keys that a mapping has more than once, with their lines, if there are some.
    pub repeated: Option<String>,
}

/// The first document of `yaml` as JSON; `{}` when there is none.
///
/// - `lease`: what is held while it is read is charged to it, and then the JSON alone.
///
/// Cost: one pass over the text and one over the JSON. Members that are merged are each looked up in a set.
///
/// # Errors
/// [`YamlError`].
pub fn to_json(yaml: &[u8], lease: &Lease) -> Result<Json, YamlError> {
    let reading = lease.scope();
    let text = std::str::from_utf8(yaml).map_err(|_| YamlError::Utf8)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        text,
        parser: Parser::new_from_str(text),
        tape: Tape { nodes: Vec::new(), lines: Vec::new(), texts: Vec::new() },
        line: 0,
        anchors: HashMap::new(),
        meter: lease.meter(),
        count: 0,
    };
    let Written { json, repeated } = match reader.document()? {
        false => Written::default(),
        true => written_out(&reader.tape, lease)?,
    };
    let text = if json.is_empty() || json == b"null" { b"{}".to_vec() } else { json };
    drop(reader);
    drop(reading);
    lease.charge(text.capacity() + repeated.capacity())?;
    let repeated = (!repeated.is_empty()).then(|| format!("yaml: unmarshal errors:{repeated}"));
    Ok(Json { text, repeated })
}

struct Reader<'y> {
    text: &'y str,
    parser: Parser<'y, granit_parser::StrInput<'y>>,
    tape: Tape,
    /// Where the event that was read last begins.
    line: u32,
    // Anchor -> its node, once it is complete.
    anchors: HashMap<usize, Place>,
    meter: Meter,
    count: usize,
}

impl<'y> Reader<'y> {
    fn next(&mut self) -> Result<Event<'y>, YamlError> {
        loop {
            match self.parser.next_event() {
                None => return Ok(Event::StreamEnd),
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok((event, span))) => {
                    self.line = u32::try_from(span.start.line()).unwrap_or(u32::MAX);
                    return Ok(event);
                }
                Some(Err(error)) => return Err(syntax(&error, self.text)),
            }
        }
    }

    /// Reads the first document. Whether there is one.
    fn document(&mut self) -> Result<bool, YamlError> {
        loop {
            match self.next()? {
                Event::StreamEnd | Event::DocumentEnd => return Ok(false),
                Event::StreamStart | Event::DocumentStart(..) => {}
                event => return self.node(event, 0).map(|()| true),
            }
        }
    }

    /// Counts a node that is read at a depth.
    fn visit(&mut self, depth: usize) -> Result<(), YamlError> {
        self.count += 1;
        if self.count > NODES_MAX || depth > DEPTH_MAX { Err(YamlError::TooLarge) } else { Ok(()) }
    }

    fn node(&mut self, event: Event<'y>, depth: usize) -> Result<(), YamlError> {
        self.visit(depth)?;
        let at = self.tape.nodes.len() as Place;
        let anchor = match event {
            Event::Alias(anchor) => {
                let place = self.aliased(anchor)?;
                return self.push(Node::Alias(place));
            }
            Event::Scalar(text, style, anchor, tag) => {
                let json = scalar(&text, style, tag.as_deref())?;
                let text = self.keep(json.as_bytes())?;
                self.push(Node::Scalar(text))?;
                anchor
            }
            Event::SequenceStart(_, anchor, _) => {
                self.push(Node::Sequence { end: 0 })?;
                let end = self.items(depth)?;
                self.tape.nodes[at as usize] = Node::Sequence { end };
                anchor
            }
            Event::MappingStart(_, anchor, _) => {
                self.push(Node::Mapping { end: 0, merges: false })?;
                let (end, merges) = self.members(depth)?;
                self.tape.nodes[at as usize] = Node::Mapping { end, merges };
                anchor
            }
            _ => return Err(YamlError::TooLarge),
        };
        self.name(anchor, at)
    }

    /// An alias within what it stands for never ends.
    fn aliased(&self, anchor: usize) -> Result<Place, YamlError> {
        self.anchors.get(&anchor).copied().ok_or(YamlError::Aliasing)
    }

    /// What `anchor` stands for from now on, if it is one.
    fn name(&mut self, anchor: usize, place: Place) -> Result<(), YamlError> {
        if anchor > 0 {
            self.meter.charge(ANCHOR_BYTES)?;
            self.anchors.insert(anchor, place);
        }
        Ok(())
    }

    fn push(&mut self, node: Node) -> Result<(), YamlError> {
        self.meter.charge(NODE_BYTES)?;
        self.tape.nodes.push(node);
        self.tape.lines.push(self.line);
        Ok(())
    }

    fn keep(&mut self, json: &[u8]) -> Result<Text, YamlError> {
        self.meter.charge(2 * json.len())?;
        let from = self.tape.texts.len() as Place;
        self.tape.texts.extend_from_slice(json);
        Ok(Text { from, to: self.tape.texts.len() as Place })
    }

    /// Reads up to the end of a sequence, and says where that is.
    fn items(&mut self, depth: usize) -> Result<Place, YamlError> {
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(self.tape.nodes.len() as Place),
                event => self.node(event, depth + 1)?,
            }
        }
    }

    /// Reads up to the end of a mapping, and says where that is, and whether it takes over others' members.
    fn members(&mut self, depth: usize) -> Result<(Place, bool), YamlError> {
        let mut merges = false;
        loop {
            match self.next()? {
                Event::MappingEnd => return Ok((self.tape.nodes.len() as Place, merges)),
                Event::Scalar(text, ScalarStyle::Plain, _, None) if resolve(&text) == Scalar::Merge => {
                    merges = true;
                    self.push(Node::Merge)?;
                }
                event => self.key(event, depth + 1)?,
            }
            let value = self.next()?;
            self.node(value, depth + 1)?;
        }
    }

    fn key(&mut self, event: Event<'y>, depth: usize) -> Result<(), YamlError> {
        self.visit(depth)?;
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let at = self.tape.nodes.len() as Place;
                let json = scalar(&text, style, tag.as_deref())?;
                let scalar = self.keep(json.as_bytes())?;
                let name = match json.starts_with('"') {
                    true => scalar,
                    false => {
                        let name = name(&text, style, tag.as_deref())?;
                        self.quoted(&name)?
                    }
                };
                self.push(Node::Key { name, scalar })?;
                self.name(anchor, at)
            }
            Event::Alias(anchor) => {
                let place = self.aliased(anchor)?;
                let scalar = self.tape.scalar(place).ok_or(YamlError::Key)?;
                let json = String::from_utf8_lossy(self.tape.text(scalar)).into_owned();
                let name = match serde_json::from_str(&json) {
                    Ok(Value::String(text)) => text,
                    Ok(Value::Number(_) | Value::Bool(_)) => json,
                    _ => return Err(YamlError::Key),
                };
                let name = self.quoted(&name)?;
                self.push(Node::Key { name, scalar })
            }
            _ => Err(YamlError::Key),
        }
    }

    fn quoted(&mut self, name: &str) -> Result<Text, YamlError> {
        let mut json = Vec::with_capacity(name.len() + 2);
        write_string(name, &mut json);
        self.keep(&json)
    }
}

/// The name that a scalar is as a key.
fn name(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<String, YamlError> {
    let meaning = if is_text(style, tag) { Scalar::Text } else { resolve(text) };
    match meaning {
        Scalar::Text | Scalar::Merge => Ok(text.to_string()),
        Scalar::Null => Err(YamlError::Key),
        other => number_or_word(other),
    }
}

fn is_text(style: ScalarStyle, tag: Option<&Tag>) -> bool {
    match tag.and_then(Tag::core_suffix) {
        Some("str") => true,
        Some(_) => false,
        None => style != ScalarStyle::Plain,
    }
}

/// A scalar as JSON.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<String, YamlError> {
    let meaning = if is_text(style, tag) { Scalar::Text } else { resolve(text) };
    match meaning {
        Scalar::Text | Scalar::Merge => {
            let mut out = Vec::with_capacity(text.len() + 2);
            write_string(text, &mut out);
            Ok(String::from_utf8_lossy(&out).into_owned())
        }
        other => number_or_word(other),
    }
}

fn number_or_word(scalar: Scalar) -> Result<String, YamlError> {
    Ok(match scalar {
        Scalar::Null | Scalar::Text | Scalar::Merge => "null".into(),
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(number) => number.to_string(),
        Scalar::Uint(number) => number.to_string(),
        Scalar::Float(number) if !number.is_finite() => return Err(YamlError::Number(number)),
        Scalar::Float(number) => {
            let mut out = Vec::new();
            write_sorted(&Value::from(number), &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    })
}

fn named(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::REPEATED_BYTES_MAX;

    fn check(yaml: &str, want: &str) {
        let got = match to_json(yaml.as_bytes(), &Lease::of_server()) {
            Ok(json) => String::from_utf8(json.text).expect("UTF-8"),
            Err(error) => format!("ERROR {error}"),
        };
        assert_eq!(got, want, "{yaml}");
    }

    #[test]
    fn yaml_becomes_json() {
        check("", "{}");
        check("# nothing\n", "{}");
        check("null", "{}");
        check(
            "a: 1\nb: [x, 'y', \"z\\n\", 1.0, 1e3]\nc:\n- {}\n- ~\n",
            r#"{"a":1,"b":["x","y","z\n",1,1000],"c":[{},null]}"#,
        );
        check("a: |\n  x\n  y\nb: >-\n  x\n  y\n", r#"{"a":"x\ny\n","b":"x y"}"#);
        check("a: 1\n---\na: 2\n", r#"{"a":1}"#);
        check("# x\na: 1 # y\n# z\nb: [1, # w\n 2]\n# end\n", r#"{"a":1,"b":[1,2]}"#);
        check("{\"kind\": \"Pod\", \"n\": 5}", r#"{"kind":"Pod","n":5}"#);
        check("a: 1\na: 2\n", r#"{"a":1,"a":2}"#);
    }

    #[test]
    fn keys_become_texts() {
        check(
            "n: a\n1: b\n1.5: c\n'on': d\ntrue: e\n",
            r#"{"false":"a","1":"b","1.5":"c","on":"d","true":"e"}"#,
        );
        check("~: a\n", "ERROR yaml: unsupported map key");
        check("? [a]\n: b\n", "ERROR yaml: unsupported map key");
    }

    #[test]
    fn tags_decide() {
        check("a: !!str 5\nb: !!int '5'\nc: !x 5\n", r#"{"a":"5","b":5,"c":5}"#);
    }

    #[test]
    fn aliases_and_merges_are_followed() {
        check(
            "a: &x {b: 1}\nc: *x\nd: {<<: *x, b: 2, e: 3}\n",
            r#"{"a":{"b":1},"c":{"b":1},"d":{"b":2,"e":3}}"#,
        );
        check(
            "a: &x {b: 1}\nc: {<<: [*x, {b: 5, f: 6}], e: 3}\n",
            r#"{"a":{"b":1},"c":{"b":1,"f":6,"e":3}}"#,
        );
        check("a: &x {b: 1}\nc: {b: 2, <<: *x}\n", r#"{"a":{"b":1},"c":{"b":1}}"#);
        check("a: {<<: 5}\n", "ERROR yaml: map merge requires map or sequence of maps as the value");
    }

    #[test]
    fn what_has_no_end_is_refused() {
        check("a: &x [*x]\n", "ERROR yaml: document contains excessive aliasing");
        let bomb: String = (1..40).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1)).collect();
        check(&format!("a0: &a0 lol\n{bomb}"), "ERROR yaml: document contains excessive aliasing");
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(to_json(deep.as_bytes(), &Lease::of_server()).is_err());
        let wide = "- a\n".repeat(NODES_MAX + 1);
        assert!(matches!(to_json(wide.as_bytes(), &Lease::of_server()), Err(YamlError::TooLarge)));
        check("a: .nan\n", "ERROR json: unsupported value: NaN");
        assert!(matches!(to_json(b"\xff", &Lease::of_server()), Err(YamlError::Utf8)));
        assert!(matches!(to_json(b"a: [\n", &Lease::of_server()), Err(YamlError::Syntax { .. })));
    }

    fn check_repeated(yaml: &str, want: &[&str]) {
        let read = to_json(yaml.as_bytes(), &Lease::of_server()).expect("YAML");
        let want = (!want.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", want.join("\n  ")));
        assert_eq!(read.repeated, want, "{yaml}");
    }

    #[test]
    fn keys_that_a_mapping_has_already_are_told_with_the_lines_of_their_values() {
        check_repeated("a: 1\nb: {a: 2}\nc: [{a: 3}]\n", &[]);
        check_repeated(
            "a: 1\na: 2\na:\n  b: 3\n",
            &[r#"line 2: key "a" already set in map"#, r#"line 4: key "a" already set in map"#],
        );
        check_repeated(
            "x:\n- a: 1\n  a: {b: 1,\n   b: 2}\n  a:\n  c: 1\n",
            &[
                r#"line 4: key "b" already set in map"#,
                r#"line 3: key "a" already set in map"#,
                r#"line 5: key "a" already set in map"#,
            ],
        );
        check_repeated("{\"kind\":\"A\",\"kind\":\"B\"}", &[r#"line 1: key "kind" already set in map"#]);
    }

    #[test]
    fn a_key_is_what_it_is_in_yaml_and_not_the_name_that_it_becomes() {
        check_repeated("1: a\n'1': b\n", &[]);
        check_repeated("1: a\n0x1: b\n", &["line 2: key 1 already set in map"]);
        check_repeated("on: a\ntrue: b\n", &["line 2: key true already set in map"]);
        check_repeated("'\"é': a\n'\"é': b\n", &[r#"line 2: key "\"é" already set in map"#]);
    }

    #[test]
    fn what_a_mapping_takes_over_is_set_in_the_order_of_the_text() {
        check_repeated("a: &x {b: 1}\nc:\n  <<: *x\n  b: 2\n", &[r#"line 4: key "b" already set in map"#]);
        check_repeated("a: &x {b: 1}\nc:\n  b: 2\n  <<: *x\n", &[r#"line 1: key "b" already set in map"#]);
    }

    #[test]
    fn what_is_told_of_keys_has_an_end() {
        let yaml = "a: 1\n".repeat(50_000);
        let read = to_json(yaml.as_bytes(), &Lease::of_server()).expect("YAML");
        assert!(read.repeated.is_some_and(|told| told.len() < 2 * REPEATED_BYTES_MAX));
    }

    #[test]
    fn an_anchored_key_is_a_name_here_and_itself_elsewhere() {
        check("&a 1: x\nb: *a\n*a : z\n", r#"{"1":"x","b":1,"1":"z"}"#);
        check(
            "a: &x {<<: {b: 1, c: 2}, c: 3}\nd: {<<: *x, e: 4}\n",
            r#"{"a":{"b":1,"c":3},"d":{"b":1,"c":3,"e":4}}"#,
        );
    }

    #[test]
    fn a_chain_of_aliases_however_long_ends_where_depth_does() {
        // Each names the one before: 90,000 levels, of which none is a level of the text.
        let turns = "- &a [*b]\n- &b [*a]\n".repeat(45_000);
        let chain = format!("- &b []\n{turns}");
        assert!(matches!(to_json(chain.as_bytes(), &Lease::of_one_tree()), Err(YamlError::TooLarge)));
    }

    #[test]
    fn what_may_become_much_is_work() {
        const MUCH: usize = 64 << 10;
        assert!(work(b"a: 1\nb: [1, 2]\n") < MUCH, "a few lines are not");
        assert!(work(b"a: &a [1]\nb: [*a, *a]\n") >= MUCH);
        assert!(work(&b"- a\n".repeat(2_000)) >= MUCH);
    }

    #[test]
    fn what_merges_look_at_is_counted() {
        let members: String = (0..30_000).map(|n| format!("k{n}: 1\n  ")).collect();
        let merges = "- {<<: *a}\n".repeat(60_000);
        let yaml = format!("- &a\n  {members}\n{merges}");
        assert!(matches!(to_json(yaml.as_bytes(), &Lease::of_one_tree()), Err(YamlError::Aliasing)));
    }

    #[test]
    fn what_aliases_expand_to_is_charged_before_it_is_there() {
        // 300 bytes: eight to the sixth.
        let text = "x".repeat(100);
        let bomb: String =
            (1..7).map(|n| format!("a{n}: &a{n} [{}]\n", format!("*a{},", n - 1).repeat(8))).collect();
        let yaml = format!("a0: &a0 {text}\n{bomb}");
        let lease = Lease::of_one_tree();
        assert!(matches!(to_json(yaml.as_bytes(), &lease), Err(YamlError::Aliasing)));
        assert_eq!(lease.used(), 0, "nothing is held of what was refused");
        let few = to_json(b"a: &a [1, 2]\nb: [*a, *a]\n", &lease).expect("small");
        assert_eq!(lease.used(), few.text.capacity(), "the JSON alone is held");
    }
}
