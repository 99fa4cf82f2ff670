//! Every bound of this crate, and what happens there.

/// One message that comes, unless its reader takes less: 64 MiB, 40 of the largest values of etcd. A longer
/// one is an error, and ends its stream.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Messages that wait to be sent on one stream: a creation and what is asked behind it.
pub const STREAM_SENDS_MAX: usize = 4;
