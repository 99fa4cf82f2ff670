//! What documents may take, and what happens there.

/// Compressed bytes of documents that are kept. All built-in ones are about 400 KiB, one CRD's some KiB;
/// beyond this the one that was asked for longest ago goes, and is made again when it is asked for.
pub const KEPT_BYTES_MAX: usize = 4 << 20;

/// What inflating a document takes for a client that does not take gzip: a window, what knows where in it it
/// is, and a piece. It is counted among the answers.
pub const PLAIN_BYTES: usize = 64 << 10;

/// What the document of another server may become as a tree, while it is read, and what is kept of it, which
/// sample-apiserver's takes 60 KiB of. More counts as none.
pub const PART_WEIGHT_MAX: usize = 32 << 20;
pub const PART_BYTES_MAX: usize = 256 << 10;

/// Bytes of all that is told of others: in the order of their groups, what is beyond is left out.
pub const PARTS_BYTES_MAX: usize = 4 << 20;

/// Definitions of one name that differ, and how often it is looked for what refers to such. Beyond it they
/// are told as one of those.
pub const PART_VARIANTS_MAX: usize = 64;
pub const PART_PASSES_MAX: usize = 8;

/// Bytes of a document that wait to be compressed, so that a whole one is never there in the plain.
pub const PIECE_BYTES: usize = 64 << 10;
