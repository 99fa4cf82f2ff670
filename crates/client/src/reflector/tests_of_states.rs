//! Whole states: watch-lists, and pages where there are none.

use forebay_rt::Duration;

use super::tests::{Run, rev, said};
use super::{Anew, Fallback, Fault, Input, ListReason, Report, Way, Why};
use crate::limits::{
    BACKOFF_MIN, END_BOOKMARK_WAIT, HALF_FRAME_WAIT, PAGE_ITEMS, TOKENS_EXPIRED_MAX, WATCH_LIST_TRIES,
};

/// One that has begun, without a state.
fn begun() -> Run {
    let mut run = Run::new();
    assert_eq!(run.tell(Input::Start { from: None }), "watch-list");
    run
}

/// One that lists in pages.
fn in_pages() -> Run {
    let mut run = begun();
    assert_eq!(run.refused(422), "list 500");
    assert_eq!(run.tell(Input::Opened), "begin First");
    run
}

#[test]
fn the_first_state_is_a_watch_list_that_goes_on_as_a_watch() {
    let mut run = begun();
    assert_eq!(run.tell(Input::Opened), "begin First");
    assert_eq!([run.event(9), run.event(3), run.event(3)], ["take", "take", "take"]);
    assert_eq!((run.revision(), run.reflector.is_synced()), (None, false));
    run.now += Duration::from_secs(2);
    assert_eq!(run.ends_state(11), "end 11");
    assert_eq!((run.revision(), run.reflector.is_synced()), (Some(11), true));
    assert_eq!(run.reflector.health().synced_since, Some(run.now));
    assert_eq!(run.event(12), "take");
    assert_eq!(run.tell(Input::Ended), "watch 12");
    let listed = Report::Listed { why: ListReason::First, way: Way::WatchList, revision: rev(11) };
    assert_eq!(run.reports, [listed]);
}

#[test]
fn the_bookmark_that_ends_a_state_promises_no_others() {
    let mut run = begun();
    run.tell(Input::Opened);
    run.ends_state(11);
    assert_eq!(run.sleep(), "hang up, new connection, watch 11");
    assert!(run.now > Duration::from_secs(300));
}

#[test]
fn a_server_without_watch_lists_is_listed_in_pages_from_then_on() {
    for (why, tell) in [
        (Fallback::Refused, Input::Refused(said(400, "unknown"))),
        (Fallback::Refused, Input::Refused(said(422, "sendInitialEvents: Forbidden"))),
        (Fallback::NotAWatch, Input::NotAWatch),
        (Fallback::PlainBookmark, Input::Bookmark { revision: rev(9), ends_state: false }),
    ] {
        let mut run = begun();
        assert!(run.tell(tell.clone()).ends_with("list 500"), "{tell:?}");
        let told = Report::InPages { why, remembered: true };
        assert!(run.reports.contains(&told), "{:?}", run.reports);
        assert_eq!(run.tell(Input::Opened), "begin First");
        assert_eq!(run.page(11, ""), "end 11, watch 11");
        assert_eq!(run.refused(410), "list 500 >=11");
        assert_eq!(run.reports.iter().filter(|report| **report == told).count(), 1);
    }
}

#[test]
fn an_end_bookmark_that_never_comes_turns_into_pages() {
    let mut run = begun();
    run.tell(Input::Opened);
    run.now += Duration::from_secs(3);
    run.event(4);
    let before = run.now;
    assert_eq!(run.sleep(), "hang up, new connection, list 500");
    assert_eq!(run.now - before, END_BOOKMARK_WAIT);
    assert!(run.reports.contains(&Report::InPages { why: Fallback::NoEndBookmark, remembered: true }));
}

#[test]
fn events_behind_the_state_do_not_put_off_its_end_bookmark() {
    let mut run = begun();
    run.tell(Input::Opened);
    run.event(4);
    let behind = run.now;
    loop {
        run.tell(Input::PastState);
        run.event(5);
        run.now += Duration::from_secs(3);
        match run.tell(Input::Timer).as_str() {
            "" => assert!(run.now - behind < END_BOOKMARK_WAIT, "it waits for ever"),
            done => {
                assert_eq!(done, "hang up, new connection, list 500");
                return;
            }
        }
    }
}

#[test]
fn a_watch_list_that_ends_is_no_proof_until_the_second_time() {
    let mut run = begun();
    for remembered in [false, true] {
        run.tell(Input::Opened);
        assert!(run.tell(Input::Ended).starts_with("list 500"));
        assert_eq!(run.reports.last(), Some(&Report::InPages { why: Fallback::Ended, remembered }));
        run.tell(Input::Opened);
        assert_eq!(run.page(11, ""), "end 11, watch 11");
        let done = run.refused(410);
        let list = if done.is_empty() { run.sleep() } else { done };
        assert_eq!(list, if remembered { "list 500 >=11" } else { "watch-list >=11" });
    }
}

#[test]
fn a_watch_list_that_was_cut_becomes_pages_this_time() {
    let mut run = begun();
    run.tell(Input::Opened);
    run.event(3);
    assert_eq!(run.tell(Input::Failed(Fault::CutShort)), "list 500");
    assert_eq!(run.tell(Input::Opened), "begin First");
    assert_eq!(run.page(11, ""), "end 11, watch 11");
    assert_eq!(run.refused(410), "watch-list >=11");
}

#[test]
fn a_watch_list_that_cannot_begin_is_asked_for_again() {
    let mut run = begun();
    for input in [
        Input::Failed(Fault::Refused),
        Input::Failed(Fault::Dns),
        Input::Refused(said(429, "storage is (re)initializing")),
        Input::Refused(said(503, "")),
        Input::Refused(said(401, "")),
        Input::Refused(said(404, "")),
    ] {
        assert_eq!(run.tell(input), "");
        assert_eq!(run.sleep(), "watch-list");
    }
}

#[test]
fn a_server_whose_watch_lists_fail_is_listed_in_pages_this_time() {
    let mut run = begun();
    for _ in 1..WATCH_LIST_TRIES {
        assert_eq!(run.refused(500), "");
        assert_eq!(run.sleep(), "watch-list");
    }
    assert_eq!(run.refused(500), "");
    assert_eq!(run.sleep(), "list 500");
    assert!(run.reports.contains(&Report::InPages { why: Fallback::Error, remembered: false }));
}

#[test]
fn a_list_is_of_the_revision_of_its_first_page() {
    let mut run = in_pages();
    assert_eq!(run.tell(Input::Item), "take");
    assert_eq!(run.page(11, "a"), "list 500 from a");
    assert_eq!(run.tell(Input::Opened), "");
    assert_eq!(run.tell(Input::PageBegan { revision: rev(14) }), "");
    assert_eq!(run.revision(), None);
    assert_eq!(run.page(14, ""), "end 11, watch 11");
}

#[test]
fn one_page_in_each_timeout_is_enough() {
    let mut run = in_pages();
    let mut pages = 0;
    let mut token = "t".to_owned();
    assert_eq!(run.page(11, &token), "list 500 from t");
    run.tell(Input::Opened);
    while pages < 20 {
        let began = run.now;
        run.tell(Input::Item);
        // The page is cut, then comes.
        let done = run.tell(Input::Failed(Fault::TimedOut));
        let items = (PAGE_ITEMS >> (pages + 1)).max(1);
        assert_eq!(done, format!("new connection, list {items} from {token}"));
        run.tell(Input::Opened);
        token = format!("t{pages}");
        assert_eq!(run.page(11, &token), format!("list {items} from {token}"));
        run.tell(Input::Opened);
        assert_eq!(run.now, began);
        pages += 1;
    }
    assert_eq!(run.page(11, ""), "end 11, watch 11");
}

#[test]
fn a_page_that_stops_within_an_item_is_asked_for_again_from_its_token() {
    let mut run = in_pages();
    run.page(11, "a");
    run.tell(Input::Opened);
    run.tell(Input::Item);
    run.tell(Input::HalfFrame);
    let last_byte = run.now;
    assert_eq!(run.sleep(), "hang up, new connection, list 250 from a");
    assert_eq!(run.now, last_byte + HALF_FRAME_WAIT);
}

#[test]
fn a_page_that_is_cut_again_and_again_is_asked_for_with_backoff_and_less_at_a_time() {
    let mut run = in_pages();
    run.page(11, "a");
    run.tell(Input::Opened);
    assert_eq!(run.tell(Input::Failed(Fault::Reset)), "list 250 from a");
    run.tell(Input::Opened);
    let before = run.now;
    assert_eq!(run.tell(Input::Ended), "");
    assert_eq!(run.sleep(), "list 125 from a");
    assert!(run.now >= before + BACKOFF_MIN);
}

#[test]
fn a_page_that_is_refused_is_asked_for_again_with_its_token() {
    let mut run = in_pages();
    run.page(11, "a");
    for code in [429, 500, 503, 401] {
        assert_eq!(run.refused(code), "");
        assert_eq!(run.sleep(), "list 500 from a");
    }
}

#[test]
fn an_expired_token_begins_the_list_anew_and_in_the_end_in_one_piece() {
    let mut run = in_pages();
    for time in 1..=TOKENS_EXPIRED_MAX {
        run.page(11, "a");
        let mut done = run.refused(410);
        if done.is_empty() {
            done = run.sleep();
        }
        assert_eq!(done, if time < TOKENS_EXPIRED_MAX { "list 500" } else { "list" });
        assert_eq!(run.reports.last(), Some(&Report::ListAnew(Anew::TokenExpired)));
        assert_eq!(run.tell(Input::Opened), "begin First");
    }
    // In one piece it is too much: pages again.
    assert!(run.tell(Input::Failed(Fault::CutShort)).ends_with("list 500"));
    run.tell(Input::Opened);
    assert_eq!(run.page(12, ""), "end 12, watch 12");
}

#[test]
fn a_token_that_leads_back_to_itself_does_not_loop() {
    let mut run = in_pages();
    run.page(11, "a");
    assert_eq!(run.page(11, "a"), "");
    assert_eq!(run.why(), Some(Why::Garbled));
    assert_eq!(run.sleep(), "list 250 from a");
    assert_eq!(run.page(11, "a"), "list 125");
    assert_eq!(run.reports.last(), Some(&Report::ListAnew(Anew::Garbled)));
}

#[test]
fn a_page_that_is_too_long_to_be_read_is_asked_for_with_less_in_it() {
    let mut run = in_pages();
    run.page(11, "a");
    run.tell(Input::Opened);
    assert_eq!(run.tell(Input::Garbled), "hang up");
    assert_eq!(run.sleep(), "list 250 from a");
    run.tell(Input::Opened);
    assert_eq!(run.page(11, "b"), "list 250 from b");
}

#[test]
fn a_state_older_than_ours_is_refused() {
    let stale = Report::StaleState { held: rev(5), offered: rev(4) };
    let mut run = Run::watching();
    run.refused(410);
    run.tell(Input::Opened);
    assert_eq!(run.ends_state(4), "hang up");
    assert_eq!((run.revision(), run.why()), (Some(5), Some(Why::Lagging)));
    assert!(run.reports.contains(&stale));
    assert_eq!(run.sleep(), "watch-list >=5");
    assert_eq!(run.refused(422), "");
    assert_eq!(run.sleep(), "list 500 >=5");
    run.tell(Input::Opened);
    assert_eq!(run.tell(Input::PageBegan { revision: rev(4) }), "hang up");
    assert_eq!(run.sleep(), "list 500 >=5");
    run.tell(Input::Opened);
    assert_eq!(run.page(4, "a"), "");
    assert_eq!(run.sleep(), "list 1");
    assert_eq!(run.page(4, "a"), "list 500");
    assert_eq!(run.tell(Input::Opened), "begin Restored may go back");
    assert_eq!(run.page(4, ""), "end 4, watch 4");
}

#[test]
fn a_state_that_is_too_large_for_a_lagging_server_waits() {
    let mut run = Run::watching();
    run.refused(410);
    for next in ["watch-list >=5", "watch-list >=5", "list 1"] {
        let before = run.now;
        assert_eq!(run.too_large(), "");
        assert_eq!(run.sleep(), next);
        assert!(run.now >= before + BACKOFF_MIN);
    }
    assert_eq!(run.page(8, ""), "watch-list >=5");
}

#[test]
fn a_revision_that_a_list_cannot_be_held_to_is_held_against_the_newest() {
    let mut run = Run::watching();
    run.refused(410);
    assert_eq!(run.refused(422), "list 500 >=5");
    // An older server takes it for that very revision, which it has no more.
    let done = run.refused(410);
    assert_eq!(if done.is_empty() { run.sleep() } else { done }, "list 500");
    run.tell(Input::Opened);
    assert_eq!(run.page(9, ""), "end 9, watch 9");
}

#[test]
fn an_event_in_a_list_and_an_item_in_a_watch_do_not_count() {
    let mut run = in_pages();
    assert_eq!(run.event(4), "skip");
    let mut run = Run::watching();
    assert_eq!(run.tell(Input::Item), "skip");
    assert_eq!(run.page(9, ""), "");
    assert_eq!(run.revision(), Some(5));
}

#[test]
fn a_collection_that_vanishes_while_it_is_listed_is_listed_from_its_beginning() {
    let mut run = in_pages();
    run.page(11, "a");
    assert_eq!(run.refused(404), "");
    assert_eq!(run.sleep(), "list 500");
    assert_eq!(run.tell(Input::Opened), "begin First");
}
