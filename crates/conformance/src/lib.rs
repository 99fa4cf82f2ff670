//! The same requests to ours and to a real kube-apiserver, and what differs.
//!
//! In: objects and edits of them (`cases/`), both servers. Out: a [`Report`] of the answers that are not
//! equal, held against the files in `allowed/`, where each difference stands with its reason. Never: a
//! difference that nobody decided on, or a reason for one that is gone.
//!
//! Beside that, [`sequences`]: writes of one object by several managers, drawn from a seed, and who owns
//! which field after each; [`rules`]: definitions of operators with the rules in them, and objects that pass
//! and that fail; [`hooks`]: configurations of webhooks, and what is written under them; [`rights`]: roles,
//! bindings and questions about them; [`history`]: what many clients of one server were told, recorded, and
//! judged by what a server promises; [`audits`]: what both note of a script of requests, under policies of
//! every kind.

pub mod allowed;
pub mod audits;
pub mod cases;
pub mod contract;
pub mod diff;
pub mod edit;
pub mod history;
pub mod hooks;
pub mod mutate;
pub mod normal;
pub mod pair;
pub mod plugins;
pub mod rights;
pub mod rules;
pub mod run;
pub mod sequences;

pub use allowed::Allowed;
pub use cases::{Case, Fixture, WriteVerb};
pub use pair::{Answer, Pair, Peer};
