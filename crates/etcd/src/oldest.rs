//! Where etcd's history begins.
//!
//! kube-apiserver, and we, note in `compact_rev_key` what was compacted last. That is held against a read, since others may
//! have compacted beside; if it does not hold, the revision is found by halving.

use std::sync::atomic::Ordering;

use forebay_apimachinery::Revision;

use crate::compaction::COMPACT_REV_KEY;
use crate::engine::Shared;
use crate::error::Fault;
use crate::limits;
use crate::messages::RangeRequest;

impl Shared {
    /// The oldest revision that can be read at, and watched from the next on.
    pub(crate) async fn oldest(&self) -> Result<Revision, Fault> {
        let current = self.quorum().await?.revision.max(1);
        let request = RangeRequest { key: COMPACT_REV_KEY, limit: 1, ..RangeRequest::default() };
        let noted = self.read_key(&request).await?;
        let noted = noted.and_then(|kv| std::str::from_utf8(&kv.value).ok()?.parse::<u64>().ok());
        let known = noted.unwrap_or(0).max(self.oldest.load(Ordering::Acquire)).clamp(1, current);
        let oldest = if self.is_kept(known).await? { known } else { self.halve(known, current).await? };
        self.oldest.fetch_max(oldest, Ordering::AcqRel);
        Ok(Revision::from_log(oldest))
    }

    /// The oldest kept revision in `(gone, kept]`.
    async fn halve(&self, mut gone: u64, mut kept: u64) -> Result<u64, Fault> {
        for _ in 0..limits::BISECTION_MAX {
            if kept - gone <= 1 {
                break;
            }
            let middle = gone + (kept - gone) / 2;
            match self.is_kept(middle).await? {
                true => kept = middle,
                false => gone = middle,
            }
        }
        Ok(kept)
    }

    async fn is_kept(&self, revision: u64) -> Result<bool, Fault> {
        let request = RangeRequest {
            key: COMPACT_REV_KEY,
            limit: 1,
            revision,
            keys_only: true,
            ..RangeRequest::default()
        };
        match self.read_key(&request).await {
            Ok(_) => Ok(true),
            Err(Fault::Compacted) => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}
