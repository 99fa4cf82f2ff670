//! The request that is under way: when it was heard from, and when it has to be again.

use forebay_rt::Duration;

use super::rules::Place;
use crate::limits::{ANSWER_WAIT_MAX, END_BOOKMARK_WAIT, HALF_FRAME_WAIT, STANDS_AFTER, WATCH_OVERTIME};

/// What was asked for. A watch-list becomes a watch with its end bookmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Watch,
    WatchList,
    Page {
        first: bool,
    },
    /// The newest revision.
    Probe,
}

/// One request, from its `Ask` to its end.
#[derive(Debug)]
pub(super) struct Request {
    pub kind: Kind,
    asked_at: Duration,
    /// When the head of its answer came.
    pub opened_at: Option<Duration>,
    heard_at: Duration,
    /// Whether anything came after the head.
    pub has_frames: bool,
    /// When the last bookmark came, but for the one that ends a state, which comes also where there are no
    /// others.
    pub bookmark_at: Option<Duration>,
    /// When what came over a watch-list was first no longer its state.
    pub past_state_at: Option<Duration>,
    /// When the last bytes came of a frame that is not whole yet.
    pub half_at: Option<Duration>,
    /// The timeout that the request asked for.
    timeout: Duration,
}

impl Request {
    pub fn new(kind: Kind, timeout_seconds: u32, now: Duration) -> Request {
        Request {
            kind,
            asked_at: now,
            opened_at: None,
            heard_at: now,
            has_frames: false,
            bookmark_at: None,
            past_state_at: None,
            half_at: None,
            timeout: Duration::from_secs(timeout_seconds.into()),
        }
    }

    pub fn place(&self) -> Place {
        let open = self.opened_at.is_some();
        match self.kind {
            Kind::Watch => Place::Watch { open },
            Kind::WatchList => Place::WatchList { open },
            Kind::Page { first } => Place::Page { open, first },
            Kind::Probe => Place::Probe,
        }
    }

    /// A frame came, or an item.
    pub fn heard(&mut self, now: Duration) {
        self.heard_at = now;
        self.half_at = None;
        self.has_frames = true;
    }

    pub fn opened(&mut self, now: Duration) {
        self.opened_at = Some(now);
        self.heard_at = now;
    }

    /// When it counts as dead unless it is heard from.
    ///
    /// - `bookmarks`: the time between bookmarks, where there are some.
    pub fn dead_at(&self, bookmarks: Option<Duration>) -> Duration {
        let whole = self.whole_frame_due(bookmarks);
        self.half_frame_due().map_or(whole, |half| half.min(whole))
    }

    /// Whether it is dead because a frame that had begun does not go on.
    pub fn stopped_within_frame(&self, now: Duration) -> bool {
        self.half_frame_due().is_some_and(|due| due <= now)
    }

    /// When the frame that has begun has to have gone on.
    fn half_frame_due(&self) -> Option<Duration> {
        Some(self.half_at? + HALF_FRAME_WAIT)
    }

    fn whole_frame_due(&self, bookmarks: Option<Duration>) -> Duration {
        match (self.opened_at, self.kind) {
            (None, _) => self.asked_at + ANSWER_WAIT_MAX,
            (_, Kind::Page { .. } | Kind::Probe) => self.heard_at + ANSWER_WAIT_MAX,
            (_, Kind::WatchList) => self.past_state_at.unwrap_or(self.heard_at) + END_BOOKMARK_WAIT,
            (Some(opened), Kind::Watch) => match bookmarks {
                Some(interval) => self.heard_at + 2 * interval,
                // Nothing is known but the server's promise to end it.
                None => (opened + self.timeout).max(self.heard_at) + WATCH_OVERTIME,
            },
        }
    }

    /// When it is a watch that stands.
    pub fn stands_at(&self) -> Option<Duration> {
        let opened = self.opened_at.filter(|_| self.kind == Kind::Watch)?;
        Some(opened + STANDS_AFTER)
    }

    /// How long the request has been open.
    pub fn age(&self, now: Duration) -> Duration {
        self.opened_at.map_or(Duration::ZERO, |opened| now.saturating_sub(opened))
    }
}
