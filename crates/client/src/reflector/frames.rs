//! What comes in while all is well: heads, events, bookmarks, items and pages.

use forebay_apimachinery::Revision;
use forebay_rt::Duration;

use super::effect::{Effect, Report, Way};
use super::request::Kind;
use super::rules::Seen;
use super::{ListReason, Reflector, WatchLists};
use crate::limits::{BOOKMARK_INTERVAL_MAX, BOOKMARK_INTERVAL_MIN};

impl Reflector {
    pub(super) fn opened(&mut self, now: Duration) {
        let Some(request) = self.under_way.as_mut().filter(|request| request.opened_at.is_none()) else {
            return;
        };
        request.opened(now);
        let kind = request.kind;
        self.health.last_heard_at = Some(now);
        if self.health.failing.is_some_and(|failing| failing.why.ends_with_an_answer()) {
            self.recovered();
        }
        if let (Kind::WatchList | Kind::Page { first: true }, Some(whole)) = (kind, &self.whole) {
            let may_go_back = whole.why == ListReason::Restored;
            self.effects.push(Effect::BeginState { why: whole.why, may_go_back });
        }
    }

    pub(super) fn past_state(&mut self, now: Duration) {
        if let Some(request) = self.under_way.as_mut().filter(|request| request.kind == Kind::WatchList) {
            request.past_state_at.get_or_insert(now);
        }
    }

    pub(super) fn half_frame(&mut self, now: Duration) {
        if let Some(request) = &mut self.under_way {
            request.half_at = Some(now);
        }
    }

    pub(super) fn event(&mut self, revision: Revision, now: Duration) {
        match self.heard(now) {
            Some(Kind::Watch) if self.held.is_some_and(|held| revision < held) => {
                self.effects.push(Effect::Skip);
                self.cut(&Seen::WentBack, now);
            }
            Some(Kind::Watch) => {
                self.effects.push(Effect::Take);
                self.advance(revision);
            }
            // Of the state each object has its own revision, in no order.
            Some(Kind::WatchList) => self.effects.push(Effect::Take),
            Some(Kind::Page { .. } | Kind::Probe) | None => self.effects.push(Effect::Skip),
        }
    }

    pub(super) fn bookmark(&mut self, revision: Revision, ends_state: bool, now: Duration) {
        match self.heard(now) {
            Some(Kind::Watch) if self.held.is_some_and(|held| revision < held) => {
                self.cut(&Seen::WentBack, now);
            }
            Some(Kind::Watch) => {
                if !ends_state {
                    self.learn_interval(now);
                }
                if self.held < Some(revision) {
                    self.effects.push(Effect::Progress(revision));
                }
                self.advance(revision);
            }
            Some(Kind::WatchList) if !ends_state => self.cut(&Seen::PlainBookmark, now),
            Some(Kind::WatchList) if self.refuses(revision) => self.cut(&Seen::Stale, now),
            Some(Kind::WatchList) => {
                self.watch_lists = WatchLists::Tried;
                if let Some(request) = &mut self.under_way {
                    request.kind = Kind::Watch;
                }
                self.end_state(revision, now);
            }
            Some(Kind::Page { .. } | Kind::Probe) | None => {}
        }
    }

    pub(super) fn page_began(&mut self, revision: Revision, now: Duration) {
        if let Some(Kind::Page { .. }) = self.heard(now)
            && self.refuses(revision)
        {
            self.cut(&Seen::Stale, now);
        }
    }

    pub(super) fn item(&mut self, now: Duration) {
        let is_of_the_state = matches!(self.heard(now), Some(Kind::Page { .. }));
        self.effects.push(if is_of_the_state { Effect::Take } else { Effect::Skip });
    }

    pub(super) fn page(&mut self, revision: Revision, next: Option<String>, now: Duration) {
        match self.heard(now) {
            Some(Kind::Page { .. }) if self.refuses(revision) => self.over(&Seen::Stale, now),
            Some(Kind::Page { .. }) => self.page_of_the_state(revision, next, now),
            Some(Kind::Probe) => self.probed(revision, now),
            Some(Kind::Watch | Kind::WatchList) | None => {}
        }
    }

    fn page_of_the_state(&mut self, revision: Revision, next: Option<String>, now: Duration) {
        let Some(whole) = &mut self.whole else { return };
        match whole.page(revision, next) {
            Err(()) => self.over(&Seen::Garbled, now),
            Ok(last) => {
                self.under_way = None;
                // A page is progress, of requests and not of lists: one in each timeout is enough to come to
                // an end.
                self.asks.reset();
                self.known = None;
                self.recovered();
                if let Some(revision) = last {
                    self.end_state(revision, now);
                }
                self.ask(now);
            }
        }
    }

    /// The newest revision is known: below ours it is of a store that was restored. Otherwise the server only
    /// lagged, or there was nothing to be heard.
    fn probed(&mut self, newest: Revision, now: Duration) {
        self.under_way = None;
        self.too_large = 0;
        self.silent_watches = 0;
        if let Some(held) = self.held {
            self.report(Report::Probed { held, newest });
            if newest < held {
                self.plan(ListReason::Restored);
            }
        }
        self.ask(now);
    }

    /// Whether a state of `revision` is too old, which is told.
    fn refuses(&mut self, revision: Revision) -> bool {
        let Some(whole) = self.whole.as_ref().filter(|whole| whole.is_stale(revision)) else { return false };
        if let Some(held) = whole.floor {
            self.report(Report::StaleState { held, offered: revision });
        }
        true
    }

    fn end_state(&mut self, revision: Revision, now: Duration) {
        let Some(whole) = self.whole.take() else { return };
        self.effects.push(Effect::EndState { revision });
        if let Some(from) = self.held.filter(|held| revision < *held) {
            self.report(Report::WentBack { from, to: revision });
        }
        let way = if self.under_way.is_some() { Way::WatchList } else { Way::Pages };
        self.report(Report::Listed { why: whole.why, way, revision });
        self.held = Some(revision);
        self.too_large = 0;
        self.silent_watches = 0;
        self.asks.reset();
        self.health.synced_since.get_or_insert(now);
        self.recovered();
    }

    /// An event or bookmark of `revision` came over the watch.
    fn advance(&mut self, revision: Revision) {
        if self.held < Some(revision) {
            self.held = Some(revision);
            self.asks.reset();
            self.lists.reset();
            self.too_large = 0;
            self.known = None;
        }
        self.recovered();
    }

    /// Something came over the request under way, which is returned.
    fn heard(&mut self, now: Duration) -> Option<Kind> {
        self.opened(now);
        let request = self.under_way.as_mut()?;
        request.heard(now);
        self.health.last_heard_at = Some(now);
        if request.kind == Kind::Watch {
            self.silent_watches = 0;
        }
        Some(request.kind)
    }

    fn learn_interval(&mut self, now: Duration) {
        let Some(request) = &mut self.under_way else { return };
        let gap = request.bookmark_at.map_or(Duration::ZERO, |before| now.saturating_sub(before));
        request.bookmark_at = Some(now);
        // The first of a watch says only that there are some.
        if gap > Duration::ZERO || self.bookmarks.is_none() {
            self.bookmarks = Some(gap.clamp(BOOKMARK_INTERVAL_MIN, BOOKMARK_INTERVAL_MAX));
        }
    }
}
