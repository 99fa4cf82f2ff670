//! The index in memory: for each key the revisions that changed it and are still kept. Values stay on disk.
//!
//! In: changes that are durable, versions that compaction drops. Out: which row holds a key's value, now or
//! as of an older revision. Owner: the writer thread changes it; everyone reads it under the lock in
//! `shared.rs`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use forebay_apimachinery::Key;

/// A revision that changed a key, and whether it put or deleted. The lowest bit says put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u64);

impl Version {
    pub(crate) fn new(revision: u64, put: bool) -> Version {
        assert!(revision < 1 << 63, "2^63 commits do not happen");
        Version(revision << 1 | u64::from(put))
    }

    pub(crate) fn revision(self) -> u64 {
        self.0 >> 1
    }

    pub(crate) fn is_put(self) -> bool {
        self.0 & 1 == 1
    }
}

#[derive(Debug)]
struct History {
    newest: Version,
    // What `newest` replaced and compaction has not dropped; most keys have none of that.
    older: Option<Box<Older>>,
}

/// Oldest first, at least one.
#[derive(Debug)]
struct Older(Vec<Version>);

impl History {
    fn versions(&self) -> impl DoubleEndedIterator<Item = Version> {
        self.older.iter().flat_map(|older| &older.0).copied().chain([self.newest])
    }

    fn at(&self, revision: u64) -> Option<Version> {
        self.versions().rev().find(|version| version.revision() <= revision)
    }
}

/// See the module's doc.
#[derive(Debug, Default)]
pub(crate) struct Index {
    // key -> its versions, at least one
    keys: BTreeMap<Key, History>,
    // Keys whose newest version is a put.
    live: u64,
}

/// Keys found in one step of a walk.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// (key, revision of the row that has its value), in key order.
    pub(crate) items: Vec<(Key, u64)>,
    /// Where the next step begins; `None` when nothing is left below the prefix.
    pub(crate) next: Option<Key>,
}

impl Index {
    /// Adds a version of `key`; its revision is above every earlier one of that key. Returns the key as it is
    /// known here: who passes that on has each key once, however often it changes.
    pub(crate) fn learn(&mut self, key: Key, version: Version) -> Key {
        self.live += u64::from(version.is_put());
        let mut known = match self.keys.entry(key) {
            Entry::Vacant(place) => {
                let key = place.key().clone();
                place.insert(History { newest: version, older: None });
                return key;
            }
            Entry::Occupied(known) => known,
        };
        let key = known.key().clone();
        let history = known.get_mut();
        assert!(version > history.newest, "{version:?} of {key} after {:?}", history.newest);
        self.live -= u64::from(history.newest.is_put());
        let Older(older) = &mut **history.older.get_or_insert_with(|| Box::new(Older(Vec::new())));
        // Most that have some have one.
        if older.is_empty() {
            older.reserve_exact(1);
        }
        older.push(history.newest);
        history.newest = version;
        key
    }

    /// Drops the version of `key` at `revision`. Only what a newer version replaced, or a tombstone, may be
    /// dropped.
    pub(crate) fn forget(&mut self, key: &str, revision: u64) {
        let Some(history) = self.keys.get_mut(key) else { return };
        if history.newest.revision() == revision {
            assert!(!history.newest.is_put() && history.older.is_none(), "{key} at {revision} is live");
            self.keys.remove(key);
            return;
        }
        let Some(older) = &mut history.older else { return };
        older.0.retain(|version| version.revision() != revision);
        if older.0.is_empty() {
            history.older = None;
        }
    }

    /// The newest version of `key`.
    pub(crate) fn newest(&self, key: &str) -> Option<Version> {
        self.keys.get(key).map(|history| history.newest)
    }

    /// Every kept version of `key`, oldest first.
    pub(crate) fn versions(&self, key: &str) -> impl Iterator<Item = Version> {
        self.keys.get(key).into_iter().flat_map(History::versions)
    }

    /// One step of a walk below `prefix` as of `revision`: the live keys after `after`, at most `limit` of
    /// them, looking at `looks` keys at most.
    pub(crate) fn walk(
        &self,
        prefix: &str,
        after: Option<&Key>,
        revision: u64,
        limit: usize,
        looks: usize,
    ) -> Found {
        let mut found = Found::default();
        for (looked, (key, history)) in self.below(prefix, after).enumerate() {
            if looked == looks || found.items.len() == limit {
                return found;
            }
            found.next = Some(key.clone());
            if let Some(version) = history.at(revision).filter(|version| version.is_put()) {
                found.items.push((key.clone(), version.revision()));
            }
        }
        found.next = None;
        found
    }

    /// One step of a count below `prefix` as of `revision`: how many of the next `looks` keys after `after`
    /// are live, and where the next step begins.
    pub(crate) fn count(
        &self,
        prefix: &str,
        after: Option<&Key>,
        revision: u64,
        looks: usize,
    ) -> (u64, Option<Key>) {
        let mut keys = self.below(prefix, after);
        let (mut count, mut last) = (0, None::<&Key>);
        for (key, history) in keys.by_ref().take(looks) {
            count += u64::from(history.at(revision).is_some_and(Version::is_put));
            last = Some(key);
        }
        (count, last.filter(|_| keys.next().is_some()).cloned())
    }

    /// One step of a walk below `prefix` for history: adds to `revisions` those in `(from, upto]` that
    /// changed one of the next `looks` keys. Returns where the next step begins.
    pub(crate) fn walk_history(
        &self,
        prefix: &str,
        after: Option<&Key>,
        (from, upto): (u64, u64),
        looks: usize,
        revisions: &mut Vec<u64>,
    ) -> Option<Key> {
        let mut last = None::<&Key>;
        for (looked, (key, history)) in self.below(prefix, after).enumerate() {
            if looked == looks {
                return last.cloned();
            }
            last = Some(key);
            let newer =
                history.versions().rev().map(Version::revision).take_while(|revision| *revision > from);
            revisions.extend(newer.filter(|revision| *revision <= upto));
        }
        None
    }

    /// Keys that have a value.
    pub(crate) fn live(&self) -> u64 {
        self.live
    }

    fn below<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a History)> {
        let start = match after {
            Some(after) if after.as_str() >= prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix),
        };
        self.keys
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(move |(key, _)| key.as_str().starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// `put a@2; del a@3; forget a@2; at 2 /; history 1..3 /`: builds an index and prints what is asked of
    /// it.
    fn check(script: &str, expected: Expect) {
        let mut index = Index::default();
        let mut out = Vec::new();
        for line in script.split(';').map(str::trim) {
            let (verb, rest) = line.split_once(' ').expect("verb and rest");
            let number = |text: &str| text.parse::<u64>().expect("a number");
            match verb {
                "put" | "del" | "forget" => {
                    let (key, revision) = rest.split_once('@').expect("key@revision");
                    match verb {
                        "forget" => index.forget(key, number(revision)),
                        _ => drop(index.learn(Key::new(key), Version::new(number(revision), verb == "put"))),
                    }
                }
                "at" => {
                    let (revision, prefix) = rest.split_once(' ').expect("revision and prefix");
                    let (mut after, mut items) = (None, Vec::new());
                    loop {
                        let found = index.walk(prefix, after.as_ref(), number(revision), 2, 1);
                        items.extend(found.items.iter().map(|(key, revision)| format!("{key}@{revision}")));
                        after = found.next;
                        if after.is_none() {
                            break;
                        }
                    }
                    let (mut count, mut place) = (0, None);
                    loop {
                        let found;
                        (found, place) = index.count(prefix, place.as_ref(), number(revision), 1);
                        count += found;
                        if place.is_none() {
                            break;
                        }
                    }
                    assert_eq!(count as usize, items.len());
                    out.push(format!("[{}] live={}", items.join(" "), index.live()));
                }
                "history" => {
                    let (range, prefix) = rest.split_once(' ').expect("range and prefix");
                    let (from, upto) = range.split_once("..").expect("from..upto");
                    let (mut after, mut revisions) = (None, Vec::new());
                    loop {
                        let range = (number(from), number(upto));
                        after = index.walk_history(prefix, after.as_ref(), range, 1, &mut revisions);
                        if after.is_none() {
                            break;
                        }
                    }
                    revisions.sort_unstable();
                    out.push(format!("{revisions:?}"));
                }
                other => panic!("unknown verb {other}"),
            }
        }
        expected.assert_eq(&out.join("; "));
    }

    #[test]
    fn whoever_passes_a_change_on_has_its_key_as_the_first_one_had_it() {
        let mut index = Index::default();
        let first = index.learn(Key::new("/a"), Version::new(2, true));
        for revision in 3..6 {
            let later = index.learn(Key::new("/a"), Version::new(revision, revision != 4));
            assert!(std::ptr::eq(later.as_str(), first.as_str()));
        }
        assert_eq!(index.newest("/a"), Some(Version::new(5, true)));
    }

    #[test]
    fn a_key_is_found_as_of_any_kept_revision() {
        check(
            "put /a/x@2; put /a/y@3; put /a/x@4; del /a/x@5; put /b@6; at 1 /a/; at 3 /a/; at 4 /a/; at 6 /a/; at 6 /",
            expect![
                "[] live=2; [/a/x@2 /a/y@3] live=2; [/a/x@4 /a/y@3] live=2; [/a/y@3] live=2; [/a/y@3 /b@6] live=2"
            ],
        );
    }

    #[test]
    fn a_forgotten_version_is_gone_and_a_forgotten_tombstone_takes_its_key() {
        check(
            "put /a@2; put /a@3; forget /a@2; at 2 /; at 3 /; del /a@4; forget /a@3; forget /a@4; history 0..9 /; put /a@5; at 9 /",
            expect!["[] live=1; [/a@3] live=1; []; [/a@5] live=1"],
        );
    }

    #[test]
    fn history_is_what_changed_in_the_range_below_the_prefix() {
        check(
            "put /a/x@2; put /b@3; put /a/x@4; del /a/x@5; history 0..9 /a/; history 2..4 /a/; history 5..9 /a/; history 2..9 /",
            expect!["[2, 4, 5]; [4]; []; [3, 4, 5]"],
        );
    }

    #[test]
    #[should_panic(expected = "is live")]
    fn a_live_value_is_never_forgotten() {
        check("put /a@2; forget /a@2", expect![""]);
    }
}
