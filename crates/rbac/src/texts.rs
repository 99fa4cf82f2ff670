//! The lists of a rule: names of which one may stand for all, and paths of which one may stand for those that
//! begin as it does.
//!
//! In: texts as they were written. Out: whether one is among them, in the logarithm of their number. Never:
//! copies what is asked for.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

use crate::limits::TEXTS_LOOKED_THROUGH_MAX;

/// What stands for all.
pub(crate) const ALL: &str = "*";

/// A list of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    /// As they were written.
    pub all: Box<[Arc<str>]>,
    // Their places in order; empty where there are few.
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
            sorted.sort_by(|one, other| all[*one as usize].cmp(&all[*other as usize]));
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
        if self.sorted.is_empty() {
            // Few: `TEXTS_LOOKED_THROUGH_MAX`.
            return self.all.iter().any(|text| is_joined(text, parts));
        }
        let compared = |at: &u32| order(&self.all[*at as usize], parts);
        self.sorted.binary_search_by(compared).is_ok()
    }
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
}

fn is_joined(text: &str, parts: &[&str]) -> bool {
    let mut rest = text.as_bytes();
    for part in parts {
        match rest.strip_prefix(part.as_bytes()) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.is_empty()
}

fn order(text: &str, parts: &[&str]) -> Ordering {
    match parts {
        [one] => text.cmp(one),
        parts => text.bytes().cmp(parts.iter().flat_map(|part| part.bytes())),
    }
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
