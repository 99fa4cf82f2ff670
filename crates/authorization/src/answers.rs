//! Answers of a webhook that are kept for a while.
//!
//! In: a question's key, an answer and until when it is good. Out: the answer. Beyond a number and a number
//! of bytes the one that was asked for longest ago goes. Never: an answer whose time is over; an error; a
//! question that would take the room of many.
//!
//! Owner: whoever has it `&mut`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::limits::{ANSWER_KEY_BYTES_MAX, ANSWERS_BYTES_MAX, ANSWERS_MAX};

/// What a webhook says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewStatus {
    pub allowed: bool,
    pub denied: bool,
    pub reason: Arc<str>,
}

/// See the module's doc. Time is a span since some moment that does not change.
#[derive(Debug, Default)]
pub struct KeptAnswers {
    // By the whole spec. <= ANSWERS_MAX.
    answers: HashMap<Arc<str>, Kept>,
    // When each was asked for last, counted.
    used: BTreeMap<u64, Arc<str>>,
    count: u64,
    // <= ANSWERS_BYTES_MAX
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    status: ReviewStatus,
    until: Duration,
    used: u64,
}

impl KeptAnswers {
    /// The answer to `key`, if it is good at `now`.
    pub fn get(&mut self, key: &str, now: Duration) -> Option<ReviewStatus> {
        let (shared, kept) = self.answers.get_key_value(key)?;
        if kept.until <= now {
            self.remove(key);
            return None;
        }
        let shared = shared.clone();
        self.count += 1;
        let kept = self.answers.get_mut(key)?;
        self.used.remove(&kept.used);
        kept.used = self.count;
        self.used.insert(self.count, shared);
        Some(kept.status.clone())
    }

    /// Keeps an answer, but to a question that is too long for that.
    pub fn keep(&mut self, key: &str, status: ReviewStatus, until: Duration) {
        if key.len() > ANSWER_KEY_BYTES_MAX {
            return;
        }
        self.remove(key);
        self.count += 1;
        let key: Arc<str> = key.into();
        self.bytes += weight(&key, &status);
        self.used.insert(self.count, key.clone());
        self.answers.insert(key, Kept { status, until, used: self.count });
        while self.answers.len() > ANSWERS_MAX || self.bytes > ANSWERS_BYTES_MAX {
            let Some((_, oldest)) = self.used.first_key_value() else { break };
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some((key, kept)) = self.answers.remove_entry(key) {
            self.used.remove(&kept.used);
            self.bytes -= weight(&key, &kept.status);
        }
    }
}

fn weight(key: &str, status: &ReviewStatus) -> usize {
    key.len() + status.reason.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(reason: &str) -> ReviewStatus {
        ReviewStatus { allowed: true, denied: false, reason: reason.into() }
    }

    const AT: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn an_answer_is_kept_until_its_time_is_over() {
        let mut kept = KeptAnswers::default();
        kept.keep("a", status("1"), AT(5));
        kept.keep("a", status("2"), AT(6));
        assert_eq!(kept.get("a", AT(5)), Some(status("2")));
        assert_eq!(kept.get("b", AT(5)), None);
        assert_eq!(kept.get("a", AT(6)), None);
        assert_eq!((kept.answers.len(), kept.used.len(), kept.bytes), (0, 0, 0));
    }

    #[test]
    fn the_one_that_was_asked_for_longest_ago_goes_first() {
        let mut kept = KeptAnswers::default();
        for at in 0..ANSWERS_MAX {
            kept.keep(&at.to_string(), status(""), AT(9));
        }
        assert!(kept.get("0", AT(1)).is_some());
        kept.keep("more", status(""), AT(9));
        assert!(kept.get("0", AT(1)).is_some() && kept.get("1", AT(1)).is_none());
        assert_eq!((kept.answers.len(), kept.used.len()), (ANSWERS_MAX, ANSWERS_MAX));
    }

    #[test]
    fn answers_take_no_more_bytes_than_there_is_room_for() {
        let mut kept = KeptAnswers::default();
        let long = "x".repeat(ANSWER_KEY_BYTES_MAX - 10);
        for at in 0..200 {
            kept.keep(&format!("{at}{long}"), status("r"), AT(9));
            assert!(kept.bytes <= ANSWERS_BYTES_MAX);
        }
        assert!((120..=128).contains(&kept.answers.len()), "{}", kept.answers.len());
    }

    #[test]
    fn a_long_question_puts_nobody_out_and_its_answer_is_not_kept() {
        let mut kept = KeptAnswers::default();
        kept.keep("a", status("r"), AT(9));
        let long = "y".repeat(ANSWER_KEY_BYTES_MAX + 1);
        kept.keep(&long, status("r"), AT(9));
        assert_eq!(kept.get(&long, AT(1)), None);
        assert_eq!(kept.get("a", AT(1)), Some(status("r")));
        assert_eq!((kept.answers.len(), kept.used.len(), kept.bytes), (1, 1, 2));
    }
}
