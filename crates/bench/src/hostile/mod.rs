//! The catalogue of what hostile clients send, and what it does to a server: the engine of the scenario `hostile`.
//!
//! In: a [`Row`] and a running server. Out: a [`Measure`](measure::Measure): survived or not, growth, CPU, the answer, and what a
//! bystander saw meanwhile. A row is a file below `rows`, named for what it is from. What it sends is written to the wire by
//! hand ([`wire`], [`http2`], [`tls`]): a well-behaved client library would not.
//! Never: a row that is measured with another one's remains; a limit that is bent to what a server does.

mod bodies;
mod bystander;
mod growth;
mod http2;
mod law;
pub mod measure;
mod prelude;
mod request;
pub mod rows;
mod said;
mod stage;
mod table;
mod tls;
mod wire;

use std::pin::Pin;

use crate::Error;
pub use law::Law;
pub use measure::{Contest, Measure};
pub use said::{Said, Tally};
pub use stage::{Dose, Stage};
pub use table::table;

use request::Request;

/// One hostile request, or connection, or many of them.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    /// A CVE, an issue (`kubernetes#1`), a paragraph of an RFC, or `ours`.
    pub from: &'static str,
    pub who: Who,
    pub size: Sizes,
    /// The memory limit that our server is started with.
    pub memory: Memory,
    /// What has to be there first, made by an administrator and not measured.
    pub prepare: Option<fn(Stage, usize) -> Prepared>,
    pub act: Act,
    pub law: Law,
}

/// Who sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// No certificate and no token.
    Anonymous,
    /// A token's user who may ask about themself and see what is served, and nothing else.
    Nobody,
    /// A client certificate of system:masters.
    Admin,
}

/// How much of it: as hostile as it gets, and at size 10.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub full: usize,
    pub ten: usize,
}

/// `--memory-limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Gibibyte,
    /// So little that there are seats for 256 connections.
    Least,
}

/// What is done.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// One request over HTTP/1.1, made before anything is measured.
    Request(fn(usize) -> Request),
    Scene(fn(Stage, usize) -> Scene),
}

/// Something that a hostile client does, until it has heard what there is to hear.
pub type Scene = Pin<Box<dyn Future<Output = Result<Tally, Error>> + Send>>;
pub type Prepared = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

impl Row {
    /// What most rows have in common: one request of somebody without rights.
    const BASE: Row = Row {
        name: "",
        from: "ours",
        who: Who::Nobody,
        size: Sizes { full: 1, ten: 1 },
        memory: Memory::Gibibyte,
        prepare: None,
        act: Act::Request(|_| Request::get("/")),
        law: Law::says(&[]),
    };
}

impl Memory {
    pub fn flag(self) -> &'static str {
        match self {
            Memory::Gibibyte => "--memory-limit=1Gi",
            Memory::Least => "--memory-limit=104Mi",
        }
    }

    pub fn bytes(self) -> u64 {
        match self {
            Memory::Gibibyte => 1 << 30,
            Memory::Least => 104 << 20,
        }
    }
}
