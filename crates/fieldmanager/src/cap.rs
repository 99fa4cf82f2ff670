//! Who updated long ago is one.
//!
//! In: who owns what. Out: the same with no more than so many that updated: the oldest of a version share
//! what they owned. Never: touches those that apply.
//!
//! Source: apimachinery v0.36.3 `managedfields/internal/capmanagers.go`. One thing of it is a mistake that is kept: where the common
//! one of a version is not the oldest of it, what it owned is forgotten when its turn comes.

use std::collections::BTreeMap;

use forebay_merge::{Owned, Set};

use crate::entry::{Managed, Manager};
use crate::limits::UPDATE_MANAGERS_MAX;

/// Who the oldest become.
const ANCIENT: &str = "ancient-changes";

/// The oldest of one version.
struct Oldest {
    /// The first that was met, which stays apart while it is alone.
    first: String,
    /// Who they are together.
    common: String,
    /// What is common; joined in the end, so that many cost what they own.
    sets: Vec<Set>,
    time: Option<String>,
}

/// Makes the oldest one by version, as many as are too many. Cost: n log n in what they own.
pub fn cap_update_managers(managed: &mut Managed) {
    let updaters = managed.owners.iter().filter(|(_, owned)| !owned.applied);
    let mut left = updaters.clone().count();
    if left <= UPDATE_MANAGERS_MAX {
        return;
    }
    // When each wrote is looked up once, not for each comparison.
    let mut updaters: Vec<_> = updaters
        .map(|(identifier, owned)| (managed.time_of(identifier), identifier, &owned.version))
        .collect();
    updaters.sort_unstable();
    let updaters: Vec<(String, String)> =
        updaters.into_iter().map(|(_, identifier, version)| (identifier.clone(), version.clone())).collect();
    let mut by_version: BTreeMap<String, Oldest> = BTreeMap::new();
    for (identifier, version) in updaters {
        if left <= UPDATE_MANAGERS_MAX {
            break;
        }
        let Some(oldest) = by_version.get_mut(&version) else {
            let oldest = Oldest { first: identifier, common: common(&version), sets: Vec::new(), time: None };
            by_version.insert(version, oldest);
            continue;
        };
        left -= 1;
        if identifier == oldest.common {
            managed.owners.remove(&oldest.common);
            oldest.sets.clear();
            continue;
        }
        if oldest.sets.is_empty() {
            let begun =
                managed.owners.remove(&oldest.common).or_else(|| managed.owners.remove(&oldest.first));
            oldest.sets.extend(begun.map(|owned| owned.fields));
        }
        oldest.sets.extend(managed.owners.remove(&identifier).map(|owned| owned.fields));
        oldest.time = managed.times.get(&identifier).cloned();
    }
    for (version, oldest) in by_version.into_iter().filter(|(_, oldest)| !oldest.sets.is_empty()) {
        match oldest.time {
            Some(time) => managed.times.insert(oldest.common.clone(), time),
            None => managed.times.remove(&oldest.common),
        };
        let fields = Set::union_of(&oldest.sets.iter().collect::<Vec<_>>());
        managed.owners.insert(oldest.common, Owned { fields, version, applied: false });
    }
}

/// Who the oldest of a version are then.
fn common(version: &str) -> String {
    Manager { name: ANCIENT.to_owned(), version: version.to_owned(), ..Manager::default() }.identifier()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// - `entries`: names with the second at which each wrote; an upper-case name applied.
    fn check(entries: &[(&str, usize)], want: &[&str]) {
        let entry = |(name, second): &(&str, usize)| {
            let operation = if name.starts_with(char::is_uppercase) { "Apply" } else { "Update" };
            json!({
                "manager": name, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
                "time": format!("2020-01-01T00:00:{second:02}Z"), "fieldsV1": {(format!("f:{name}")): {}},
            })
        };
        let entries: Vec<Value> = entries.iter().map(entry).collect();
        let mut managed = Managed::of_entries(&entries).expect("entries");
        cap_update_managers(&mut managed);
        let shown = managed.to_entries(&forebay_apimachinery::Lease::of_server()).expect("entries");
        let shown = shown.iter().map(|entry| {
            format!(
                "{} {} {}",
                entry["manager"].as_str().unwrap_or_default(),
                &entry["time"].as_str().unwrap_or_default()[17..19],
                entry["fieldsV1"]
            )
        });
        let got: Vec<String> = shown.collect();
        assert_eq!(got[..want.len()], *want, "{got:?}");
    }

    const YOUNG: [(&str, usize); 9] =
        [("c", 20), ("d", 21), ("e", 22), ("f", 23), ("g", 24), ("h", 25), ("i", 26), ("j", 27), ("k", 28)];

    #[test]
    fn ten_that_updated_are_kept_apart_and_who_applies_is_not_counted() {
        let mut entries = vec![("A", 1), ("B", 2), ("b", 3)];
        entries.extend(YOUNG);
        check(
            &entries,
            &[r#"A 01 {"f:A":{}}"#, r#"B 02 {"f:B":{}}"#, r#"b 03 {"f:b":{}}"#, r#"c 20 {"f:c":{}}"#],
        );
    }

    #[test]
    fn the_two_oldest_are_one_with_the_time_of_the_later() {
        let mut entries = vec![("b", 3), ("a", 2)];
        entries.extend(YOUNG);
        check(&entries, &[r#"ancient-changes 03 {"f:a":{},"f:b":{}}"#, r#"c 20 {"f:c":{}}"#]);
    }

    #[test]
    fn whoever_comes_after_joins_them() {
        let mut entries = vec![("ancient-changes", 1), ("b", 3)];
        entries.extend(YOUNG);
        check(&entries, &[r#"ancient-changes 03 {"f:ancient-changes":{},"f:b":{}}"#, r#"c 20 {"f:c":{}}"#]);
    }
}
