//! What follows from what was seen: all the rules, in one place.
//!
//! In: what was seen, over which request, and whether it was seen before from the same revision. Out: a
//! [`Verdict`]. Two thoughts carry them: only a hole in history makes the whole state be asked for again,
//! because a thousand reflectors that list at once are what brings a server down; and what would be asked in
//! vain is not asked in a loop. Never: has state.
//!
//! Source: client-go v0.36.3 `tools/cache/reflector.go`, where many faults list that need not.

use super::effect::{Anew, Fallback, ListReason};
use super::input::{Fault, Refusal};
use crate::limits::MESSAGE_BYTES_READ;

/// What ended a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Seen<'a> {
    /// An answer that is no success.
    Refused(&'a Refusal),
    /// An `ERROR` frame.
    Error(&'a Refusal),
    Fault(Fault),
    /// An answer that could not be read on.
    Garbled,
    NotAWatch,
    /// The clean end of the body.
    Ended,
    /// An event or bookmark older than what was had.
    WentBack,
    /// A state older than what is held.
    Stale,
    /// Nothing came for longer than can be.
    Silent,
    /// Nothing came any more, and the state had not ended.
    NoEndBookmark,
    /// A bookmark, and none that ends the state, before one that does.
    PlainBookmark,
}

impl Seen<'_> {
    /// Whether it came as a frame, after an answer that was a success.
    pub(super) fn is_in_stream(&self) -> bool {
        matches!(self, Seen::Error(_))
    }
}

/// Over which request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// `open`: the head of the answer had come.
    Watch { open: bool },
    /// Before its end bookmark; after it is a watch.
    WatchList { open: bool },
    /// `first`: without a token.
    Page { open: bool, first: bool },
    /// The newest revision was asked for.
    Probe,
}

/// What to do. "The same" is the watch from the last revision that was had, the watch-list, or the page with
/// its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The same again, at once; with backoff when nothing came of it since the last time.
    GoOn,
    /// Repeats the request after a backoff.
    GoOnAfterBackoff,
    /// The whole state, at once; with backoff when nothing came of the last one.
    ListAgain(ListReason),
    /// The whole state, with backoff.
    ListAgainAfterBackoff(ListReason),
    /// The same again, with backoff; after some times the newest revision decides.
    WaitAndAskAgain,
    /// The same again with backoff, and people have to know.
    KeepAndBackOff,
    /// As before, and the whole state as soon as there is one.
    KeepAndListOnceServed,
    /// The whole state as before, without a revision that it be not older than: the newest, which is held
    /// against it.
    ListNewest,
    /// The whole state, in pages.
    InPages(Fallback),
    /// The list from its first page, at once; with backoff when that was of no use.
    PagesAnew(Anew),
}

/// What is known of an error to know it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Garbled,
    /// The code alone: messages have names, addresses and numbers of requests in them.
    Said {
        code: u16,
    },
}

/// The verdict.
///
/// - `again`: an error that [may be of the revision](known) was seen before from the same one, without
///   progress in between.
pub(super) fn judge(seen: &Seen<'_>, at: Place, again: bool) -> Verdict {
    match at {
        Place::Watch { open } => of_a_watch(seen, open, again),
        Place::WatchList { open } => of_a_watch_list(seen, open),
        Place::Page { open, first } => of_a_page(seen, open, first, again),
        // What was to be decided stays open, and comes up again.
        Place::Probe => Verdict::GoOnAfterBackoff,
    }
}

fn of_a_watch(seen: &Seen<'_>, open: bool, again: bool) -> Verdict {
    match seen {
        Seen::Refused(said) | Seen::Error(said) => match Meaning::of(said, seen.is_in_stream()) {
            Meaning::Expired => Verdict::ListAgain(ListReason::Expired),
            Meaning::LostEvent => Verdict::ListAgain(ListReason::LostEvent),
            Meaning::TooLarge => Verdict::WaitAndAskAgain,
            Meaning::Passing => Verdict::GoOnAfterBackoff,
            Meaning::Denied => Verdict::KeepAndBackOff,
            Meaning::NotFound => Verdict::KeepAndListOnceServed,
            Meaning::Unfit | Meaning::Unknown if again => {
                Verdict::ListAgainAfterBackoff(ListReason::SameErrorTwice)
            }
            Meaning::Unfit | Meaning::Unknown => Verdict::GoOnAfterBackoff,
        },
        // Sent away, not turned away: another connection is wanted, and that is all.
        Seen::Fault(Fault::GoAway) => Verdict::GoOn,
        Seen::Fault(_) if open => Verdict::GoOn,
        Seen::Fault(_) => Verdict::GoOnAfterBackoff,
        Seen::Garbled | Seen::NotAWatch if again => Verdict::ListAgainAfterBackoff(ListReason::Garbled),
        Seen::Garbled | Seen::NotAWatch => Verdict::GoOn,
        Seen::Ended | Seen::Silent => Verdict::GoOn,
        Seen::WentBack => Verdict::ListAgain(ListReason::WentBack),
        // These are seen of a state only, and a watch brings none.
        Seen::Stale | Seen::NoEndBookmark | Seen::PlainBookmark => Verdict::GoOnAfterBackoff,
    }
}

fn of_a_watch_list(seen: &Seen<'_>, open: bool) -> Verdict {
    match seen {
        Seen::Refused(said) | Seen::Error(said) => match Meaning::of(said, seen.is_in_stream()) {
            Meaning::Expired => Verdict::ListNewest,
            Meaning::TooLarge => Verdict::WaitAndAskAgain,
            Meaning::Passing => Verdict::GoOnAfterBackoff,
            Meaning::Denied => Verdict::KeepAndBackOff,
            Meaning::NotFound => Verdict::KeepAndListOnceServed,
            Meaning::Unfit => Verdict::InPages(Fallback::Refused),
            Meaning::LostEvent => Verdict::InPages(Fallback::Error),
            Meaning::Unknown if open => Verdict::InPages(Fallback::Error),
            Meaning::Unknown => Verdict::KeepAndBackOff,
        },
        Seen::Fault(_) if open => Verdict::InPages(Fallback::Cut),
        Seen::Fault(Fault::GoAway) => Verdict::GoOn,
        Seen::Fault(_) => Verdict::GoOnAfterBackoff,
        Seen::Garbled => Verdict::InPages(Fallback::Garbled),
        Seen::NotAWatch => Verdict::InPages(Fallback::NotAWatch),
        Seen::Ended => Verdict::InPages(Fallback::Ended),
        Seen::Stale | Seen::WentBack => Verdict::WaitAndAskAgain,
        Seen::NoEndBookmark | Seen::Silent => Verdict::InPages(Fallback::NoEndBookmark),
        Seen::PlainBookmark => Verdict::InPages(Fallback::PlainBookmark),
    }
}

fn of_a_page(seen: &Seen<'_>, open: bool, first: bool, again: bool) -> Verdict {
    match seen {
        Seen::Refused(said) | Seen::Error(said) => match Meaning::of(said, seen.is_in_stream()) {
            Meaning::Expired if first => Verdict::ListNewest,
            // The server gives a token with which the list would go on and be of no one revision. It is not
            // taken: a list with a hole is worse than a second one.
            Meaning::Expired => Verdict::PagesAnew(Anew::TokenExpired),
            Meaning::TooLarge => Verdict::WaitAndAskAgain,
            Meaning::Passing | Meaning::LostEvent => Verdict::GoOnAfterBackoff,
            Meaning::Denied => Verdict::KeepAndBackOff,
            Meaning::NotFound => Verdict::KeepAndListOnceServed,
            // Some servers do not take the revision that the state be not older than.
            Meaning::Unfit if first => Verdict::ListNewest,
            Meaning::Unknown if first => Verdict::KeepAndBackOff,
            // The token is of no use.
            Meaning::Unfit | Meaning::Unknown => Verdict::PagesAnew(Anew::TokenExpired),
        },
        Seen::Fault(Fault::GoAway) => Verdict::GoOn,
        Seen::Fault(_) | Seen::Ended if open => Verdict::GoOn,
        Seen::Fault(_) | Seen::Ended => Verdict::GoOnAfterBackoff,
        Seen::Garbled | Seen::NotAWatch if again => Verdict::PagesAnew(Anew::Garbled),
        Seen::Garbled | Seen::NotAWatch => Verdict::GoOnAfterBackoff,
        Seen::Stale | Seen::WentBack => Verdict::WaitAndAskAgain,
        // These are seen of a watch only, and a page is none.
        Seen::Silent | Seen::NoEndBookmark | Seen::PlainBookmark => Verdict::GoOnAfterBackoff,
    }
}

/// What to know an error by, where it may be the revision's own and come for ever; `None` where it passes or
/// is plain.
pub(super) fn known(seen: &Seen<'_>) -> Option<Known> {
    match seen {
        Seen::Garbled | Seen::NotAWatch => Some(Known::Garbled),
        Seen::Refused(said) | Seen::Error(said) => match Meaning::of(said, seen.is_in_stream()) {
            Meaning::Unfit | Meaning::Unknown => Some(Known::Said { code: said.code }),
            _ => None,
        },
        _ => None,
    }
}

/// What a server meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The revision, or the token's, is no longer to be had.
    Expired,
    /// The server has not reached the revision yet.
    TooLarge,
    /// An event was lost (kubernetes#123072): without a list an object that was deleted stays for ever.
    LostEvent,
    /// Overload, restart, no leader: it passes.
    Passing,
    /// 401, 403.
    Denied,
    NotFound,
    /// The request is not one that this server takes.
    Unfit,
    Unknown,
}

impl Meaning {
    fn of(said: &Refusal, in_stream: bool) -> Meaning {
        match said.code {
            401 | 403 => Meaning::Denied,
            404 => Meaning::NotFound,
            429 => Meaning::Passing,
            _ if said.has_lost_an_event() => Meaning::LostEvent,
            _ if said.is_expired() => Meaning::Expired,
            _ if said.is_too_large() => Meaning::TooLarge,
            _ if said.says("required storage feature") || said.says("sendinitialevents") => Meaning::Unfit,
            400 | 405 | 406 | 415 | 422 | 501 => Meaning::Unfit,
            // In a stream it is the code of everything that went wrong within, some of which the next try
            // meets again.
            500 if in_stream && !said.passes() => Meaning::Unknown,
            408 | 500..=599 => Meaning::Passing,
            _ => Meaning::Unknown,
        }
    }
}

impl Refusal {
    /// The revision is older than what the server kept.
    pub(super) fn is_expired(&self) -> bool {
        self.code == 410
            || matches!(self.reason.as_str(), "Expired" | "Gone")
            || self.says("too old resource version")
            || self.says("resource version too old")
            || self.says("revision has been compacted")
            || (self.says("resourceversion for the provided") && self.says("too old"))
    }

    /// The revision is newer than what the server has.
    pub(super) fn is_too_large(&self) -> bool {
        self.too_large || self.says("too large resource version") || self.says("is a future revision")
    }

    fn has_lost_an_event(&self) -> bool {
        self.says("prevkv=nil")
    }

    /// What etcd and what stands before it say of a state that passes.
    fn passes(&self) -> bool {
        matches!(self.reason.as_str(), "ServerTimeout" | "ServiceUnavailable" | "Timeout" | "TooManyRequests")
            || ["no leader", "leader changed", "etcdserver:", "unavailable", "connection", "timed out"]
                .iter()
                .any(|words| self.says(words))
    }

    /// Whether the message has `words`, which are in lower case.
    fn says(&self, words: &str) -> bool {
        let message = &self.message.as_bytes()[..self.message.len().min(MESSAGE_BYTES_READ)];
        message.windows(words.len()).any(|there| there.eq_ignore_ascii_case(words.as_bytes()))
    }
}
