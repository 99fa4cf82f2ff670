//! The picture of the crates in ARCHITECTURE.md, drawn from what cargo knows.
//!
//! In: `cargo metadata`, the document. Out: the picture, or that the document has another one. A crate stands above all that it uses;
//! an arrow that others already imply is left out. Never: dependencies of tests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{short, text};

/// Around the picture, in the document.
const BEGIN: &str = "<!-- crates: drawn by `cargo xtask arch --write` -->\n```text\n";
const END: &str = "```\n<!-- /crates -->\n";

/// Crates that test, measure or build the others.
const AROUND: &[&str] =
    &["bench", "clients", "conformance", "faults", "fuzz", "golden", "scratch", "sim", "testing", "xtask"];

/// Crate -> workspace crates that it uses.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// `document` with the picture of today.
///
/// # Errors
/// It has no place for one.
pub fn drawn(document: &str, metadata: &Value) -> Result<String, String> {
    let wrong = || format!("ARCHITECTURE.md has no {BEGIN:?} … {END:?}");
    let (before, rest) = document.split_once(BEGIN).ok_or_else(wrong)?;
    let (_, after) = rest.split_once(END).ok_or_else(wrong)?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", picture(&uses(metadata))))
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
        let document = format!("# A\n{BEGIN}old\n{END}rest\n");
        let expected = " 2  top    → middle\n 1  middle → leaf\n 0  leaf  other\n";
        assert_eq!(drawn(&document, &metadata).unwrap(), format!("# A\n{BEGIN}{expected}{END}rest\n"));
        assert!(drawn("# A\n", &metadata).is_err());
    }
}
