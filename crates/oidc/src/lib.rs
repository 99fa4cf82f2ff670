//! Tokens that OIDC providers issue, as pure data: who may issue them, whether one is good, and whom its
//! claims make of who shows it.
//!
//! In: an `AuthenticationConfiguration` as a tree; a provider's documents; a token; the time. Out: a caller,
//! or upstream's words for why there is none. Never: does IO, reads a clock, fetches a key.
//!
//! ```text
//! tree ─config─► AuthenticationConfiguration ─validate─► Issuer ─┐
//! token ─token─► Token ─keys─► signature ─verify─► claims ───────┴─claims─► Caller
//!                                                 ╰─elsewhere─► who is asked for the groups
//! ```

mod claims;
pub mod config;
mod discovery;
mod elsewhere;
mod expressions;
mod faults;
mod issuer;
mod keys;
pub mod limits;
#[cfg(test)]
mod tests;
mod token;
mod validate;
mod verify;

pub use config::AuthenticationConfiguration;
pub use discovery::Discovered;
pub use elsewhere::Elsewhere;
pub use issuer::Issuer;
pub use keys::{Algorithm, KeySet};
pub use token::Token;
pub use validate::validated;
pub use verify::{Judged, UNSIGNED};
