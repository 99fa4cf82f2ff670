//! How full the process's memory is, and who gives way.
//!
//! In: a limit, and now and then a reading of what is used. Out: the limits of the [`Rooms`], and at each
//! level what gives way: first what is made anew for nobody's loss, then readers and recent snapshots, then
//! the windows of events; never the tree. Every change of level is logged. Without a limit nothing of this
//! happens.
//!
//! Owner: one task; what it decided is read from atomics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use forebay_api::{Caches, Relief, Relieved};
use forebay_apimachinery::{Reason, Status};
use forebay_pieces::{EventBlocks, SharedLists};
use forebay_rt::{Clock, Duration, Instant};
use forebay_transport::limits::CONNECTION_BYTES;
use forebay_transport::{Connections, StalledReaders};

use crate::config::Memory as Config;
use crate::limits::{
    CONNECTIONS_MAX, CONNECTIONS_MIN, CONNECTIONS_REST_BYTES, MEMORY_FALL_PERCENT, MEMORY_LOG_PERIOD,
    MEMORY_PERCENT, MEMORY_PERIOD, MEMORY_RELIEF_PERIOD, MEMORY_ROOM_PERCENT, NO_MEMORY_RETRY_SECONDS,
    READER_AGE_WHEN_SHORT, STALL_WAIT_WHEN_FULL, WINDOWS_SHARE,
};
use crate::rooms::Rooms;

/// How short memory is, and so who gives way. In order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    #[default]
    Calm,
    /// Protobuf messages, inflated blocks, blocks as events, what lists share and versions that webhooks made
    /// and nobody reads are dropped, and the allocator gives back what is free.
    Caches,
    /// Half of the connections of strangers end. Recent snapshots are forgotten, and readers that hold an old
    /// one are reset, the oldest first. What is expensive goes one at a time.
    Readers,
    /// Windows of events shrink, and versions that webhooks made go though they are read. What is expensive
    /// is refused, and so are creates for as long as that does not help.
    Windows,
}

impl Level {
    pub const ALL: [Level; 4] = [Level::Calm, Level::Caches, Level::Readers, Level::Windows];

    pub fn name(self) -> &'static str {
        match self {
            Level::Calm => "calm",
            Level::Caches => "caches",
            Level::Readers => "readers",
            Level::Windows => "windows",
        }
    }

    /// The level at `used` of `limit` bytes, if it was this one before: it falls a little later than it
    /// rises.
    fn next(self, used: u64, limit: u64) -> Level {
        let reached = |less: u64| {
            let at = |percent: u64| used >= limit / 100 * (percent - less);
            Level::ALL[MEMORY_PERCENT.iter().filter(|percent| at(**percent)).count()]
        };
        self.clamp(reached(0), reached(MEMORY_FALL_PERCENT))
    }
}

/// What the watcher of memory has found. Cheap to clone.
#[derive(Clone)]
pub struct Memory(Arc<State>);

struct State {
    config: Config,
    level: AtomicU8,
    used: AtomicU64,
    // Whether nothing helps any more.
    exhausted: AtomicBool,
    // How often each level was entered.
    entered: [AtomicU64; 4],
    counts: Counts,
}

/// What gave way, since the start.
#[derive(Default)]
pub struct Counts {
    pub readers_reset: AtomicU64,
    pub windows_shrunk: AtomicU64,
    pub views_let_go: AtomicU64,
    pub creates_refused: AtomicU64,
}

/// Who reads much, what is made for them, and who is connected.
type Readers = (StalledReaders, (EventBlocks, SharedLists), Connections);

/// What the task remembers between two looks.
struct Watch {
    level: Level,
    // When things were last made to give way.
    relieved_at: Option<Instant>,
    logged_at: Option<Instant>,
    since: Instant,
}

impl Memory {
    pub fn new(config: Config) -> Memory {
        Memory(Arc::new(State {
            config,
            level: AtomicU8::new(0),
            used: AtomicU64::new(0),
            exhausted: AtomicBool::new(false),
            entered: Default::default(),
            counts: Counts::default(),
        }))
    }

    /// Bytes that may be used; `None` is no limit.
    pub fn limit(&self) -> Option<u64> {
        self.0.config.limit
    }

    /// Connections that the limit allows.
    pub fn connections_max(&self) -> usize {
        let fit = |limit: u64| limit.saturating_sub(CONNECTIONS_REST_BYTES) / CONNECTION_BYTES;
        self.limit().map_or(CONNECTIONS_MAX, |limit| {
            usize::try_from(fit(limit)).unwrap_or(usize::MAX).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
        })
    }

    /// What was used when it was last looked at.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    pub fn level(&self) -> Level {
        Level::ALL[usize::from(self.0.level.load(Ordering::Relaxed)).min(Level::ALL.len() - 1)]
    }

    /// Whether everything has given way and memory is short all the same: then the data itself does not fit.
    pub fn is_exhausted(&self) -> bool {
        self.0.exhausted.load(Ordering::Relaxed)
    }

    /// How often `level` was entered.
    pub fn entered(&self, level: Level) -> u64 {
        self.0.entered[level as usize].load(Ordering::Relaxed)
    }

    /// What a create is told while objects alone take most of what there is.
    pub fn no_more_objects(&self) -> Status {
        self.0.counts.creates_refused.fetch_add(1, Ordering::Relaxed);
        let message = "the server has no memory left for more objects, see --memory-limit";
        Status::new(Reason::TooManyRequests, message).retry_after(NO_MEMORY_RETRY_SECONDS)
    }

    pub fn counts(&self) -> &Counts {
        &self.0.counts
    }

    /// Looks at it for ever; without a limit only at who waits for readers that have stalled.
    pub async fn watch(self, clock: Clock, caches: Arc<dyn Caches>, rooms: Rooms, readers: Readers) {
        let mut watch = Watch::new(clock.now());
        loop {
            if rooms.is_waited_for() {
                readers.0.let_go_of(STALL_WAIT_WHEN_FULL, usize::MAX);
            }
            if let (Some(limit), Some(used)) = (self.0.config.limit, (self.0.config.read)()) {
                caches.keep_messages(messages_share(used, limit));
                let due = self.look(used, limit, &mut watch, &rooms, clock.now());
                readers.1.0.keep(self.level() >= Level::Caches);
                if let Some(level) = due {
                    self.relieve(level, limit, &*caches, (&readers.0, &readers.2));
                }
            }
            readers.1.1.let_go(self.level() >= Level::Caches);
            clock.sleep(MEMORY_PERIOD).await;
        }
    }

    /// Takes in what is used. The level at which things are to give way now.
    fn look(&self, used: u64, limit: u64, watch: &mut Watch, rooms: &Rooms, now: Instant) -> Option<Level> {
        self.0.used.store(used, Ordering::Relaxed);
        let level = watch.level.next(used, limit);
        rooms.set(share_out(level, used, limit));
        self.turn_to(level, used, limit, watch, now);
        watch.is_due(now).then_some(level)
    }

    fn turn_to(&self, level: Level, used: u64, limit: u64, watch: &mut Watch, now: Instant) {
        let exhausted = level == Level::Windows && now.duration_since(watch.since) >= EXHAUSTED_AFTER;
        self.0.exhausted.store(exhausted && watch.level == level, Ordering::Relaxed);
        if level == watch.level {
            return;
        }
        let rises = level > watch.level;
        (watch.level, watch.since) = (level, now);
        if rises {
            // What gives way is to do so now.
            watch.relieved_at = None;
        }
        self.0.level.store(level as u8, Ordering::Relaxed);
        self.0.entered[level as usize].fetch_add(1, Ordering::Relaxed);
        if watch.logged_at.is_none_or(|at| now.duration_since(at) >= MEMORY_LOG_PERIOD) {
            watch.logged_at = Some(now);
            let (used_mib, limit_mib) = (used >> 20, limit >> 20);
            tracing::warn!(used_mib, limit_mib, gives_way = level.name(), "memory is short, or no longer so");
        }
    }

    /// Lets give way whatever does so at `level`.
    fn relieve(
        &self,
        level: Level,
        limit: u64,
        caches: &dyn Caches,
        (stalled_readers, seats): (&StalledReaders, &Connections),
    ) {
        let counts = self.counts();
        let windows = (limit / WINDOWS_SHARE) as usize;
        if level >= Level::Readers {
            seats.let_strangers_go();
            let reset = stalled_readers.let_go_of_oldest(READER_AGE_WHEN_SHORT);
            counts.readers_reset.fetch_add(reset as u64, Ordering::Relaxed);
        }
        let Relieved { windows: shrunk, views } = caches.relieve(Relief {
            made: level >= Level::Caches,
            snapshots: level >= Level::Readers,
            windows_bytes_max: windows,
            windows: level >= Level::Windows,
        });
        counts.views_let_go.fetch_add(views as u64, Ordering::Relaxed);
        if shrunk > 0 {
            counts.windows_shrunk.fetch_add(shrunk as u64, Ordering::Relaxed);
            tracing::warn!(
                windows = shrunk,
                "memory is short: windows of events were shrunk, clients that come back late list again"
            );
        }
    }
}

/// So long at the last level: what could give way has done so.
const EXHAUSTED_AFTER: Duration = Duration::from_secs(3);

impl Watch {
    fn new(now: Instant) -> Watch {
        Watch { level: Level::Calm, relieved_at: None, logged_at: None, since: now }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.relieved_at.is_none_or(|at| now.duration_since(at) >= MEMORY_RELIEF_PERIOD);
        if is_due {
            self.relieved_at = Some(now);
        }
        is_due
    }
}

/// What requests may take of what is left: `None` for what is expensive when nothing is.
///
/// What they hold already is counted twice, as held and as used: how much of it is used, nobody knows.
fn share_out(level: Level, used: u64, limit: u64) -> Option<usize> {
    let room = (limit / 100 * MEMORY_ROOM_PERCENT).saturating_sub(used);
    (level < Level::Windows).then_some(room as usize)
}

/// What may be kept of messages until the next look: so much as does not make memory short.
fn messages_share(used: u64, limit: u64) -> u64 {
    (limit / 100 * (MEMORY_PERCENT[0] - MEMORY_FALL_PERCENT)).saturating_sub(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_kept_up_to_where_memory_would_be_short() {
        let limit = 1000 << 20;
        let calm = limit / 100 * (MEMORY_PERCENT[0] - MEMORY_FALL_PERCENT);
        assert_eq!(Level::Caches.next(calm - 1, limit), Level::Calm);
        for (used, want) in [(0, calm), (calm - 5, 5), (calm, 0), (limit, 0), (2 * limit, 0)] {
            assert_eq!(messages_share(used, limit), want);
        }
    }

    #[test]
    fn levels_rise_at_once_and_fall_a_little_later() {
        let mut level = Level::Calm;
        let mut seen = Vec::new();
        for used in [0, 79, 80, 78, 76, 89, 96, 94, 91, 88, 87, 86, 76, 100, 10] {
            level = level.next(used * 10, 1000);
            seen.push((used, level));
        }
        use Level::{Caches, Calm, Readers, Windows};
        let want = [
            (0, Calm),
            (79, Calm),
            (80, Caches),
            (78, Caches),
            (76, Calm),
            (89, Caches),
            (96, Windows),
            (94, Windows),
            (91, Readers),
            (88, Readers),
            (87, Readers),
            (86, Caches),
            (76, Calm),
            (100, Windows),
            (10, Calm),
        ];
        assert_eq!(seen, want);
    }
    #[tokio::test(start_paused = true)]
    async fn things_give_way_at_once_when_it_gets_worse_and_then_once_in_a_while() {
        let (memory, clock) = (Memory::new(Config::UNLIMITED), Clock::system());
        let (rooms, mut watch) = (Rooms::new(clock.clone()), Watch::new(clock.now()));
        let limit = 1000 << 20;
        let mut look =
            |percent: u64| memory.look((percent * 10) << 20, limit, &mut watch, &rooms, clock.now());
        assert_eq!(look(10), Some(Level::Calm));
        assert_eq!((look(85), look(85)), (Some(Level::Caches), None));
        assert_eq!((look(92), look(92)), (Some(Level::Readers), None));
        clock.sleep(MEMORY_RELIEF_PERIOD).await;
        assert_eq!((look(92), look(92)), (Some(Level::Readers), None));
        assert_eq!((look(99), look(20)), (Some(Level::Windows), None));
        clock.sleep(MEMORY_RELIEF_PERIOD).await;
        assert_eq!(look(20), Some(Level::Calm));
        assert_eq!(Level::ALL.map(|level| memory.entered(level)), [1, 1, 1, 1]);
        assert_eq!(memory.level(), Level::Calm);
    }

    #[tokio::test(start_paused = true)]
    async fn rooms_follow_what_is_left_and_creates_are_refused_when_nothing_helps() {
        let (memory, clock) = (Memory::new(Config::UNLIMITED), Clock::system());
        let (rooms, mut watch) = (Rooms::new(clock.clone()), Watch::new(clock.now()));
        let mut look = |used_mib: u64| {
            memory.look(used_mib << 20, 200 << 20, &mut watch, &rooms, clock.now());
            let [_, _, _, bodies, lists, writes] = rooms.totals().map(|(_, totals)| totals.limit >> 20);
            (bodies, lists, writes, memory.is_exhausted())
        };
        assert_eq!(look(100), (30, 20, 10, false));
        assert_eq!(look(172), (3, 2, 4, false));
        assert_eq!(look(195), (0, 0, 4, false));
        clock.sleep(EXHAUSTED_AFTER).await;
        assert_eq!(look(195), (0, 0, 4, true));
        assert!(rooms.lists.try_take(1).is_none() && rooms.writes.try_take(1).is_some());
        assert_eq!(look(170), (3, 2, 4, false));
        assert!(rooms.lists.try_take(1).is_some());
    }
}
