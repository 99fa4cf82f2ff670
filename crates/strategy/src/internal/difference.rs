//! A unified diff of two objects, as kube-apiserver appends it to a message.
//!
//! In: two objects of one internal type. Out: hunks with three lines around each change. Never: a diff of
//! what is so large that nobody would read it.
//!
//! Source: apimachinery v0.36.3 `util/diff`, which has Python's `difflib` underneath; this finds the same matches.

use std::collections::HashMap;

use super::{whole, write_lines};
use crate::value::Members;

const CONTEXT: usize = 3;
/// Lines of one side: looking for matches takes time in their square, and a pod has a hundred. Past it there
/// is no diff.
const LINES_MAX: usize = 4_000;
/// Places that are looked at for the diffs of one object, a tenth of a second: lines that alternate with
/// others can be made to be looked at as many times as there are lines. A pod whose image changed takes some
/// ten thousand.
const LOOKS_MAX: usize = 1 << 20;
/// From here on, lines that are everywhere do not start a match.
const POPULAR_FROM: usize = 200;

/// Lines that are the same: where on each side, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    old: usize,
    new: usize,
    lines: usize,
}

/// A run of lines, `old` becoming `new`.
#[derive(Clone, Copy)]
struct Step {
    same: bool,
    old: (usize, usize),
    new: (usize, usize),
}

/// What changes from `old` to `new`, both of the internal type `ty`.
pub fn difference(ty: &str, old: &Members, new: &Members) -> String {
    Differences::default().between(ty, old, new)
}

/// Makes the diffs of one object's parts, and none any more when they have taken too long.
pub struct Differences {
    looks_left: usize,
}

impl Default for Differences {
    fn default() -> Differences {
        Differences { looks_left: LOOKS_MAX }
    }
}

impl Differences {
    /// What changes from `old` to `new`, both of the internal type `ty`.
    pub fn between(&mut self, ty: &str, old: &Members, new: &Members) -> String {
        if self.looks_left == 0 {
            return String::new();
        }
        let text = |object: &Members| {
            let mut text = String::new();
            write_lines(&whole(ty, object), 0, &mut text);
            text
        };
        unified(&text(old), &text(new), &mut self.looks_left)
    }
}

fn unified(old: &str, new: &str, looks_left: &mut usize) -> String {
    let old: Vec<&str> = old.split('\n').collect();
    let new: Vec<&str> = new.split('\n').collect();
    if old.len().max(new.len()) > LINES_MAX {
        return String::new();
    }
    let Some(matches) = matches(&old, &new, looks_left) else { return String::new() };
    let mut text = String::new();
    for hunk in hunks(steps(&matches, old.len(), new.len())) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let (was, is) = (range(first.old.0, last.old.1), range(first.new.0, last.new.1));
        text.push_str(&format!("@@ -{was} +{is} @@\n"));
        for step in hunk {
            let (removed, added) = (&old[step.old.0..step.old.1], &new[step.new.0..step.new.1]);
            let signed: [(char, &[&str]); 2] =
                if step.same { [(' ', removed), ('+', &[])] } else { [('-', removed), ('+', added)] };
            for (sign, lines) in signed {
                for line in lines {
                    text.push(sign);
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
    }
    text
}

fn range(from: usize, to: usize) -> String {
    match to - from {
        0 => format!("{from},0"),
        1 => (from + 1).to_string(),
        lines => format!("{},{lines}", from + 1),
    }
}

/// Matching runs in order, each the longest between its neighbours; `None` when that takes too long.
fn matches<'t>(old: &[&'t str], new: &[&'t str], looks_left: &mut usize) -> Option<Vec<Match>> {
    // A line is a number from here on: it is looked at often, and may be long.
    let mut numbers = HashMap::new();
    let (old, new) = (numbered(old, &mut numbers), numbered(new, &mut numbers));
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); numbers.len()];
    for (at, line) in new.iter().enumerate() {
        places[*line].push(at);
    }
    if new.len() >= POPULAR_FROM {
        places.iter_mut().filter(|at| at.len() > new.len() / 100 + 1).for_each(Vec::clear);
    }
    let mut found = Vec::new();
    let mut windows = vec![(0, old.len(), 0, new.len())];
    while let Some((old_from, old_to, new_from, new_to)) = windows.pop() {
        let longest = longest(&old, &new, &places, (old_from, old_to), (new_from, new_to), looks_left);
        if *looks_left == 0 {
            return None;
        }
        if longest.lines == 0 {
            continue;
        }
        windows.push((old_from, longest.old, new_from, longest.new));
        windows.push((longest.old + longest.lines, old_to, longest.new + longest.lines, new_to));
        found.push(longest);
    }
    found.sort_unstable_by_key(|found| found.old);
    Some(found)
}

/// Equal lines have equal numbers.
fn numbered<'t>(lines: &[&'t str], numbers: &mut HashMap<&'t str, usize>) -> Vec<usize> {
    let number = |line: &&'t str| {
        let next = numbers.len();
        *numbers.entry(line).or_insert(next)
    };
    lines.iter().map(number).collect()
}

fn longest(
    old: &[usize],
    new: &[usize],
    places: &[Vec<usize>],
    old_in: (usize, usize),
    new_in: (usize, usize),
    looks_left: &mut usize,
) -> Match {
    let mut best = Match { old: old_in.0, new: new_in.0, lines: 0 };
    let mut runs: HashMap<usize, usize> = HashMap::new(); // end of a run in `new` -> its length
    for (at, line) in old.iter().enumerate().take(old_in.1).skip(old_in.0) {
        let mut next = HashMap::new();
        *looks_left = looks_left.saturating_sub(1 + places[*line].len());
        if *looks_left == 0 {
            break;
        }
        for place in &places[*line] {
            if *place < new_in.0 {
                continue;
            }
            if *place >= new_in.1 {
                break;
            }
            let lines = place.checked_sub(1).and_then(|end| runs.get(&end)).unwrap_or(&0) + 1;
            next.insert(*place, lines);
            if lines > best.lines {
                best = Match { old: at + 1 - lines, new: place + 1 - lines, lines };
            }
        }
        runs = next;
    }
    while best.old > old_in.0 && best.new > new_in.0 && old[best.old - 1] == new[best.new - 1] {
        best = Match { old: best.old - 1, new: best.new - 1, lines: best.lines + 1 };
    }
    while best.old + best.lines < old_in.1
        && best.new + best.lines < new_in.1
        && old[best.old + best.lines] == new[best.new + best.lines]
    {
        best.lines += 1;
    }
    best
}

fn steps(matches: &[Match], old: usize, new: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut at_old, mut at_new) = (0, 0);
    let end = Match { old, new, lines: 0 };
    for found in matches.iter().chain([&end]) {
        if found.old > at_old || found.new > at_new {
            steps.push(Step { same: false, old: (at_old, found.old), new: (at_new, found.new) });
        }
        (at_old, at_new) = (found.old + found.lines, found.new + found.lines);
        if found.lines == 0 {
            continue;
        }
        match steps.last_mut() {
            Some(last) if last.same => (last.old.1, last.new.1) = (at_old, at_new),
            _ => steps.push(Step { same: true, old: (found.old, at_old), new: (found.new, at_new) }),
        }
    }
    steps
}

/// Changes with what is around them; those that are near share a hunk.
fn hunks(steps: Vec<Step>) -> Vec<Vec<Step>> {
    let mut hunks: Vec<Vec<Step>> = Vec::new();
    let mut hunk: Vec<Step> = Vec::new();
    let last = steps.len().saturating_sub(1);
    for (index, step) in steps.into_iter().enumerate() {
        if !step.same {
            hunk.push(step);
            continue;
        }
        let lines = step.old.1 - step.old.0;
        let head = Step {
            old: (step.old.0, step.old.0 + lines.min(CONTEXT)),
            new: (step.new.0, step.new.0 + lines.min(CONTEXT)),
            ..step
        };
        let tail = Step {
            old: (step.old.1 - lines.min(CONTEXT), step.old.1),
            new: (step.new.1 - lines.min(CONTEXT), step.new.1),
            ..step
        };
        let splits = lines > 2 * CONTEXT;
        if !hunk.is_empty() {
            if index < last && !splits {
                hunk.push(step);
                continue;
            }
            hunk.push(head);
            hunks.push(std::mem::take(&mut hunk));
        }
        if index < last {
            hunk.push(tail);
        }
    }
    // Once: for a hunk.
    if hunk.iter().any(|step| !step.same) {
        hunks.push(hunk);
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> String {
        text.split(' ').collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn changes_are_shown_with_three_lines_around_them() {
        let rows = [
            ("a b c", "a b c", ""),
            ("a b c d e", "a b X d e", "@@ -1,5 +1,5 @@\n a\n b\n-c\n+X\n d\n e\n"),
            ("1 2 3 4 5", "1 2 3 4 5 6", "@@ -3,3 +3,4 @@\n 3\n 4\n 5\n+6\n"),
            ("1 2 3 4 5", "2 3 4 5", "@@ -1,4 +1,3 @@\n-1\n 2\n 3\n 4\n"),
            ("a", "b", "@@ -1 +1 @@\n-a\n+b\n"),
            (
                "x 1 2 3 4 5 6 7 y",
                "X 1 2 3 4 5 6 7 Y",
                "@@ -1,4 +1,4 @@\n-x\n+X\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-y\n+Y\n",
            ),
            ("x 1 2 3 y", "X 1 2 3 Y", "@@ -1,5 +1,5 @@\n-x\n+X\n 1\n 2\n 3\n-y\n+Y\n"),
        ];
        for (old, new, diff) in rows {
            assert_eq!(unified(&lines(old), &lines(new), &mut { LOOKS_MAX }), diff, "{old} / {new}");
        }
    }

    #[test]
    fn what_nobody_would_read_has_no_diff() {
        let long = "a\n".repeat(LINES_MAX + 1);
        assert_eq!(unified(&long, "a", &mut { LOOKS_MAX }), "");
    }
}
