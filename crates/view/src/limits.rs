//! Every limit of this crate, and what happens there.

/// Objects and arrays inside each other that a field is looked for in; a deeper object is an error. What Go's
/// decoder takes in, so no server of this API has one. It costs nothing, as nesting is counted: it is there
/// so that an answer never depends on it.
pub const DEPTH_MAX: usize = 10_000;
