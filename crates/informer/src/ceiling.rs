//! How much an informer may hold, and what happens there.
//!
//! In: what each of its caches holds. Out: whether that is too much, all together. Owner: shared by the
//! drivers of one informer. Never: does anything about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_backend::Rewrite;
use forebay_client::wire::{ObjectText, Projection, TypeMeta};
use forebay_view::PARTIAL_HEAD;

use crate::change;
use crate::limits;
use crate::progress::Progress;
use crate::spill::{Budget, SpillFile};
use forebay_apimachinery::Revision;

/// What an informer does that would hold more than its `max_bytes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AtLimit {
    /// It lets go of all that it holds and says so: [`Error::OverLimit`](crate::Error::OverLimit) from reads,
    /// [`Why::OverLimit`](crate::Why::OverLimit) in its health, [`Notice::LetGo`](crate::Notice::LetGo) to
    /// handlers, and it counts as not synced. It tries again after a minute at first, and a quarter of an
    /// hour at last.
    Refuse,
    /// It holds no more of an object than its metadata and what there is an index of, from then on and for as
    /// long as it lives: what it holds already is cut down, without a list. Handles [say
    /// so](crate::Handle::is_partial). Where that is too much as well, it does as for [`AtLimit::Refuse`].
    MetadataOnly,
    /// It goes on serving everything: blocks of what is at rest are put into a file, from the first key on,
    /// until an eighth less than `max_bytes` is held. What the file has does not count as held; keys, labels,
    /// indexes, and what does not get smaller by deflating, stay in memory.
    ///
    /// What it costs: who reads an object that is there has its block read from the file and inflated, with
    /// its checksum, some 100 us on the thread that asks, and longer where the disk has to be waited for; the
    /// last eight blocks stay in memory, as those of any informer. Names, labels, indexes and selectors are
    /// looked at without the file.
    ///
    /// Where the file is full, or the disk does not take it, it does as for [`AtLimit::Refuse`]. Where bytes
    /// do not come back as they were written, whoever asks for them gets an error
    /// ([`DecodeError`](forebay_view::DecodeError), [`FieldError::Damaged`](forebay_view::FieldError),
    /// [`Damaged`](forebay_object::Damaged)), and the informer lets go of all that it holds and lists again,
    /// into a new file: reads are [`Error::SpillLost`](crate::Error::SpillLost) meanwhile.
    ///
    /// Unix alone: elsewhere it does as for [`AtLimit::Refuse`].
    Spill {
        /// Where the file is: one that no other user can read, and that has no name. It is made if it is not
        /// there. Not in memory, as `/tmp` often is.
        dir: PathBuf,
        /// How long the files of the informer may be, in bytes: one for each of its namespaces. They do not
        /// shrink before it lets go.
        max_bytes: u64,
    },
}

/// What an informer would hold, and what it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverLimit {
    pub held_bytes: usize,
    pub max_bytes: usize,
}

/// Shared by the caches of an informer.
#[derive(Debug)]
pub(crate) struct Ceiling {
    pub(crate) max_bytes: usize,
    pub(crate) at_limit: AtLimit,
    held: AtomicUsize,
    // Of its files, where it has some.
    budget: Arc<Budget>,
    // Caches that are putting blocks there now.
    spilling: AtomicUsize,
}

/// What one cache holds of it. Dropping it gives that back.
pub(crate) struct Share {
    ceiling: Arc<Ceiling>,
    bytes: usize,
    // Once there was too much.
    file: Option<Arc<SpillFile>>,
    // Blocks are being put there.
    is_spilling: bool,
}

impl Ceiling {
    pub(crate) fn new(max_bytes: usize, at_limit: AtLimit) -> Ceiling {
        let file_bytes = match &at_limit {
            AtLimit::Spill { max_bytes, .. } => *max_bytes,
            AtLimit::Refuse | AtLimit::MetadataOnly => 0,
        };
        let budget = Arc::new(Budget::new(file_bytes));
        Ceiling { max_bytes, at_limit, held: AtomicUsize::new(0), budget, spilling: AtomicUsize::new(0) }
    }

    pub(crate) fn share(self: &Arc<Ceiling>) -> Share {
        Share { ceiling: self.clone(), bytes: 0, file: None, is_spilling: false }
    }
}

impl Share {
    pub(crate) fn at_limit(&self) -> &AtLimit {
        &self.ceiling.at_limit
    }

    /// Where blocks are put, if they are.
    pub(crate) fn file(&self) -> Option<&Arc<SpillFile>> {
        self.file.as_ref()
    }

    /// Blocks are put into the file until so many bytes are held.
    pub(crate) fn begin_spill(
        &mut self,
        dir: &Path,
        over: OverLimit,
        progress: &Arc<Progress>,
    ) -> (Arc<SpillFile>, usize) {
        self.is_spilling = true;
        self.ceiling.spilling.fetch_add(1, Ordering::Relaxed);
        let new = || SpillFile::new(dir, self.ceiling.budget.clone(), progress.clone());
        let file = self.file.get_or_insert_with(new).clone();
        let too_much = over.held_bytes - (over.max_bytes - over.max_bytes / limits::SPILL_PART);
        (file, self.bytes.saturating_sub(too_much))
    }

    /// Nothing more is put there for now. Whether something was.
    pub(crate) fn end_spill(&mut self) -> bool {
        let was_spilling = std::mem::take(&mut self.is_spilling);
        self.ceiling.spilling.fetch_sub(usize::from(was_spilling), Ordering::Relaxed);
        was_spilling
    }

    /// Whether other caches put blocks there, so that there may be less soon.
    pub(crate) fn others_spill(&self) -> bool {
        self.ceiling.spilling.load(Ordering::Relaxed) > usize::from(self.is_spilling)
    }

    /// Nothing is held any more: a file is given back with the last block that is there.
    pub(crate) fn let_go(&mut self) {
        self.file = None;
        self.end_spill();
        let _within = self.set(0);
    }

    /// The cache holds so much now. What is held by all, if it is too much.
    pub(crate) fn set(&mut self, bytes: usize) -> Option<OverLimit> {
        // Wraps where it is less, and comes out right.
        let more = bytes.wrapping_sub(self.bytes);
        let held_bytes = self.ceiling.held.fetch_add(more, Ordering::Relaxed).wrapping_add(more);
        self.bytes = bytes;
        let max_bytes = self.ceiling.max_bytes;
        (bytes > 0 && held_bytes > max_bytes).then_some(OverLimit { held_bytes, max_bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// What makes such values of all that is held.
pub(crate) fn cut_down(projection: Arc<Projection>) -> Rewrite {
    Rewrite::new(move |body| {
        if body.starts_with(PARTIAL_HEAD) {
            return None;
        }
        let object = ObjectText::read(body).ok()?;
        let revision = object.revision().and_then(Revision::new)?;
        let change = change::change(object, revision, &TypeMeta::default(), &projection, change::Of::Part);
        change.ok()?.value.map(Vec::from)
    })
}
