//! A body in YAML, as JSON.
//!
//! The first document counts, as in kube-apiserver. Members that come twice are kept twice: whoever reads the JSON sees
//! and reports them. An alias costs nothing until it is written, and what is written has a limit.

use std::collections::HashMap;
use std::rc::Rc;

use forebay_apimachinery::json::{write_sorted, write_string};
use granit_parser::{Event, Parser, ScalarStyle, ScanError, Tag};
use serde_json::Value;

use super::resolve::{Scalar, resolve};
use crate::limits::{BODY_BYTES_MAX, YAML_DEPTH_MAX, YAML_NODES_MAX};

/// JSON that one body may become: YAML that is written out in full at most doubles, apart from control characters.
const JSON_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;

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
}

/// The first document of `yaml` as compact JSON; `{}` when there is none.
///
/// # Errors
/// [`YamlError`].
pub fn to_json(yaml: &[u8]) -> Result<Vec<u8>, YamlError> {
    let text = std::str::from_utf8(yaml).map_err(|_| YamlError::Utf8)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { parser: Parser::new_from_str(text), anchors: HashMap::new(), nodes: 0 };
    let root = match reader.document()? {
        None => return Ok(b"{}".to_vec()),
        Some(root) if matches!(*root, Node::Scalar(ref json) if json == "null") => return Ok(b"{}".to_vec()),
        Some(root) => root,
    };
    let mut out = Vec::with_capacity(yaml.len());
    root.write(0, &mut out)?;
    Ok(out)
}

enum Node {
    /// As JSON.
    Scalar(String),
    Sequence(Vec<Rc<Node>>),
    Mapping(Vec<(String, Rc<Node>)>),
}

struct Reader<'y> {
    parser: Parser<'y, granit_parser::StrInput<'y>>,
    // Anchor -> its node, once it is complete.
    anchors: HashMap<usize, Rc<Node>>,
    nodes: usize,
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

    fn document(&mut self) -> Result<Option<Rc<Node>>, YamlError> {
        loop {
            match self.next()? {
                Event::StreamEnd => return Ok(None),
                Event::StreamStart | Event::DocumentStart(..) => {}
                Event::DocumentEnd => return Ok(None),
                event => return self.node(event, 0).map(Some),
            }
        }
    }

    fn node(&mut self, event: Event<'y>, depth: usize) -> Result<Rc<Node>, YamlError> {
        self.nodes += 1;
        if self.nodes > YAML_NODES_MAX || depth > YAML_DEPTH_MAX {
            return Err(YamlError::TooLarge);
        }
        let (node, anchor) = match event {
            Event::Alias(anchor) => {
                // An alias within what it stands for never ends.
                return self.anchors.get(&anchor).cloned().ok_or(YamlError::Aliasing);
            }
            Event::Scalar(text, style, anchor, tag) => {
                (Node::Scalar(scalar(&text, style, tag.as_deref())?), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.sequence(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.mapping(depth)?, anchor),
            _ => return Err(YamlError::TooLarge),
        };
        let node = Rc::new(node);
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(Node::Sequence(items)),
                event => items.push(self.node(event, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Node, YamlError> {
        let (mut members, mut merged) = (Vec::new(), Vec::new());
        loop {
            let key = match self.next()? {
                Event::MappingEnd => break,
                event => event,
            };
            let merges = matches!(
                &key,
                Event::Scalar(text, ScalarStyle::Plain, _, None) if resolve(text) == Scalar::Merge
            );
            let key = if merges { String::new() } else { self.key(key, depth)? };
            let value = self.next()?;
            let value = self.node(value, depth + 1)?;
            if merges {
                merged.push(value);
            } else {
                members.push((key, value));
            }
        }
        for source in &merged {
            merge(source, &mut members)?;
        }
        Ok(Node::Mapping(members))
    }

    fn key(&mut self, event: Event<'y>, depth: usize) -> Result<String, YamlError> {
        let (text, style, tag) = match &event {
            Event::Scalar(text, style, _, tag) => (text.to_string(), *style, tag.clone()),
            _ => {
                let node = self.node(event, depth + 1)?;
                let Node::Scalar(json) = &*node else { return Err(YamlError::Key) };
                return match serde_json::from_str(json) {
                    Ok(Value::String(text)) => Ok(text),
                    Ok(Value::Number(_) | Value::Bool(_)) => Ok(json.clone()),
                    _ => Err(YamlError::Key),
                };
            }
        };
        if is_text(style, tag.as_deref()) {
            self.node(event, depth + 1)?;
            return Ok(text);
        }
        let json = match resolve(&text) {
            Scalar::Text | Scalar::Merge => text,
            Scalar::Null => return Err(YamlError::Key),
            other => number_or_word(other)?,
        };
        self.node(event, depth + 1)?;
        Ok(json)
    }
}

/// Adds the members of `source`, a mapping or several, that are not there yet.
fn merge(source: &Rc<Node>, members: &mut Vec<(String, Rc<Node>)>) -> Result<(), YamlError> {
    match &**source {
        Node::Mapping(more) => {
            let known: std::collections::HashSet<String> =
                members.iter().map(|(name, _)| name.clone()).collect();
            members.extend(more.iter().filter(|(name, _)| !known.contains(name)).cloned());
            if members.len() > YAML_NODES_MAX { Err(YamlError::Aliasing) } else { Ok(()) }
        }
        Node::Sequence(sources) if sources.iter().all(|source| matches!(**source, Node::Mapping(_))) => {
            sources.iter().try_for_each(|source| merge(source, members))
        }
        _ => Err(YamlError::Merge),
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

impl Node {
    fn write(&self, depth: usize, out: &mut Vec<u8>) -> Result<(), YamlError> {
        if out.len() > JSON_BYTES_MAX {
            return Err(YamlError::Aliasing);
        }
        if depth > YAML_DEPTH_MAX {
            return Err(YamlError::TooLarge);
        }
        match self {
            Node::Scalar(json) => out.extend_from_slice(json.as_bytes()),
            Node::Sequence(items) => {
                out.push(b'[');
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    item.write(depth + 1, out)?;
                }
                out.push(b']');
            }
            Node::Mapping(members) => {
                out.push(b'{');
                for (place, (name, value)) in members.iter().enumerate() {
                    if place > 0 {
                        out.push(b',');
                    }
                    write_string(name, out);
                    out.push(b':');
                    value.write(depth + 1, out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }
}

fn syntax(error: &ScanError) -> YamlError {
    YamlError::Syntax { line: error.marker().line(), what: error.info().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(yaml: &str, want: &str) {
        let got = match to_json(yaml.as_bytes()) {
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
        assert!(to_json(deep.as_bytes()).is_err());
        let wide = "- a\n".repeat(YAML_NODES_MAX + 1);
        assert!(matches!(to_json(wide.as_bytes()), Err(YamlError::TooLarge)));
        check("a: .nan\n", "ERROR json: unsupported value: NaN");
        assert!(matches!(to_json(b"\xff"), Err(YamlError::Utf8)));
        assert!(matches!(to_json(b"a: [\n"), Err(YamlError::Syntax { .. })));
    }
}
