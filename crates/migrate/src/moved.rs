//! What became of a migration: what was moved, what was left out and why, and the digests of both sides.

use std::io::Write;

use forebay_apimachinery::Revision;
use forebay_embedded::snapshot::{Sum, Summary};

use crate::error::Error;

/// Lines about keys that were left out; the others are counted.
const LEFT_OUT_SAID_MAX: u64 = 100;

/// Whether one key that cannot be moved stops the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    WhatCanBe,
    All,
}

/// One side, counted in key order.
#[derive(Clone, Default)]
pub struct Side {
    /// Keys that stay.
    stays: Sum,
    /// Keys that expire: they are moved, and may be gone before both sides are compared.
    pub expiring: u64,
}

impl Side {
    /// Adds the next key.
    pub fn add(&mut self, key: &str, value: &[u8], expires: bool) {
        match expires {
            true => self.expiring += 1,
            false => self.stays.add(key, value),
        }
    }

    /// Keys so far.
    pub fn keys(&self) -> u64 {
        self.stays.keys() + self.expiring
    }
}

/// Keys that were left out.
pub struct LeftOut {
    strictness: Strictness,
    count: u64,
}

impl LeftOut {
    pub fn new(strictness: Strictness) -> LeftOut {
        LeftOut { strictness, count: 0 }
    }

    /// Says so on stderr.
    ///
    /// # Errors
    /// When all were asked for.
    pub fn add(&mut self, key: &str, why: &str) -> Result<(), Error> {
        if self.strictness == Strictness::All {
            return Err(Error::Failed(format!("{key} cannot be moved: {why}; nothing after it was moved")));
        }
        self.count += 1;
        if self.count <= LEFT_OUT_SAID_MAX {
            eprintln!("left out {key}: {why}");
        } else if self.count == LEFT_OUT_SAID_MAX + 1 {
            eprintln!("left out more; they are counted");
        }
        Ok(())
    }
}

/// A migration that is done.
pub struct Moved {
    /// Of the source.
    pub from: Revision,
    /// Of the target, where its history begins.
    pub to: Revision,
    source: Summary,
    expiring: u64,
    left_out: u64,
    outside: u64,
}

impl Moved {
    /// - `outside`: keys that are not below the prefix.
    ///
    /// # Errors
    /// The two sides differ.
    pub fn compared(
        (source, from): (Side, Revision),
        (target, to): (Side, Revision),
        left_out: &LeftOut,
        outside: u64,
    ) -> Result<Moved, Error> {
        let expiring = source.expiring;
        let (source, target) = (source.stays.finish(), target.stays.finish());
        if source != target {
            return Err(Error::Failed(format!(
                "what was read back is not what was moved: {} keys with digest {} of {} with digest {}; somebody else \
                 wrote meanwhile, or it was not kept as it was sent",
                target.keys, target.digest, source.keys, source.digest
            )));
        }
        Ok(Moved { from, to, source, expiring, left_out: left_out.count, outside })
    }

    /// Says on `out` what was done.
    ///
    /// # Errors
    /// When something was left out.
    pub fn say(&self, out: &mut dyn Write) -> Result<(), Error> {
        let Moved { from, to, source, expiring, left_out, outside } = self;
        let Summary { keys, bytes, digest } = source;
        writeln!(
            out,
            "Moved {keys} keys, {bytes} bytes, of revision {from}; clients go on from revision {to}"
        )?;
        writeln!(out, "digest of the source {digest}")?;
        writeln!(out, "digest of the target {digest}")?;
        if *expiring > 0 {
            writeln!(out, "moved {expiring} keys that expire, which are not part of the digest")?;
        }
        let mut missing = Vec::new();
        if *left_out > 0 {
            missing.push(format!(
                "{left_out} keys could not be moved and were left out; the lines above say which and why"
            ));
        }
        if *outside > 0 {
            missing.push(format!("{outside} keys are not below the prefix and were left out"));
        }
        if missing.is_empty() { Ok(()) } else { Err(Error::Failed(missing.join("; "))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_was_left_out_is_an_error_once_the_rest_is_moved() {
        for (unreadable, outside, expected) in [
            (0, 0, None),
            (0, 2, Some("2 keys are not below the prefix and were left out")),
            (1, 0, Some("1 keys could not be moved and were left out; the lines above say which and why")),
            (
                1,
                2,
                Some(
                    "1 keys could not be moved and were left out; the lines above say which and why; 2 keys are not \
                     below the prefix and were left out",
                ),
            ),
        ] {
            let mut left_out = LeftOut::new(Strictness::WhatCanBe);
            for _ in 0..unreadable {
                left_out.add("/a/1", "it is encrypted").expect("the others are moved");
            }
            let side = || (Side::default(), Revision::from_log(5));
            let moved = Moved::compared(side(), side(), &left_out, outside).expect("the same");
            let mut out = Vec::new();
            let said = moved.say(&mut out);
            assert_eq!(said.err().map(|error| crate::line(&error)).as_deref(), expected);
            assert!(out.starts_with(b"Moved 0 keys, 0 bytes, of revision 5; "), "{}", out.escape_ascii());
        }
    }
}
