//! How much the scenarios avalanche and fairness do.

use std::path::PathBuf;
use std::time::Duration;

/// See the module's doc.
#[derive(Clone, Debug)]
pub struct Overload {
    pub pods: usize,
    /// Readers that follow client-go's rules and keep nothing.
    pub readers: usize,
    /// Informers of client-go itself.
    pub informers: usize,
    /// Writes of pods in a second.
    pub writes: usize,
    /// Nodes that renew a Lease every ten seconds.
    pub nodes: usize,
    /// Watches of the greedy user.
    pub watches: usize,
    /// Readers that stand still.
    pub standing: usize,
    /// Megabytes of the list that they ask for.
    pub list_mb: usize,
    /// How long each thing is measured, a server that was killed stays away, and it is calm between blows.
    pub span: Duration,
    /// What each server is held to, in bytes.
    pub cage: u64,
    /// Where etcd is, for servers that need not stand on one but are to here.
    pub peers: PathBuf,
}

impl Default for Overload {
    fn default() -> Overload {
        Overload {
            pods: 5_000,
            readers: 580,
            informers: 20,
            writes: 5,
            nodes: 1_000,
            watches: 10_000,
            standing: 500,
            list_mb: 1_000,
            span: Duration::from_secs(10),
            cage: 3 << 30,
            peers: PathBuf::from("."),
        }
    }
}
