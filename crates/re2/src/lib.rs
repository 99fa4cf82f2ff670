//! Regular expressions as Go's RE2 reads them, run by the `regex` crate: in time that is linear in the text.
//!
//! In: a pattern as users of Kubernetes write it, in a schema or an expression. Out: whether it is valid
//! (with Go's message if not), whether it matches, what it finds. [`translate`] owns the differences
//! between the two dialects, [`compiled`] what is compiled and how much of that is kept; this file is
//! what others hold of a pattern. Never compiles before the first use; never knows whose the pattern is.

mod class;
mod compiled;
pub mod limits;
mod translate;

use std::sync::{Arc, Mutex, PoisonError, Weak};

pub use self::compiled::{Compiled, shared};

/// A pattern that compiles when it is first asked, and again if what was compiled had to make room for
/// others.
#[derive(Debug)]
pub struct Pattern {
    source: Box<str>,
    // Kept by the cache.
    compiled: Mutex<Weak<Compiled>>,
}

impl Pattern {
    #[must_use]
    pub fn new(source: &str) -> Self {
        Pattern { source: source.into(), compiled: Mutex::default() }
    }

    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the pattern matches anywhere in `text`.
    ///
    /// # Errors
    /// Go's message, when the pattern is not valid.
    pub fn matches(&self, text: &str) -> Result<bool, String> {
        self.compiled().matches(text)
    }

    /// What it is compiled to. Cost: a lock and a count; a look into a map or a compilation at the first use,
    /// and after it had to make room.
    #[must_use]
    pub fn compiled(&self) -> Arc<Compiled> {
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        known.unwrap_or_else(|| {
            let compiled = shared(&self.source);
            *self.compiled.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&compiled);
            compiled
        })
    }
}

/// Checks a pattern.
///
/// # Errors
/// Go's message, for instance ``error parsing regexp: missing closing ): `(a` ``.
pub fn check(pattern: &str) -> Result<(), String> {
    shared(pattern).check()
}

#[cfg(test)]
mod tests {
    use super::compiled::message;
    use super::*;

    #[test]
    fn patterns_match_as_in_go() {
        let rows = [
            ("^a$", "a", true),
            ("^a$", "a\n", false),
            ("b", "abc", true),
            (r"^\d+$", "٣", false),
            (r"^\w+$", "é", false),
            (r"^\W$", "é", true),
            (r"^\s$", "\u{b}", false),
            (r"^[\d\-x]+$", "1-x", true),
            (r"^[^\D]$", "7", true),
            (r"\bé", "é", false),
            (r"\Bé", "é", true),
            (r"\B", "aéb", false),
            (r"^\p{Thai}\p{lu}\p{Cased_Letter}$", "กAa", true),
            ("^[[]$", "[", true),
            ("^[&&a]$", "&", true),
            ("^[a~~*--c]+$", "~", true),
            ("^[]a]$", "]", true),
            ("^[a-]$", "-", true),
            ("^[[:alpha:]_]+$", "a_B", true),
            ("^[[:^digit:]]$", "1", false),
            (r"^\pL\p{Greek}\P{^N}$", "aα1", true),
            (r"^\Qa.b*\E+$", "a.b**", true),
            (r"^a{,2}$", "a{,2}", true),
            ("^{a}$", "{a}", true),
            (r"^\_\<\/$", "_</", true),
            (r"^\012\x0a\x{1F600}$", "\n\n😀", true),
            ("^(?P<x>a)(?<y>b)(?:c)(?i)D$", "abcd", true),
            ("^(?i:k)$", "\u{212a}", true),
            ("(?s)^a.b$", "a\nb", true),
            ("(?m)^b$", "a\nb\nc", true),
            ("(?U)^a+?b$", "aab", true),
            ("^(?)(?ii-s)a$", "A", true),
            ("^a(?i)+B$", "aab", true),
            ("^(a(?i))B$", "ab", false),
            (r"^a\z", "a", true),
            ("^*a$+", "a", true),
            ("^()*$", "", true),
            ("^[^a]$", "\n", true),
        ];
        for (pattern, text, want) in rows {
            assert_eq!(Pattern::new(pattern).matches(text), Ok(want), "{pattern} on {text:?}");
        }
    }

    #[test]
    fn bad_patterns_are_refused_with_gos_message() {
        let rows = [
            ("(a", "missing closing ): `(a`"),
            ("a)", "unexpected ): `a)`"),
            ("[a", "missing closing ]: `[a`"),
            ("x[]", "missing closing ]: `[]`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a|+?", "missing argument to repetition operator: `+?`"),
            ("(*)", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a+?{2}", "invalid nested repetition operator: `+?{2}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("a{999999999999}", "invalid repeat count: `{999999999999}`"),
            ("(a{100}){11}", "invalid repeat count: `{11}`"),
            ("a\\", "trailing backslash at end of expression: ``"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\q", r"invalid escape sequence: `\q`"),
            (r"\C", r"invalid escape sequence: `\C`"),
            (r"\xg1", r"invalid escape sequence: `\xg1`"),
            (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
            (r"\é", r"invalid escape sequence: `\é`"),
            (r"[\b]", r"invalid escape sequence: `\b`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"\p{Grek}", r"invalid character class range: `\p{Grek}`"),
            (r"\p{Alphabetic}", r"invalid character class range: `\p{Alphabetic}`"),
            (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
            (r"\p", r"invalid character class range: `\p`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?<!a)", "invalid named capture: `(?<!a)`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`"),
            ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
            ("(?", "invalid or unsupported Perl syntax: `(?`"),
        ];
        for (pattern, want) in rows {
            assert_eq!(check(pattern), Err(format!("error parsing regexp: {want}")), "{pattern}");
        }
    }

    #[test]
    fn patterns_beyond_the_limits_are_refused() {
        let nested = format!("{}{}", "(".repeat(300), ")".repeat(300));
        assert_eq!(check(&nested), Err(message("expression nests too deeply", &nested)));
        let large = r"[\pL\pN\pM]{900}";
        assert_eq!(check(large), Err(message("expression too large", large)));
        assert_eq!(check("[a-z0-9]{0,1000}"), Ok(()));
        let all = r"[\x00-\x{10FFFF}]";
        let too_large = [all.repeat(65), r"\pC".repeat(65), r"\p{Zs}".repeat(1_089), "a".repeat(200_000)];
        for pattern in too_large {
            assert_eq!(check(&pattern), Err(message("expression too large", &pattern)));
        }
        assert_eq!(check(&(all.repeat(60) + &r"\p{Zs}".repeat(40))), Ok(()));
    }
}
