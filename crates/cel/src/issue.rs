//! What is wrong with an expression, and where, in cel-go's words.
//!
//! In: messages and their places. Out: the text with the line and a caret under it. Never: more than
//! [`ISSUES_MAX`] of them.

use std::fmt::Write;

use crate::ast::{Ast, Id};
use crate::limits::ISSUES_MAX;

/// The place of what has none.
const NOWHERE: u32 = u32::MAX;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Issue {
    /// In code points.
    pub(crate) offset: u32,
    pub message: String,
    pub(crate) is_syntax: bool,
    /// Whether the rest of the expression can be read all the same.
    pub(crate) is_macro: bool,
}

impl Issue {
    pub(crate) fn at(offset: u32, message: String) -> Issue {
        Issue { offset, message, is_syntax: false, is_macro: false }
    }

    /// Of the expression as a whole.
    pub(crate) fn nowhere(message: String) -> Issue {
        Issue::at(NOWHERE, message)
    }

    pub(crate) fn of(ast: &Ast, id: Id, message: String) -> Issue {
        Issue::at(ast.offset(id), message)
    }

    pub(crate) fn of_macro(offset: u32, message: String) -> Issue {
        Issue { is_macro: true, ..Issue::at(offset, message) }
    }

    pub(crate) fn syntax(offset: u32, message: String) -> Issue {
        Issue { offset, message: format!("Syntax error: {message}"), is_syntax: true, is_macro: false }
    }
}

/// Everything that is wrong with one expression.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", self.display())]
pub struct Issues {
    text: Box<str>,
    issues: Vec<Issue>,
    count: usize,
    nodes: usize,
}

impl Issues {
    pub(crate) fn new(source: &str) -> Issues {
        Issues { text: source.into(), issues: Vec::new(), count: 0, nodes: 0 }
    }

    pub(crate) fn push(&mut self, issue: Issue) {
        self.count += 1;
        if self.issues.len() < ISSUES_MAX {
            self.issues.push(issue);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.issues.is_empty()
    }

    /// Parts that were read until it was known: what finding it took.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    pub(crate) fn found_after(&mut self, nodes: usize) {
        self.nodes = nodes;
    }

    /// Whether it could not be read at all.
    pub fn is_syntax(&self) -> bool {
        self.issues.iter().any(|issue| issue.is_syntax)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Issue> {
        self.issues.iter()
    }

    fn display(&self) -> String {
        let mut sorted: Vec<_> =
            self.issues.iter().map(|issue| (place(&self.text, issue.offset), issue)).collect();
        sorted.sort_by_key(|((line, column, _), _)| (*line, *column));
        let mut text = String::new();
        for (at, ((line, column, source), issue)) in sorted.into_iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            if issue.offset == NOWHERE {
                let _ = write!(text, "ERROR: <input>:-1:0: {}", issue.message);
                continue;
            }
            let _ = write!(text, "ERROR: <input>:{line}:{}: {}\n | {source}\n | ", column + 1, issue.message);
            for c in source.chars().take(column) {
                text.push(if c.len_utf8() > 1 { '．' } else { '.' });
            }
            let wide = source.chars().nth(column).is_some_and(|c| c.len_utf8() > 1);
            text.push(if wide { '＾' } else { '^' });
        }
        if self.count > self.issues.len() {
            let _ = write!(text, "\n{} more errors were truncated", self.count - self.issues.len());
        }
        text
    }
}

/// The line from 1, the column from 0, and the line's text.
fn place(source: &str, offset: u32) -> (usize, usize, String) {
    let mut left = offset as usize;
    for (at, line) in source.split('\n').enumerate() {
        let chars = line.chars().count();
        if left <= chars {
            return (at + 1, left, line.replace('\t', " "));
        }
        left -= chars + 1;
    }
    (1, 0, String::new())
}
