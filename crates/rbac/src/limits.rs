//! How much is looked at, and how much is told.

/// Steps of the search for what a role would give beyond the rules of somebody: at 20 ns each a sixth of a
/// second. One is a look at a text of theirs, and one more each [`STEP_BYTES`] of the text that is looked
/// for. A rule of some kilobytes may stand for thousands of millions of single rights; one that takes more
/// steps than this is refused as if it were not covered.
pub const COVER_STEPS_MAX: usize = 8 << 20;

/// Bytes of a text that are compared in one step.
pub const STEP_BYTES: usize = 64;

/// Single rights that are missing, and are told of; the rest is said to be more.
pub const UNCOVERED_MAX: usize = 4_096;

/// Bytes of their texts, from which on no further one is looked for: 4,096 of ordinary ones have 200 KB.
pub const UNCOVERED_TEXTS_MAX: usize = 512 << 10;

/// Bytes of the words for them: upstream's for a whole `cluster-admin` take some hundred, for `admin` 10 KB.
pub const UNCOVERED_BYTES_MAX: usize = 64 << 10;

/// Roles that bindings lead to and that are not there, told of in a refusal.
pub const ABSENT_MAX: usize = 32;

/// Bytes of the words for them.
pub const ABSENT_BYTES_MAX: usize = 16 << 10;

/// Bytes of rules that are told to whoever asks what they may; who has more is told that there is more.
pub const TOLD_BYTES_MAX: usize = 4 << 20;

/// Subjects of a binding among which the first that applies is looked for, so that it is named as upstream
/// names it; in a longer binding it is the one that was found.
pub const SUBJECTS_LOOKED_AT_MAX: usize = 16;

/// Texts of a rule that are looked through one by one; where there are more they are searched in order.
pub const TEXTS_LOOKED_THROUGH_MAX: usize = 12;

/// From so many roles of one subject on a decision looks them up part by part of the table: to begin that
/// takes as long as a dozen look-ups.
pub const MANY_GRANTS: usize = 32;

/// Roles of one subject that lie side by side: a binding that comes or goes copies so many of them, and a
/// pointer for each such block.
pub const GRANTS_OF_BLOCK_MAX: usize = 128;
