//! The bounds of who is remembered.

/// Managers that wrote by updates and are kept apart. The oldest beyond are one, by version.
pub const UPDATE_MANAGERS_MAX: usize = 10;

/// Bytes of all annotations, with their names; what was last applied is not noted beyond.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// How many times as long as it is encoded a set of fields is in the store, at most: of a text in an element
/// that is all escapes each byte takes seven there.
pub const STORED_TIMES: usize = 8;

/// Levels that a field set may have: an object nests [`FIELDS_BELOW`] levels more with it, and must be read
/// again.
pub const FIELDS_DEPTH_MAX: usize = forebay_apimachinery::json::DEPTH_MAX - FIELDS_BELOW;

/// `metadata`, `managedFields`, the entry, `fieldsV1`.
const FIELDS_BELOW: usize = 4;
