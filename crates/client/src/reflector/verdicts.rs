//! What happens when a request ends otherwise than it should: the rules are asked, and their verdict is done.

use forebay_rt::Duration;

use super::backoff::Told;
use super::effect::{Anew, Effect, Fallback, ListReason, Report, Way};
use super::health::{Failing, Why};
use super::input::{Fault, Refusal};
use super::request::{Kind, Request};
use super::rules::{self, Place, Seen, Verdict};
use super::whole::Whole;
use super::{Reflector, WatchLists};
use crate::limits::{
    LET_GO_WAIT_MAX, LET_GO_WAIT_MIN, SILENT_WATCHES, STANDS_AFTER, TOO_LARGE_TRIES, WATCH_ENDS_EARLY,
    WATCH_LIST_TRIES, WOKEN_PERIOD_MIN,
};

impl Reflector {
    /// The request under way ends by our hand, because of what was `seen`.
    pub(super) fn cut(&mut self, seen: &Seen<'_>, now: Duration) {
        if self.under_way.is_some() {
            self.effects.push(Effect::HangUp);
            self.over(seen, now);
        }
    }

    pub(super) fn failed(&mut self, fault: Fault, now: Duration) {
        if self.under_way.is_some() && fault.leaves_a_dead_connection() {
            self.effects.push(Effect::NewConnection);
        }
        self.over(&Seen::Fault(fault), now);
    }

    /// Nothing came for longer than can be.
    pub(super) fn fell_silent(&mut self, now: Duration) {
        let Some(request) = &self.under_way else { return };
        let seen = match (request.opened_at, request.kind) {
            _ if request.stopped_within_frame(now) => Seen::Fault(Fault::HalfFrame),
            (Some(_), Kind::WatchList) => Seen::NoEndBookmark,
            (Some(_), Kind::Watch) => Seen::Silent,
            _ => Seen::Fault(Fault::TimedOut),
        };
        if let Seen::Silent = seen {
            self.report(Report::Silent);
        }
        self.effects.push(Effect::HangUp);
        self.effects.push(Effect::NewConnection);
        self.over(&seen, now);
    }

    pub(super) fn made_anew(&mut self, now: Duration) {
        if !self.started {
            return;
        }
        if self.under_way.take().is_some() {
            self.effects.push(Effect::HangUp);
        }
        self.probe_is_due = false;
        self.plan(if self.held.is_some() { ListReason::MadeAnew } else { ListReason::First });
        let wait = self.lists.at_once_first(&self.random);
        self.ask_after(wait, now);
    }

    /// A wait for a server that could not be reached is over: whoever carries the requests lets those of many
    /// collections go one after the other. Not again and again: it may be reached by others and not by us.
    pub(super) fn server_answers(&mut self, now: Duration) {
        let Some(due) = self.ask_at.filter(|_| self.is_unreached) else { return };
        let is_too_soon = self.woken_at.is_some_and(|woken| now < woken + WOKEN_PERIOD_MIN);
        if now < due && !is_too_soon {
            self.woken_at = Some(now);
            self.ask(now);
        }
    }

    /// What is held is more than may be held.
    pub(super) fn over_limit(&mut self, now: Duration) {
        if !self.started {
            return;
        }
        if self.under_way.take().is_some() {
            self.effects.push(Effect::HangUp);
        }
        self.effects.push(Effect::LetGo);
        let stood = self.health.synced_since.is_some_and(|since| now >= since + LET_GO_WAIT_MAX);
        self.let_go = if stood { 0 } else { self.let_go };
        let least = LET_GO_WAIT_MIN.saturating_mul(1 << self.let_go.min(8)).min(LET_GO_WAIT_MAX);
        self.let_go = self.let_go.saturating_add(1);
        self.held = None;
        self.known = None;
        self.probe_is_due = false;
        self.health.synced_since = None;
        self.fails(Why::OverLimit, now);
        self.plan(ListReason::LetGo);
        let jitter = Duration::from_millis(self.random.below(least.as_millis() as u64 / 2));
        self.ask_after(least + jitter, now);
    }

    /// The request under way is over, because of what was `seen`.
    pub(super) fn over(&mut self, seen: &Seen<'_>, now: Duration) {
        let Some(request) = self.under_way.take() else { return };
        let place = request.place();
        self.count_silence(seen, &request, now);
        let again = self.is_known(seen);
        let verdict = self.settled(seen, place, rules::judge(seen, place, again));
        self.note(seen, &request, now);
        if let (Place::Page { open: true, .. }, Seen::Fault(_) | Seen::Ended | Seen::Garbled) = (place, seen)
            && let Some(whole) = &mut self.whole
        {
            whole.smaller_pages();
        }
        let told = match seen {
            Seen::Refused(said) | Seen::Error(said) => said.told(),
            _ => None,
        };
        let wait = self.follow(verdict, told);
        self.ask_after(wait, now);
        self.is_unreached = matches!(seen, Seen::Fault(_));
    }

    /// A watch-list that a server answers with its own errors only may work as a list.
    fn settled(&mut self, seen: &Seen<'_>, place: Place, verdict: Verdict) -> Verdict {
        if let (Place::WatchList { .. }, Verdict::GoOnAfterBackoff) = (place, verdict)
            && let Seen::Refused(Refusal { code: 500 | 502 | 504.., .. }) = seen
            && let Some(whole) = &mut self.whole
        {
            whole.watch_list_errors += 1;
            if whole.watch_list_errors >= WATCH_LIST_TRIES {
                return Verdict::InPages(Fallback::Error);
            }
        }
        verdict
    }

    /// Does what the verdict says but for the request, which comes after the time that is returned.
    fn follow(&mut self, verdict: Verdict, told: Option<Told>) -> Duration {
        match verdict {
            Verdict::GoOn => self.asks.at_once_first(&self.random),
            Verdict::GoOnAfterBackoff | Verdict::KeepAndBackOff => self.asks.wait(told, &self.random),
            Verdict::KeepAndListOnceServed => {
                match &mut self.whole {
                    Some(whole)
                        if matches!(
                            whole.why,
                            ListReason::First | ListReason::Restored | ListReason::LetGo
                        ) =>
                    {
                        whole.restart()
                    }
                    _ => self.plan(ListReason::ServedAgain),
                }
                self.asks.wait(told, &self.random)
            }
            Verdict::WaitAndAskAgain => {
                self.too_large += 1;
                // Where the revision has gone back already, the first time is enough.
                let suspect = self.whole.as_ref().is_some_and(|whole| whole.why == ListReason::WentBack);
                if self.held.is_some() && (suspect || self.too_large >= TOO_LARGE_TRIES) {
                    self.probe_is_due = true;
                }
                self.restart();
                self.asks.wait(told, &self.random)
            }
            Verdict::ListAgain(why) => {
                self.plan(why);
                self.lists.at_once_first(&self.random)
            }
            Verdict::ListAgainAfterBackoff(why) => {
                self.plan(why);
                self.lists.wait(told, &self.random)
            }
            Verdict::ListNewest => {
                if let Some(whole) = &mut self.whole {
                    whole.asks_floor = false;
                }
                self.restart();
                self.asks.at_once_first(&self.random)
            }
            Verdict::InPages(why) => {
                self.in_pages(why);
                self.asks.at_once_first(&self.random)
            }
            Verdict::PagesAnew(why) => {
                match &mut self.whole {
                    Some(whole) if why == Anew::TokenExpired => whole.token_expired(),
                    _ => self.restart(),
                }
                self.report(Report::ListAnew(why));
                self.lists.at_once_first(&self.random)
            }
        }
    }

    /// The state on its way comes in pages from now on, and the next ones do where the server has no
    /// watch-lists.
    fn in_pages(&mut self, why: Fallback) {
        self.watch_lists = match why {
            Fallback::Refused | Fallback::NotAWatch | Fallback::NoEndBookmark | Fallback::PlainBookmark => {
                WatchLists::None
            }
            Fallback::Ended if self.watch_lists == WatchLists::EndedOnce => WatchLists::None,
            Fallback::Ended => WatchLists::EndedOnce,
            Fallback::Cut | Fallback::Error | Fallback::Garbled => self.watch_lists,
        };
        if let Some(whole) = &mut self.whole {
            whole.way = Way::Pages;
        }
        self.restart();
        self.report(Report::InPages { why, remembered: self.watch_lists == WatchLists::None });
    }

    /// The next request begins a whole state.
    pub(super) fn plan(&mut self, why: ListReason) {
        let way = if self.watch_lists == WatchLists::None { Way::Pages } else { Way::WatchList };
        self.whole = Some(Whole::new(why, self.held, way));
    }

    fn restart(&mut self) {
        if let Some(whole) = &mut self.whole {
            whole.restart();
        }
    }

    pub(super) fn ask_after(&mut self, wait: Duration, now: Duration) {
        self.is_unreached = false;
        if wait.is_zero() {
            return self.ask(now);
        }
        // Whatever the owner still sleeps for is of the request that is over.
        self.armed = None;
        self.ask_at = Some(now + wait);
    }

    /// Whether the same was seen from the same revision before.
    fn is_known(&mut self, seen: &Seen<'_>) -> bool {
        let Some(known) = rules::known(seen) else { return false };
        let known = Some((self.held, known));
        let again = self.known == known;
        self.known = known;
        again
    }

    /// A watch that stood and brought nothing is nothing unusual; several in a row may be of a store that was
    /// restored, in which our revision is yet to come.
    fn count_silence(&mut self, seen: &Seen<'_>, request: &Request, now: Duration) {
        let said_something =
            request.has_frames || matches!(seen, Seen::Error(_) | Seen::Garbled | Seen::NotAWatch);
        if request.kind != Kind::Watch || said_something || request.age(now) < STANDS_AFTER {
            return;
        }
        self.silent_watches += 1;
        if self.silent_watches >= SILENT_WATCHES {
            self.probe_is_due = true;
        }
    }

    fn note(&mut self, seen: &Seen<'_>, request: &Request, now: Duration) {
        // Once it is a server that goes down, or has just come up.
        let ends_early = matches!(seen, Seen::Ended)
            && self.asks.is_used()
            && request.kind == Kind::Watch
            && !request.has_frames
            && request.age(now) < WATCH_ENDS_EARLY;
        let why = if ends_early { Some(Why::EndsEarly) } else { Why::of(seen) };
        if let Some(why) = why {
            self.fails(why, now);
        }
    }

    fn fails(&mut self, why: Why, now: Duration) {
        let before = self.health.failing;
        self.health.failing = Some(Failing {
            since: before.map_or(now, |before| before.since),
            why,
            times: before.map_or(0, |before| before.times).saturating_add(1),
        });
        if before.is_none_or(|before| before.why != why) {
            self.report(Report::Failing(why));
        }
    }

    pub(super) fn recovered(&mut self) {
        // A whole state disproves that there is too much.
        let is_too_much = |failing: Failing| failing.why == Why::OverLimit && self.held.is_none();
        if !self.health.failing.is_some_and(is_too_much) && self.health.failing.take().is_some() {
            self.report(Report::Recovered);
        }
    }
}

impl Refusal {
    /// What it says of when to come back.
    fn told(&self) -> Option<Told> {
        self.retry_after.map(if self.code == 429 { Told::Slot } else { Told::Pause })
    }
}
