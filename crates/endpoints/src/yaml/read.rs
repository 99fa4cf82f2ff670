//! A body in YAML, as JSON.
//!
//! The first document counts, as in kube-apiserver. Members that come twice are kept twice: whoever reads the JSON sees
//! and reports them. What was read lies in one row, in which an alias is a number: it costs nothing until it is written, and
//! what is written is counted. How deep anything goes is bounded here, not by what comes.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use forebay_apimachinery::json::{write_sorted, write_string};
use forebay_apimachinery::lease::{Exhausted, Lease, Meter};
use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag};
use serde_json::Value;

use super::resolve::{Scalar, resolve};
use crate::limits::{BODY_BYTES_MAX, YAML_DEPTH_MAX, YAML_NODES_MAX};

/// JSON that one body may become: YAML that is written out in full at most doubles, apart from control characters.
const JSON_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;

/// What a node and an anchor take while the document is read, in rows that double as they grow.
const NODE_BYTES: usize = 2 * size_of::<Node>();
const ANCHOR_BYTES: usize = 64;

/// Why a body is no YAML that can be taken.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    #[error("yaml: line {line}: {what}")]
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

/// The first document of `yaml` as compact JSON; `{}` when there is none.
///
/// - `lease`: what is held while it is read is charged to it, and then the JSON alone.
///
/// Cost: one pass over the text and one over the JSON. Members that are merged are each looked up in a set.
///
/// # Errors
/// [`YamlError`].
pub fn to_json(yaml: &[u8], lease: &Lease) -> Result<Vec<u8>, YamlError> {
    let reading = lease.scope();
    let text = std::str::from_utf8(yaml).map_err(|_| YamlError::Utf8)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        tape: Tape { nodes: Vec::new(), texts: Vec::new() },
        anchors: HashMap::new(),
        meter: lease.meter(),
        count: 0,
    };
    let out = match reader.document()? {
        false => b"{}".to_vec(),
        true => {
            let tape = &reader.tape;
            let mut writer = Writer { tape, out: Vec::new(), meter: lease.meter(), visited: 0 };
            writer.node(0, 0)?;
            match writer.out.as_slice() {
                b"null" => b"{}".to_vec(),
                _ => std::mem::take(&mut writer.out),
            }
        }
    };
    drop(reader);
    drop(reading);
    lease.charge(out.capacity())?;
    Ok(out)
}

/// What was read, in the order in which it stands: what is in a collection follows it. Texts are JSON.
struct Tape {
    nodes: Vec<Node>, // <= YAML_NODES_MAX
    texts: Vec<u8>,
}

/// A place among the nodes, or the texts, of a tape: a body is shorter than 4 GiB.
type Place = u32;

#[derive(Clone, Copy)]
enum Node {
    Scalar(Text),
    /// Items, up to `end`.
    Sequence {
        end: Place,
    },
    /// A key and a value in turn, up to `end`.
    Mapping {
        end: Place,
        merges: bool,
    },
    /// What stands at another place, before this one.
    Alias(Place),
    /// A key: the name that it becomes, and the scalar that an alias of it means.
    Key {
        name: Text,
        scalar: Text,
    },
    /// The key `<<`.
    Merge,
}

/// Where a text stands among the texts.
#[derive(Clone, Copy)]
struct Text {
    from: Place,
    to: Place,
}

struct Reader<'y> {
    parser: Parser<'y, granit_parser::StrInput<'y>>,
    tape: Tape,
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
                Some(Ok((event, _))) => return Ok(event),
                Some(Err(error)) => return Err(syntax(&error)),
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
        if self.count > YAML_NODES_MAX || depth > YAML_DEPTH_MAX { Err(YamlError::TooLarge) } else { Ok(()) }
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
                let name = name(&text, style, tag.as_deref())?;
                let name = self.quoted(&name)?;
                let scalar = match anchor {
                    0 => name,
                    _ => {
                        let json = scalar(&text, style, tag.as_deref())?;
                        self.keep(json.as_bytes())?
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

impl Tape {
    fn text(&self, text: Text) -> &[u8] {
        &self.texts[text.from as usize..text.to as usize]
    }

    /// What an alias at a place stands for, which is never an alias; another node is itself.
    fn followed(&self, place: Place) -> Place {
        match self.nodes[place as usize] {
            Node::Alias(target) => target,
            _ => place,
        }
    }

    /// The scalar at a place.
    fn scalar(&self, place: Place) -> Option<Text> {
        match self.nodes[self.followed(place) as usize] {
            Node::Scalar(text) | Node::Key { scalar: text, .. } => Some(text),
            _ => None,
        }
    }

    /// The place behind a node.
    fn end(&self, place: Place) -> Place {
        match self.nodes[place as usize] {
            Node::Sequence { end } | Node::Mapping { end, .. } => end,
            Node::Scalar(_) | Node::Alias(_) | Node::Key { .. } | Node::Merge => place + 1,
        }
    }

    /// The items of a sequence.
    fn items(&self, within: Range<Place>) -> impl Iterator<Item = Place> + '_ {
        let mut at = within.start;
        std::iter::from_fn(move || {
            let item = (at < within.end).then_some(at)?;
            at = self.end(item);
            Some(item)
        })
    }

    /// The members of a mapping: the name of each, none for a `<<`, and where its value stands.
    fn members(&self, within: Range<Place>) -> impl Iterator<Item = (Option<Text>, Place)> + '_ {
        let mut at = within.start;
        std::iter::from_fn(move || {
            let name = match self.nodes[(at < within.end).then_some(at)? as usize] {
                Node::Key { name, .. } => Some(name),
                _ => None,
            };
            let value = at + 1;
            at = self.end(value);
            Some((name, value))
        })
    }
}

struct Writer<'t> {
    tape: &'t Tape,
    out: Vec<u8>,
    meter: Meter,
    visited: usize,
}

/// A member of a mapping: its name, and where its value stands.
type Member = (Text, Place);

impl<'t> Writer<'t> {
    /// Counts one more node. There are no more than may be read but for aliases.
    fn visit(&mut self, depth: usize) -> Result<(), YamlError> {
        self.visited += 1;
        match (self.visited > YAML_NODES_MAX, depth > YAML_DEPTH_MAX) {
            (true, _) => Err(YamlError::Aliasing),
            (_, true) => Err(YamlError::TooLarge),
            _ => Ok(()),
        }
    }

    fn text(&mut self, text: Text) -> Result<(), YamlError> {
        let json = self.tape.text(text);
        if self.out.len() + json.len() > JSON_BYTES_MAX {
            return Err(YamlError::Aliasing);
        }
        // With the comma or colon behind it, in a row that doubles.
        self.meter.charge(2 * (json.len() + 1))?;
        self.out.extend_from_slice(json);
        Ok(())
    }

    fn node(&mut self, place: Place, depth: usize) -> Result<(), YamlError> {
        self.visit(depth)?;
        let place = self.tape.followed(place);
        match self.tape.nodes[place as usize] {
            Node::Scalar(text) | Node::Key { scalar: text, .. } => self.text(text),
            Node::Sequence { end } => {
                let items = self.tape.items(place + 1..end);
                self.collection((b'[', b']'), items, |writer, item| writer.node(item, depth + 1))
            }
            Node::Mapping { end, merges: false } => {
                let members = self.tape.members(place + 1..end);
                let members = members.filter_map(|(name, value)| Some((name?, value)));
                self.collection((b'{', b'}'), members, |writer, member| writer.member(member, depth))
            }
            Node::Mapping { merges: true, .. } => {
                let members = self.merged(place, depth)?;
                self.collection((b'{', b'}'), members, |writer, member| writer.member(member, depth))
            }
            // Neither stands where a value does.
            Node::Alias(_) | Node::Merge => Err(YamlError::Key),
        }
    }

    fn member(&mut self, (name, value): Member, depth: usize) -> Result<(), YamlError> {
        self.text(name)?;
        self.out.push(b':');
        self.node(value, depth + 1)
    }

    fn collection<T>(
        &mut self,
        (open, close): (u8, u8),
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Result<(), YamlError>,
    ) -> Result<(), YamlError> {
        self.meter.charge(4)?;
        self.out.push(open);
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write(self, item)?;
        }
        self.out.push(close);
        Ok(())
    }

    /// The members of a mapping that takes over others': its own, then of each other one those whose names are new.
    fn merged(&mut self, mapping: Place, depth: usize) -> Result<Vec<Member>, YamlError> {
        let tape = self.tape;
        let (mut members, mut sources) = (Vec::new(), Vec::new());
        for (name, value) in tape.members(mapping + 1..tape.end(mapping)) {
            match name {
                Some(name) => members.push((name, value)),
                None => sources.push(value),
            }
        }
        let mut known = HashSet::new();
        let mut from = 0;
        for source in sources {
            for source in self.sources(source)? {
                let more = self.members_of(source, depth + 1)?;
                known.extend(members[from..].iter().map(|(name, _)| tape.text(*name)));
                from = members.len();
                members.extend(more.into_iter().filter(|(name, _)| !known.contains(tape.text(*name))));
            }
        }
        Ok(members)
    }

    /// The mappings that the value of a `<<` names: itself, or those in a sequence.
    fn sources(&mut self, value: Place) -> Result<Vec<Place>, YamlError> {
        let value = self.tape.followed(value);
        let sources = match self.tape.nodes[value as usize] {
            Node::Mapping { .. } => return Ok(vec![value]),
            Node::Sequence { end } => self.tape.items(value + 1..end),
            _ => return Err(YamlError::Merge),
        };
        let sources: Vec<Place> = sources.map(|source| self.tape.followed(source)).collect();
        for source in &sources {
            self.visit(0)?;
            if !matches!(self.tape.nodes[*source as usize], Node::Mapping { .. }) {
                return Err(YamlError::Merge);
            }
        }
        Ok(sources)
    }

    /// All members of a mapping, those that it takes over itself with them. Each is counted: somebody looks at it.
    fn members_of(&mut self, mapping: Place, depth: usize) -> Result<Vec<Member>, YamlError> {
        self.visit(depth)?;
        let members = self.merged(mapping, depth)?;
        for _ in &members {
            self.visit(depth)?;
        }
        self.meter.charge(members.len() * size_of::<Member>())?;
        Ok(members)
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

fn syntax(error: &ScanError) -> YamlError {
    YamlError::Syntax { line: error.marker().line(), what: error.info().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(yaml: &str, want: &str) {
        let got = match to_json(yaml.as_bytes(), &Lease::of_server()) {
            Ok(json) => String::from_utf8(json).expect("UTF-8"),
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
            r#"{"a":{"b":1},"c":{"e":3,"b":1,"f":6}}"#,
        );
        check("a: {<<: 5}\n", "ERROR yaml: map merge requires map or sequence of maps as the value");
    }

    #[test]
    fn what_has_no_end_is_refused() {
        check("a: &x [*x]\n", "ERROR yaml: document contains excessive aliasing");
        let bomb: String = (1..40).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1)).collect();
        check(&format!("a0: &a0 lol\n{bomb}"), "ERROR yaml: document contains excessive aliasing");
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(to_json(deep.as_bytes(), &Lease::of_server()).is_err());
        let wide = "- a\n".repeat(YAML_NODES_MAX + 1);
        assert!(matches!(to_json(wide.as_bytes(), &Lease::of_server()), Err(YamlError::TooLarge)));
        check("a: .nan\n", "ERROR json: unsupported value: NaN");
        assert!(matches!(to_json(b"\xff", &Lease::of_server()), Err(YamlError::Utf8)));
        assert!(matches!(to_json(b"a: [\n", &Lease::of_server()), Err(YamlError::Syntax { .. })));
    }
    #[test]
    fn an_anchored_key_is_a_name_here_and_itself_elsewhere() {
        check("&a 1: x\nb: *a\n*a : z\n", r#"{"1":"x","b":1,"1":"z"}"#);
        check(
            "a: &x {<<: {b: 1, c: 2}, c: 3}\nd: {<<: *x, e: 4}\n",
            r#"{"a":{"c":3,"b":1},"d":{"e":4,"c":3,"b":1}}"#,
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
        assert_eq!(lease.used(), few.capacity(), "the JSON alone is held");
    }
}
