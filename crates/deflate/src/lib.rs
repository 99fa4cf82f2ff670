//! Makes texts that repeat themselves smaller, as deflate (RFC 1951).
//!
//! In: a text, such as some objects of one kind beside each other. Out: deflated blocks that any reader of
//! the format takes, ended as zlib's sync flush ends them: at a whole byte, the last block not said to be the
//! last, so that more may follow. Never: a checksum, a header, or more bytes than there is room for.
//!
//! What it is for: texts of about 64 KB that any number of readers inflate, each made once. Such objects
//! differ in a few values and are otherwise alike in the same places, so what follows a difference is looked
//! for at the distance that held before it first ([`repeats`]). ADR 39 has what that gains over a general
//! library.

mod bits;
mod code;
mod repeats;
mod tables;

#[cfg(test)]
mod tests;

use std::ops::Range;

use bits::Bits;
use code::{Code, Lengths};
use repeats::{Repeats, Step};
use tables::{
    DISTANCE_BASE, DISTANCE_EXTRA, DISTANCES, END, LENGTH_BASE, LENGTH_EXTRA, LITERALS, distance_symbol,
    length_symbol,
};

/// Text of one deflated block: its bytes have one code, so more of it is coded less well, and less of it
/// needs more codes.
const BLOCK_BYTES: usize = 128 << 10;

/// What a flush ends with: an empty stored block's lengths.
const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];

/// Deflates texts. Keeps its memory between them: 64 KB, six bytes for each repetition of a block, and the
/// most room that it was given.
#[derive(Default)]
pub struct Deflate {
    repeats: Repeats,
    steps: Vec<Step>,
    deflated: Vec<u8>,
}

impl Deflate {
    pub fn new() -> Deflate {
        Deflate::default()
    }

    /// `text` deflated; nothing where it does not fit into so many bytes of room.
    pub fn deflate(&mut self, text: &[u8], room: usize) -> Option<&[u8]> {
        if self.deflated.len() < room {
            self.deflated.reserve_exact(room - self.deflated.len());
            self.deflated.resize(room, 0);
        }
        let mut bits = Bits::new(&mut self.deflated[..room]);
        self.repeats.forget();
        let mut from = 0;
        while from < text.len() {
            let to = text.len().min(from + BLOCK_BYTES);
            self.steps.clear();
            self.repeats.find(&text[..to], from, &mut self.steps);
            write_block(text, from..to, &self.steps, &mut bits)?;
            from = to;
        }
        // Stored, and not the last.
        bits.room_for(3)?;
        bits.put(0, 3);
        let len = bits.end(&FLUSHED);
        Some(&self.deflated[..len])
    }
}

/// Writes a block whose codes are its own; nothing where there is no room for it.
///
/// - `steps`: what `part` of the text consists of.
fn write_block(text: &[u8], part: Range<usize>, steps: &[Step], bits: &mut Bits) -> Option<()> {
    let (mut literals, mut distances) = ([0; LITERALS], [0; DISTANCES]);
    let mut at = part.start;
    for step in steps {
        for &byte in &text[at..at + step.literals()] {
            literals[usize::from(byte)] += 1;
        }
        if let Some((length, distance)) = step.repeated() {
            literals[END + 1 + length_symbol(length)] += 1;
            distances[distance_symbol(distance)] += 1;
        }
        at += step.len();
    }
    debug_assert_eq!(at, part.end, "the steps are the whole text");
    literals[END] = 1;
    let (of_literals, of_distances) =
        (Code::<LITERALS>::of(&literals, 15), Code::<DISTANCES>::of(&distances, 15));
    let lengths = Lengths::of(of_literals.lengths(END + 1), of_distances.lengths(1));
    let extra_of = |counts: &[u32], extra: &[u8]| -> usize {
        counts.iter().zip(extra).map(|(&count, &extra)| count as usize * usize::from(extra)).sum()
    };
    bits.room_for(
        3 + lengths.bits()
            + of_literals.bits(&literals)
            + extra_of(&literals[END + 1..], &LENGTH_EXTRA)
            + of_distances.bits(&distances)
            + extra_of(&distances, &DISTANCE_EXTRA),
    )?;
    // Not the last; its codes follow.
    bits.put(0b100, 3);
    lengths.write(bits);
    write_steps(text, part.start, steps, (&of_literals, &of_distances), bits);
    let (end, len) = of_literals.of_symbol(END);
    bits.put(end, len);
    Some(())
}

fn write_steps(
    text: &[u8],
    from: usize,
    steps: &[Step],
    (literals, distances): (&Code<LITERALS>, &Code<DISTANCES>),
    bits: &mut Bits,
) {
    let mut at = from;
    for step in steps {
        let (threes, rest) = text[at..at + step.literals()].as_chunks::<3>();
        for three in threes {
            for &byte in three {
                let (code, len) = literals.of_symbol(usize::from(byte));
                bits.add(code, len);
            }
            bits.flush();
        }
        for &byte in rest {
            let (code, len) = literals.of_symbol(usize::from(byte));
            bits.add(code, len);
        }
        bits.flush();
        if let Some((length, distance)) = step.repeated() {
            let symbol = length_symbol(length);
            let (code, len) = literals.of_symbol(END + 1 + symbol);
            bits.add(code, len);
            bits.add(length as u64 - u64::from(LENGTH_BASE[symbol]), u32::from(LENGTH_EXTRA[symbol]));
            let symbol = distance_symbol(distance);
            let (code, len) = distances.of_symbol(symbol);
            bits.add(code, len);
            bits.add(distance as u64 - u64::from(DISTANCE_BASE[symbol]), u32::from(DISTANCE_EXTRA[symbol]));
            bits.flush();
        }
        at += step.len();
    }
}
