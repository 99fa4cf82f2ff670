//! What a server said to something hostile: statuses, resets, ends, or nothing.

use std::collections::BTreeMap;
use std::fmt;

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Said {
    Status(u16),
    /// RST_STREAM of HTTP/2, with its code.
    StreamReset(u32),
    /// GOAWAY of HTTP/2 that says that something was wrong.
    Away(u32),
    /// The connection was ended, be it in good order or by a reset: which of them is a matter of time.
    Closed,
    /// Nothing, and the connection is still there.
    Open,
}

/// All that was said, and how often.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    counts: BTreeMap<Said, usize>,
    /// The beginning of the first answer's body.
    pub text: String,
}

impl Tally {
    pub fn of(said: Said, text: &str) -> Tally {
        let mut tally = Tally { text: text.to_owned(), ..Tally::default() };
        tally.add(said);
        tally
    }

    pub fn add(&mut self, said: Said) {
        *self.counts.entry(said).or_default() += 1;
    }

    pub fn merge(&mut self, other: Tally) {
        for (said, count) in other.counts {
            *self.counts.entry(said).or_default() += count;
        }
        if self.text.is_empty() {
            self.text = other.text;
        }
    }

    pub fn count(&self, said: Said) -> usize {
        self.counts.get(&said).copied().unwrap_or(0)
    }

    pub fn total(&self) -> usize {
        self.counts.values().sum()
    }

    pub fn all(&self) -> impl Iterator<Item = Said> {
        self.counts.keys().copied()
    }

    /// Whether anything was taken in.
    pub fn has_success(&self) -> bool {
        self.all().any(|said| matches!(said, Said::Status(200..300)))
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Said::Status(status) => write!(f, "{status}"),
            Said::StreamReset(code) => write!(f, "reset({code})"),
            Said::Away(code) => write!(f, "goaway({code})"),
            Said::Closed => f.write_str("closed"),
            Said::Open => f.write_str("open"),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (said, count)) in self.counts.iter().enumerate() {
            let gap = if at == 0 { "" } else { " " };
            match count {
                1 => write!(f, "{gap}{said}")?,
                many => write!(f, "{gap}{many}x{said}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_counts_what_is_alike_and_keeps_the_first_text() {
        let mut tally = Tally::of(Said::Status(400), "why");
        tally.merge(Tally::of(Said::Closed, "later"));
        tally.merge(Tally::of(Said::Status(400), ""));
        assert_eq!(tally.to_string(), "2x400 closed");
        assert_eq!((tally.text.as_str(), tally.total()), ("why", 3));
        assert!(!tally.has_success());
    }
}
