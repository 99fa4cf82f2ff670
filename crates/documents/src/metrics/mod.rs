//! `/metrics`: its text, and what there is to say of caches, the store, tasks and the process.
//!
//! In: counters of other rooms. Out: the classic text format. Never: counts by itself.

mod aggregator;
mod authentication;
pub mod authorization;
pub mod caches;
pub mod encryption;
pub mod flow;
pub mod pod_security;
pub mod process;
pub mod storage;
pub mod tasks;
mod text;
mod token_signer;
mod token_uses;
pub mod webhooks;

pub use aggregator::Availability;
pub use authentication::{ActiveFetch, Attempt, AuthenticationMetrics, ImpersonationMode, Went};
pub use text::{CONTENT_TYPE, Labels, Text};
pub use token_signer::{NOT_OF_GRPC, SignerCode, SignerMetrics};
pub use token_uses::TokenUseCounts;
