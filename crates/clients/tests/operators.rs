//! Operators that people run, on our server: what each of them is for, done once.
//!
//! In: `FOREBAY_OPERATORS`, where `cargo xtask operators` has built their programs and left links to their
//! sources; without it there is nothing to run. Out: what was seen, on standard output. Never: built here.

#[path = "operators/mod.rs"]
mod cases;
