//! JSON as kube-apiserver reads and writes it.
//!
//! In: bodies from clients. Out: `serde_json::Value`s with Go's number rules, the duplicate members that a
//! strict decoder complains of, and bytes escaped as Go's `encoding/json` escapes them. Never: knows a
//! schema.

mod order;
mod parse;
mod part;
mod quote;
mod reader;
mod string_end;
mod typed;
pub mod weight;
mod write;

pub use order::in_order;
pub(crate) use parse::replace_invalid_utf8;
pub use parse::{DEPTH_MAX, DUPLICATES_MAX, ParseError, Parsed, parse, read};
pub use part::{Part, read_part};
pub use quote::{go_quote, is_print};
pub use reader::{Reader, Unexpected};
pub use string_end::{quote_or_escape, string_end};
pub(crate) use typed::Members;
pub use typed::kind_of;
pub use weight::copy;
pub use write::{go_escape, to_go_text, write_sorted, write_string, written_len_max};

#[cfg(test)]
mod tests;
