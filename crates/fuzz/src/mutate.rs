//! From inputs to another one.

use forebay_rt::Random;

/// Bytes that parsers look for.
const BYTES: &[u8] = b"{}[]()\",:;=!<>&%#*\\/.-_+'`~^$@| \t\r\n\0\x7f\x80\xc3\xff09azAZ";

/// Numbers at edges.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1",
    "127",
    "128",
    "255",
    "65536",
    "2147483648",
    "9223372036854775807",
    "18446744073709551616",
    "1e309",
    "0.1",
];

pub(crate) struct Mutator<'a> {
    pub(crate) random: Random,
    pub(crate) words: &'a [&'a str],
    pub(crate) bytes_max: usize,
}

impl Mutator<'_> {
    /// One of `kept`, changed in one to eight ways: a third of the time one of those that it began with, a
    /// third one of the last, which have come furthest.
    ///
    /// - `given`: how many stand at the front that it began with.
    pub(crate) fn next(&self, kept: &[Vec<u8>], given: usize) -> Vec<u8> {
        const LAST: usize = 32;
        let some = match self.random.below(3) {
            0 => &kept[..given.min(kept.len())],
            1 => &kept[kept.len().saturating_sub(LAST)..],
            _ => kept,
        };
        let mut input = self.one_of(some).cloned().unwrap_or_default();
        let more = if self.random.below(2) == 0 { 0 } else { self.random.below(8) };
        for _ in 0..=more {
            self.change(&mut input, kept);
        }
        input.truncate(self.bytes_max);
        input
    }

    fn change(&self, input: &mut Vec<u8>, kept: &[Vec<u8>]) {
        let at = self.place(input.len() + 1);
        let part = self.part(input.len());
        match self.random.below(12) {
            0 => drop(input.drain(part)),
            1 => self.put(input, at..at, &[BYTES[self.place(BYTES.len())]]),
            2 => self.put(input, at..at, &[self.random.below(256) as u8]),
            3 => self.put(input, part, self.one_of(self.words).unwrap_or(&"").as_bytes()),
            4 => self.put(input, at..at, self.one_of(self.words).unwrap_or(&"").as_bytes()),
            5 => self.put(input, part, NUMBERS[self.place(NUMBERS.len())].as_bytes()),
            6 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            7 => {
                let copy = input[part].to_vec();
                self.put(input, at..at, &copy);
            }
            8 => {
                // Depth, and what grows with it.
                let copy = input[part.start..part.end.min(part.start + 8)].repeat(1 << self.random.below(10));
                self.put(input, at..at, &copy);
            }
            9 => {
                // The same of a few whole lines, and what each makes of the one before.
                let starts = || {
                    let ends = input.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                    std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).chain([input.len()])
                };
                let first = self.place(starts().count());
                let mut lines = starts().skip(first);
                let from = lines.next().unwrap_or(0);
                let to = lines.nth(self.place(4)).unwrap_or(input.len());
                let copy = input[from..to].repeat(1 << self.random.below(9));
                self.put(input, from..from, &copy);
            }
            10 => {
                let other = self.one_of(kept).cloned().unwrap_or_default();
                let from = self.part(other.len());
                self.put(input, part, &other[from]);
            }
            _ => input.truncate(at),
        }
    }

    /// Replaces `range`, unless it would become too long.
    fn put(&self, input: &mut Vec<u8>, range: std::ops::Range<usize>, bytes: &[u8]) {
        if input.len() + bytes.len() <= self.bytes_max {
            input.splice(range, bytes.iter().copied());
        }
    }

    /// A part of what has `len` bytes, most often a short one.
    fn part(&self, len: usize) -> std::ops::Range<usize> {
        let start = self.place(len + 1);
        let most = if self.random.below(4) == 0 { len } else { 8 };
        start..(start + self.place(most + 1)).min(len)
    }

    fn place(&self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn one_of<'a, T>(&self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.place(all.len()))
    }
}
