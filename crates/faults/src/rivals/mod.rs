//! The clients that are held beside each other.
//!
//! In: a name. Out: how to start it. One more is a module with a [`Start`] and a line in [`RIVALS`]. Never:
//! what is measured.

mod clientgo;
mod kube_rs;
mod ours;

use crate::subject::Start;

/// Name on the command line and in the table, and how it is started.
#[derive(Clone, Copy)]
pub struct Rival {
    pub name: &'static str,
    pub start: Start,
}

/// All of them, in the order of the table.
pub const RIVALS: [Rival; 5] = [
    Rival { name: "forebay-informer-json", start: ours::start_json },
    Rival { name: "forebay-informer-protobuf", start: ours::start_protobuf },
    Rival { name: "client-go", start: clientgo::start },
    Rival { name: "kube-rs", start: kube_rs::start_paged },
    Rival { name: "kube-rs-streaming", start: kube_rs::start_streaming },
];

pub fn named(name: &str) -> Option<Rival> {
    RIVALS.into_iter().find(|rival| rival.name == name)
}
