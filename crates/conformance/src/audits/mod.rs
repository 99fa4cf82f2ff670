//! Audit logs of two servers: the same requests under the same policy, and what each has noted of them.
//!
//! In: a policy, a script drawn from a seed. Out: the requests of which not the same was noted, but for times
//! and what a server chooses. Never: what a server does by itself.

mod policies;
mod run;
mod script;
mod told;

pub use policies::POLICIES;
pub use run::{ComparedAudit, compare};
pub use script::{AuditStep, draw};
