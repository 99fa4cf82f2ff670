//! What yaml.v2 says of a text that is no YAML.
//!
//! In: what the parser has against it. Out: the words, and the line where yaml.v2 names one. Never: words for
//! what yaml.v2 has nothing against; there the parser's own stand.
//!
//! Source: go.yaml.in/yaml/v2 v2.4.3 `decode.go` (`fail`), `parserc.go`, `scannerc.go`.

use granit_parser::{ErrorKind, ScanError};

use crate::read::YamlError;

/// Who of yaml.v2's two finds it: each counts lines in its own way.
enum By {
    /// It names the line before, from 1.
    Parser,
    /// It names no line where that is the first.
    Scanner,
}

/// What is wrong with `text`.
pub(super) fn syntax(error: &ScanError, text: &str) -> YamlError {
    let at = error.marker().line();
    let (by, line, what) = match error.kind() {
        // It is missed at the end, behind the last line.
        ErrorKind::UnclosedFlowCollection { open: '[' } => {
            (By::Parser, text.lines().count() + 1, "did not find expected ',' or ']'")
        }
        ErrorKind::UnclosedFlowCollection { .. } => {
            (By::Parser, text.lines().count() + 1, "did not find expected ',' or '}'")
        }
        ErrorKind::UnclosedQuotedScalar => {
            (By::Scanner, text.matches('\n').count() + 1, "found unexpected end of stream")
        }
        ErrorKind::ExpectedFlowSequenceSeparator => (By::Parser, at, "did not find expected ',' or ']'"),
        ErrorKind::ExpectedFlowMappingSeparator => (By::Parser, at, "did not find expected ',' or '}'"),
        ErrorKind::ExpectedBlockMappingKey => (By::Parser, at, "did not find expected key"),
        ErrorKind::ExpectedBlockSequenceEntry => (By::Parser, at, "did not find expected '-' indicator"),
        ErrorKind::ExpectedNodeContent => (By::Parser, at, "did not find expected node content"),
        ErrorKind::ExpectedDocumentStart => (By::Parser, at, "did not find expected <document start>"),
        ErrorKind::MappingValueNotAllowed => {
            (By::Scanner, at, "mapping values are not allowed in this context")
        }
        ErrorKind::MappingKeyNotAllowed => (By::Scanner, at, "mapping keys are not allowed in this context"),
        ErrorKind::BlockSequenceEntryNotAllowed => {
            (By::Scanner, at, "block sequence entries are not allowed in this context")
        }
        ErrorKind::SimpleKeyExpected => (By::Scanner, at, "could not find expected ':'"),
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::UnexpectedCharacter { .. } => {
            (By::Scanner, at, "found character that cannot start any token")
        }
        ErrorKind::UnknownQuotedScalarEscape => (By::Scanner, at, "found unknown escape character"),
        ErrorKind::DocumentIndicatorInQuotedScalar => {
            (By::Scanner, at, "found unexpected document indicator")
        }
        _ => return YamlError::Syntax { line: at, what: error.info() },
    };
    let line = match by {
        By::Parser => line.saturating_sub(1),
        By::Scanner if line == 1 => 0,
        By::Scanner => line,
    };
    YamlError::Syntax { line, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::Lease;

    #[test]
    fn what_is_no_yaml_is_told_in_the_words_of_go() {
        for (yaml, want) in [
            ("a: [{\"b\": 1}", "line 1: did not find expected ',' or ']'"),
            ("a: [\n", "line 1: did not find expected ',' or ']'"),
            ("a: {\n  b: 1\n", "line 2: did not find expected ',' or '}'"),
            ("a: b: c\n", "mapping values are not allowed in this context"),
            ("x: 1\na: b: c\n", "line 2: mapping values are not allowed in this context"),
            ("a:\n  - b\n c: 1\n", "line 2: did not find expected key"),
            ("a: 'x", "found unexpected end of stream"),
            ("a:\n\tb: 1\n", "line 2: found character that cannot start any token"),
            ("a: @x\n", "found character that cannot start any token"),
        ] {
            let said = crate::to_json(yaml.as_bytes(), &Lease::of_server()).expect_err(yaml).to_string();
            assert_eq!(said, format!("yaml: {want}"), "{yaml}");
        }
    }
}
