//! Compiled patterns: one for each text in the whole process, and only so many bytes of them.
//!
//! In: a pattern. Out: what it was compiled to, or why it is none. All schemas and expressions share one
//! cache, from which what was used longest ago goes first: how many there are, and how often they are
//! written, decides nothing. The state belongs to whoever holds the cache's lock, for a look into a map;
//! nothing is compiled under it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use regex::{Regex, RegexBuilder};

use super::translate;
use crate::limits::{
    PATTERN_CACHE_BYTES_MAX, PATTERN_SIZES, PATTERN_TEXT_BYTES_MAX, PATTERNS_KEPT_BYTES_MAX, READ_BYTES,
};

/// What a pattern was compiled to.
#[derive(Debug)]
pub struct Compiled {
    regex: Result<Regex, String>,
    /// The least of [`PATTERN_SIZES`] that it fits in.
    size: usize,
    /// Bytes that were made to find that out.
    tried: usize,
    /// When it was last looked up: a number that grows.
    used: AtomicU64,
}

impl Compiled {
    /// What a pattern is compiled to, kept by nobody but the caller: for patterns that are values of objects,
    /// which would drive those of schemas out.
    ///
    /// Cost: a compilation, as large as the largest of [`PATTERN_SIZES`] and a third.
    #[must_use]
    pub fn unshared(source: &str) -> Compiled {
        compile(source)
    }

    /// # Errors
    /// Go's message, when the pattern is not valid.
    pub fn matches(&self, text: &str) -> Result<bool, String> {
        self.regex().map(|regex| regex.is_match(text))
    }

    /// The first that it matches, as Go prefers: leftmost, and of those what comes first in the pattern.
    ///
    /// # Errors
    /// Go's message, when the pattern is not valid.
    pub fn find<'t>(&self, text: &'t str) -> Result<Option<&'t str>, String> {
        self.regex().map(|regex| regex.find(text).map(|found| found.as_str()))
    }

    /// All that it matches, one behind the other, no more than `most`.
    ///
    /// # Errors
    /// Go's message, when the pattern is not valid.
    pub fn find_all<'t>(&self, text: &'t str, most: usize) -> Result<Vec<&'t str>, String> {
        self.regex().map(|regex| regex.find_iter(text).take(most).map(|found| found.as_str()).collect())
    }

    /// # Errors
    /// Go's message, when the pattern is not valid.
    pub fn check(&self) -> Result<(), String> {
        self.regex().map(drop)
    }

    /// Bytes that it counts as; none if it is not valid.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.size
    }

    /// Bytes that were made to compile it, those of an attempt in too little room too: what it has cost.
    #[must_use]
    pub fn tried(&self) -> usize {
        self.tried
    }

    fn regex(&self) -> Result<&Regex, String> {
        self.used.store(now(), Ordering::Relaxed);
        self.regex.as_ref().map_err(Clone::clone)
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

/// What `source` is compiled to, once for all who ask. Cost: a look into a map, or a compilation.
#[must_use]
pub fn shared(source: &str) -> Arc<Compiled> {
    static SHARED: LazyLock<Cache> = LazyLock::new(Cache::default);
    SHARED.compiled(source)
}

/// What is said of a pattern beyond a limit.
pub(super) const TOO_LARGE: &str = "expression too large";

/// Compiles within the least size that suffices: each is four times the one before, so that what was tried in
/// vain is a third of what is done.
fn compile(source: &str) -> Compiled {
    let refused = |why: String, tried| Compiled { regex: Err(why), size: 0, tried, used: now().into() };
    if source.len() > PATTERN_TEXT_BYTES_MAX {
        return refused(message(TOO_LARGE, source), source.len());
    }
    let mut tried = source.len() * READ_BYTES;
    let translated = match translate::translate(source) {
        Ok(translated) => translated,
        Err(error) if error.code == TOO_LARGE => return refused(message(TOO_LARGE, source), tried),
        Err(error) => return refused(message(error.code, &error.expression), tried),
    };
    for size in PATTERN_SIZES {
        tried += size;
        let built = RegexBuilder::new(&translated)
            .size_limit(size)
            .dfa_size_limit(PATTERN_CACHE_BYTES_MAX)
            .nest_limit(1024)
            .build();
        match built {
            Ok(regex) => return Compiled { regex: Ok(regex), size, tried, used: now().into() },
            Err(regex::Error::CompiledTooBig(_)) => {}
            Err(_) => break,
        }
    }
    refused(message(TOO_LARGE, source), tried)
}

pub(super) fn message(code: &str, expression: &str) -> String {
    format!("error parsing regexp: {code}: `{expression}`")
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
}
