//! Who asks, and what they may do.
//!
//! In: what a request presents; what is to be done. Out: an [`Asker`]; a yes, or a typed [`Refused`]. Both
//! are chains of one trait of `api`. Never: knows a verb's body, a code or a header of HTTP, a socket, or
//! where objects are kept.

mod access;
mod asker;
mod authenticators;
mod authorizers;
mod certificates;
pub mod config;
mod impersonation;
pub mod limits;
pub mod tokens;

pub use access::{Access, Forbidden, ForbiddenAbout, Refused};
pub use asker::Asker;
pub use authenticators::{Authenticators, BootstrapTokenUse, FurtherAuthentication, Unauthorized};
pub use authorizers::{
    AuthorizationWebhook, Authorizers, CarriedReview, CarriesReviews, NotCarried, ReloadedAuthorizers,
};
pub use certificates::{Credentials, FrontProxies, Peer};
pub use impersonation::{Asking, Impersonated, Impersonation, Wanted, Ways};
