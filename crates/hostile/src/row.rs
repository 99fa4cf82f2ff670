//! A row of the catalogue: what is sent, by whom, how much of it, and what may come of it.
//!
//! In: what a row's file says. Out: data. Never: what came of it.

use std::path::Path;
use std::pin::Pin;

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
    /// What is noted of requests, and what takes it.
    pub auditing: Auditing,
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

/// What of requests is noted, whole, for what takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auditing {
    Nothing,
    /// A file on a disk that is full.
    FullDisk,
    /// A server that is not there.
    DeadWebhook,
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
        auditing: Auditing::Nothing,
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

impl Auditing {
    /// The server's flags, whose files are written into `dir`.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn flags(self, dir: &Path) -> std::io::Result<Vec<String>> {
        let to = match self {
            Auditing::Nothing => return Ok(Vec::new()),
            Auditing::FullDisk => {
                vec!["--audit-log-path=/dev/full".to_owned(), "--audit-log-maxsize=0".to_owned()]
            }
            Auditing::DeadWebhook => {
                let kubeconfig = dir.join("audit-webhook");
                std::fs::write(&kubeconfig, DEAD)?;
                vec![format!("--audit-webhook-config-file={}", kubeconfig.display())]
            }
        };
        let policy = dir.join("audit-policy");
        std::fs::write(&policy, POLICY)?;
        Ok([vec![format!("--audit-policy-file={}", policy.display())], to].concat())
    }
}

const POLICY: &str = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}";

/// Nobody listens there.
const DEAD: &str = "{apiVersion: v1, kind: Config, current-context: c, \
                    contexts: [{name: c, context: {cluster: k, user: ''}}], \
                    clusters: [{name: k, cluster: {server: 'http://127.0.0.1:9/'}}]}";

/// Rows with the names of their files.
pub type Rows = &'static [(&'static str, &'static Row)];
