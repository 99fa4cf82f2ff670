//! A row of the catalogue: what is sent, by whom, how much of it, and what may come of it.
//!
//! In: what a row's file says. Out: data. Never: what came of it.

use std::pin::Pin;

use super::beside::Beside;
use super::law::Law;
use super::request::Request;
use super::said::Tally;
use super::stage::Stage;
use forebay_contenders::Error;

/// One hostile request, or connection, or many of them.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    /// A CVE, an issue (`kubernetes#1`), a paragraph of an RFC, or `ours`.
    pub from: &'static str,
    pub who: Who,
    pub size: Sizes,
    /// The memory limit that our server is started with.
    pub memory: MemoryLimit,
    /// Who the server is started with that does badly.
    pub beside: Beside,
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
pub enum MemoryLimit {
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
    pub const BASE: Row = Row {
        name: "",
        from: "ours",
        who: Who::Nobody,
        size: Sizes { full: 1, ten: 1 },
        memory: MemoryLimit::Gibibyte,
        beside: Beside::Nothing,
        prepare: None,
        act: Act::Request(|_| Request::get("/")),
        law: Law::says(&[]),
    };
}

impl MemoryLimit {
    pub fn flag(self) -> &'static str {
        match self {
            MemoryLimit::Gibibyte => "--memory-limit=1Gi",
            MemoryLimit::Least => "--memory-limit=104Mi",
        }
    }

    pub fn bytes(self) -> u64 {
        match self {
            MemoryLimit::Gibibyte => 1 << 30,
            MemoryLimit::Least => 104 << 20,
        }
    }
}

/// Rows with the names of their files.
pub type Rows = &'static [(&'static str, &'static Row)];
