//! The bounds of a merge.

/// Levels that a field set may have: those of a JSON body, which every walk here recurses over.
pub use forebay_apimachinery::json::DEPTH_MAX;

/// Bytes of faults (path and message) that one walk keeps: some 600 usual ones. What comes after is counted,
/// not kept, so that an object with a fault in every field costs what its fields cost.
pub const FAULT_BYTES_MAX: usize = 64 << 10;

/// Bytes of a value that a fault shows; a longer one ends with `...`.
pub const SHOWN_BYTES_MAX: usize = 4 << 10;
const _: () = assert!(SHOWN_BYTES_MAX < FAULT_BYTES_MAX);

/// Bytes that an item of a list takes while lists are compared or merged, besides itself: its element with
/// its keys, 80 B or so, its place in a list that is sorted, half of it again for sorting, and its number.
pub const ITEM_BYTES: usize = 192;
