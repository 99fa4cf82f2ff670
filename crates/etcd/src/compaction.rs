//! The protocol by which one of many servers gives up etcd's old history: kube-apiserver's own.
//!
//! Every period each server tries to move `compact_rev_key` on, which only the first of them can: that one
//! compacts to the revision that was current one period before. So history is kept for one to two periods,
//! and the first round compacts nothing.
//! Source: apiserver v1.36.3 `storage/etcd3/compact.go` (reference §6).

use std::sync::Arc;

use forebay_rt::Duration;

use crate::error::RequestError;
use crate::limits;
use crate::messages::{self, Action, Compare, path};
use crate::oldest;
use crate::pool::Use;
use crate::shared::Shared;

/// Not below the prefix of the objects; the same for every server on the cluster.
pub(crate) const COMPACT_REV_KEY: &[u8] = b"compact_rev_key";

/// Where one server is in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Round {
    // How often the key was put, as far as is known.
    version: u64,
    // What was current in the last round; 0 before the first.
    revision: u64,
}

/// Compacts every `period` for as long as it is run.
pub(crate) async fn run(shared: Arc<Shared>, period: Duration) {
    let mut round = Round::default();
    loop {
        shared.clock.sleep(period).await;
        match shared.compact_round(round).await {
            Ok(next) => round = next,
            Err(fault) => tracing::warn!(%fault, "etcd was not compacted"),
        }
    }
}

impl Shared {
    async fn compact_round(&self, round: Round) -> Result<Round, RequestError> {
        let value = round.revision.to_string();
        let action = Action::Put { value: value.as_bytes(), lease: 0 };
        let message = messages::txn(COMPACT_REV_KEY, Compare::Version(round.version), action);
        let answer = self.ask(Use::Keys, path::TXN, &message, limits::READ_WAIT).await?;
        let response = messages::read_txn(answer)?;
        let current = response.header.revision;
        if !response.succeeded {
            // Another server was first, or has been at it for longer. What it noted it gives up before it
            // does anything else.
            let version = response.found.as_ref().map_or(0, |kv| kv.version);
            self.note_compacted(oldest::revision_of(Ok(response.found))?.min(current));
            return Ok(Round { version, revision: current });
        }
        let next = Round { version: round.version + 1, revision: current };
        if round.revision > 0 {
            let message = messages::compact(round.revision);
            match self.ask(Use::Keys, path::COMPACT, &message, limits::PAGE_WAIT).await {
                Ok(_) | Err(RequestError::Compacted) => {
                    self.note_compacted(round.revision);
                    tracing::debug!(revision = round.revision, "compacted etcd");
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(next)
    }
}
