//! COMPAT.md, taken apart: its tables, row by row, each with the section that it stands in.
//!
//! What the suite of the contract writes there itself, between its marks, is left out:
//! `crates/conformance/tests/contract.rs` holds it.

use std::path::PathBuf;

/// One row of a table.
#[derive(Debug)]
pub struct Row {
    pub section: String,
    /// At least one.
    pub cells: Vec<String>,
}

impl Row {
    pub fn first(&self) -> &str {
        &self.cells[0]
    }

    /// What is said of the first cell.
    pub fn said(&self) -> String {
        self.cells[1..].join(" | ")
    }
}

/// The document's text.
pub fn text() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../COMPAT.md");
    std::fs::read_to_string(path).expect("COMPAT.md")
}

/// Its rows, in order.
pub fn rows(text: &str) -> Vec<Row> {
    let (mut section, mut rows): (_, Vec<Row>) = (String::new(), Vec::new());
    let (mut is_table, mut is_written) = (false, false);
    for line in text.lines() {
        if line.starts_with("<!-- contract:") {
            is_written = line.contains("begin");
        }
        if let Some(title) = line.strip_prefix("## ") {
            section = title.to_owned();
        }
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            is_table = false;
            continue;
        };
        let cells: Vec<String> = cells.split('|').map(|cell| cell.trim().to_owned()).collect();
        let is_rule = cells.iter().all(|cell| cell.trim_matches('-').is_empty());
        // The first row is the head.
        if is_table && !is_written && !is_rule {
            rows.push(Row { section: section.clone(), cells });
        }
        is_table = true;
    }
    rows
}

/// What stands in backquotes in `text`, in order.
pub fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The text of the section called `title`.
pub fn section<'t>(text: &'t str, title: &str) -> &'t str {
    let from = text.find(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no section {title}"));
    let rest = &text[from + 4..];
    rest.find("\n## ").map_or(rest, |end| &rest[..end])
}
