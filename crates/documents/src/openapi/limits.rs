//! What documents may take, and what happens there.

/// Compressed bytes of documents that are kept. All built-in ones are about 400 KiB, one CRD's some KiB;
/// beyond this the one that was asked for longest ago goes, and is made again when it is asked for.
pub const KEPT_BYTES_MAX: usize = 4 << 20;

/// What inflating a document takes for a client that does not take gzip: a window, what knows where in it it
/// is, and a piece. It is counted among the answers.
pub const PLAIN_BYTES: usize = 64 << 10;

/// Bytes of a document that wait to be compressed, so that a whole one is never there in the plain.
pub const PIECE_BYTES: usize = 64 << 10;
