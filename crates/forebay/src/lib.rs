//! The binary's parts: configuration, certificates, wiring, commands.
//!
//! What was typed ([`flags`]) becomes what was decided ([`config`]), then what is needed to serve
//! ([`prepare`]), then a [`server`], which [`serve`] runs. No part goes back to an earlier one.

pub mod admission_files;
mod aggregation;
pub mod audit_files;
pub mod auth_files;
mod authentication_files;
pub mod authorization;
pub mod cli;
mod completion;
pub mod config;
mod csv;
mod edge;
pub mod envtest;
pub mod error;
mod exposed;
pub mod flags;
pub mod identity;
pub mod kube_apiserver;
pub mod kubeconfig;
pub mod logging;
pub mod memory;
mod migrate;
mod open_files;
pub mod parent;
pub mod prepare;
mod remote;
pub mod serve;
pub mod server;
mod snapshot;
mod sni_files;
pub mod store;
mod token_key_files;
mod top;
mod tracing_file;
pub mod version;
