//! Compiled patterns: one for each text in the whole process, and only so many bytes of them.
//!
//! In: a pattern. Out: what it was compiled to, or why it is none. All schemas share one cache, from which
//! what was used longest ago goes first: how many CRDs there are, and how often they are written, decides
//! nothing. The state belongs to whoever holds the cache's lock, for a look into a map; nothing is compiled
//! under it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use regex::bytes::{Regex, RegexBuilder};

use super::translate;
use crate::limits::{PATTERN_CACHE_BYTES_MAX, PATTERN_SIZES, PATTERNS_BYTES_MAX, PATTERNS_KEPT_BYTES_MAX};

/// What a pattern was compiled to.
#[derive(Debug)]
pub(super) struct Compiled {
    regex: Result<Regex, String>,
    /// The least of [`PATTERN_SIZES`] that it fits in.
    size: usize,
    /// When it was last looked up: a number that grows.
    used: AtomicU64,
}

impl Compiled {
    pub(super) fn matches(&self, text: &str) -> Result<bool, String> {
        self.used.store(now(), Ordering::Relaxed);
        self.regex.as_ref().map(|regex| regex.is_match(text.as_bytes())).map_err(Clone::clone)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.regex.as_ref().map(drop).map_err(Clone::clone)
    }

    /// What is kept for it: itself, and the automata that two threads at a time build while they match, of
    /// which each has one for either direction.
    fn kept_bytes(&self, source: &str) -> usize {
        self.size + source.len() + if self.regex.is_ok() { 4 * PATTERN_CACHE_BYTES_MAX } else { 0 }
    }
}

/// A number that grows.
fn now() -> u64 {
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.fetch_add(1, Ordering::Relaxed)
}

/// Compiled patterns, up to [`PATTERNS_KEPT_BYTES_MAX`].
#[derive(Default)]
struct Cache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    // text -> compiled
    all: HashMap<Arc<str>, Arc<Compiled>>,
    // Of all.
    bytes: usize,
}

impl Cache {
    fn compiled(&self, source: &str) -> Arc<Compiled> {
        if let Some(known) = self.kept().all.get(source) {
            known.used.store(now(), Ordering::Relaxed);
            return known.clone();
        }
        let compiled = Arc::new(compile(source));
        self.kept().keep(source, &compiled);
        compiled
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Keeps one more, and lets go of those that were used longest ago while there are too many.
    fn keep(&mut self, source: &str, compiled: &Arc<Compiled>) {
        let bytes = compiled.kept_bytes(source);
        if self.all.insert(source.into(), compiled.clone()).is_none() {
            self.bytes += bytes;
        }
        while self.bytes > PATTERNS_KEPT_BYTES_MAX {
            let used = |entry: &(&Arc<str>, &Arc<Compiled>)| entry.1.used.load(Ordering::Relaxed);
            let Some((oldest, _)) = self.all.iter().min_by_key(used) else { return };
            let oldest = oldest.clone();
            if let Some(gone) = self.all.remove(&oldest) {
                self.bytes -= gone.kept_bytes(&oldest);
            }
        }
    }
}

/// What `source` is compiled to. Cost: a look into a map, or a compilation.
pub(super) fn compiled(source: &str) -> Arc<Compiled> {
    static SHARED: LazyLock<Cache> = LazyLock::new(Cache::default);
    SHARED.compiled(source)
}

/// Compiles within the least size that suffices: each is four times the one before, so that what was tried in
/// vain is a third of what is done.
fn compile(source: &str) -> Compiled {
    let used = AtomicU64::new(now());
    let translated = match translate::translate(source) {
        Ok(translated) => translated,
        Err(error) => {
            return Compiled { regex: Err(message(error.code, &error.expression)), size: 0, used };
        }
    };
    for size in PATTERN_SIZES {
        let built = RegexBuilder::new(&translated)
            .size_limit(size)
            .dfa_size_limit(PATTERN_CACHE_BYTES_MAX)
            .nest_limit(1024)
            .build();
        match built {
            Ok(regex) => return Compiled { regex: Ok(regex), size, used },
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(_) => break,
        }
    }
    Compiled { regex: Err(message("expression too large", source)), size: 0, used }
}

pub(super) fn message(code: &str, expression: &str) -> String {
    format!("error parsing regexp: {code}: `{expression}`")
}

/// Whether the valid ones of `patterns`, those of one CRD, take no more together than they may. Cost: they
/// are compiled up to there.
pub(crate) fn within_budget<'p>(patterns: impl IntoIterator<Item = &'p str>) -> bool {
    let (mut seen, mut bytes) = (HashSet::new(), 0);
    patterns.into_iter().filter(|pattern| seen.insert(*pattern)).all(|pattern| {
        bytes += compiled(pattern).size;
        bytes <= PATTERNS_BYTES_MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large(number: usize, times: usize) -> String {
        format!("^{number}{}$", "[a-z]{1000}".repeat(times))
    }

    #[test]
    fn what_is_compiled_is_shared_and_bounded() {
        let cache = Cache::default();
        let first = cache.compiled(&large(0, 10));
        assert!(Arc::ptr_eq(&first, &cache.compiled(&large(0, 10))), "one for each text");
        for number in 1..200 {
            cache.compiled(&large(number, 10)).check().expect("valid");
            let kept = cache.kept();
            let bytes: usize = kept.all.iter().map(|(source, one)| one.kept_bytes(source)).sum();
            assert_eq!(kept.bytes, bytes);
            assert!(bytes <= PATTERNS_KEPT_BYTES_MAX);
        }
        assert!(cache.kept().all.len() < 200, "some had to go");
        let again = cache.compiled(&large(0, 10));
        assert!(!Arc::ptr_eq(&first, &again), "the oldest, which is compiled again");
        assert_eq!(again.matches(&format!("0{}", "a".repeat(10_000))), Ok(true));
    }

    #[test]
    fn what_is_too_large_is_remembered_as_such() {
        let cache = Cache::default();
        let refused = cache.compiled(&large(0, 400));
        assert!(refused.check().is_err_and(|why| why.contains("expression too large")));
        assert!(Arc::ptr_eq(&refused, &cache.compiled(&large(0, 400))));
    }

    #[test]
    fn the_patterns_of_one_crd_have_a_budget() {
        let few: Vec<String> = (0..500).map(|n| format!("^a{n}[a-z0-9]([-a-z0-9]*[a-z0-9])?$")).collect();
        assert!(within_budget(few.iter().map(String::as_str)), "what people write");
        let large: Vec<String> = (0..1000).map(|number| large(number, 40)).collect();
        assert!(!within_budget(large.iter().map(String::as_str)));
        assert!(within_budget(std::iter::repeat_n(large[0].as_str(), 1000)), "one counts once");
        assert!(within_budget(["(", "["]), "others say what is wrong with these");
    }
}
