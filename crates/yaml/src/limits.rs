//! What reading YAML may take.

/// Nodes that one document may expand to through its aliases, and how deep it may nest. More is refused.
pub const NODES_MAX: usize = 200_000;
pub const DEPTH_MAX: usize = 128;

/// JSON that a document may become. A body of a request, of at most 3 MiB, at most doubles when it is written
/// out in full, apart from control characters.
pub const JSON_BYTES_MAX: usize = 12 << 20;

/// What is told of keys that a mapping has more than once, about: an alias repeats all that is wrong with
/// what it stands for. What comes after is not told.
pub const REPEATED_BYTES_MAX: usize = 64 << 10;
