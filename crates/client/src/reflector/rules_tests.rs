//! Each rule is a row: what was seen, over what, and what follows.

use super::effect::{Anew, Fallback, ListReason};
use super::input::{Fault, Refusal};
use super::rules::{Place, Seen, Verdict, judge, known};

const WATCH: Place = Place::Watch { open: true };
const WATCH_CLOSED: Place = Place::Watch { open: false };
const STATE: Place = Place::WatchList { open: true };
const STATE_CLOSED: Place = Place::WatchList { open: false };
const FIRST_PAGE: Place = Place::Page { open: true, first: true };
const LATER_PAGE: Place = Place::Page { open: true, first: false };
const LATER_PAGE_CLOSED: Place = Place::Page { open: false, first: false };

/// A `Status`: code, reason, message.
fn said(code: u16, reason: &str, message: &str) -> Refusal {
    Refusal { code, reason: reason.into(), message: message.into(), ..Refusal::default() }
}

/// Whether an error was seen before from the same revision.
#[derive(Clone, Copy, PartialEq)]
enum Times {
    Once,
    Again,
}
use Times::{Again, Once};

fn check(rows: &[(&str, Place, Times, Seen<'_>, Verdict)]) {
    let wrong: Vec<_> = rows
        .iter()
        .filter_map(|(name, place, times, seen, verdict)| {
            let got = judge(seen, *place, *times == Again);
            (got != *verdict).then(|| format!("{name}: {got:?}, not {verdict:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_watch_goes_on_from_its_last_revision() {
    use Verdict::{GoOn, GoOnAfterBackoff as Later};
    let no_leader = said(500, "InternalError", "Internal error occurred: etcdserver: no leader");
    let moved = said(500, "InternalError", "etcdserver: leader changed");
    let odd = said(500, "InternalError", "Internal error occurred: a bad day");
    let busy = said(429, "TooManyRequests", "storage is (re)initializing");
    let drained = said(503, "ServiceUnavailable", "apiserver is shutting down");
    let html = said(502, "", "<html>Bad Gateway");
    let late = said(504, "Timeout", "request did not complete within the allotted timeout");
    let etcd = said(500, "ServerTimeout", "The server was unable to return a response in the time allotted");
    check(&[
        ("connection refused", WATCH_CLOSED, Once, Seen::Fault(Fault::Refused), Later),
        ("connection refused again", WATCH_CLOSED, Again, Seen::Fault(Fault::Refused), Later),
        ("unreachable", WATCH_CLOSED, Once, Seen::Fault(Fault::Unreachable), Later),
        ("no address", WATCH_CLOSED, Once, Seen::Fault(Fault::Dns), Later),
        ("TLS handshake", WATCH_CLOSED, Once, Seen::Fault(Fault::Tls), Later),
        ("reset before the head", WATCH_CLOSED, Once, Seen::Fault(Fault::Reset), Later),
        ("a proxy that never answers", WATCH_CLOSED, Once, Seen::Fault(Fault::TimedOut), Later),
        ("GOAWAY before the head", WATCH_CLOSED, Once, Seen::Fault(Fault::GoAway), GoOn),
        ("reset", WATCH, Once, Seen::Fault(Fault::Reset), GoOn),
        ("EOF, and half a frame", WATCH, Once, Seen::Fault(Fault::CutShort), GoOn),
        ("GOAWAY", WATCH, Once, Seen::Fault(Fault::GoAway), GoOn),
        ("RST_STREAM", WATCH, Once, Seen::Fault(Fault::StreamReset), GoOn),
        ("HTTP/2 ping lost", WATCH, Once, Seen::Fault(Fault::PingLost), GoOn),
        ("timeout in the middle of a frame #129683", WATCH, Once, Seen::Fault(Fault::TimedOut), GoOn),
        ("half a frame, and nothing more", WATCH, Again, Seen::Fault(Fault::HalfFrame), GoOn),
        ("anything else below HTTP", WATCH, Again, Seen::Fault(Fault::Other), GoOn),
        ("clean end", WATCH, Once, Seen::Ended, GoOn),
        ("clean end again", WATCH, Again, Seen::Ended, GoOn),
        ("silence", WATCH, Once, Seen::Silent, GoOn),
        ("429", WATCH_CLOSED, Again, Seen::Refused(&busy), Later),
        ("500", WATCH_CLOSED, Again, Seen::Refused(&etcd), Later),
        ("500 of whatever kind", WATCH_CLOSED, Again, Seen::Refused(&odd), Later),
        ("502 of a proxy", WATCH_CLOSED, Again, Seen::Refused(&html), Later),
        ("503", WATCH_CLOSED, Again, Seen::Refused(&drained), Later),
        ("504", WATCH_CLOSED, Again, Seen::Refused(&late), Later),
        ("ERROR 429", WATCH, Again, Seen::Error(&busy), Later),
        ("ERROR 500 no leader", WATCH, Once, Seen::Error(&no_leader), Later),
        ("ERROR 500 no leader again", WATCH, Again, Seen::Error(&no_leader), Later),
        ("ERROR 500 leader changed again", WATCH, Again, Seen::Error(&moved), Later),
        ("ERROR 500 ServerTimeout again", WATCH, Again, Seen::Error(&etcd), Later),
        ("ERROR 503 again", WATCH, Again, Seen::Error(&drained), Later),
        ("ERROR 504 again", WATCH, Again, Seen::Error(&late), Later),
        ("ERROR 500 unknown", WATCH, Once, Seen::Error(&odd), Later),
        ("a frame that cannot be read", WATCH, Once, Seen::Garbled, GoOn),
    ]);
}

#[test]
fn only_a_hole_in_history_lists() {
    use Verdict::{ListAgain, ListAgainAfterBackoff};
    let expired = said(410, "Expired", "too old resource version: 5 (900)");
    let gone = said(410, "Gone", "");
    let bare = said(410, "", "");
    let by_reason = said(400, "Expired", "The resourceVersion for the provided watch is too old.");
    let by_message = said(500, "InternalError", "etcdserver: mvcc: required revision has been compacted");
    let lost = said(500, "InternalError", "etcd event received with PrevKv=nil (key=\"/registry/pods/a/b\")");
    let odd = said(500, "InternalError", "Internal error occurred: a bad day");
    let unfit = said(400, "BadRequest", "invalid resource version");
    check(&[
        ("410", WATCH_CLOSED, Once, Seen::Refused(&expired), ListAgain(ListReason::Expired)),
        ("410 without a Status", WATCH_CLOSED, Once, Seen::Refused(&bare), ListAgain(ListReason::Expired)),
        ("ERROR 410 Expired", WATCH, Once, Seen::Error(&expired), ListAgain(ListReason::Expired)),
        ("ERROR 410 Gone", WATCH, Once, Seen::Error(&gone), ListAgain(ListReason::Expired)),
        ("Expired with another code", WATCH, Once, Seen::Error(&by_reason), ListAgain(ListReason::Expired)),
        ("compacted, as a 500", WATCH, Once, Seen::Error(&by_message), ListAgain(ListReason::Expired)),
        ("an event was lost #123072", WATCH, Once, Seen::Error(&lost), ListAgain(ListReason::LostEvent)),
        ("an older event", WATCH, Once, Seen::WentBack, ListAgain(ListReason::WentBack)),
        (
            "the same ERROR twice",
            WATCH,
            Again,
            Seen::Error(&odd),
            ListAgainAfterBackoff(ListReason::SameErrorTwice),
        ),
        (
            "the same 400 twice",
            WATCH_CLOSED,
            Again,
            Seen::Refused(&unfit),
            ListAgainAfterBackoff(ListReason::SameErrorTwice),
        ),
        (
            "an unreadable frame twice",
            WATCH,
            Again,
            Seen::Garbled,
            ListAgainAfterBackoff(ListReason::Garbled),
        ),
        ("not a watch twice", WATCH, Again, Seen::NotAWatch, ListAgainAfterBackoff(ListReason::Garbled)),
    ]);
}

#[test]
fn a_server_that_lags_is_waited_for() {
    use Verdict::WaitAndAskAgain;
    let by_cause = Refusal { too_large: true, ..said(504, "Timeout", "Timeout") };
    let by_message = said(504, "Timeout", "Timeout: Too large resource version: 9, current: 5");
    let of_etcd = said(500, "InternalError", "etcdserver: mvcc: required revision is a future revision");
    for place in [WATCH, WATCH_CLOSED, STATE, STATE_CLOSED, FIRST_PAGE, LATER_PAGE] {
        check(&[
            ("by its cause", place, Again, Seen::Refused(&by_cause), WaitAndAskAgain),
            ("by its message", place, Again, Seen::Refused(&by_message), WaitAndAskAgain),
            ("ERROR by its cause", place, Again, Seen::Error(&by_cause), WaitAndAskAgain),
            ("ERROR of etcd", place, Again, Seen::Error(&of_etcd), WaitAndAskAgain),
        ]);
    }
    for place in [STATE, FIRST_PAGE, LATER_PAGE] {
        check(&[("an older state #59848", place, Once, Seen::Stale, WaitAndAskAgain)]);
    }
}

#[test]
fn who_is_not_let_in_keeps_what_there_is() {
    use Verdict::{KeepAndBackOff, KeepAndListOnceServed};
    let unknown = said(401, "Unauthorized", "Unauthorized");
    let forbidden = said(403, "Forbidden", "pods \"resourceVersion for the provided too old\" is forbidden");
    let not_found = said(404, "", "404 page not found");
    for place in [WATCH, WATCH_CLOSED, STATE, STATE_CLOSED, FIRST_PAGE, LATER_PAGE] {
        check(&[
            ("401", place, Again, Seen::Refused(&unknown), KeepAndBackOff),
            ("403", place, Again, Seen::Refused(&forbidden), KeepAndBackOff),
            ("404", place, Again, Seen::Refused(&not_found), KeepAndListOnceServed),
            ("ERROR 401, of a token that ran out", place, Again, Seen::Error(&unknown), KeepAndBackOff),
        ]);
    }
}

#[test]
fn a_watch_list_that_is_none_becomes_pages() {
    use Verdict::{GoOn, GoOnAfterBackoff, InPages, KeepAndBackOff, ListNewest};
    let unfit = said(400, "BadRequest", "unknown parameter");
    let invalid = said(422, "Invalid", "sendInitialEvents: Forbidden");
    let disabled = said(500, "InternalError", "required storage feature RequestWatchProgress is disabled");
    let odd = said(500, "InternalError", "Internal error occurred: a bad day");
    let teapot = said(418, "", "");
    let busy = said(429, "TooManyRequests", "");
    let expired = said(410, "Expired", "");
    check(&[
        ("400", STATE_CLOSED, Once, Seen::Refused(&unfit), InPages(Fallback::Refused)),
        ("422", STATE_CLOSED, Once, Seen::Refused(&invalid), InPages(Fallback::Refused)),
        ("ERROR 500 not enabled", STATE, Once, Seen::Error(&disabled), InPages(Fallback::Refused)),
        ("ERROR 500", STATE, Once, Seen::Error(&odd), InPages(Fallback::Error)),
        ("a list", STATE, Once, Seen::NotAWatch, InPages(Fallback::NotAWatch)),
        ("no end bookmark #140890", STATE, Once, Seen::NoEndBookmark, InPages(Fallback::NoEndBookmark)),
        ("an end before it", STATE, Once, Seen::Ended, InPages(Fallback::Ended)),
        ("a bookmark without the mark", STATE, Once, Seen::PlainBookmark, InPages(Fallback::PlainBookmark)),
        ("half a frame of it", STATE, Once, Seen::Fault(Fault::HalfFrame), InPages(Fallback::Cut)),
        ("cut halfway", STATE, Once, Seen::Fault(Fault::TimedOut), InPages(Fallback::Cut)),
        ("an unreadable frame", STATE, Once, Seen::Garbled, InPages(Fallback::Garbled)),
        ("refused connection", STATE_CLOSED, Once, Seen::Fault(Fault::Refused), GoOnAfterBackoff),
        ("GOAWAY before the head", STATE_CLOSED, Once, Seen::Fault(Fault::GoAway), GoOn),
        ("429", STATE_CLOSED, Once, Seen::Refused(&busy), GoOnAfterBackoff),
        ("500", STATE_CLOSED, Once, Seen::Refused(&odd), GoOnAfterBackoff),
        ("a code that nobody knows", STATE_CLOSED, Once, Seen::Refused(&teapot), KeepAndBackOff),
        ("410", STATE_CLOSED, Once, Seen::Refused(&expired), ListNewest),
        ("ERROR 410", STATE, Once, Seen::Error(&expired), ListNewest),
    ]);
}

#[test]
fn a_list_goes_on_from_its_page() {
    use Verdict::{GoOn, GoOnAfterBackoff, KeepAndBackOff, ListNewest, PagesAnew};
    let busy = said(429, "TooManyRequests", "");
    let down = said(503, "", "");
    let expired = said(410, "Expired", "The provided continue parameter is too old");
    let bad_token = said(400, "BadRequest", "invalid continue token: illegal base64 data");
    let teapot = said(418, "", "");
    check(&[
        ("a page cut halfway", LATER_PAGE, Once, Seen::Fault(Fault::TimedOut), GoOn),
        ("half an item, and nothing more", LATER_PAGE, Once, Seen::Fault(Fault::HalfFrame), GoOn),
        ("a page that ended before its end", LATER_PAGE, Once, Seen::Ended, GoOn),
        ("refused connection", LATER_PAGE_CLOSED, Once, Seen::Fault(Fault::Refused), GoOnAfterBackoff),
        ("429", LATER_PAGE_CLOSED, Once, Seen::Refused(&busy), GoOnAfterBackoff),
        ("503", LATER_PAGE_CLOSED, Once, Seen::Refused(&down), GoOnAfterBackoff),
        ("an expired token", LATER_PAGE_CLOSED, Once, Seen::Refused(&expired), PagesAnew(Anew::TokenExpired)),
        (
            "a token of no use",
            LATER_PAGE_CLOSED,
            Once,
            Seen::Refused(&bad_token),
            PagesAnew(Anew::TokenExpired),
        ),
        ("410 on the first page", FIRST_PAGE, Once, Seen::Refused(&expired), ListNewest),
        ("400 on the first page", FIRST_PAGE, Once, Seen::Refused(&bad_token), ListNewest),
        ("a code that nobody knows", FIRST_PAGE, Once, Seen::Refused(&teapot), KeepAndBackOff),
        ("an unreadable page", LATER_PAGE, Once, Seen::Garbled, GoOnAfterBackoff),
        ("an unreadable page again", LATER_PAGE, Again, Seen::Garbled, PagesAnew(Anew::Garbled)),
    ]);
}

#[test]
fn a_probe_that_fails_leaves_the_question_open() {
    let expired = said(410, "Expired", "");
    for seen in [Seen::Refused(&expired), Seen::Fault(Fault::Reset), Seen::Garbled, Seen::Ended] {
        assert_eq!(judge(&seen, Place::Probe, false), Verdict::GoOnAfterBackoff, "{seen:?}");
    }
}

#[test]
fn no_fault_lists_from_a_watch() {
    for (fault, open, again) in Fault::ALL
        .iter()
        .flat_map(|fault| [(fault, true), (fault, false)])
        .flat_map(|(f, o)| [(f, o, true), (f, o, false)])
    {
        let verdict = judge(&Seen::Fault(*fault), Place::Watch { open }, again);
        assert!(matches!(verdict, Verdict::GoOn | Verdict::GoOnAfterBackoff), "{fault:?}: {verdict:?}");
    }
}

#[test]
fn only_an_error_that_may_be_the_revisions_own_is_remembered() {
    let odd = said(500, "InternalError", "request 1 failed");
    let same = said(500, "InternalError", "request 2 failed");
    let other = said(400, "BadRequest", "request 1 failed");
    let no_leader = said(500, "InternalError", "etcdserver: no leader");
    assert_eq!(known(&Seen::Error(&odd)), known(&Seen::Error(&same)));
    assert_ne!(known(&Seen::Error(&odd)), known(&Seen::Error(&other)));
    assert!(known(&Seen::Garbled).is_some());
    for seen in [Seen::Error(&no_leader), Seen::Refused(&odd), Seen::Fault(Fault::Reset), Seen::Ended] {
        assert_eq!(known(&seen), None, "{seen:?}");
    }
}
