//! Every limit of this crate, with its arithmetic. At a limit a pattern is refused; what is kept is let
//! go of.

/// Bytes that a compiled pattern may have: the least of these that it fits in is what it counts as. The
/// last are as many as a few thousand counted repetitions of an ASCII class need; what is larger is refused
/// ("expression too large"): that of a schema or of an expression when it is written.
pub const PATTERN_SIZES: [usize; 5] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// Bytes of a pattern as it is written. To read one takes some hundred times as many, once; compiled, a
/// letter takes twenty or more, so that a longer one would hardly fit. It is refused ("expression too
/// large").
pub const PATTERN_TEXT_BYTES_MAX: usize = 128 << 10;

/// Bytes that are made to read a pattern, for each byte of it.
pub const READ_BYTES: usize = 64;

/// Bytes of the lazily built automaton that one pattern may keep per thread and direction.
pub const PATTERN_CACHE_BYTES_MAX: usize = 64 << 10;

/// Bytes of compiled patterns that are kept for the whole process: some two hundred of the usual with all
/// that matching makes of them. Those that were used longest ago are let go of, and compiled again when they
/// are asked.
pub const PATTERNS_KEPT_BYTES_MAX: usize = 64 << 20;

/// Code points of the ranges of a pattern's classes together: sixty-four times all that there are. A pattern
/// with more is refused ("expression too large").
pub const POINTS_MAX: u64 = 64 * 0x11_0000;

/// Code points that a class by a property of Unicode, `\pL`, is taken for: a pattern has a thousand at most.
pub const PROPERTY_POINTS: u64 = 1 << 16;

/// Nesting of groups in a pattern.
pub const PATTERN_DEPTH_MAX: usize = 250;

/// Largest count in a repetition such as `a{1000}`, and of repetitions in one another; Go's limit.
pub const REPEAT_MAX: u32 = 1000;
