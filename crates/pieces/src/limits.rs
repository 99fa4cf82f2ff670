//! What is held of pieces, and what happens there.

use std::time::Duration;

/// Times that an item of a YAML list may become longer than its JSON, beyond a piece: one that its depth
/// makes longer stands on one line.
pub const YAML_GROWTH_MAX: usize = 8;

/// Plain bytes between two deflated blocks that are stored as they are: commas. More are compressed.
pub const STORED_BYTES_MAX: usize = 64;

/// Plain bytes that are compressed in one go, without a window of what came before.
pub const DEFLATE_BYTES: usize = 128 << 10;

/// What is kept of blocks as events, for all watch-lists in gzip together while there are any. 20,000 pods of
/// 8 KB are 17 MiB so; ten readers of them that begin together are up to 4 MiB apart, as much as the socket
/// of one who reads no faster takes.
pub const EVENT_BLOCKS_BYTES_MAX: usize = 8 << 20;

/// With more than this what every reader has passed is not kept for who is yet to begin.
pub const EVENT_BLOCKS_PASSED_BYTES_MAX: usize = 2 << 20;

/// What is kept of pieces of lists that several read, for all lists together: two of 20,000 pods of 8 KB in
/// gzip, or of what readers are apart who read 150 MB as they are. With a limit of memory it is no more than
/// this part of it.
pub const SHARED_LISTS_BYTES_MAX: usize = 32 << 20;
pub const SHARED_LISTS_SHARE: u64 = 16;

/// For so long whoever asks for the same list finds what was made of it, from its first piece on, if there is
/// room. Later ones begin it anew: in a list of a state that has not changed that is once in so long.
pub const SHARED_ANSWER_WAIT: Duration = Duration::from_secs(2);

/// So much of an answer is kept that only one has asked for. Once that one has read more, it goes, and the
/// next to ask within [`SHARED_ANSWER_WAIT`] begins one that is kept: equal lists are made twice, and one by
/// itself fills no memory, of which each page would have to be zeroed.
pub const LONE_BYTES_MAX: usize = 1 << 20;

/// Answers that are found so. Of more, the oldest are still read, and no longer found.
pub const SHARED_ANSWERS_MAX: usize = 128;

const _: () = assert!(EVENT_BLOCKS_PASSED_BYTES_MAX <= EVENT_BLOCKS_BYTES_MAX);
