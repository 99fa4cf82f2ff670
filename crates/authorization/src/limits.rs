//! Every limit of this crate, and what happens there.

/// Match conditions of one webhook; upstream's. More are refused.
pub const CONDITIONS_MAX: usize = 64;

/// Answers that are kept of one webhook; upstream's. Beyond it what was asked for longest ago is forgotten.
pub const ANSWERS_MAX: usize = 8_192;

/// Bytes of the questions and reasons that they are kept with, for which upstream has no limit. Beyond it the
/// same.
pub const ANSWERS_BYTES_MAX: usize = 8 << 20;

/// Bytes of one of these questions, which a review may make long: an answer to a longer one is not kept, so
/// that nobody puts out those of others by a few.
pub const ANSWER_KEY_BYTES_MAX: usize = ANSWERS_BYTES_MAX / 128;

/// Bytes of what whoever asks can choose freely, from which on an answer is not kept; upstream's.
pub const CHOSEN_BYTES_MAX: usize = 10_000;

/// Series of each family: names are an administrator's, and a configuration may be read again and again. One
/// more is not counted.
pub const SERIES_MAX: usize = 256;

/// Bytes of an AuthorizationConfiguration; more is refused.
pub const CONFIGURATION_BYTES_MAX: usize = 4 << 20;

/// Bytes of a webhook's reason that are told and kept.
pub const REASON_BYTES_MAX: usize = 16 << 10;
