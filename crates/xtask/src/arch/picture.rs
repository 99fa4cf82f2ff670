//! The pictures in ARCHITECTURE.md: of the crates, drawn from what cargo knows, and of a write, drawn from
//! its chain of stages.
//!
//! In: `cargo metadata`, the chain's source, the document. Out: the document with both. A crate stands above
//! all that it uses; an arrow that others already imply is left out. Never: dependencies of tests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{short, text};

/// A place in the document, from one line to another.
type Frame = (&'static str, &'static str);

const CRATES: Frame =
    ("<!-- crates: drawn by `cargo xtask arch --write` -->\n```text\n", "```\n<!-- /crates -->\n");
const WRITE_PATH: Frame =
    ("<!-- write path: drawn by `cargo xtask arch --write` -->\n```text\n", "```\n<!-- /write path -->\n");

/// Where the stages of a write stand in order, each below the line that says what it does.
pub const CHAIN: &str = "crates/registry/src/write/chain.rs";

/// Crates that test, measure or build the others.
const AROUND: &[&str] = &[
    "bench",
    "client-go-rules",
    "clients",
    "conformance",
    "contenders",
    "faults",
    "fuzz",
    "golden",
    "hostile",
    "scratch",
    "sim",
    "testing",
    "xtask",
];

/// Crate -> workspace crates that it uses.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// `document` with the pictures of today.
///
/// - `chain`: the text of [`CHAIN`].
///
/// # Errors
/// It has no place for one, or the chain has a stage of which nothing is said.
pub fn drawn(document: &str, metadata: &Value, chain: &str) -> Result<String, String> {
    let document = framed(document, CRATES, &picture(&uses(metadata)))?;
    framed(&document, WRITE_PATH, &write_path(chain)?)
}

fn framed(document: &str, (begin, end): Frame, picture: &str) -> Result<String, String> {
    let wrong = || format!("ARCHITECTURE.md has no {begin:?} … {end:?}");
    let (before, rest) = document.split_once(begin).ok_or_else(wrong)?;
    let (_, after) = rest.split_once(end).ok_or_else(wrong)?;
    Ok(format!("{before}{begin}{picture}{end}{after}"))
}

/// The stages in order, a line each.
fn write_path(chain: &str) -> Result<String, String> {
    let mut stages = Vec::new();
    let mut said = String::new();
    for line in chain.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("// ") {
            let gap = if said.is_empty() { "" } else { " " };
            said.extend([gap, words]);
            continue;
        }
        let words = std::mem::take(&mut said);
        if line.starts_with("Stage { is: ") {
            let stage =
                words.split_once(": ").ok_or_else(|| format!("{CHAIN}: nothing is said of {line:?}"))?;
            stages.push((stage.0.to_owned(), stage.1.to_owned()));
        }
    }
    let width = stages.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = stages.iter().map(|(name, what)| format!("{name:width$}   {what}\n"));
    Ok(lines.collect::<Vec<_>>().join(&format!("{:>4}\n", "↓")))
}

fn uses(metadata: &Value) -> Uses<'_> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let packages = packages.filter(|package| !AROUND.contains(&short(text(package, "name"))));
    let mut found = Uses::new();
    for package in packages {
        let all = package["dependencies"].as_array().into_iter().flatten();
        let ours = all.filter(|used| used["path"].is_string() && used["kind"].as_str() != Some("dev"));
        found.insert(short(text(package, "name")), ours.map(|used| short(text(used, "name"))).collect());
    }
    found
}

fn picture(uses: &Uses) -> String {
    let mut floors = BTreeMap::<usize, Vec<&str>>::new();
    for name in uses.keys() {
        floors.entry(floor(name, uses)).or_default().push(name);
    }
    let width = uses.keys().map(|name| name.len()).max().unwrap_or(0);
    let mut lines = String::new();
    for (floor, names) in floors.iter().rev() {
        if *floor == 0 {
            lines += &format!("{floor:>2}  {}\n", names.join("  "));
            continue;
        }
        for (at, name) in names.iter().enumerate() {
            let shown = if at == 0 { format!("{floor:>2}") } else { "  ".to_owned() };
            lines += &format!("{shown}  {name:width$} → {}\n", direct(name, uses).join("  "));
        }
    }
    lines
}

/// How many crates stand below it, one on top of the other.
fn floor(name: &str, uses: &Uses) -> usize {
    uses.get(name).into_iter().flatten().map(|used| floor(used, uses) + 1).max().unwrap_or(0)
}

/// What it uses and nothing else that it uses does.
fn direct<'a>(name: &str, uses: &Uses<'a>) -> Vec<&'a str> {
    let Some(all) = uses.get(name) else { return Vec::new() };
    let implied = |used: &&str| all.iter().any(|other| other != used && reaches(other, used, uses));
    all.iter().copied().filter(|used| !implied(used)).collect()
}

fn reaches(from: &str, to: &str, uses: &Uses) -> bool {
    uses.get(from).into_iter().flatten().any(|used| *used == to || reaches(used, to, uses))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crate_stands_above_what_it_uses_and_implied_arrows_are_left_out() {
        let used = |name: &str, kind: Option<&str>| json!({"name": format!("forebay-{name}"), "path": "/x", "kind": kind});
        let package =
            |name: &str, all: &[Value]| json!({"name": format!("forebay-{name}"), "dependencies": all});
        let metadata = json!({"packages": [
            package("top", &[used("middle", None), used("leaf", None), used("other", Some("dev"))]),
            package("middle", &[used("leaf", None)]),
            package("leaf", &[]),
            package("other", &[]),
            package("bench", &[used("top", None)]),
        ]});
        let document = format!("# A\n{}old\n{}rest\n", CRATES.0, CRATES.1);
        let expected = " 2  top    → middle\n 1  middle → leaf\n 0  leaf  other\n";
        let drawn = |document: &str| framed(document, CRATES, &picture(&uses(&metadata)));
        assert_eq!(drawn(&document).unwrap(), format!("# A\n{}{expected}{}rest\n", CRATES.0, CRATES.1));
        assert!(drawn("# A\n").is_err());
    }

    #[test]
    fn the_stages_of_a_write_are_drawn_in_order_with_what_is_said_of_them() {
        let chain = "static CHAIN: [Stage; 2] = [\n    // read: once:\n    // whole\n    Stage { is: Is::Read },\n    // commit: durable\n    \
                     Stage { is: Is::Commit },\n];";
        assert_eq!(write_path(chain).unwrap(), "read     once: whole\n   ↓\ncommit   durable\n");
        assert!(write_path("    Stage { is: Is::Read },").is_err());
    }
}
