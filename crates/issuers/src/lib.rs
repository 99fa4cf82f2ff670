//! Tokens that others vouch for: OIDC providers, which sign them, and a webhook, which is asked about them.
//!
//! In: a token that nobody here knows. Out: whom it stands for, as an authenticator of the chain. What others
//! said is remembered for a while in one bounded cache; what went wrong never is. Whoever asks about the same
//! token at the same time waits for one answer. Never: asks more of a provider or a webhook than it has
//! places for, reads more of an answer than a limit says, waits without one.
//!
//! ```text
//! token ─► cache ─┬─► providers (oidc: judge) ─► keys, fetched once for all who wait
//!                 │                           ╰► sources of groups that are kept elsewhere
//!                 └─► webhook (TokenReview)
//! ```

mod cache;
mod fetch;
mod flights;
mod generation;
mod hash;
pub mod limits;
mod provider;
mod remote;
mod review;
mod sources;
mod webhook;

pub use fetch::check_authorities;
pub use hash::hash_of;
pub use remote::{IssuersInForce, RemoteTokens, RemoteTokensConfig};
pub use review::TokenReviewVersion;
pub use webhook::TokenReviewer;
