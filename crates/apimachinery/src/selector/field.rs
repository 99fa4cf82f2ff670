//! Field selectors.
//!
//! In: the text of a `fieldSelector`. Out: requirements on fields, named by path. Never: knows which paths a
//! resource has; allocates while matching.
//!
//! Source: apimachinery v0.36.3 `fields/selector.go`.

use std::fmt;

/// Requirements on fields, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Box<[FieldRequirement]>, // in the order of their texts
}

/// A requirement on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// `spec.nodeName`.
    pub path: Box<str>,
    pub operator: FieldOperator,
    pub value: Box<str>,
}

/// How a field stands to the value of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOperator {
    Equals,
    NotEquals,
}

impl FieldSelector {
    /// Reads `spec.nodeName=a,status.phase!=Failed`. A `\`, `,` or `=` in a value is written with a `\`
    /// before it. The empty text selects everything.
    ///
    /// # Errors
    /// kube-apiserver's message, for a 400.
    pub fn parse(text: &str) -> Result<FieldSelector, String> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let not_understood = || format!("invalid selector: '{text}'; can't understand '{term}'");
            let (path, operator, value) = split_term(term).ok_or_else(not_understood)?;
            requirements.push(FieldRequirement {
                path: path.into(),
                operator,
                value: unescape(value)?.into(),
            });
        }
        Ok(FieldSelector::from_requirements(requirements))
    }

    /// A selector that everything matches.
    pub fn everything() -> FieldSelector {
        FieldSelector::default()
    }

    /// `path=value`.
    pub fn equals(path: &str, value: &str) -> FieldSelector {
        let operator = FieldOperator::Equals;
        FieldSelector {
            requirements: Box::new([FieldRequirement { path: path.into(), operator, value: value.into() }]),
        }
    }

    /// As upstream, a requirement without a path and a value is none.
    fn from_requirements(mut requirements: Vec<FieldRequirement>) -> FieldSelector {
        requirements.retain(|requirement| !requirement.path.is_empty() || !requirement.value.is_empty());
        FieldSelector { requirements: requirements.into() }
    }

    /// Renames paths and values: what a resource does with the selectors of its older versions, and where it
    /// refuses paths.
    ///
    /// # Errors
    /// The first error of `convert`, which gets path and value.
    pub fn transform<E>(
        &self,
        mut convert: impl FnMut(&str, &str) -> Result<(String, String), E>,
    ) -> Result<FieldSelector, E> {
        let mut requirements = Vec::with_capacity(self.requirements.len());
        for requirement in &self.requirements {
            let (path, value) = convert(&requirement.path, &requirement.value)?;
            let operator = requirement.operator;
            requirements.push(FieldRequirement { path: path.into(), operator, value: value.into() });
        }
        Ok(FieldSelector::from_requirements(requirements))
    }

    /// Whether the fields that `get` looks up by path meet every requirement. No field is the empty value.
    #[inline]
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(get(&requirement.path)))
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// The value that the field at `path` must have, if the selector pins it.
    pub fn exact(&self, path: &str) -> Option<&str> {
        let pins = |requirement: &&FieldRequirement| {
            requirement.operator == FieldOperator::Equals && *requirement.path == *path
        };
        self.requirements.iter().find(pins).map(|requirement| &*requirement.value)
    }
}

impl FieldRequirement {
    /// Whether a field with this value meets the requirement.
    #[inline]
    pub fn matches(&self, field: Option<&str>) -> bool {
        let is_equal = field.unwrap_or_default() == &*self.value;
        is_equal == (self.operator == FieldOperator::Equals)
    }
}

/// Splits at commas that have no backslash before them; the backslashes stay.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// Splits at the first operator; a path has no escapes.
fn split_term(term: &str) -> Option<(&str, FieldOperator, &str)> {
    for (at, _) in term.match_indices(['!', '=']) {
        let (path, rest) = term.split_at(at);
        if let Some(value) = rest.strip_prefix("!=") {
            return Some((path, FieldOperator::NotEquals, value));
        }
        if let Some(value) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')) {
            return Some((path, FieldOperator::Equals, value));
        }
    }
    None
}

fn unescape(text: &str) -> Result<String, String> {
    let mut value = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => value.push(c),
                Some(c) => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
                None => return Err("invalid field selector: invalid escape sequence: \\".to_string()),
            },
            ',' | '=' => {
                let code = u32::from(c);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            c => value.push(c),
        }
    }
    Ok(value)
}

impl fmt::Display for FieldSelector {
    /// The text that [`FieldSelector::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        f.write_str(match self.operator {
            FieldOperator::Equals => "=",
            FieldOperator::NotEquals => "!=",
        })?;
        for c in self.value.chars() {
            if let '\\' | ',' | '=' = c {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}
