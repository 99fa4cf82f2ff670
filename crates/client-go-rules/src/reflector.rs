//! When to list, watch or wait, as client-go decides it: a pure state machine.
//!
//! In: what was heard of a request, and when, since whatever beginning. Out: the next request, or a wait.
//! Never: IO; a rule that is better than client-go's: who is measured is to be asked what today's clients
//! ask.
//!
//! Source: client-go v0.36.3 `tools/cache/reflector.go` (what follows an error), `rest/with_retry.go` and
//! `rest/request.go` (what is asked again before anybody hears of it), `tools/pager/pager.go`.

use std::time::Duration;

use forebay_rt::Random;

use crate::backoff::Backoff;

/// Times that a request is asked again because of a lost connection or a Retry-After.
const RETRIES_MAX: u32 = 10;
/// The wait before that, where no server has named one.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// A watch that ends sooner than this, and has brought nothing, counts as failed.
const SHORT: Duration = Duration::from_secs(1);
const PAGE: usize = 500;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A watch that begins with all objects there are.
    WatchList {
        revision: String,
    },
    Watch {
        revision: String,
    },
    List {
        revision: String,
        limit: usize,
        token: String,
    },
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    Send(Ask),
    Wait(Duration),
}

/// What came of a request, or ended its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// Nobody listened.
    Refused,
    /// The connection was lost before there was an answer.
    Lost,
    /// There was none for another reason.
    Failed,
    /// An answer other than 200.
    Status { code: u16, retry_after: Option<u64>, is_too_large: bool },
    /// A list, or a page of one.
    Listed { revision: String, token: String },
    /// A watch has ended, or its connection was lost.
    Ended,
    /// A watch was broken off in a way that client-go makes an error of.
    Undecodable,
    /// A watch has ended with an event of the type ERROR.
    Error { code: u16, is_too_large: bool },
}

/// What one object of a watch says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchedEvent {
    Added {
        revision: String,
    },
    /// Modified or deleted.
    Changed {
        revision: String,
    },
    Bookmark {
        revision: String,
        ends_initial: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    WatchList,
    /// - `first`: the revision that its first page had.
    List {
        ask: Pages,
        first: Option<String>,
        is_second: bool,
    },
    Watch,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pages {
    revision: String,
    limit: usize,
    token: String,
}

/// One of client-go's reflectors.
#[derive(Debug)]
pub struct Reflector {
    phase: Phase,
    /// The newest that it knows; empty at first.
    revision: String,
    /// Whether a server has said that it does not have that.
    is_unavailable: bool,
    /// Whether a list at revision 0 has come in pages.
    is_paginated: bool,
    retries: u32,
    backoff: Backoff,
    random: Random,
    wait: Option<Duration>,
    /// Since when the watch is open, and what it has brought.
    since: Duration,
    events: usize,
}

impl Reflector {
    /// One that knows nothing yet.
    ///
    /// - `random`: for its waits; it is its own.
    pub fn new(now: Duration, random: Random) -> Reflector {
        Reflector {
            phase: Phase::WatchList,
            revision: String::new(),
            is_unavailable: false,
            is_paginated: false,
            retries: 0,
            backoff: Backoff::new(now),
            random,
            wait: None,
            since: now,
            events: 0,
        }
    }

    /// The newest revision that it knows.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Whether it has all objects and follows them.
    pub fn is_synced(&self) -> bool {
        self.phase == Phase::Watch
    }

    /// What to do now; asked again when that is done.
    pub fn next(&mut self, now: Duration) -> Move {
        if let Some(wait) = self.wait.take() {
            return Move::Wait(wait);
        }
        // A request that is asked again belongs to the same watch.
        if self.retries == 0 {
            (self.since, self.events) = (now, 0);
        }
        Move::Send(match &self.phase {
            Phase::WatchList => Ask::WatchList { revision: self.rewatch_revision() },
            Phase::Watch => Ask::Watch { revision: self.revision.clone() },
            Phase::List { ask, .. } => {
                Ask::List { revision: ask.revision.clone(), limit: ask.limit, token: ask.token.clone() }
            }
        })
    }

    /// An event of the watch that is open.
    pub fn event(&mut self, now: Duration, event: WatchedEvent) {
        self.events += 1;
        match (&self.phase, event) {
            // The initial objects come in no order of revisions.
            (Phase::WatchList, WatchedEvent::Added { .. }) => {}
            (Phase::WatchList, WatchedEvent::Bookmark { revision, ends_initial: true }) => {
                (self.revision, self.is_unavailable, self.phase) = (revision, false, Phase::Watch);
                (self.since, self.events) = (now, 0);
            }
            (Phase::WatchList, _) => {}
            (
                _,
                WatchedEvent::Added { revision }
                | WatchedEvent::Changed { revision }
                | WatchedEvent::Bookmark { revision, .. },
            ) => {
                self.revision = revision;
            }
        }
    }

    /// What came of the request.
    pub fn heard(&mut self, now: Duration, outcome: Aftermath) {
        if let Some(wait) = retry_wait(&outcome)
            && self.retries < RETRIES_MAX
        {
            self.retries += 1;
            self.wait = Some(wait);
            return;
        }
        self.retries = 0;
        let is_short = now.saturating_sub(self.since) < SHORT && self.events == 0;
        match std::mem::replace(&mut self.phase, Phase::WatchList) {
            Phase::WatchList => self.after_watch_list(now, &outcome, is_short),
            Phase::Watch => self.after_watch(now, &outcome, is_short),
            Phase::List { ask, first, is_second } => self.after_list(now, outcome, (ask, first, is_second)),
        }
    }

    fn after_watch_list(&mut self, now: Duration, outcome: &Aftermath, is_short: bool) {
        match outcome {
            outcome if waits_and_asks_again(outcome) => self.back_off(now),
            outcome if is_gone(outcome) => self.is_unavailable = true,
            Aftermath::Ended if !is_short => {}
            // That it was lost ten times counts as a watch that ended.
            Aftermath::Lost => {}
            _ => self.list(),
        }
    }

    fn after_watch(&mut self, now: Duration, outcome: &Aftermath, is_short: bool) {
        let goes_on = match outcome {
            outcome if waits_and_asks_again(outcome) => {
                self.back_off(now);
                true
            }
            Aftermath::Ended => !is_short,
            Aftermath::Lost => true,
            _ => false,
        };
        match goes_on {
            true => self.phase = Phase::Watch,
            false => self.back_off(now),
        }
    }

    fn after_list(
        &mut self,
        now: Duration,
        outcome: Aftermath,
        (ask, first, is_second): (Pages, Option<String>, bool),
    ) {
        match outcome {
            Aftermath::Listed { revision, token } if token.is_empty() => {
                self.is_paginated |= first.is_some() && ask.revision == "0";
                self.revision = first.unwrap_or(revision);
                (self.is_unavailable, self.phase) = (false, Phase::Watch);
            }
            Aftermath::Listed { revision, token } => {
                let at_zero = first.is_none() && ask.revision == "0";
                self.is_paginated |= at_zero;
                // The pages that follow are of the revision in their token.
                let ask = Pages { revision: String::new(), token, ..ask };
                self.phase = Phase::List { ask, first: Some(first.unwrap_or(revision)), is_second };
            }
            // What the token led to is gone: all of it at once.
            Aftermath::Status { code: 410, .. } if !ask.token.is_empty() => {
                let ask = Pages { revision: self.list_revision(), limit: 0, token: String::new() };
                self.phase = Phase::List { ask, first: None, is_second };
            }
            outcome if is_gone(&outcome) && !is_second => {
                self.is_unavailable = true;
                let ask = Pages { revision: self.list_revision(), limit: ask.limit, token: String::new() };
                self.phase = Phase::List { ask, first: None, is_second: true };
            }
            _ => self.back_off(now),
        }
    }

    fn list(&mut self) {
        let revision = self.list_revision();
        let pages = self.is_paginated || matches!(revision.as_str(), "" | "0");
        let ask = Pages { limit: if pages { PAGE } else { 0 }, revision, token: String::new() };
        self.phase = Phase::List { ask, first: None, is_second: false };
    }

    fn back_off(&mut self, now: Duration) {
        self.wait = Some(self.backoff.wait(now, &self.random));
    }

    fn rewatch_revision(&self) -> String {
        if self.is_unavailable { String::new() } else { self.revision.clone() }
    }

    fn list_revision(&self) -> String {
        match () {
            () if self.is_unavailable => String::new(),
            () if self.revision.is_empty() => "0".into(),
            () => self.revision.clone(),
        }
    }
}

/// How long until the same request is asked again, where it is. What a server names is kept to the second.
fn retry_wait(outcome: &Aftermath) -> Option<Duration> {
    match outcome {
        Aftermath::Lost => Some(RETRY_WAIT),
        Aftermath::Status { code: 429 | 500.., retry_after, .. } => retry_after.map(Duration::from_secs),
        _ => None,
    }
}

fn waits_and_asks_again(outcome: &Aftermath) -> bool {
    matches!(
        outcome,
        Aftermath::Refused | Aftermath::Status { code: 429, .. } | Aftermath::Error { code: 429, .. }
    )
}

fn is_gone(outcome: &Aftermath) -> bool {
    match outcome {
        Aftermath::Status { code, is_too_large, .. } | Aftermath::Error { code, is_too_large } => {
            *code == 410 || *is_too_large
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays what was heard to a reflector; the requests and waits that follow, in words.
    fn check(heard: &[Aftermath], expected: &[&str]) {
        let now = Duration::ZERO;
        let mut reflector = Reflector::new(now, Random::seeded(1));
        let mut said = Vec::new();
        for outcome in heard.iter().map(Some).chain([None]) {
            loop {
                match reflector.next(now) {
                    Move::Wait(wait) if wait == RETRY_WAIT || wait.subsec_nanos() == 0 => {
                        said.push(format!("exactly {}", wait.as_secs()));
                    }
                    Move::Wait(_) => said.push("back off".into()),
                    Move::Send(Ask::WatchList { revision }) => {
                        said.push(format!("watch-list {revision:?}"));
                        break;
                    }
                    Move::Send(Ask::Watch { revision }) => {
                        said.push(format!("watch {revision:?}"));
                        break;
                    }
                    Move::Send(Ask::List { revision, limit, token }) => {
                        said.push(format!("list {revision:?} {limit} {token:?}"));
                        break;
                    }
                }
            }
            match outcome {
                // A watch-list that is through: five was the newest.
                Some(Aftermath::Ended) if !reflector.is_synced() => {
                    reflector.event(now, WatchedEvent::Added { revision: "9".into() });
                    let end = WatchedEvent::Bookmark { revision: "5".into(), ends_initial: true };
                    reflector.event(now, end);
                    reflector.event(now, WatchedEvent::Changed { revision: "6".into() });
                    reflector.heard(now, Aftermath::Ended);
                }
                Some(outcome) => reflector.heard(now, outcome.clone()),
                None => {}
            }
        }
        assert_eq!(said, expected);
    }

    fn status(code: u16, retry_after: Option<u64>) -> Aftermath {
        Aftermath::Status { code, retry_after, is_too_large: false }
    }

    #[test]
    fn a_watch_that_ends_goes_on_from_its_last_event_at_once() {
        check(&[Aftermath::Ended], &["watch-list \"\"", "watch \"6\""]);
    }

    #[test]
    fn a_watch_that_ends_at_once_without_an_event_is_a_failure() {
        check(
            &[Aftermath::Ended, Aftermath::Ended],
            &["watch-list \"\"", "watch \"6\"", "back off", "watch-list \"6\""],
        );
    }

    #[test]
    fn what_is_too_many_is_asked_again_after_the_wait_that_was_named_and_then_after_ones_own() {
        let mut heard = vec![Aftermath::Ended];
        heard.extend(vec![status(429, Some(7)); 11]);
        let mut expected = vec!["watch-list \"\"", "watch \"6\""];
        for _ in 0..10 {
            expected.extend(["exactly 7", "watch \"6\""]);
        }
        expected.extend(["back off", "watch \"6\""]);
        check(&heard, &expected);
    }

    #[test]
    fn a_lost_connection_is_made_again_each_second_and_loses_no_place() {
        check(
            &[Aftermath::Ended, Aftermath::Lost, Aftermath::Refused],
            &["watch-list \"\"", "watch \"6\"", "exactly 1", "watch \"6\"", "back off", "watch \"6\""],
        );
    }

    #[test]
    fn history_that_is_gone_is_listed_from_the_last_revision_and_then_from_none() {
        let gone = Aftermath::Error { code: 410, is_too_large: false };
        check(
            &[Aftermath::Ended, gone.clone(), gone],
            &["watch-list \"\"", "watch \"6\"", "back off", "watch-list \"6\"", "watch-list \"\""],
        );
    }

    #[test]
    fn a_server_without_watch_lists_is_listed_in_pages() {
        let page = |token: &str| Aftermath::Listed { revision: "8".into(), token: token.into() };
        check(
            &[status(422, None), page("t"), page("")],
            &["watch-list \"\"", "list \"0\" 500 \"\"", "list \"\" 500 \"t\"", "watch \"8\""],
        );
    }

    #[test]
    fn a_list_whose_revision_is_gone_is_asked_at_no_revision_once() {
        check(
            &[
                Aftermath::Ended,
                Aftermath::Undecodable,
                status(500, None),
                status(410, None),
                status(410, None),
            ],
            &[
                "watch-list \"\"",
                "watch \"6\"",
                "back off",
                "watch-list \"6\"",
                "list \"6\" 0 \"\"",
                "list \"\" 0 \"\"",
                "back off",
                "watch-list \"\"",
            ],
        );
    }
}
