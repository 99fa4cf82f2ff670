//! Every bound of this crate, and what happens there.

use std::time::Duration;

/// A configuration, which a person writes: a thousand keys are 100 KB. A longer one is refused.
pub const CONFIG_BYTES_MAX: u64 = 4 << 20;

/// Rules, providers and keys of one configuration, all together. More are refused: each value that is read
/// may be tried with each key of its resource.
pub const CONFIG_ENTRIES_MAX: usize = 10_000;

/// An answer of a KMS plugin: upstream lets a ciphertext and a key's name be 1 KiB each, and annotations
/// 32 KiB. A longer one is an error.
pub const KMS_ANSWER_BYTES_MAX: usize = 64 << 10;

/// What may lie in storage beside the data, as upstream has it: beyond it a value is neither written nor
/// read.
pub const KEY_ID_BYTES_MAX: usize = 1 << 10;
pub const ENCRYPTED_DEK_BYTES_MAX: usize = 1 << 10;
pub const ANNOTATIONS_BYTES_MAX: usize = 32 << 10;

/// Data keys that are remembered of each plugin: as many as there were starts of servers since their objects
/// were written, mostly; with what upstream wrote before 1.29, one for each start and change of key. 2^14 x
/// about 700 B = 11 MB. The one that was learned first is forgotten, and asked for again. More than a page of
/// the store has keys, so that all of a page are known at once.
pub const DATA_KEYS_MAX: usize = 1 << 14;

/// Requests to a plugin at a time; more wait.
pub const KMS_CALLS_MAX: usize = 16;

/// For how long a data key that a plugin will not decrypt is not asked for again: twenty thousand objects
/// under it are one request.
pub const REFUSED_HOLD: Duration = Duration::from_secs(10);

/// Such data keys that are remembered; the one that was refused first is forgotten. 2^12 x 100 B.
pub const REFUSED_MAX: usize = 1 << 12;

/// For how long a plugin that does not answer is not asked for the same again: who waits for it tries again
/// soon, and all that wait are told by one request. Shorter than [`FEED_PAUSE`], so that a feed asks.
pub const UNANSWERED_HOLD: Duration = Duration::from_millis(250);

/// How often a plugin is asked how it is, while it is well and while it is not, and for how long what it last
/// encrypted is written with once it is not: as upstream.
pub const STATUS_PERIOD: Duration = Duration::from_secs(60);
pub const STATUS_PERIOD_ILL: Duration = Duration::from_secs(10);
pub const WRITE_KEY_LIFE: Duration = Duration::from_secs(180);

/// For how long what a health check found of a plugin counts: as upstream.
pub const HEALTH_WELL_TTL: Duration = Duration::from_secs(20);
pub const HEALTH_ILL_TTL: Duration = Duration::from_secs(3);

/// How often the file is looked at, which kube-apiserver does once in a minute; and how long a new
/// configuration may take to be well, asked so often.
pub const RELOAD_PERIOD: Duration = Duration::from_secs(10);
pub const RELOAD_HEALTH_PERIOD: Duration = Duration::from_millis(100);
pub const RELOAD_HEALTH_WAIT: Duration = Duration::from_secs(10);

/// Pauses between attempts to reload what could not be: doubled from the first to the second.
pub const RELOAD_PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));

/// Series of one metric; what is beyond is counted in none. Definitions of resources may be made by anybody
/// who may make them: 4,096 x about 150 B.
pub const SERIES_MAX: usize = 1 << 12;

/// Names of keys that metrics tell apart, as upstream; the one that was seen first is told no more.
pub const KEY_IDS_MAX: usize = 100;

/// Changes of a feed that are taken from the store below at a time.
pub const FEED_CHANGES: usize = 512;

/// Values that one thread decrypts at a time.
pub const PART_VALUES: usize = 256;

/// Between two questions to a plugin that does not answer, while a feed waits for it.
pub const FEED_PAUSE: Duration = Duration::from_millis(500);

const _: () = assert!(UNANSWERED_HOLD.as_millis() < FEED_PAUSE.as_millis());
