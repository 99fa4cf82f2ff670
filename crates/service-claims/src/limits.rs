//! What looking at all claims may take at a time.

/// Services read without giving way to others.
pub const REPAIR_BATCH: usize = 256;
