//! Configurations of webhooks, drawn from a seed, and what is written under them: both servers ask the same
//! webhooks, in the same order, with the same reviews, and make the same of what these answer.
//!
//! In: a seed. Out: a [`HookCase`]; what became of it at both servers. Never: a webhook that hears of another
//! case's writes.

mod answers;
mod draw;
mod odd;
mod run;
mod wide;

pub use answers::{ANSWERS, all as all_answers};
pub use draw::{HookCase, HookStep, draw};
pub use odd::{ODD, odd_answers, odd_cases};
pub use run::{ComparedHooks, HookPair, compare};
pub use wide::{wide_case, wide_definition};
