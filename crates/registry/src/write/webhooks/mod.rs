//! What admission webhooks have against a write, and what they make of it.
//!
//! In: a write, the webhooks that are in force. Out: the write with what they fill in, refusals, warnings.
//! Never: carries a call, which `webhooks::Calls` does; looks for webhooks, which `policy_source.rs` does.

mod ask;
mod mutate;
mod reached;
mod validate;

pub(super) use mutate::mutate;
pub(crate) use reached::reached as reach;
pub(super) use validate::validate;
