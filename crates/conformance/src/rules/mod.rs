//! The rules in CEL of well-known operators' definitions, to ours and to a real kube-apiserver.
//!
//! In: the definitions of `rules/operators.txt`, out of their Go modules ([`operators`]). Each rule stands at
//! a [`Site`](site::Site) of a schema; objects that get there are drawn from a seed ([`draw`], [`pattern`]),
//! until one passes and one breaks the rule ([`search`]); both servers are given the definition and the
//! objects ([`ask`]). Out: what differs. Never: a copy of a definition that outlives the run.

pub mod ask;
mod draw;
pub mod operators;
mod pattern;
pub mod search;
pub mod site;
mod words;
