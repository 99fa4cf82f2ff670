//! How many rows hold, for each table on each target.
//!
//! In: [`Results`]. Out: the table that stands in COMPAT.md, and what does not hold. Never: judges.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::suite::Results;
use super::table::Row;
use super::target::Whose;

/// What the tables are about.
const TITLES: [(&str, &str); 6] = [
    ("1.1", "options, checked before anything else"),
    ("1.2", "LIST and GET"),
    ("1.4", "WATCH"),
    ("1.5", "errors"),
    ("1.6", "continue tokens"),
    ("1.8", "guarantees"),
];

/// A Markdown table: a line for each table of the reference, a column for each target.
pub fn markdown(rows: &[Row], results: &[Results]) -> String {
    let mut out = String::from("| rows that hold |");
    let mut rule = String::from("|---|");
    for result in results {
        let _ = write!(out, " {} |", result.target);
        rule += "---|";
    }
    let _ = writeln!(out, "\n{rule}");
    let mut tables: BTreeMap<&str, &str> = TITLES.into_iter().collect();
    for row in rows {
        tables.entry(&row.table).or_insert("");
    }
    for (table, title) in tables {
        let cells: Vec<String> =
            results.iter().map(|result| cell(result, |at| rows[at].table == table)).collect();
        let _ = writeln!(out, "| §{table} {title} | {} |", cells.join(" | "));
    }
    let cells: Vec<String> = results.iter().map(|result| cell(result, |_| true)).collect();
    let _ = writeln!(out, "| all | {} |", cells.join(" | "));
    out
}

fn cell(result: &Results, counts: impl Fn(usize) -> bool) -> String {
    let of = result.tested.iter().filter(|tested| counts(tested.row));
    let hold = of.clone().filter(|tested| tested.holds).count();
    format!("{hold} of {}", of.count())
}

/// What ours answers otherwise, and why: a Markdown table.
pub fn on_purpose(rows: &[Row]) -> String {
    let mut out =
        String::from("| differs on purpose | kube-apiserver | ours | because |\n|---|---|---|---|\n");
    for row in rows {
        if let Some((ours, because)) = &row.ours {
            let _ = writeln!(out, "| `{}` | `{}` | `{ours}` | {because} |", row.title, row.theirs);
        }
    }
    out
}

/// Every row that does not hold, with what was wanted and what was answered.
pub fn broken(rows: &[Row], results: &[Results]) -> String {
    let mut out = String::new();
    for result in results {
        for tested in result.tested.iter().filter(|tested| !tested.holds) {
            let _ = writeln!(
                out,
                "{}: {}: §{} {}\n  wanted {}\n  got    {}",
                result.target,
                tested.kind,
                rows[tested.row].table,
                rows[tested.row].title,
                tested.wanted,
                tested.line
            );
        }
    }
    out
}

/// Every row with what each target answered: to record the real server's.
pub fn recorded(rows: &[Row], results: &[Results]) -> String {
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        let _ = writeln!(out, "{}", row.title);
        for result in results {
            let mut lines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
            for tested in result.tested.iter().filter(|tested| tested.row == at) {
                lines.entry(&tested.line).or_default().push(tested.kind);
            }
            let whose = if result.whose == Whose::Ours { "ours" } else { "theirs" };
            for (line, kinds) in lines {
                let _ = writeln!(out, "\t{whose}\t{}\t{}\t{line}", result.target, kinds.join(","));
            }
        }
    }
    out
}
