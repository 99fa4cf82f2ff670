//! How far a long run has come: what became of each sequence, so that it can be stopped and gone on with.
//!
//! In: the text of a file that an earlier run wrote, and what becomes of sequences. Out: whether one is still
//! to be sent, lines for the file, counts. Never: a file; a sequence that differed as settled, as whoever
//! goes on may have mended it.
//!
//! A line is the seed, `p` behind it if the sequence pauses, what became of it, and of one that differs
//! where:
//!
//! ```text
//! 17 equal
//! 4p known apps: apply scale: code 200 for 500
//! 18 different jobs: apply: .spec
//! ```

use std::collections::BTreeMap;

/// What became of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Became {
    Equal,
    /// It differs as is known.
    Known,
    Different,
}

/// The sequences that were sent.
#[derive(Debug, Default)]
pub struct SentSequences {
    // (whether it pauses, seed) -> what became of it last
    sent: BTreeMap<(bool, u64), Became>,
}

/// How many became what.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SequenceCounts {
    pub equal: u64,
    pub known: u64,
    pub different: u64,
}

impl Became {
    fn word(self) -> &'static str {
        match self {
            Became::Equal => "equal",
            Became::Known => "known",
            Became::Different => "different",
        }
    }

    fn of_word(word: &str) -> Option<Became> {
        [Became::Equal, Became::Known, Became::Different].into_iter().find(|became| became.word() == word)
    }
}

impl SentSequences {
    /// Of what an earlier run wrote. A line that was cut off, as its run was, is none.
    pub fn of_text(text: &str) -> SentSequences {
        let mut progress = SentSequences::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            let (Some(name), Some(word)) = (words.next(), words.next()) else { continue };
            let (digits, pauses) = match name.strip_suffix('p') {
                Some(digits) => (digits, true),
                None => (name, false),
            };
            if let (Ok(seed), Some(became)) = (digits.parse(), Became::of_word(word)) {
                progress.sent.insert((pauses, seed), became);
            }
        }
        progress
    }

    /// Notes what became of one.
    ///
    /// - `category`: where it differs; empty if it does not.
    ///
    /// Returns the line for the file, with its end.
    pub fn note(&mut self, pauses: bool, seed: u64, became: Became, category: &str) -> String {
        self.sent.insert((pauses, seed), became);
        let line = format!("{seed}{} {} {category}", if pauses { "p" } else { "" }, became.word());
        format!("{}\n", line.trim_end())
    }

    /// Whether there is nothing more to find out of it.
    pub fn is_settled(&self, pauses: bool, seed: u64) -> bool {
        self.sent.get(&(pauses, seed)).is_some_and(|became| *became != Became::Different)
    }

    /// What became of those of these seeds.
    pub fn counts(&self, pauses: bool, seeds: std::ops::Range<u64>) -> SequenceCounts {
        let mut counts = SequenceCounts::default();
        for became in self.sent.range((pauses, seeds.start)..(pauses, seeds.end)).map(|(_, became)| became) {
            match became {
                Became::Equal => counts.equal += 1,
                Became::Known => counts.known += 1,
                Became::Different => counts.different += 1,
            }
        }
        counts
    }
}

impl SequenceCounts {
    pub fn sent(&self) -> u64 {
        self.equal + self.known + self.different
    }

    pub fn and(self, other: SequenceCounts) -> SequenceCounts {
        SequenceCounts {
            equal: self.equal + other.equal,
            known: self.known + other.known,
            different: self.different + other.different,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_where_another_was_cut_off_and_sends_again_what_differed() {
        let mut progress = SentSequences::default();
        let mut text = String::new();
        text += &progress.note(false, 17, Became::Equal, "");
        text += &progress.note(true, 17, Became::Different, "jobs: apply: .spec");
        text += &progress.note(false, 18, Became::Known, "apps: apply scale: code 200 for 500");
        assert_eq!(
            text,
            "17 equal\n17p different jobs: apply: .spec\n18 known apps: apply scale: code 200 for 500\n"
        );
        let mut again = SentSequences::of_text(&format!("{text}19 equ"));
        let settled = |progress: &SentSequences| {
            [(false, 17), (true, 17), (false, 18), (false, 19)]
                .map(|(pauses, seed)| progress.is_settled(pauses, seed))
        };
        assert_eq!(settled(&again), [true, false, true, false]);
        assert_eq!(again.counts(false, 0..20), SequenceCounts { equal: 1, known: 1, different: 0 });
        assert_eq!(again.counts(true, 0..20), SequenceCounts { equal: 0, known: 0, different: 1 });
        assert_eq!(again.counts(false, 18..20).sent(), 1);
        text += &again.note(true, 17, Became::Equal, "");
        assert!(SentSequences::of_text(&text).is_settled(true, 17), "the last line of a sequence counts");
    }
}
