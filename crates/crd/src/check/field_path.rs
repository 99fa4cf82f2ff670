//! Simple paths into a schema, as selectable fields and CEL rules name fields: `.spec.a`, `['spec']['a.b']`.
//!
//! In: a path and a schema. Out: the schema found, or why the path is none. Never evaluates a path on an
//! object.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/cel/validation.go`, `ValidFieldPath`.

use crate::props::Props;

/// Whether `['name']` may stand for `.name`.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Brackets {
    Allowed,
    Refused,
}

/// Where a path leads.
pub(crate) struct Found<'a> {
    /// The path as field paths print it.
    pub(crate) path: String,
    /// Its first name.
    pub(crate) root: String,
    /// None below a map of anything.
    pub(crate) schema: Option<Props<'a>>,
}

/// Follows `path` through `schema`.
///
/// # Errors
/// Kubernetes' text.
pub(crate) fn follow<'a>(path: &str, schema: Props<'a>, brackets: Brackets) -> Result<Found<'a>, String> {
    let mut found = Found { path: String::new(), root: String::new(), schema: Some(schema) };
    let mut tokens = Tokens { rest: path };
    while let Some(token) = tokens.next() {
        match token {
            "[" if brackets == Brackets::Refused => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or("unexpected end of JSON path")?;
                let inner = quoted.strip_prefix('\'').and_then(|q| q.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                found.step(&unescape(inner)?)?;
                match tokens.next().ok_or("unexpected end of JSON path")? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => found.step(tokens.next().ok_or("unexpected end of JSON path")?)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

impl Found<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        let unknown = || "does not refer to a valid field".to_owned();
        let schema = self.schema.ok_or_else(unknown)?;
        if self.root.is_empty() {
            self.root = name.to_owned();
        }
        if schema.names_any("properties") {
            self.schema = Some(schema.property(name).ok_or_else(unknown)?);
            let dot = if self.path.is_empty() { "" } else { "." };
            self.path.push_str(dot);
            self.path.push_str(name);
        } else {
            self.schema = schema.schema_or_bool("additionalProperties").ok_or_else(unknown)?.schema();
            self.path.push('[');
            self.path.push_str(name);
            self.path.push(']');
        }
        Ok(())
    }
}

/// Splits at `.`, `[` and `]`, which are tokens of their own; a quoted text is one.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let first = self.rest.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = self.rest.as_bytes();
                let close = (1..bytes.len()).find(|&i| bytes[i] == b'\'' && bytes[i - 1] != b'\\');
                close.map_or(self.rest.len(), |i| i + 1)
            }
            _ => self.rest.find(['.', '[', ']']).unwrap_or(self.rest.len()),
        };
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(token)
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(c @ ('\'' | '\\')) => c,
            Some(c) => return Err(format!("invalid string literal: invalid escape char \\{c}")),
            None => '\\',
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_through_properties_and_maps() {
        let schema = json!({"properties": {"spec": {"properties": {"a.b": {"type": "string"}, "c": {"type": "integer"}}},
            "m": {"additionalProperties": {"type": "boolean"}}, "any": {"additionalProperties": true}}});
        type Row = (&'static str, Brackets, Result<(&'static str, &'static str), &'static str>);
        let rows: [Row; 16] = [
            (".spec.c", Brackets::Refused, Ok(("spec.c", "integer"))),
            ("['spec']['a.b']", Brackets::Allowed, Ok(("spec.a.b", "string"))),
            (".m.x", Brackets::Refused, Ok(("m[x]", "boolean"))),
            (".any.x", Brackets::Refused, Ok(("any[x]", ""))),
            (".any.x.y", Brackets::Refused, Err("does not refer to a valid field")),
            (".spec['c']", Brackets::Refused, Err("array notation is not allowed")),
            (".spec.d", Brackets::Refused, Err("does not refer to a valid field")),
            (".spec.c.d", Brackets::Refused, Err("does not refer to a valid field")),
            ("spec", Brackets::Refused, Err("expected [ or . but got: spec")),
            (".", Brackets::Refused, Err("unexpected end of JSON path")),
            (".spec.", Brackets::Refused, Err("unexpected end of JSON path")),
            ("[spec]", Brackets::Allowed, Err("expected single quoted string but got spec")),
            ("['spec'", Brackets::Allowed, Err("unexpected end of JSON path")),
            ("['spec'.", Brackets::Allowed, Err("expected ] but got .")),
            (r"['\q']", Brackets::Allowed, Err(r"invalid string literal: invalid escape char \q")),
            ("[", Brackets::Allowed, Err("unexpected end of JSON path")),
        ];
        for (path, brackets, want) in rows {
            let found = follow(path, Props::of(&schema), brackets);
            let found = found.map(|f| (f.path, f.schema.map_or("", Props::kind).to_owned()));
            let want = want.map(|(path, kind)| (path.to_owned(), kind.to_owned())).map_err(str::to_owned);
            assert_eq!(found, want, "{path}");
        }
    }
}
