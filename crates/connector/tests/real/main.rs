//! Tests over real connections to a server in this process.
//!
//! In: nothing. Out: what carries a request, and what is made of failures. Never: a server that is not of
//! this process.

mod connections;
mod faults;
mod server;
