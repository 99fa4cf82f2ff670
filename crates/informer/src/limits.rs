//! Every limit of this crate, and what happens there.

use forebay_rt::Duration;

/// Values that are given to the cache at a time, in bytes; one object is always given. What is more waits in
/// the connection.
pub(crate) const TOLD_BYTES_MAX: usize = 256 << 10;

/// Bytes of a refusal that are read; its `Status` is in them or it counts as having none.
pub(crate) const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// Room that is kept for turning a message into JSON; what a longer object needed goes back to the allocator.
pub(crate) const SCRATCH_BYTES_KEPT: usize = 64 << 10;

/// How long the body of a refusal may take; then its code alone counts.
pub(crate) const REFUSAL_WAIT_MAX: Duration = Duration::from_secs(5);

/// What all caches of a factory may hold in plain form before it is at rest. Who takes in more waits for
/// room.
pub const LOOSE_BYTES_MAX: usize = 8 << 20;

/// Bytes of replaced objects that the window of one collection holds for handlers that are behind. One that
/// is further behind is told the sum of what it missed.
pub const WINDOW_BYTES_MAX: usize = 2 << 20;

/// Of an informer's `max_bytes` its window may hold one part in so many, where that is less than it may hold
/// otherwise: the rest is for what there is. At `max_bytes` the informer does what its `AtLimit` says. What
/// it holds then is at most that, and what one page of a cache that fills adds, or a batch of changes: they
/// come to rest before they count.
pub const WINDOW_PART: usize = 4;

/// Where blocks are put into a file, so much of `max_bytes` is free afterwards: one part in so many. Less
/// would be put there more often.
pub const SPILL_PART: usize = 8;

/// Requests a second, and at once, of all informers of a factory: client-go's defaults for controllers,
/// several times over, since a watch is asked for once in five minutes.
pub const QPS: f64 = 50.0;
pub const BURST: u32 = 100;

/// Once a server that could not be reached answers one collection of a factory, the others ask within this
/// time, one after the other.
pub(crate) const WOKEN_SPREAD: Duration = Duration::from_secs(3);

/// How long a read waits for a revision unless it says otherwise.
pub const READ_WAIT: Duration = Duration::from_secs(10);

/// Changes that a handler is given before others of the same thread have their turn.
pub(crate) const HANDLED_AT_ONCE: usize = 256;

/// Writes of a program that are not in sight yet and that its reads wait for: 4,096 x about 150 B. Beyond it
/// the next is not waited for.
pub(crate) const WRITES_MAX: usize = 4096;

/// Batches of a saved state that are read ahead of the cache, each of [`TOLD_BYTES_MAX`].
pub(crate) const BATCHES_LOADED_MAX: usize = 2;

/// How often a state that is to be kept on disk is written there, if it has changed; and once more when the
/// factory is stopped.
pub const SAVE_PERIOD: Duration = Duration::from_secs(5 * 60);

/// Letters of a collection's path in the name of its file.
pub(crate) const FILE_NAME_MAX: usize = 80;

/// What is kept by itself is saved with its neighbours, so many bytes or objects together: about as blocks
/// are.
pub(crate) const RECORD_PLAIN_BYTES: usize = 64 << 10;
pub(crate) const RECORD_OBJECTS_MAX: usize = 64;

/// A record of a saved state that is longer, or whose text is, was not written here.
pub(crate) const RECORD_BYTES_MAX: usize = forebay_client::limits::OBJECT_BYTES_MAX + (1 << 20);
