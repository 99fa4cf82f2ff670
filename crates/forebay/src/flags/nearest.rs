//! The name that was probably meant.

/// The candidate nearest to `given` by edits (a swap of neighbours is one), if it is near enough to be meant.
///
/// A candidate that goes on where `given` stops counts as near. Of equals, the first wins.
pub fn nearest<'a>(given: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if given.chars().count() > NAME_CHARS_MAX {
        return None;
    }
    let allowed = (given.len() / 4).max(2);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let begun = given.len() >= 3 && candidate.starts_with(given);
        let edits = distance(given, candidate).min(if begun { allowed } else { usize::MAX });
        if edits <= allowed && edits < candidate.len() && best.is_none_or(|(least, _)| edits < least) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The work is the product of the lengths; no name is longer than this.
const NAME_CHARS_MAX: usize = 100;

/// Optimal string alignment distance: three rows, the product of the lengths in steps.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before = vec![0; right.len() + 1];
    let mut above: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i; right.len() + 1];
        for j in 1..=right.len() {
            let same = left[i - 1] == right[j - 1];
            row[j] = (above[j - 1] + usize::from(!same)).min(above[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
            if swapped {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[right.len()]
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_the_flag() {
        let rows: &[(&str, Option<&str>)] = &[
            ("data-dri", Some("data-dir")),
            ("datadir", Some("data-dir")),
            ("data", Some("data-dir")),
            ("secure-prot", Some("secure-port")),
            ("bind-adress", Some("bind-address")),
            ("audit-log-pth", Some("audit-log-path")),
            ("etcd-server", Some("etcd-servers")),
            ("authorisation-mode", Some("authorization-mode")),
            ("port", None),
            ("x", None),
            ("", None),
            ("completely-different", None),
        ];
        for (given, want) in rows {
            assert_eq!(nearest(given, table::all().map(|flag| flag.name)), *want, "{given:?}");
        }
    }

    #[test]
    fn an_endless_name_costs_nothing() {
        assert_eq!(nearest(&"x".repeat(1 << 20), table::all().map(|flag| flag.name)), None);
    }
}
