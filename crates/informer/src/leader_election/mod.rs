//! Leader election on a Lease of `coordination.k8s.io/v1`, with the rules of client-go's.
//!
//! In: a Lease and whoever wants to lead. Out: at most one of them leads at a time, and hears when it begins
//! and ends. Never: believes another one's clock. [`Machine`] decides and is told the time; [`Elector`] runs
//! it on a [`LeaseApi`], which `kube::Client` is.

mod api;
mod config;
mod elector;
pub mod limits;
mod machine;
mod record;

pub use api::{LeaseApi, LeaseError};
pub use config::{Config, ConfigError, OnEnd, identity};
pub use elector::{Callbacks, Elector, Work};
pub use machine::{Effect, End, Input, Machine, Now};
