//! The state of a store at one revision, page by page, while others write or while nobody has it open.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::ReadError;
use forebay_rt::Clock;

use super::format::{Entry, Head};
use crate::error::OpenError;
use crate::limits::{INDEX_KEYS_A_HOLD, SNAPSHOT_BLOCK_BYTES};
use crate::open::{self, Opened};
use crate::options::Options;
use crate::shared::{self, Shared};
use crate::store::Rows;
use crate::writer::Writer;

/// Every key that had a value at one revision, in key order. It has to be read while that revision is kept,
/// five minutes at least; a store that nobody else has open keeps it for as long as this is there.
pub struct State {
    shared: Arc<Shared>,
    head: Head,
    keys: u64,
    // Found and not yet read, with the table that has their rows.
    found: VecDeque<(Key, u64)>,
    rows: Option<Arc<Rows>>,
    // Where the next walk begins; `None` behind the last key.
    next: Option<Option<Key>>,
    // Of a store that only this has open. They keep it open, and do nothing.
    _owned: Option<(Writer, Option<File>)>,
}

impl State {
    /// The state of the store in `dir`, which no process has open. Nothing is changed in it but what a crash
    /// had left unfinished.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::Absent`] when there is none, and none is made.
    pub fn open(dir: &Path) -> Result<State, OpenError> {
        if !open::is_there(dir)? {
            return Err(OpenError::Absent { dir: dir.to_path_buf() });
        }
        let options = Options::default();
        let Opened { writer, lock, .. } = open::open_dir(dir, &options)?;
        let mut state = State::of(writer.shared.clone(), &options.clock);
        state._owned = Some((writer, lock));
        Ok(state)
    }

    /// What is visible now.
    pub(crate) fn of(shared: Arc<Shared>, clock: &Clock) -> State {
        let head = Head { revision: Revision::from_log(shared.visible()), taken_ms: clock.unix_ms() };
        let keys = shared.view().index.live();
        let (found, next) = (VecDeque::new(), Some(None));
        State { shared, head, keys, found, rows: None, next, _owned: None }
    }

    pub fn head(&self) -> Head {
        self.head
    }

    /// About how many keys the state has: those of the current state.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The next entries, about [`SNAPSHOT_BLOCK_BYTES`] of them; none behind the last. Blocks for reads of
    /// the disk.
    ///
    /// # Errors
    /// [`ReadError::Compacted`] when reading took longer than history is kept; [`ReadError::Failed`] names
    /// the key whose value is damaged.
    pub fn page(&mut self) -> Result<Vec<Entry>, ReadError> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        while bytes < SNAPSHOT_BLOCK_BYTES {
            let (Some((key, revision)), Some(rows)) = (self.found.pop_front(), &self.rows) else {
                if !self.find()? {
                    break;
                }
                continue;
            };
            let (value, expires_ms) = shared::expiring(rows, revision, &key)?;
            bytes += key.as_str().len() + value.len();
            page.push(Entry { key, revision: Revision::from_log(revision), expires_ms, value });
        }
        Ok(page)
    }

    /// Finds more keys; `false`: there are no more.
    fn find(&mut self) -> Result<bool, ReadError> {
        let Some(after) = self.next.take() else {
            self.rows = None;
            return Ok(false);
        };
        let walked = self.shared.walk("", after.as_ref(), INDEX_KEYS_A_HOLD, Some(self.head.revision))?;
        self.rows = walked.rows;
        self.found = walked.items.into();
        let last = self.found.back().map(|(key, _)| key.clone());
        self.next = (walked.more && last.is_some()).then_some(last);
        Ok(true)
    }
}
