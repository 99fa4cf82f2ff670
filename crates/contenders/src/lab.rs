//! What all scenarios share: how much to do, and directories that vanish afterwards.
//!
//! In: the options. Out: fresh directories. Never: a directory that somebody else made, removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::Error;
use crate::client::Protocol;
use crate::objects::Objects;
use crate::overload::Overload;
use crate::static_server::StaticServer;

/// How much a scenario does, and where.
#[derive(Clone, Debug)]
pub struct Lab {
    /// How many objects, and which.
    pub size: usize,
    pub objects: Objects,
    /// Whether RBAC decides about the clients, an audit log notes their requests and quotas count their pods.
    pub is_governed: bool,
    /// Concurrent clients, a connection each.
    pub clients: usize,
    /// Clients that LIST at once, a connection each.
    pub listers: usize,
    /// Times that each of them LISTs in each of the two ways.
    pub rounds: usize,
    /// Updates a second beside which the scenario storm LISTs a second time; 0 for no such time.
    pub storm_writes: u32,
    /// Watchers at once in the scenarios fanout and idle.
    pub watchers: usize,
    /// The same in the scenarios crowd and lanes.
    pub crowd: usize,
    /// Numbers of objects, and of watchers, that the scenario curve measures.
    pub sizes: Vec<usize>,
    pub crowds: Vec<usize>,
    /// Objects that the rival is given at most there.
    pub rival_max: usize,
    /// Objects of the scenario million.
    pub million: usize,
    /// Control planes that run at once in the scenario envtest.
    pub servers: usize,
    /// Runs of each scenario; without it each scenario's own number.
    pub runs: Option<usize>,
    /// Spoken by the clients.
    pub protocol: Protocol,
    /// Time given to what a server still does once it says that it is ready, before its memory is read.
    pub settle: Duration,
    /// What LISTs are measured beside; without it they are not.
    pub static_server: Option<StaticServer>,
    /// Names of the rows that the scenario hostile does; without any it does all.
    pub only: Vec<String>,
    /// How much the scenarios avalanche and fairness do.
    pub overload: Overload,
    /// Directory that the servers' directories are made in. On the disk that is to be measured.
    pub base: PathBuf,
}

/// A directory of our own, removed when dropped.
#[derive(Debug)]
pub struct FreshDir(PathBuf);

impl Lab {
    /// The runs to do, where the scenario itself would do `own`.
    pub fn runs(&self, own: usize) -> usize {
        self.runs.unwrap_or(own).max(1)
    }

    /// The updates to make for watchers, where the scenario itself would make `own`: few for few watchers.
    pub fn updates(&self, own: usize) -> usize {
        own.min(self.watchers)
    }

    /// Makes an empty directory.
    pub fn fresh_dir(&self) -> Result<FreshDir, Error> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let serial = MADE.fetch_add(1, Ordering::Relaxed);
        let path = self.base.join(format!("forebay-bench-{}-{serial}", std::process::id()));
        fs::create_dir(&path).map_err(Error::file("cannot create", &path))?;
        Ok(FreshDir(path))
    }
}

impl FreshDir {
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Bytes of all files in it.
    pub fn bytes(&self) -> u64 {
        let mut open = vec![self.0.clone()];
        let mut sum = 0;
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(meta) if meta.is_dir() => open.push(entry.path()),
                    Ok(meta) => sum += allocated(&meta),
                    Err(_) => {}
                }
            }
        }
        sum
    }
}

impl Drop for FreshDir {
    fn drop(&mut self) {
        // A leftover in the temporary directory is not worth failing a run that has its figures.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a file takes on disk: etcd and redb make files longer than what they have written.
fn allocated(meta: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(meta) * 512
}
