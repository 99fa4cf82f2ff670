//! How tangled a crate may be: the largest import cycle, its lines, and names that several public types
//! share.
//!
//! In: the sources by crate. Out: what is above its ceiling, or so far below it that the ceiling has to come
//! down. Numbers only fall. Never: tests.

use std::collections::BTreeMap;

use super::modules::Graph;
use super::tokens::Reach;

/// Modules of one import cycle: it has no exceptions.
const CYCLE_MAX: usize = 3;

/// Lines without tests of a crate.
const LINES_MAX: usize = 13_000;

/// The one that has more: a kind is a few lines of rules, and there are hundreds. To the next thousand.
const LINES: &[(&str, usize)] = &[("strategy", 23_000)];

/// Public types of the workspace that may have one name, `Error` apart: it has no exceptions.
const SAME_NAME_MAX: usize = 2;

/// A crate, with its files outside of tests: path below `src/`, and text.
pub type Crate<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// What is above its ceiling, and ceilings that nothing reaches any more.
///
/// # Errors
/// A file that is no Rust.
pub fn findings(crates: &[Crate]) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    let mut names = BTreeMap::<String, Vec<String>>::new();
    for (name, files) in crates {
        let graph = Graph::new(files).map_err(|why| format!("{name}/src/{why}"))?;
        let cycle = graph.largest_cycle();
        findings.extend(judged(
            &format!("{name}: modules in one import cycle ({})", cycle.join(", ")),
            cycle.len(),
            None,
            CYCLE_MAX,
            0,
        ));
        let lines = files.iter().map(|(_, text)| text.lines().count()).sum();
        findings.extend(judged(
            &format!("{name}: lines without tests"),
            lines,
            ceiling(LINES, name),
            LINES_MAX,
            1_000,
        ));
        for (of, reach, module) in graph.types {
            if reach == Reach::World && of != "Error" {
                names.entry(of).or_default().push(format!("{name}::{module}"));
            }
        }
    }
    for (of, places) in names {
        findings.extend(judged(
            &format!("{of}: public types of this name ({})", places.join(", ")),
            places.len(),
            None,
            SAME_NAME_MAX,
            0,
        ));
    }
    Ok(findings)
}

fn ceiling(of: &[(&str, usize)], name: &str) -> Option<usize> {
    of.iter().find(|(known, _)| *known == name).map(|(_, most)| *most)
}

/// - `slack`: how far below its ceiling a number may be before that has to come down.
fn judged(what: &str, measured: usize, ceiling: Option<usize>, most: usize, slack: usize) -> Option<String> {
    let allowed = ceiling.unwrap_or(most);
    if measured > allowed {
        return Some(format!("{what}: {measured}, and at most {allowed} may be"));
    }
    let loose = ceiling.is_some_and(|ceiling| measured <= most || measured + slack < ceiling);
    loose.then(|| {
        format!("{what}: {measured}, so lower its ceiling of {allowed} in crates/xtask/src/arch/ceilings.rs")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_may_fall_and_takes_its_ceiling_along() {
        assert_eq!(judged("x", 3, None, 3, 0), None);
        assert!(judged("x", 4, None, 3, 0).unwrap().contains("at most 3"));
        assert_eq!(judged("x", 9, Some(9), 3, 0), None);
        assert!(judged("x", 10, Some(9), 3, 0).unwrap().contains("at most 9"));
        assert!(judged("x", 8, Some(9), 3, 0).unwrap().contains("lower its ceiling"));
        assert_eq!(judged("x", 8_500, Some(9_000), 3, 1_000), None);
        assert!(judged("x", 3, Some(9), 3, 10).unwrap().contains("lower its ceiling"));
    }

    #[test]
    fn a_third_public_type_of_one_name_is_found_but_for_errors() {
        let file = |text| vec![("lib.rs", text)];
        let two = [
            ("a", file("pub struct Seat; pub enum Error {}")),
            ("b", file("pub struct Seat; pub enum Error {}")),
        ];
        assert!(findings(&two).unwrap().is_empty());
        let third = ("c", file("pub struct Seat; pub enum Error {}"));
        let found = findings(&[two[0].clone(), two[1].clone(), third]).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("Seat: public types of this name (a::, b::, c::)"), "{found:?}");
    }
}
