//! The HTTP edge: everything between a socket and the verbs of `registry`.

mod authn;
mod authz;
mod config;
pub mod limits;
mod request_info;
mod status;
mod tls;

pub mod discovery;
