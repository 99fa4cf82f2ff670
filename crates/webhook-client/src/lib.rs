//! Carries reviews to webhooks.
//!
//! In: calls. Out: what came back, unread, or why nothing did, in the words of Go's HTTP client. All calls to
//! one webhook share its connections, are so many at once, and wait for nobody else's; an answer is charged
//! to its write as it comes. Never: reads an answer, asks again unless the webhook says when, waits longer
//! than whoever calls.

mod client;
mod credentials;
mod exchange;
mod kubeconfig;
pub mod limits;
mod own;
mod poster;
mod remote;
mod routes;
pub mod words;

pub use client::WebhookClient;
pub use credentials::{Credential, CredentialsOfPlugins, HostCredentials};
pub use kubeconfig::Kubeconfig;
pub use own::OwnServer;
pub use poster::Poster;
pub use remote::{Remote, RemoteAnswer, RemoteFault};
