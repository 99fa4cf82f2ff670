//! The tables as text: sections of rows, each row a request and what is answered.
//!
//! In: the files of `contract/`. Out: [`Row`]s. Their form:
//!
//! ```text
//! == 1.2 what this section is about
//! answers RunTestList RunTestListPaging      upstream's tests that these rows answer to
//! pods,widgets list ns ?limit=2              kinds (all, if none are named), verb, path, query
//!   200 rv=now [early@o3 four@s8] ...        what kube-apiserver answers, and ours
//!   ours 429 TooManyRequests "..."           or what ours answers,
//!   because a stampede is how etcd dies      and why
//! ```
//!
//! Never: knows how an answer is written as text (`shape.rs`), or what a placeholder stands for (`ask.rs`).

use super::history::{ApiResource, KINDS};

/// What a row asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    DeleteCollection,
}

/// When a row is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// After the static writes.
    Before,
    /// After the live writes.
    After,
}

/// Where it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestPath {
    /// The deprecated `/watch/` path.
    pub watch_path: bool,
    /// Namespace `a`, or all of them.
    pub in_namespace: bool,
    pub name: Option<String>,
}

/// One row on one kind is one test.
#[derive(Debug, Clone)]
pub struct Row {
    /// The section of the reference: `1.2`.
    pub table: String,
    pub when: When,
    pub kinds: Vec<ApiResource>,
    pub verb: Verb,
    pub path: RequestPath,
    /// With placeholders.
    pub query: String,
    /// Its line, which names it.
    pub title: String,
    pub theirs: String,
    /// Where it is not theirs, and why.
    pub ours: Option<(String, String)>,
}

impl Row {
    /// Whether it names a revision that is compacted.
    pub fn is_of_old(&self) -> bool {
        ["{o", "@o"].iter().any(|mark| self.query.contains(mark))
    }
}

/// The tables' files.
pub const FILES: [(&str, &str, When); 4] = [
    ("options.txt", include_str!("../../contract/options.txt"), When::Before),
    ("list.txt", include_str!("../../contract/list.txt"), When::Before),
    ("watch.txt", include_str!("../../contract/watch.txt"), When::Before),
    ("after.txt", include_str!("../../contract/after.txt"), When::After),
];

/// Every row of every file, and the upstream tests that they answer to.
///
/// # Errors
/// The first line that makes no sense.
pub fn rows() -> Result<(Vec<Row>, Vec<String>), String> {
    let (mut rows, mut upstream) = (Vec::new(), Vec::new());
    for (name, text, when) in FILES {
        parse(text, when, &mut rows, &mut upstream).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok((rows, upstream))
}

fn parse(text: &str, when: When, rows: &mut Vec<Row>, upstream: &mut Vec<String>) -> Result<(), String> {
    let mut table = None;
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("== ") {
            table = title.split_whitespace().next().map(str::to_owned);
        } else if let Some(names) = line.strip_prefix("answers ") {
            upstream.extend(names.split_whitespace().map(str::to_owned));
        } else if let Some(told) = line.strip_prefix("  ") {
            let row = rows.last_mut().ok_or_else(|| format!("an answer without a row: {line}"))?;
            told_of(row, told.trim()).ok_or_else(|| format!("{}: {line}", row.title))?;
        } else {
            let table = table.clone().ok_or_else(|| format!("a row outside of a section: {line}"))?;
            rows.push(row(line, table, when).ok_or_else(|| format!("no row: {line}"))?);
        }
    }
    let half = |row: &&Row| row.theirs.is_empty() || row.ours.as_ref().is_some_and(|ours| ours.1.is_empty());
    match rows.iter().find(half) {
        Some(row) => Err(format!("{}: an answer or a reason is missing", row.title)),
        None => Ok(()),
    }
}

/// Adds a line to the row above it.
fn told_of(row: &mut Row, line: &str) -> Option<()> {
    if let Some(answer) = line.strip_prefix("ours ") {
        row.ours = Some((answer.to_owned(), String::new()));
    } else if let Some(reason) = line.strip_prefix("because ") {
        row.ours.as_mut()?.1 = reason.to_owned();
    } else if row.theirs.is_empty() {
        row.theirs = line.to_owned();
    } else {
        row.theirs.push(' ');
        row.theirs.push_str(line);
    }
    Some(())
}

fn row(line: &str, table: String, when: When) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (kinds, words) = match verb(words.first()?) {
        Some(_) => (None, words.as_slice()),
        None => (Some(*words.first()?), &words[1..]),
    };
    let [verb_word, path_word, query @ ..] = words else { return None };
    let query = match query {
        [] => "",
        [query] => query.strip_prefix('?')?,
        _ => return None,
    };
    let path = path(path_word);
    Some(Row {
        table,
        when,
        kinds: match kinds {
            Some(named) => named.split(',').map(kind).collect::<Option<_>>()?,
            None => default_kinds(&path),
        },
        verb: verb(verb_word)?,
        path,
        query: query.to_owned(),
        title: line.to_owned(),
        theirs: String::new(),
        ours: None,
    })
}

/// Kinds without namespaces have nothing across them.
fn default_kinds(path: &RequestPath) -> Vec<ApiResource> {
    KINDS.into_iter().filter(|kind| path.in_namespace || kind.namespaced).collect()
}

fn kind(plural: &str) -> Option<ApiResource> {
    KINDS.into_iter().find(|kind| kind.plural == plural)
}

fn verb(word: &str) -> Option<Verb> {
    Some(match word {
        "get" => Verb::Get,
        "list" => Verb::List,
        "watch" => Verb::Watch,
        "deletecollection" => Verb::DeleteCollection,
        _ => return None,
    })
}

/// `ns`, `all`, `ns/one`, `/watch/ns`, ...
fn path(word: &str) -> RequestPath {
    let (watch_path, rest) = match word.strip_prefix("/watch/") {
        Some(rest) => (true, rest),
        None => (false, word),
    };
    let (scope, name) = match rest.split_once('/') {
        Some((scope, name)) => (scope, Some(name.to_owned())),
        None => (rest, None),
    };
    RequestPath { watch_path, in_namespace: scope == "ns", name }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_upstream_test_is_answered_where_the_list_says() {
        let (_, answered) = rows().expect("the tables");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = include_str!("../../contract/upstream.txt");
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let listed: Vec<(&str, &str)> = lines.map(|line| line.split_once(' ').expect("a place")).collect();
        for (test, place) in &listed {
            let is_there = match place.trim() {
                "rows" => answered.iter().any(|answered| answered == test),
                file => root.join(file).is_file(),
            };
            assert!(is_there, "{test} is not answered by {}", place.trim());
        }
        for test in &answered {
            assert!(listed.iter().any(|(listed, _)| listed == test), "{test} is not in the list");
        }
    }
}
