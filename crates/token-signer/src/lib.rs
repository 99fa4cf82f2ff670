//! An external signer of service accounts' tokens: `--service-account-signing-endpoint`.
//!
//! In: the path of a Unix socket. Out: [`TokenSigner`], who signs what `auth` issues and says by which keys
//! that is verified; and the longest life that a token may have. Every wait and every answer has a bound, and
//! what a signer says is believed only as far as upstream does. Never: keeps a private key.
//!
//! Source: KEP-740; kubernetes v1.36.3 `pkg/serviceaccount/externaljwt`.

mod header;
mod keys;
pub mod limits;
mod messages;
mod signer;
#[cfg(test)]
mod tests;

pub use signer::{SignerWaits, StartedSigner, TokenSigner};
