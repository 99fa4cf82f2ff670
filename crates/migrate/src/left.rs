//! What an interrupted run has left in etcd, walked beside the source, which has the same order.
//!
//! In: the keys of the source, one after the other. Out: whether one is there as it is to be. What else is
//! there goes.

use std::collections::VecDeque;

use forebay_apimachinery::Revision;
use forebay_etcd::{Etcd, Kept, KeptPages};

use crate::error::{Error, failed};

/// See the module's doc.
pub struct Left<'a> {
    etcd: &'a Etcd,
    pages: KeptPages<'a>,
    // Read, and not walked past yet.
    page: VecDeque<Kept>,
    /// Keys that need not be put again.
    pub kept: u64,
}

impl<'a> Left<'a> {
    /// - `below`: where objects are.
    pub fn new(etcd: &'a Etcd, below: &str) -> Left<'a> {
        Left { etcd, pages: etcd.kept(below), page: VecDeque::new(), kept: 0 }
    }

    /// Whether `stored` is at `key`, put above `from`. If something else is, it goes, as does what lies
    /// between the key before and this one.
    ///
    /// - `expires`: whether it is to have a lease.
    ///
    /// # Errors
    /// etcd's.
    pub async fn has(
        &mut self,
        (key, stored): (&str, &[u8]),
        expires: bool,
        from: Revision,
    ) -> Result<bool, Error> {
        while let Some(there) = self.next_upto(Some(key)).await? {
            let is_it = there.key == key.as_bytes() && there.value == stored;
            if is_it && there.lease.is_some() == expires && there.revision > from {
                self.kept += 1;
                return Ok(true);
            }
            self.etcd.remove(&there.key).await.map_err(failed)?;
        }
        Ok(false)
    }

    /// Removes what lies behind the last key of the source.
    ///
    /// # Errors
    /// etcd's.
    pub async fn end(&mut self) -> Result<(), Error> {
        while let Some(there) = self.next_upto(None).await? {
            self.etcd.remove(&there.key).await.map_err(failed)?;
        }
        Ok(())
    }

    /// The next one, unless it lies behind `key`.
    async fn next_upto(&mut self, key: Option<&str>) -> Result<Option<Kept>, Error> {
        while self.page.is_empty() {
            match self.pages.next().await.map_err(failed)? {
                Some((_, items)) => self.page = items.into(),
                None => return Ok(None),
            }
        }
        let is_due = |there: &Kept| key.is_none_or(|key| &there.key[..] <= key.as_bytes());
        Ok(self.page.front().is_some_and(is_due).then(|| self.page.pop_front()).flatten())
    }
}
