//! Finds what of a text was there before.
//!
//! In: a text. Out: steps: so many bytes as they are, then so many that are the same as those so far back.
//! Never: a step whose bytes are not the same; a search that takes longer because it was in vain.
//!
//! At each place three are asked, and the first that holds for long ends the search: the last two distances,
//! from the next byte on, because where objects differ in a value they are alike again behind it, as far
//! apart as before; where the next eight bytes were last; and where the next five were. A place is remembered
//! by a hash, with some of its bits, so that the text is looked at only where it is likely the same.

use crate::tables::{DISTANCE_MAX, LENGTH_MAX};

/// Bytes as they are, then a repetition, which may be none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    literals: u16,
    length: u16,
    distance: u16,
}

impl Step {
    #[inline(always)]
    pub(crate) fn literals(&self) -> usize {
        usize::from(self.literals)
    }

    /// How many bytes are repeated from how far back.
    #[inline(always)]
    pub(crate) fn repeated(&self) -> Option<(usize, usize)> {
        (self.length > 0).then_some((usize::from(self.length), usize::from(self.distance)))
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.literals) + usize::from(self.length)
    }
}

/// Least bytes of a repetition.
const LEAST: usize = 4;

/// A repetition at a distance known before that is so long is taken without a search for a longer one.
const LONG_ENOUGH: usize = 16;

/// Each so many places without a repetition, one more is passed over at each step: digits by chance are not
/// worth all of it.
const PATIENCE: usize = 32;

/// Most places that are passed over at once: behind what is chance something may repeat.
const PASSED_MAX: usize = 32;

/// Of a repetition's places, each so many-th of the first is remembered, and that many of them.
const REMEMBERED_EACH: usize = 4;
const REMEMBERED_MAX: usize = 8;

/// Bytes at a text's end that are not searched: the place behind one is looked at with eight bytes, too.
const TAIL: usize = 8;

/// Where the text was searched: for eight bytes and for five.
pub(crate) struct Repeats {
    eight: Box<Places>,
    five: Box<Places>,
    // The last two distances.
    distances: [usize; 2],
}

/// A repetition that was found.
#[derive(Clone, Copy, Default)]
struct Found {
    at: usize,
    length: usize,
    distance: usize,
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats { eight: Box::new(Places::new()), five: Box::new(Places::new()), distances: [1; 2] }
    }
}

impl Repeats {
    /// Begins a text.
    pub(crate) fn forget(&mut self) {
        self.eight.forget();
        self.five.forget();
        self.distances = [1; 2];
    }

    /// Appends the steps of `text` from `from` on; what is before it was searched already.
    #[inline(never)]
    pub(crate) fn find(&mut self, text: &[u8], from: usize, steps: &mut Vec<Step>) {
        let Repeats { eight, five, distances } = self;
        let (eight, five) = (&mut **eight, &mut **five);
        let mut last = *distances;
        let end = text.len().saturating_sub(TAIL);
        // Bytes from there on are in no step yet.
        let mut rest = from;
        let mut at = from.max(1);
        while at < end {
            let mut found = look(text, at, last, eight, five);
            if found.length < LEAST {
                at += 1 + ((at - rest) / PATIENCE).min(PASSED_MAX);
                continue;
            }
            while found.at > rest
                && found.at > found.distance
                && text[found.at - 1] == text[found.at - 1 - found.distance]
            {
                found.at -= 1;
                found.length += 1;
            }
            if found.distance != last[0] {
                last = [found.distance, last[0]];
            }
            push(found.at - rest, found.length, found.distance, steps);
            rest = found.at + found.length;
            let places = at + 2..rest.min(end) - 1;
            for at in places.clone().step_by(REMEMBERED_EACH).take(REMEMBERED_MAX) {
                remember(text, at, eight, five);
            }
            remember(text, places.end - 1, eight, five);
            at = rest;
        }
        *distances = last;
        push(text.len() - rest, 0, 0, steps);
    }
}

/// The repetition that begins here or at the next byte, if there is any.
#[inline(always)]
fn look(text: &[u8], at: usize, last: [usize; 2], eight: &mut Places, five: &mut Places) -> Found {
    let here = word(text, at);
    let of_eight = eight.replace(by_eight(here), at);
    let of_five = five.replace(by_five(here), at);
    let next = (here >> 8) as u32;
    let mut best = Found::default();
    if let Some(distance) = last.into_iter().find(|distance| half(text, at + 1 - distance) == next) {
        best = Found { at: at + 1, length: 4 + same(text, at + 5, distance), distance };
    }
    if best.length >= LONG_ENOUGH {
        return best;
    }
    if of_eight > 0 && word(text, at - of_eight) == here {
        let length = 8 + same(text, at + 8, of_eight);
        // What begins one byte before has to be longer by more than that byte.
        if length > best.length + 1 {
            best = Found { at, length, distance: of_eight };
        }
    } else if of_five > 0 && half(text, at - of_five) == here as u32 {
        let length = 4 + same(text, at + 4, of_five);
        if length > best.length + 1 {
            best = Found { at, length, distance: of_five };
        }
        // It is short mostly: the next byte may begin a longer one.
        let behind = word(text, at + 1);
        let of_eight = eight.replace(by_eight(behind), at + 1);
        if of_eight > 0 && word(text, at + 1 - of_eight) == behind {
            let length = 8 + same(text, at + 9, of_eight);
            if length > best.length {
                best = Found { at: at + 1, length, distance: of_eight };
            }
        }
    }
    best
}

#[inline(always)]
fn remember(text: &[u8], at: usize, eight: &mut Places, five: &mut Places) {
    let here = word(text, at);
    eight.replace(by_eight(here), at);
    five.replace(by_five(here), at);
}

/// Appends steps of as many bytes as each can have.
#[inline(always)]
pub(crate) fn push(mut literals: usize, mut length: usize, distance: usize, steps: &mut Vec<Step>) {
    const MOST: usize = u16::MAX as usize;
    while literals > MOST {
        steps.push(Step { literals: u16::MAX, length: 0, distance: 0 });
        literals -= MOST;
    }
    let mut step = Step { literals: literals as u16, length: 0, distance: distance as u16 };
    while length > LENGTH_MAX {
        // Not less than a repetition has is left.
        step.length = if length < LENGTH_MAX + 3 { LENGTH_MAX - 3 } else { LENGTH_MAX } as u16;
        steps.push(step);
        length -= usize::from(step.length);
        step.literals = 0;
    }
    step.length = length as u16;
    if step.len() > 0 {
        steps.push(step);
    }
}

const PLACES_BITS: u32 = 13;
const PLACES: usize = 1 << PLACES_BITS;

/// Where each hash was last: the low half of an entry is a place's, the high half bits of the hash that chose
/// among the entries no more. A text that is longer than a half can say is no matter: who is farther away
/// than a distance is not asked.
struct Places([u32; PLACES]);

impl Places {
    fn new() -> Places {
        Places([0; PLACES])
    }

    fn forget(&mut self) {
        self.0.fill(0);
    }

    /// Puts a place in, and says how far it is from the one that was there if that may hold the same; else 0.
    #[inline(always)]
    fn replace(&mut self, hash: u64, at: usize) -> usize {
        let entry = (hash >> (32 - PLACES_BITS)) as u32 & 0xffff_0000 | (at as u32 & 0xffff);
        let before = std::mem::replace(&mut self.0[(hash >> (64 - PLACES_BITS)) as usize], entry);
        let distance = (entry.wrapping_sub(before) & 0xffff) as usize;
        let is_likely = (entry ^ before) >> 16 == 0 && distance <= DISTANCE_MAX && distance <= at;
        if is_likely { distance } else { 0 }
    }
}

/// 2^64 divided by the golden ratio: its multiples are spread evenly.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn by_eight(word: u64) -> u64 {
    word.wrapping_mul(SPREAD)
}

#[inline(always)]
fn by_five(word: u64) -> u64 {
    (word << 24).wrapping_mul(SPREAD)
}

#[inline(always)]
fn word(text: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*text[at..].first_chunk().expect("at least a tail follows"))
}

#[inline(always)]
fn half(text: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*text[at..].first_chunk().expect("at least a tail follows"))
}

/// How many bytes from `start` on are the same as those `distance` before.
#[inline(always)]
fn same(text: &[u8], start: usize, distance: usize) -> usize {
    let (ahead, behind) = (&text[start..], &text[start - distance..text.len() - distance]);
    let words = ahead.as_chunks::<8>().0.iter().zip(behind.as_chunks::<8>().0);
    let mut len = 0;
    for (one, other) in words {
        let unlike = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if unlike != 0 {
            return len + unlike.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len + ahead[len..].iter().zip(&behind[len..]).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_only_where_more_of_the_hash_is_the_same() {
        // The same entry of the table, and the next bits of the hash differ.
        let (one, other) = (0x1234_5678_9abc_def0_u64, 0x1234_9678_9abc_def0);
        assert_eq!(one >> (64 - PLACES_BITS), other >> (64 - PLACES_BITS));
        let mut places = Places::new();
        assert_eq!(places.replace(one, 1_000), 0);
        assert_eq!(places.replace(other, 1_500), 0);
        assert_eq!(places.replace(other, 1_700), 200);
        assert_eq!(places.replace(one, 1_800), 0);
        // Farther away than a distance says, and as far as it says at most.
        assert_eq!(places.replace(one, 1_800 + DISTANCE_MAX + 1), 0);
        assert_eq!(places.replace(one, 1_800 + 2 * DISTANCE_MAX + 1), DISTANCE_MAX);
    }

    #[test]
    fn steps_are_of_lengths_that_the_format_has() {
        for length in (4..1_200).chain([65_535, 131_072]) {
            for literals in [0, 1, 65_535, 65_536, 131_071] {
                let mut steps = Vec::new();
                push(literals, length, 7, &mut steps);
                assert_eq!(steps.iter().map(Step::len).sum::<usize>(), literals + length);
                let lengths = steps.iter().filter_map(Step::repeated).map(|(length, _)| length);
                assert!(lengths.clone().all(|length| (3..=LENGTH_MAX).contains(&length)), "{length}");
                assert_eq!(lengths.sum::<usize>(), length);
            }
        }
    }
}
