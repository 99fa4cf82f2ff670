//! What the state is held in that the verbs answer from, as whoever watches over the process's memory sees
//! it.

pub use forebay_watchcache::Relief;

/// See the module's doc.
pub trait Caches: Send + Sync {
    /// Resources that cannot be read yet.
    fn unready(&self) -> usize;

    /// Sets what all caches together may keep of protobuf messages from now on, besides what they do: the
    /// messages of a whole state are two thirds of its JSON, and are made faster than memory can give way.
    fn keep_messages(&self, bytes: u64);

    /// Lets every cache let go of what `relief` says.
    fn relieve(&self, relief: Relief) -> Relieved;
}

/// What gave way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relieved {
    /// Windows of events that were made to forget something.
    pub windows: usize,
    /// Versions whose objects a webhook had made, and that are not kept any more.
    pub views: usize,
}
