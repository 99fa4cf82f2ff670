//! The HTTP edge: everything between a connection and the verbs, which it knows by one trait.
//!
//! In: requests, from `transport`. Out: answers, each with what it wants of its connection. A request goes
//! through [`request`] (who, may they, is there room), then to [`resource`] (the API's verbs) or to
//! [`documents`] (what describes the server). Never: decides what a write means.

mod aggregation;
mod answer;
mod audited;
mod authn;
mod authz;
mod body_in;
mod component_statuses;
pub mod config;
mod connect_options;
mod cost;
mod delete_options;
mod documents;
mod flow_control;
mod flows;
mod framing;
#[cfg(test)]
mod fuzz;
mod handler;
pub mod identity;
mod impersonate;
mod in_process;
mod inflight;
pub mod limits;
mod list_answer;
mod memory;
mod metrics;
mod negotiate;
mod neighbourhood;
mod noted_list;
mod offload;
mod openapi;
mod own_door;
#[cfg(test)]
mod protobuf_tests;
mod proxied;
mod request;
mod request_info;
mod resource;
mod response;
mod reviews;
mod rooms;
mod server;
mod service;
mod shown;
mod status;
#[cfg(test)]
mod tests;
mod tls;
mod tokens;
mod traces;
mod trails;
mod used_tokens;
mod warnings;
mod watch_body;
mod websocket;

pub use aggregation::Aggregation;
pub use forebay_transport::TlsError;
pub use identity::Identity;
pub use in_process::InProcess;
pub use neighbourhood::Neighbours;
pub use own_door::OwnDoor;
pub use server::{Backing, Bound, ServeError};
