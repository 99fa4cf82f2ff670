//! Who is measured: Forebay, and kube-apiserver on etcd, each as processes of its own, and what both are
//! loaded with.
//!
//! In: the programs to run, and a size. Out: a running [`server::Instance`], clients of it ([`client`]), and
//! pods and other objects from a published seed ([`draw::SEED`]). Never: a figure; what one contender gets
//! and the other does not.
#![allow(clippy::disallowed_methods, reason = "it measures the real clock and waits for other processes")]

pub mod cage;
pub mod client;
pub mod contender;
pub mod draw;
mod error;
pub mod forebay;
mod governed;
pub mod guard;
pub mod kubernetes;
pub mod lab;
pub mod load;
pub mod objects;
pub mod overload;
pub mod pki;
pub mod pods;
pub mod proc;
pub mod ratio;
pub mod server;
pub mod static_server;
pub mod template;
pub mod units;

pub use error::Error;
