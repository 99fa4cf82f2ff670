//! The path of a field in an object: `spec.containers[0].image`, `metadata.labels['a.b/c']`,
//! `spec.containers[*].env`.
//!
//! In: text. Out: its steps. Never: looks at an object; whoever walks one decides what a step means there.

use std::fmt;
use std::str::FromStr;

/// Steps of a path: no built-in kind nests a third of it, and whoever walks along a path holds a frame for
/// each.
pub const STEPS_MAX: usize = 64;

/// A path, never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath(Vec<PathStep>);

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathStep {
    /// The member of an object: `name`, or `['name']` with `\` before what is not to end it.
    Member(String),
    /// The element of an array, from 0: `[0]`.
    Element(usize),
    /// Every element of an array: `[*]`.
    Elements,
}

/// The text is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the field path has {what} at byte {at}")]
pub struct PathError {
    pub what: &'static str,
    pub at: usize,
}

impl FieldPath {
    /// From the outermost object inwards, 1..=[`STEPS_MAX`].
    pub fn steps(&self) -> &[PathStep] {
        &self.0
    }
}

impl FromStr for FieldPath {
    type Err = PathError;

    /// Reads a path. A dot may stand before it.
    ///
    /// # Errors
    /// [`PathError`] when it is none, or has more than [`STEPS_MAX`] steps.
    fn from_str(text: &str) -> Result<FieldPath, PathError> {
        let mut rest = Rest { text, at: 0 };
        let mut steps = Vec::new();
        while rest.at < text.len() || steps.is_empty() {
            if steps.len() == STEPS_MAX {
                return rest.fail("too many steps");
            }
            steps.push(rest.step(steps.is_empty())?);
        }
        Ok(FieldPath(steps))
    }
}

/// What was not read yet.
struct Rest<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Rest<'t> {
    fn fail<T>(&self, what: &'static str) -> Result<T, PathError> {
        Err(PathError { what, at: self.at })
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn step(&mut self, is_first: bool) -> Result<PathStep, PathError> {
        match self.rest().as_bytes() {
            [b'[', quote @ (b'\'' | b'"'), ..] => self.quoted(char::from(*quote)),
            [b'[', ..] => self.element(),
            [b'.', ..] => {
                self.at += 1;
                self.name()
            }
            _ if is_first => self.name(),
            _ => self.fail("no dot or bracket"),
        }
    }

    fn name(&mut self) -> Result<PathStep, PathError> {
        let rest = self.rest();
        let len = rest.find(['.', '[', ']', '\'', '"', '*', '\\']).unwrap_or(rest.len());
        if len == 0 {
            return self.fail("no name");
        }
        self.at += len;
        Ok(PathStep::Member(rest[..len].to_owned()))
    }

    fn element(&mut self) -> Result<PathStep, PathError> {
        let rest = &self.rest()[1..];
        let Some(len) = rest.find(']') else { return self.fail("a bracket that is not closed") };
        let index = &rest[..len];
        let step = match index.parse() {
            _ if index == "*" => PathStep::Elements,
            Ok(number) if index.bytes().all(|byte| byte.is_ascii_digit()) => PathStep::Element(number),
            _ => return self.fail("an index that is no number"),
        };
        self.at += len + 2;
        Ok(step)
    }

    fn quoted(&mut self, quote: char) -> Result<PathStep, PathError> {
        let inner = &self.rest()[2..];
        let mut name = String::new();
        let mut chars = inner.char_indices();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                if !inner[at + 1..].starts_with(']') {
                    return self.fail("a quoted name without a bracket behind it");
                }
                self.at += 2 + at + 2;
                return Ok(PathStep::Member(name));
            }
            let escaped = if c == '\\' { chars.next().map(|(_, c)| c) } else { Some(c) };
            name.extend(escaped);
        }
        self.fail("a quote that is not closed")
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Member(name) => {
                    let is_plain = !name.is_empty() && !name.contains(['.', '[', ']', '\'', '"', '*', '\\']);
                    match (is_plain, index) {
                        (true, 0) => to.write_str(name)?,
                        (true, _) => write!(to, ".{name}")?,
                        (false, _) => write!(to, "['{}']", name.replace('\\', r"\\").replace('\'', r"\'"))?,
                    }
                }
                PathStep::Element(number) => write!(to, "[{number}]")?,
                PathStep::Elements => to.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> PathStep {
        PathStep::Member(name.into())
    }

    #[test]
    fn a_path_says_its_steps_and_is_written_again() {
        let rows = [
            ("spec.nodeName", "spec.nodeName", vec![member("spec"), member("nodeName")]),
            (".kind", "kind", vec![member("kind")]),
            (
                "a[0][12].b",
                "a[0][12].b",
                vec![member("a"), PathStep::Element(0), PathStep::Element(12), member("b")],
            ),
            (
                "spec.containers[*].env",
                "spec.containers[*].env",
                vec![member("spec"), member("containers"), PathStep::Elements, member("env")],
            ),
            (
                "metadata.labels['a.b/c']",
                "metadata.labels['a.b/c']",
                vec![member("metadata"), member("labels"), member("a.b/c")],
            ),
            (r#"x["it's"].é"#, r"x['it\'s'].é", vec![member("x"), member("it's"), member("é")]),
            (r"['a\\\'b']['']", r"['a\\\'b']['']", vec![member(r"a\'b"), member("")]),
            (
                "metadata.labels.a/b",
                "metadata.labels.a/b",
                vec![member("metadata"), member("labels"), member("a/b")],
            ),
        ];
        for (text, written, steps) in rows {
            let path: FieldPath = text.parse().expect(text);
            assert_eq!(path.steps(), steps, "{text}");
            assert_eq!(path.to_string(), written);
            assert_eq!(written.parse(), Ok(path), "{text}");
        }
    }

    #[test]
    fn what_is_no_path_says_where() {
        let rows = [
            ("", 0),
            (".", 1),
            ("a.", 2),
            ("a..b", 2),
            ("a[", 1),
            ("a[]", 1),
            ("a[-1]", 1),
            ("a[+1]", 1),
            ("a[1", 1),
            ("a[99999999999999999999]", 1),
            ("a['b", 1),
            ("a['b'", 1),
            ("a['b'x]", 1),
            ("a]b", 1),
            ("a[0]b", 4),
            ("a*", 1),
            (r"a['\", 1),
        ];
        for (text, at) in rows {
            assert_eq!(FieldPath::from_str(text).map_err(|error| error.at), Err(at), "{text}");
        }
    }

    #[test]
    fn a_path_has_so_many_steps_at_most() {
        let path = |steps: usize| vec!["a"; steps].join(".").parse::<FieldPath>();
        assert_eq!(path(STEPS_MAX).map(|path| path.steps().len()), Ok(STEPS_MAX));
        assert!(path(STEPS_MAX + 1).is_err());
    }
}
