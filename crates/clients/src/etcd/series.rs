//! What kind of a cluster.

use std::path::Path;

use crate::needs;

/// Whether clients speak TLS, and show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    Plain,
    Mutual,
}

/// Which cluster a restored backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterToken {
    /// The one that it was taken of.
    Same,
    /// Another one: etcd's `--initial-cluster-token`.
    New,
}

/// Which etcd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    V3_5,
    /// The one that is taken where nothing else is said.
    V3_6,
    V3_7,
}

impl Series {
    pub const ALL: [Series; 3] = [Series::V3_5, Series::V3_6, Series::V3_7];

    pub(super) fn name(self) -> &'static str {
        match self {
            Series::V3_5 => "3.5",
            Series::V3_6 => "3.6",
            Series::V3_7 => "3.7",
        }
    }

    /// Its program.
    ///
    /// # Errors
    /// It was not built.
    pub fn program(self) -> Result<&'static Path, String> {
        let peers = needs::peers()?;
        Ok(match self {
            Series::V3_5 => &peers.etcd_3_5,
            Series::V3_6 => &peers.etcd,
            Series::V3_7 => &peers.etcd_3_7,
        })
    }
}
