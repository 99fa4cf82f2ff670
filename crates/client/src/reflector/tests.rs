//! Watches: what is told to a reflector, and what it does.

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_rt::{Duration, Random};

use super::{Effect, Fault, Input, ListReason, Reflector, Refusal, Report, Why};
use crate::limits::{
    ANSWER_WAIT_MAX, BACKOFF_MAX, BACKOFF_MIN, BOOKMARK_INTERVAL_MIN, HALF_FRAME_WAIT, SLOT_SPREAD,
    STANDS_AFTER, TOO_LARGE_TRIES, WATCH_OVERTIME, WATCH_SECONDS,
};
use crate::{Ask, Match};

/// A reflector with a clock and an owner that does nothing but write down.
pub(super) struct Run {
    pub reflector: Reflector,
    pub now: Duration,
    pub reports: Vec<Report>,
    pub asks: Vec<Ask>,
    wake_at: Option<Duration>,
}

impl Run {
    pub fn new() -> Run {
        Run {
            reflector: Reflector::new(Arc::new(Random::seeded(1))),
            now: Duration::ZERO,
            reports: Vec::new(),
            asks: Vec::new(),
            wake_at: None,
        }
    }

    /// One that has a state of revision 5 and an open watch.
    pub fn watching() -> Run {
        let mut run = Run::new();
        assert_eq!(run.tell(Input::Start { from: Some(rev(5)) }), "watch 5");
        assert_eq!(run.tell(Input::Opened), "");
        run
    }

    /// What is done, but for reports and wake-ups.
    pub fn tell(&mut self, input: Input) -> String {
        let effects = self.reflector.step(input, self.now);
        let mut texts = Vec::new();
        for effect in effects {
            match &effect {
                Effect::Ask(ask) => self.asks.push(ask.clone()),
                Effect::WakeAt(at) => self.wake_at = Some(*at),
                Effect::Report(report) => self.reports.push(report.clone()),
                _ => {}
            }
            texts.extend(text(&effect));
        }
        texts.join(", ")
    }

    pub fn event(&mut self, revision: u64) -> String {
        self.tell(Input::Event { revision: rev(revision) })
    }

    pub fn bookmark(&mut self, revision: u64) -> String {
        self.tell(Input::Bookmark { revision: rev(revision), ends_state: false })
    }

    pub fn ends_state(&mut self, revision: u64) -> String {
        self.tell(Input::Bookmark { revision: rev(revision), ends_state: true })
    }

    pub fn page(&mut self, revision: u64, next: &str) -> String {
        self.tell(Input::Page { revision: rev(revision), next: Some(next.into()) })
    }

    pub fn error(&mut self, code: u16, message: &str) -> String {
        self.tell(Input::StreamError(said(code, message)))
    }

    pub fn refused(&mut self, code: u16) -> String {
        self.tell(Input::Refused(said(code, "")))
    }

    pub fn too_large(&mut self) -> String {
        self.tell(Input::Refused(Refusal { too_large: true, ..said(504, "") }))
    }

    /// Sleeps until something is done; how long that was is in `now`.
    pub fn sleep(&mut self) -> String {
        for _ in 0..10 {
            let at = self.wake_at.take().expect("nobody will wake it");
            self.now = self.now.max(at);
            let done = self.tell(Input::Timer);
            if !done.is_empty() {
                return done;
            }
        }
        panic!("it sleeps for ever")
    }

    pub fn revision(&self) -> Option<u64> {
        self.reflector.revision().map(Revision::get)
    }

    pub fn why(&self) -> Option<Why> {
        self.reflector.health().failing.map(|failing| failing.why)
    }

    pub fn lists(&self) -> usize {
        self.asks.iter().filter(|ask| !matches!(ask, Ask::Watch { .. })).count()
    }
}

pub(super) fn rev(number: u64) -> Revision {
    Revision::new(number).expect("not 0")
}

pub(super) fn said(code: u16, message: &str) -> Refusal {
    Refusal { code, message: message.into(), ..Refusal::default() }
}

fn text(effect: &Effect) -> Option<String> {
    let floor = |floor: Option<Revision>| floor.map_or(String::new(), |floor| format!(" >={floor}"));
    Some(match effect {
        Effect::Ask(Ask::Watch { after, .. }) => format!("watch {after}"),
        Effect::Ask(Ask::WatchList { not_older_than, .. }) => format!("watch-list{}", floor(*not_older_than)),
        Effect::Ask(Ask::List { limit, next, at }) => {
            let limit = limit.map_or(String::new(), |limit| format!(" {limit}"));
            let next = next.as_ref().map_or(String::new(), |next| format!(" from {next}"));
            assert!(at.is_none_or(|(_, how)| how == Match::NotOlderThan));
            format!("list{limit}{next}{}", floor(at.map(|(revision, _)| revision)))
        }
        Effect::HangUp => "hang up".into(),
        Effect::NewConnection => "new connection".into(),
        Effect::Take => "take".into(),
        Effect::Skip => "skip".into(),
        Effect::LetGo => "let go".into(),
        Effect::BeginState { why, may_go_back } => {
            format!("begin {why:?}{}", if *may_go_back { " may go back" } else { "" })
        }
        Effect::EndState { revision } => format!("end {revision}"),
        Effect::Progress(revision) => format!("progress {revision}"),
        Effect::WakeAt(_) | Effect::Report(_) => return None,
    })
}

#[test]
fn a_kept_state_is_watched_from_and_not_listed() {
    let mut run = Run::watching();
    assert!(run.reflector.is_synced());
    assert_eq!(run.event(7), "take");
    assert_eq!(run.bookmark(9), "progress 9");
    assert_eq!(run.bookmark(9), "");
    assert_eq!(run.revision(), Some(9));
    assert_eq!(run.tell(Input::Ended), "watch 9");
    assert_eq!(run.lists(), 0);
}

#[test]
fn a_watch_asks_for_five_to_ten_minutes() {
    let mut run = Run::watching();
    for revision in 6..200 {
        run.event(revision);
        run.tell(Input::Ended);
    }
    let mut times: Vec<u32> = run
        .asks
        .iter()
        .map(|ask| match ask {
            Ask::Watch { timeout_seconds, .. } => *timeout_seconds,
            other => panic!("{other:?}"),
        })
        .collect();
    times.sort();
    assert!(times.iter().all(|time| WATCH_SECONDS.contains(time)));
    assert!(times.last().expect("some") - times.first().expect("some") > 200);
}

#[test]
fn two_events_of_one_revision_both_count() {
    let mut run = Run::watching();
    assert_eq!([run.event(6), run.event(6)], ["take", "take"]);
}

#[test]
fn a_watch_that_ends_at_once_is_taken_up_at_once_and_then_with_backoff() {
    let mut run = Run::watching();
    assert_eq!(run.tell(Input::Ended), "watch 5");
    for _ in 0..5 {
        let before = run.now;
        assert_eq!(run.tell(Input::Opened), "");
        assert_eq!(run.tell(Input::Ended), "");
        assert_eq!(run.sleep(), "watch 5");
        assert!(run.now >= before + BACKOFF_MIN);
    }
    assert_eq!(run.why(), Some(Why::EndsEarly));
    run.tell(Input::Opened);
    run.event(6);
    assert_eq!(run.why(), None);
    assert_eq!(run.tell(Input::Ended), "watch 6");
}

#[test]
fn backoff_begins_anew_when_a_watch_stands_though_it_is_quiet() {
    let mut run = Run::watching();
    for _ in 0..10 {
        run.tell(Input::Failed(Fault::Refused));
        run.sleep();
    }
    run.tell(Input::Opened);
    run.now += STANDS_AFTER;
    assert_eq!(run.tell(Input::Timer), "");
    assert_eq!(run.tell(Input::Failed(Fault::Reset)), "watch 5");
}

#[test]
fn retry_after_is_obeyed() {
    let told = Duration::from_secs(17);
    for code in [429, 500, 503, 504] {
        let mut run = Run::watching();
        run.tell(Input::Ended);
        let said = Refusal { retry_after: Some(told), ..said(code, "") };
        assert_eq!(run.tell(Input::Refused(said)), "");
        assert_eq!(run.sleep(), "watch 5");
        // A slot is for this one; what all are told is spread.
        let latest = if code == 429 { told + SLOT_SPREAD } else { 2 * told };
        assert!((told..latest).contains(&run.now), "{code}: {:?}", run.now);
    }
}

#[test]
fn ten_minutes_of_any_fault_cost_no_list() {
    let mut kinds: Vec<(String, Vec<Input>)> = Vec::new();
    for fault in Fault::ALL {
        kinds.push((format!("{fault:?}"), vec![Input::Failed(fault)]));
        kinds.push((format!("open, {fault:?}"), vec![Input::Opened, Input::Failed(fault)]));
    }
    for code in [408, 429, 500, 502, 503, 504] {
        kinds.push((format!("{code}"), vec![Input::Refused(said(code, "down"))]));
    }
    for (code, message) in [(429, "busy"), (500, "etcdserver: no leader"), (503, "down"), (504, "slow")] {
        let error = Input::StreamError(said(code, message));
        kinds.push((format!("ERROR {code}"), vec![Input::Opened, error]));
    }
    kinds.push(("ends".into(), vec![Input::Opened, Input::Ended]));
    kinds.push(("401".into(), vec![Input::Refused(said(401, ""))]));
    kinds.push(("403".into(), vec![Input::Refused(said(403, ""))]));
    // And one after the other, in turn.
    kinds.push(("all".into(), Vec::new()));
    let all: Vec<Vec<Input>> = kinds.iter().map(|(_, inputs)| inputs.clone()).collect();
    for (name, inputs) in kinds {
        let mut run = Run::watching();
        run.event(6);
        let mut asked = 0;
        while run.now < Duration::from_secs(600) {
            let inputs = if name == "all" { &all[asked % (all.len() - 1)] } else { &inputs };
            let done: Vec<_> = inputs.iter().map(|input| run.tell(input.clone())).collect();
            asked += 1;
            assert!(asked <= 40, "{name}: too many by {:?}", run.now);
            if !done.iter().any(|done| done.contains("watch")) {
                run.sleep();
            }
        }
        assert_eq!(run.lists(), 0, "{name}");
        assert!(
            run.asks.iter().skip(1).all(|ask| matches!(ask, Ask::Watch { after, .. } if *after == rev(6)))
        );
        assert!(asked >= 10, "{name}: {asked} requests");
        run.tell(Input::Opened);
        assert_eq!(run.event(7), "take", "{name}");
        assert_eq!((run.why(), run.revision()), (None, Some(7)), "{name}");
    }
}

#[test]
fn an_expired_revision_lists_at_once_and_once() {
    for in_stream in [true, false] {
        let mut run = Run::watching();
        let done = if in_stream { run.error(410, "too old resource version") } else { run.refused(410) };
        assert_eq!(done, if in_stream { "hang up, watch-list >=5" } else { "watch-list >=5" });
        assert_eq!(run.tell(Input::Opened), "begin Expired");
        assert_eq!(run.event(3), "take");
        assert_eq!(run.revision(), Some(5));
        assert_eq!(run.ends_state(12), "end 12");
        assert_eq!(run.event(13), "take");
        assert_eq!(run.lists(), 1);
    }
}

#[test]
fn a_server_that_expires_what_it_has_just_listed_is_not_listed_in_a_loop() {
    let mut run = Run::watching();
    run.error(410, "");
    for _ in 0..4 {
        run.tell(Input::Opened);
        assert_eq!(run.ends_state(12), "end 12");
        let before = run.now;
        assert_eq!(run.error(410, ""), "hang up");
        assert_eq!(run.sleep(), "watch-list >=12");
        assert!(run.now >= before + BACKOFF_MIN);
    }
    assert!(run.now > Duration::from_secs(12));
}

#[test]
fn an_older_event_is_not_applied_and_lists() {
    let mut run = Run::watching();
    assert_eq!(run.event(4), "skip, hang up, watch-list >=5");
    let mut run = Run::watching();
    assert_eq!(run.bookmark(4), "hang up, watch-list >=5");
    assert_eq!(run.revision(), Some(5));
}

#[test]
fn a_lost_event_lists_the_newest_state() {
    let mut run = Run::watching();
    assert_eq!(run.error(500, "etcd event received with PrevKv=nil (key=a)"), "hang up, watch-list");
    assert_eq!(run.tell(Input::Opened), "begin LostEvent");
}

#[test]
fn the_same_error_twice_from_one_revision_lists_with_backoff() {
    let mut run = Run::watching();
    for (first, message) in [(true, "cannot convert"), (false, "cannot convert")] {
        assert_eq!(run.error(500, message), "hang up");
        assert_eq!(run.sleep(), if first { "watch 5" } else { "watch-list >=5" });
        run.tell(Input::Opened);
    }
    assert_eq!(run.ends_state(5), "end 5");
    let mut waits = Vec::new();
    for _ in 0..4 {
        let before = run.now;
        assert_eq!(run.error(500, "cannot convert"), "hang up");
        assert_eq!(run.sleep(), "watch-list >=5");
        waits.push(run.now - before);
        run.tell(Input::Opened);
        run.ends_state(5);
    }
    assert!(waits[3] > 4 * BACKOFF_MIN, "{waits:?}");
}

#[test]
fn different_errors_or_progress_between_them_do_not_list() {
    let mut run = Run::watching();
    for revision in 6..10 {
        run.error(500, "cannot convert");
        assert_eq!(run.sleep(), format!("watch {}", revision - 1));
        run.tell(Input::Opened);
        run.event(revision);
    }
    for code in [500, 400, 500] {
        run.error(code, "cannot convert");
        assert_eq!(run.sleep(), "watch 9");
        run.tell(Input::Opened);
    }
}

#[test]
fn an_unreadable_frame_is_asked_for_again_before_it_lists() {
    let mut run = Run::watching();
    assert_eq!(run.tell(Input::Garbled), "hang up, watch 5");
    run.tell(Input::Opened);
    assert_eq!(run.tell(Input::Garbled), "hang up");
    assert_eq!(run.why(), Some(Why::Garbled));
    assert_eq!(run.sleep(), "watch-list >=5");
    assert_eq!(run.tell(Input::Opened), "begin Garbled");
}

#[test]
fn credentials_that_ran_out_keep_the_state_and_say_so() {
    for (code, why) in [(401, Why::Unauthorized), (403, Why::Forbidden)] {
        let mut run = Run::watching();
        run.tell(Input::Ended);
        for _ in 0..8 {
            assert_eq!(run.refused(code), "");
            assert_eq!(run.sleep(), "watch 5");
        }
        let failing = run.reflector.health().failing.expect("it fails");
        assert_eq!((failing.why, failing.times, failing.since), (why, 8, Duration::ZERO));
        assert_eq!(run.reports, [Report::Failing(why)]);
        assert!(run.reflector.is_synced());
        run.tell(Input::Opened);
        assert_eq!((run.why(), run.reports.last()), (None, Some(&Report::Recovered)));
    }
}

#[test]
fn a_collection_that_is_served_again_is_listed_and_not_before() {
    let mut run = Run::watching();
    run.tell(Input::Ended);
    for _ in 0..5 {
        assert_eq!(run.refused(404), "");
        assert_eq!((run.why(), run.revision()), (Some(Why::NotFound), Some(5)));
        assert_eq!(run.sleep(), "watch-list");
    }
    assert_eq!(run.tell(Input::Opened), "begin ServedAgain");
    assert_eq!(run.ends_state(20), "end 20");
}

#[test]
fn a_collection_made_anew_is_listed_at_once() {
    let mut run = Run::watching();
    assert_eq!(run.tell(Input::MadeAnew), "hang up, watch-list");
    assert_eq!(run.tell(Input::MadeAnew), "hang up");
    assert_eq!(run.sleep(), "watch-list");
    assert_eq!(run.tell(Input::Opened), "begin MadeAnew");
}

#[test]
fn a_revision_too_large_is_waited_for_and_then_the_newest_decides() {
    for restored in [false, true] {
        let mut run = Run::watching();
        run.tell(Input::Ended);
        for attempt in 1..=TOO_LARGE_TRIES {
            assert_eq!(run.too_large(), "");
            assert_eq!(run.why(), Some(Why::Lagging));
            let before = run.now;
            assert_eq!(run.sleep(), if attempt < TOO_LARGE_TRIES { "watch 5" } else { "list 1" });
            assert!(run.now >= before + BACKOFF_MIN);
        }
        assert_eq!(run.tell(Input::Opened), "");
        assert_eq!(run.tell(Input::Item), "skip");
        if !restored {
            assert_eq!(run.page(5, "more"), "watch 5");
            continue;
        }
        assert_eq!(run.page(3, "more"), "watch-list");
        assert_eq!(run.tell(Input::Opened), "begin Restored may go back");
        assert_eq!(run.revision(), Some(5));
        assert_eq!(run.ends_state(3), "end 3");
        assert_eq!(run.revision(), Some(3));
        assert!(run.reports.contains(&Report::WentBack { from: rev(5), to: rev(3) }));
        assert_eq!(run.event(4), "take");
    }
}

#[test]
fn a_revision_that_went_back_and_is_too_large_is_decided_the_first_time() {
    let mut run = Run::watching();
    assert_eq!(run.event(2), "skip, hang up, watch-list >=5");
    assert_eq!(run.too_large(), "");
    assert_eq!(run.sleep(), "list 1");
    assert_eq!(run.page(2, ""), "watch-list");
}

#[test]
fn a_probe_that_fails_leaves_things_as_they_were() {
    let mut run = Run::watching();
    run.tell(Input::Ended);
    (0..TOO_LARGE_TRIES).for_each(|_| drop((run.too_large(), run.sleep())));
    assert_eq!(run.refused(500), "");
    assert_eq!(run.sleep(), "watch 5");
    assert_eq!(run.too_large(), "");
    assert_eq!(run.sleep(), "list 1");
}

#[test]
fn a_watch_without_its_bookmarks_is_taken_up_on_a_new_connection() {
    let mut run = Run::watching();
    run.bookmark(6);
    assert_eq!(run.sleep(), "hang up, new connection, watch 6");
    assert_eq!(run.now, 2 * BOOKMARK_INTERVAL_MIN);
    assert_eq!(run.reports.first(), Some(&Report::Silent));
    assert_eq!(run.why(), Some(Why::Silent));
    assert_eq!(run.lists(), 0);
}

#[test]
fn bookmarks_that_come_seldom_are_given_twice_their_time() {
    let mut run = Run::watching();
    run.bookmark(6);
    run.now += Duration::from_secs(100);
    run.bookmark(7);
    let before = run.now;
    assert_eq!(run.sleep(), "hang up, new connection, watch 7");
    assert_eq!(run.now - before, Duration::from_secs(200));
}

#[test]
fn where_there_are_no_bookmarks_only_the_time_of_the_watch_counts() {
    let mut run = Run::watching();
    let Some(Ask::Watch { timeout_seconds, .. }) = run.asks.last() else { panic!("a watch") };
    let ends = Duration::from_secs(u64::from(*timeout_seconds)) + WATCH_OVERTIME;
    assert_eq!(run.sleep(), "hang up, new connection, watch 5");
    assert_eq!(run.now, ends);
}

#[test]
fn two_watches_in_a_row_without_a_word_ask_for_the_newest_revision() {
    let mut run = Run::watching();
    run.bookmark(9);
    assert_eq!(run.sleep(), "hang up, new connection, watch 9");
    for next in ["watch 9", "list 1"] {
        run.tell(Input::Opened);
        assert_eq!(run.sleep(), format!("hang up, new connection, {next}"));
    }
    assert_eq!(run.page(9, ""), "watch 9");
    run.tell(Input::Opened);
    assert_eq!(run.sleep(), "hang up, new connection, watch 9");
    run.tell(Input::Opened);
    assert_eq!(run.sleep(), "hang up, new connection, list 1");
    assert_eq!(run.page(4, ""), "watch-list");
    assert_eq!(run.tell(Input::Opened), "begin Restored may go back");
}

#[test]
fn an_answer_that_never_comes_is_given_up() {
    let mut run = Run::new();
    run.tell(Input::Start { from: Some(rev(5)) });
    assert_eq!(run.sleep(), "hang up, new connection");
    assert_eq!((run.now, run.why()), (ANSWER_WAIT_MAX, Some(Why::Fault(Fault::TimedOut))));
    assert_eq!(run.sleep(), "watch 5");
}

#[test]
fn half_a_frame_that_stops_is_given_up_and_goes_on_from_the_last_revision() {
    let mut run = Run::watching();
    run.event(7);
    assert_eq!(run.tell(Input::HalfFrame), "");
    run.now += HALF_FRAME_WAIT / 2;
    // Slow is not dead.
    assert_eq!(run.tell(Input::HalfFrame), "");
    let last_byte = run.now;
    assert_eq!(run.sleep(), "hang up, new connection, watch 7");
    assert_eq!(run.now, last_byte + HALF_FRAME_WAIT);
    assert_eq!((run.why(), run.lists()), (Some(Why::Fault(Fault::HalfFrame)), 0));
}

#[test]
fn between_whole_frames_a_watch_may_be_silent_for_longer() {
    let mut run = Run::watching();
    run.tell(Input::HalfFrame);
    run.event(7);
    let heard = run.now;
    assert_eq!(run.sleep(), "hang up, new connection, watch 7");
    assert!(run.now >= heard + WATCH_OVERTIME, "{:?}", run.now);
}

#[test]
fn a_connection_that_looks_dead_is_not_used_again() {
    for (fault, done) in [
        (Fault::PingLost, "new connection, watch 5"),
        (Fault::TimedOut, "new connection, watch 5"),
        (Fault::StreamReset, "watch 5"),
    ] {
        assert_eq!(Run::watching().tell(Input::Failed(fault)), done);
    }
}

#[test]
fn what_comes_when_nothing_is_under_way_does_nothing() {
    let mut run = Run::new();
    for input in [Input::Opened, Input::Ended, Input::Timer, Input::MadeAnew, Input::Garbled] {
        assert_eq!(run.tell(input), "");
    }
    assert_eq!(run.event(5), "skip");
    assert_eq!(run.tell(Input::Item), "skip");
    assert_eq!(run.tell(Input::Start { from: None }), "watch-list");
    assert_eq!(run.tell(Input::Start { from: Some(rev(9)) }), "");
    assert_eq!(run.revision(), None);
}

#[test]
fn health_says_when_something_was_last_heard() {
    let mut run = Run::watching();
    run.now += Duration::from_secs(9);
    run.event(6);
    run.now += BACKOFF_MAX;
    run.tell(Input::Failed(Fault::Reset));
    run.tell(Input::Failed(Fault::Refused));
    let health = run.reflector.health();
    assert_eq!(health.last_heard_at, Some(Duration::from_secs(9)));
    assert_eq!(health.synced_since, Some(Duration::ZERO));
    assert_eq!(health.failing.map(|failing| (failing.since, failing.times)), Some((run.now, 2)));
    assert!(
        !run.reports.iter().any(|report| matches!(report, Report::Listed { why: ListReason::First, .. }))
    );
}
