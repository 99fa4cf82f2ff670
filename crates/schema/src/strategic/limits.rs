//! What a merge may take.

/// Levels of nesting that are merged; the JSON parser in front of us allows 128.
pub const DEPTH_MAX: usize = 160;

/// Walks over object and patch that a merge may take. Each level of nesting takes some three over what is
/// below it, as its lists are matched, ordered and put together; what is built in nests lists no deeper than
/// four times.
pub const WALKS_MAX: usize = 32;
/// An object and a patch that are smaller count as large as this.
pub(super) const SMALL: usize = 1 << 10;
