//! The lists of a rule: names of which one may stand for all, and paths of which one may stand for those that
//! begin as it does.
//!
//! In: texts as they were written. Out: whether one is among them, in the logarithm of their number, and how
//! many steps it takes to know. Never: copies what is asked for; compares texts of different lengths.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

use crate::limits::{STEP_BYTES, TEXTS_LOOKED_THROUGH_MAX};

/// What stands for all.
pub(crate) const ALL: &str = "*";

/// A list of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    /// As they were written.
    pub all: Box<[Arc<str>]>,
    // Their places, the shorter texts first, and those of one length in order; empty where there are few.
    sorted: Box<[u32]>,
    /// Whether one of them stands for all.
    pub has_all: bool,
}

/// A list of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paths {
    pub texts: Texts,
    // What paths may begin with, without the stars; in order, and none of them begins with another.
    prefixes: Box<[Arc<str>]>,
}

impl Texts {
    pub fn of(texts: impl IntoIterator<Item = Arc<str>>) -> Texts {
        let all: Box<[Arc<str>]> = texts.into_iter().collect();
        let mut sorted = Vec::new();
        if all.len() > TEXTS_LOOKED_THROUGH_MAX {
            sorted.extend(0..u32::try_from(all.len()).unwrap_or(u32::MAX));
            let by = |at: &u32| (all[*at as usize].len(), &all[*at as usize]);
            sorted.sort_by(|one, other| by(one).cmp(&by(other)));
        }
        let has_all = all.iter().any(|text| &**text == ALL);
        Texts { all, sorted: sorted.into(), has_all }
    }

    /// The texts of a list; what is none is passed over.
    pub fn read(list: &Value) -> Texts {
        let texts = list.as_array().into_iter().flatten();
        Texts::of(texts.filter_map(|text| text.as_str().map(Arc::from)))
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether `text` is among them, letter by letter.
    pub fn has(&self, text: &str) -> bool {
        self.has_joined(&[text])
    }

    /// Whether `parts`, one behind the other, are among them.
    pub fn has_joined(&self, parts: &[&str]) -> bool {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        if self.sorted.is_empty() {
            // Few: `TEXTS_LOOKED_THROUGH_MAX`.
            return self.all.iter().any(|text| text.len() == len && order(text, parts).is_eq());
        }
        let compared = |at: &u32| {
            let text = &*self.all[*at as usize];
            text.len().cmp(&len).then_with(|| order(text, parts))
        };
        self.sorted.binary_search_by(compared).is_ok()
    }

    /// What it takes at most to know whether a text of so many bytes is among them.
    pub fn steps(&self, bytes: usize) -> usize {
        let looked_at = match self.sorted.len() {
            0 => self.all.len(),
            many => depth(many),
        };
        (1 + looked_at) * steps_of(bytes)
    }
}

/// Steps of one look at a text of so many bytes.
fn steps_of(bytes: usize) -> usize {
    1 + bytes / STEP_BYTES
}

/// Looks of a search among so many in order.
fn depth(count: usize) -> usize {
    count.checked_ilog2().map_or(0, |halvings| halvings as usize + 1)
}

impl Paths {
    pub fn read(list: &Value) -> Paths {
        let texts = Texts::read(list);
        let ending = texts.all.iter().filter(|path| path.ends_with('*'));
        let mut all: Vec<&str> = ending.map(|path| path.trim_end_matches('*')).collect();
        all.sort_unstable();
        let mut prefixes: Vec<Arc<str>> = Vec::new();
        for prefix in all {
            if !prefixes.last().is_some_and(|last| prefix.starts_with(&**last)) {
                prefixes.push(prefix.into());
            }
        }
        Paths { texts, prefixes: prefixes.into() }
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Whether one of them stands for `path`.
    pub fn cover(&self, path: &str) -> bool {
        // The only one that it may begin with is the last that is not behind it: none begins with another.
        let behind = self.prefixes.partition_point(|prefix| &**prefix <= path);
        let begins = behind.checked_sub(1).is_some_and(|at| path.starts_with(&*self.prefixes[at]));
        begins || self.texts.has(path)
    }

    /// What it takes at most to know whether one of them stands for a path of so many bytes.
    pub fn steps(&self, bytes: usize) -> usize {
        (1 + depth(self.prefixes.len())) * steps_of(bytes) + self.texts.steps(bytes)
    }
}

/// In which order `text` and `parts`, one behind the other, come, which are as long.
fn order(text: &str, parts: &[&str]) -> Ordering {
    let mut rest = text.as_bytes();
    for part in parts {
        let (front, behind) = rest.split_at(part.len());
        match front.cmp(part.as_bytes()) {
            Ordering::Equal => rest = behind,
            other => return other,
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn few_and_many_texts_are_found_alike() {
        for count in [0, 1, 5, 12, 13, 500] {
            let texts = Texts::of((0..count).rev().map(|at| format!("t{at}/s").into()));
            for at in 0..count + 2 {
                let name = format!("t{at}");
                assert_eq!(texts.has(&format!("{name}/s")), at < count, "{at} of {count}");
                assert_eq!(texts.has_joined(&[&name, "/", "s"]), at < count, "{at} of {count}");
                assert!(!texts.has(&name) && !texts.has_joined(&[&name, "/", "other"]));
            }
        }
        assert!(Texts::of(["a".into(), "*".into()]).has_all);
    }

    #[test]
    fn texts_of_different_lengths_that_begin_alike_are_told_apart() {
        for count in [3, 40] {
            let texts = Texts::of((1..count).map(|len| "a".repeat(len).into()));
            for len in 0..count + 3 {
                let found = (1..count).contains(&len);
                assert_eq!(texts.has(&"a".repeat(len)), found, "{len} of {count}");
                assert_eq!(texts.has_joined(&["", &"a".repeat(len / 2), &"a".repeat(len - len / 2)]), found);
                assert!(!texts.has_joined(&["a", &"b".repeat(len)]) || len == 0);
            }
        }
    }

    #[test]
    fn a_longer_text_takes_more_steps_and_so_do_more_texts() {
        let of = |count: usize| Texts::of((0..count).map(|at| format!("t{at}").into()));
        let steps =
            [of(0), of(1), of(12), of(13), of(1_000)].map(|texts| [texts.steps(10), texts.steps(6_400)]);
        assert_eq!(steps, [[1, 101], [2, 202], [13, 1_313], [5, 505], [11, 1_111]]);
        let paths = Paths::read(&json!(["/a/*", "/b/*", "/c"]));
        assert_eq!((paths.steps(10), paths.steps(640)), (3 + 4, 33 + 44));
    }

    #[test]
    fn a_path_that_ends_in_stars_stands_for_those_that_begin_as_it_does() {
        for (list, path, want) in [
            (json!(["/api", "/api/*"]), "/api", true),
            (json!(["/api", "/api/*"]), "/api/v1", true),
            (json!(["/api", "/api/*"]), "/apis", false),
            (json!(["*"]), "/anything", true),
            (json!(["*"]), "", true),
            (json!(["/a**"]), "/abc", true),
            (json!(["/a*b"]), "/a*b", true),
            (json!(["/a*b"]), "/axb", false),
            (json!(["/b/*", "/b/c/*", "/b*", "/a*", "/c/d"]), "/b/c/x", true),
            (json!(["/b/*", "/b/c/*", "/c/d"]), "/b", false),
            (json!(["/b/*", "/b/c/*", "/c/d"]), "/b/zz", true),
            (json!(["/b/*", "/b/c/*", "/c/d"]), "/c/d", true),
            (json!(["/b/*", "/b/c/*", "/c/d"]), "/c/d/e", false),
            (json!([]), "/", false),
        ] {
            assert_eq!(Paths::read(&list).cover(path), want, "{list} {path}");
        }
    }
}
