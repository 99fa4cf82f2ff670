//! Waits that are cut short, and those that are long because there is too much.

use forebay_rt::Duration;

use super::tests::{Run, rev, said};
use super::{Fault, Input, ListReason, Refusal, Report, Why};
use crate::limits::{LET_GO_WAIT_MAX, LET_GO_WAIT_MIN, WOKEN_PERIOD_MIN};

/// One whose server is gone, and that waits for long.
fn unreached() -> Run {
    let mut run = Run::watching();
    run.tell(Input::Failed(Fault::Reset));
    for _ in 0..8 {
        assert_eq!(run.tell(Input::Failed(Fault::Refused)), "");
        run.sleep();
    }
    run.tell(Input::Failed(Fault::Refused));
    run
}

#[test]
fn who_waits_for_a_server_that_was_gone_asks_when_it_answers_another() {
    let mut run = unreached();
    assert_eq!(run.tell(Input::ServerAnswers), "watch 5");
    assert_eq!(run.lists(), 0);
}

#[test]
fn what_others_reach_and_we_do_not_is_not_asked_for_in_a_loop() {
    let mut run = unreached();
    let (began, mut asked) = (run.now, 0);
    while run.now < began + 10 * WOKEN_PERIOD_MIN {
        if run.tell(Input::ServerAnswers).is_empty() {
            run.sleep();
        }
        run.tell(Input::Failed(Fault::Refused));
        asked += 1;
    }
    assert!(asked <= 31, "{asked} times");
}

#[test]
fn a_wait_that_the_server_asked_for_is_not_cut_short() {
    let mut run = Run::watching();
    run.tell(Input::Failed(Fault::Reset));
    let told = Duration::from_secs(20);
    run.tell(Input::Refused(Refusal { retry_after: Some(told), ..said(503, "") }));
    let refused = run.now;
    run.tell(Input::ServerAnswers);
    assert_eq!(run.sleep(), "watch 5");
    assert!(run.now >= refused + told);
}

#[test]
fn what_is_too_much_is_let_go_of_and_asked_for_again_much_later() {
    let mut run = Run::watching();
    run.event(7);
    let mut least = LET_GO_WAIT_MIN;
    for _ in 0..8 {
        let before = run.now;
        assert_eq!(run.tell(Input::OverLimit), "hang up, let go");
        assert_eq!((run.revision(), run.why()), (None, Some(Why::OverLimit)));
        assert_eq!(run.reflector.health().synced_since, None);
        assert_eq!(run.sleep(), "watch-list");
        assert!((least..2 * least).contains(&(run.now - before)), "{:?} of {least:?}", run.now - before);
        run.tell(Input::Opened);
        assert_eq!(run.why(), Some(Why::OverLimit), "an answer is no proof");
        least = (2 * least).min(LET_GO_WAIT_MAX);
    }
    assert_eq!(run.tell(Input::Bookmark { revision: rev(3), ends_state: true }), "end 3");
    assert_eq!((run.revision(), run.why()), (Some(3), None));
    let told = |report: &Report| matches!(report, Report::Listed { why: ListReason::LetGo, .. });
    assert_eq!(run.reports.iter().filter(|report| told(report)).count(), 1);
    // What fits for long and grows then begins with the first wait.
    run.now += LET_GO_WAIT_MAX;
    run.tell(Input::OverLimit);
    let before = run.now;
    run.sleep();
    assert!(run.now < before + 2 * LET_GO_WAIT_MIN);
}
