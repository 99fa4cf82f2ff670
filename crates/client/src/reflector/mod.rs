//! When to ask for what, so that a collection is mirrored without a gap and without asking for it twice.
//!
//! In: what happened to the request under way, as [`Input`]s with their time. Out: [`Effect`]s: requests to
//! make, whether a frame counts, what to tell. [`Health`] can be asked for at any time. `rules` says what
//! follows from what; `frames` is what happens while all is well, `verdicts` what happens when it is not. One
//! owner, who makes the requests and holds the objects. Never: does IO, reads a clock, sees an object, has
//! two requests under way, asks for `resourceVersion=0`.

mod backoff;
mod effect;
mod frames;
mod health;
mod input;
mod request;
mod rules;
#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod seeded_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_states;
#[cfg(test)]
mod tests_of_waits;
mod verdicts;
mod whole;

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_rt::{Duration, Random};

use self::backoff::Backoff;
pub use self::effect::{Anew, Effect, Fallback, ListReason, Report, Way};
pub use self::health::{Failing, Health, Why};
pub use self::input::{Fault, Input, Refusal};
use self::request::{Kind, Request};
use self::rules::{Known, Seen};
use self::whole::Whole;
use crate::Ask;
use crate::limits::WATCH_SECONDS;

/// What keeps one collection mirrored.
///
/// The owner gives it [`Input::Start`], does the effects of each [step](Reflector::step) in their order, and
/// gives it what comes of them. Times are of one clock that never goes back, since whenever.
#[derive(Debug)]
pub struct Reflector {
    random: Arc<Random>,
    started: bool,
    /// The revision of the state that is held: what came with it, or with an event or bookmark after it.
    held: Option<Revision>,
    /// The state on its way in.
    whole: Option<Whole>,
    under_way: Option<Request>,
    /// When the next request is due; none is under way then.
    ask_at: Option<Duration>,
    /// Whether that is because the server could not be reached.
    is_unreached: bool,
    /// When a wait was last cut short.
    woken_at: Option<Duration>,
    /// Times that all was let go of, without a state that stayed for long in between.
    let_go: u32,
    /// Whether the next request asks for the newest revision.
    probe_is_due: bool,
    /// Until when the owner sleeps.
    armed: Option<Duration>,
    /// Between requests. Reset by events, bookmarks, pages, and a watch that stands.
    asks: Backoff,
    /// Between states that are begun. Reset by events and bookmarks alone.
    lists: Backoff,
    watch_lists: WatchLists,
    /// Answers in a row that a revision is too large.
    too_large: u32,
    /// Watches in a row that stood and brought nothing.
    silent_watches: u32,
    /// The last error that may be the revision's own, and the revision.
    known: Option<(Option<Revision>, Known)>,
    /// The last time between two bookmarks, where there have been some.
    bookmarks: Option<Duration>,
    health: Health,
    effects: Vec<Effect>,
}

/// What is known of the server's watch-lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchLists {
    Tried,
    /// One ended before its end bookmark. It may have been the server's shutdown.
    EndedOnce,
    None,
}

impl Reflector {
    /// A reflector that has not begun.
    ///
    /// - `random`: for jitter and the time of watches.
    pub fn new(random: Arc<Random>) -> Reflector {
        Reflector {
            random,
            started: false,
            held: None,
            whole: None,
            under_way: None,
            ask_at: None,
            is_unreached: false,
            woken_at: None,
            let_go: 0,
            probe_is_due: false,
            armed: None,
            asks: Backoff::default(),
            lists: Backoff::default(),
            watch_lists: WatchLists::Tried,
            too_large: 0,
            silent_watches: 0,
            known: None,
            bookmarks: None,
            health: Health::default(),
            effects: Vec::new(),
        }
    }

    /// What is to be done after `input`, in this order. What cannot be, as an event when nothing is under
    /// way, does nothing.
    pub fn step(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        match input {
            Input::Start { from } => self.start(from, now),
            Input::Timer => self.timer(now),
            Input::ServerAnswers => self.server_answers(now),
            Input::OverLimit => self.over_limit(now),
            Input::MadeAnew => self.made_anew(now),
            Input::Opened => self.opened(now),
            Input::PastState => self.past_state(now),
            Input::HalfFrame => self.half_frame(now),
            Input::Event { revision } => self.event(revision, now),
            Input::Bookmark { revision, ends_state } => self.bookmark(revision, ends_state, now),
            Input::PageBegan { revision } => self.page_began(revision, now),
            Input::Item => self.item(now),
            Input::Page { revision, next } => self.page(revision, next, now),
            Input::Refused(said) => self.over(&Seen::Refused(&said), now),
            Input::Failed(fault) => self.failed(fault, now),
            Input::Ended => self.over(&Seen::Ended, now),
            Input::StreamError(said) => self.cut(&Seen::Error(&said), now),
            Input::Garbled => self.cut(&Seen::Garbled, now),
            Input::NotAWatch => self.cut(&Seen::NotAWatch, now),
        }
        self.arm();
        std::mem::take(&mut self.effects)
    }

    /// The revision up to which nothing was missed; `None` before there is a whole state.
    pub fn revision(&self) -> Option<Revision> {
        self.held
    }

    /// Whether a whole state is held, however old it is by now.
    pub fn is_synced(&self) -> bool {
        self.held.is_some()
    }

    /// How it fares.
    pub fn health(&self) -> Health {
        self.health
    }

    fn start(&mut self, from: Option<Revision>, now: Duration) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        self.held = from;
        match from {
            Some(_) => self.health.synced_since = Some(now),
            None => self.plan(ListReason::First),
        }
        self.ask(now);
    }

    fn timer(&mut self, now: Duration) {
        self.armed = None;
        match &self.under_way {
            None if self.ask_at.is_some_and(|at| at <= now) => self.ask(now),
            None => {}
            Some(request) if request.dead_at(self.bookmarks) <= now => self.fell_silent(now),
            Some(request) if request.stands_at().is_some_and(|at| at <= now) => self.stands(),
            Some(_) => {}
        }
    }

    /// The watch is open for so long that what went before counts no longer.
    fn stands(&mut self) {
        self.asks.reset();
        self.recovered();
    }

    /// Makes the request that is due.
    fn ask(&mut self, now: Duration) {
        assert!(self.under_way.is_none(), "one request at a time");
        self.ask_at = None;
        let timeout = WATCH_SECONDS.start + self.random.below(WATCH_SECONDS.len() as u64) as u32;
        let (kind, ask) = self.due(timeout);
        self.under_way = Some(Request::new(kind, timeout, now));
        self.effects.push(Effect::Ask(ask));
    }

    fn due(&mut self, timeout_seconds: u32) -> (Kind, Ask) {
        if std::mem::take(&mut self.probe_is_due) {
            return (Kind::Probe, Ask::List { limit: Some(1), next: None, at: None });
        }
        let Some(whole) = &self.whole else {
            let after = self.held.expect("without a state one is on its way in");
            return (Kind::Watch, Ask::Watch { after, timeout_seconds });
        };
        let kind = match whole.way {
            Way::WatchList => Kind::WatchList,
            Way::Pages => Kind::Page { first: whole.is_at_its_beginning() },
        };
        (kind, whole.ask(timeout_seconds))
    }

    /// Sees to it that a step comes when the next thing is due. A wake-up that is too early costs a step and
    /// is left alone, so that not each frame moves it.
    fn arm(&mut self) {
        let due = match &self.under_way {
            None => self.ask_at,
            Some(request) => {
                let stands =
                    request.stands_at().filter(|_| self.asks.is_used() || self.health.failing.is_some());
                let dead = request.dead_at(self.bookmarks);
                Some(stands.map_or(dead, |stands| stands.min(dead)))
            }
        };
        let Some(due) = due else { return };
        if self.armed.is_none_or(|armed| due < armed) {
            self.armed = Some(due);
            self.effects.push(Effect::WakeAt(due));
        }
    }

    fn report(&mut self, report: Report) {
        self.effects.push(Effect::Report(report));
    }
}
