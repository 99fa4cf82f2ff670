//! The clients that are held beside each other.
//!
//! In: a name. Out: how to start it. Never: what is measured.

mod clientgo;
mod kube_rs;

use crate::subject::Start;

/// Name on the command line and in the table, and how it is started.
#[derive(Clone, Copy)]
pub struct Rival {
    pub name: &'static str,
    pub start: Start,
    pub needs_go: bool,
}

/// All of them, in the order of the table.
pub const RIVALS: [Rival; 3] = [
    Rival { name: "client-go", start: clientgo::start, needs_go: true },
    Rival { name: "kube-rs", start: kube_rs::start_paged, needs_go: false },
    Rival { name: "kube-rs-streaming", start: kube_rs::start_streaming, needs_go: false },
];

pub fn named(name: &str) -> Option<Rival> {
    RIVALS.into_iter().find(|rival| rival.name == name)
}
