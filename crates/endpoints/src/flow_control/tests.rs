//! Turns as the handler asks for them: waits, refusals, and places that are given up.

use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_apimachinery::attributes::About;
use forebay_apimachinery::{Attributes, Caller, Reason, Status, Verb};
use forebay_flow::RejectReason;
use forebay_rt::Duration;
use futures_util::FutureExt as _;

use std::sync::Arc;

use forebay_flow::{Configuration, FlowInput, Rejection};
use forebay_rt::Clock;
use forebay_transport::{LetGoFor, Stalls};

use super::*;
use crate::config::ApiServerConfig;
use crate::flow_control::price;
use crate::status::Failure;
use crate::tests::turns::config;
use forebay_apimachinery::options::Query;

/// A server of one seat.
fn one_seat() -> FlowControl {
    FlowControl::new(&config(1), Clock::steady(0))
}

async fn turn(control: &FlowControl, name: &str) -> Result<Arc<Ticket>, Box<Rejection>> {
    turn_at(control, name, price::document()).await
}

async fn turn_at(control: &FlowControl, name: &str, cost: Cost) -> Result<Arc<Ticket>, Box<Rejection>> {
    let groups = vec!["system:authenticated".to_string()];
    let caller = Caller { name: name.into(), groups, ..Caller::anonymous() };
    let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Path("/x") };
    let flow = control.classify(&asked).flow;
    control.turn(&flow, cost, &asked, "/x").await
}

#[tokio::test]
async fn who_waits_has_a_turn_when_another_is_answered_and_who_leaves_gives_its_place_up() {
    let control = one_seat();
    let first = turn(&control, "a").await.expect("a seat");
    let mut second = Box::pin(turn(&control, "b"));
    let mut third = Box::pin(turn(&control, "c"));
    assert!((&mut second).now_or_never().is_none() && (&mut third).now_or_never().is_none());
    drop(second);
    assert_eq!(control.machine().waiting.len(), 1);
    first.answered();
    let third = third.now_or_never().expect("its turn").expect("a seat");
    drop((first, third));
    assert!(control.machine().waiting.is_empty() && control.machine().readers.is_empty());
    let text = debug::dump(&control, "dump_priority_levels", &Query::parse("")).expect("a dump");
    let level = text.lines().find(|line| line.starts_with("global-default,")).expect("a line");
    let cells: Vec<&str> = level.split(',').map(str::trim).collect();
    assert_eq!(
        cells[4..10],
        ["0", "0", "2", "0", "0", "1"],
        "waiting, executing, dispatched, rejected, timed out, cancelled"
    );
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_does_not_come_is_refused_in_time() {
    let control = FlowControl::new(&config(1), Clock::system());
    let time = tokio::spawn(control.clone().keep_time());
    // The store has none: the level for what nothing else matches takes none into queues.
    control.tell([FlowInput::Configured(Configuration { schemas: Vec::new(), levels: Vec::new() })]);
    let _first = turn(&control, "a").await.expect("a seat");
    let refused = turn(&control, "b").await.err().expect("refused");
    assert_eq!(refused.reason, RejectReason::ConcurrencyLimit { working: 1, limit: 1 });
    time.abort();
    // Before levels borrow from each other, which is after ten seconds.
    let hasty = ApiServerConfig { request_timeout: Duration::from_secs(20), ..config(1) };
    let control = FlowControl::new(&hasty, Clock::system());
    let time = tokio::spawn(control.clone().keep_time());
    let _first = turn(&control, "a").await.expect("a seat");
    let before = Clock::system().now();
    let refused = turn(&control, "b").await.err().expect("refused");
    assert!(matches!(refused.reason, RejectReason::TimeOut { .. }), "{refused:?}");
    assert!(Clock::system().now().duration_since(before) >= Duration::from_secs(5));
    time.abort();
}

/// A reader that counts how often it was to go.
#[derive(Default)]
struct Still(AtomicUsize);

impl Stalls for Still {
    fn let_go(&self, _since: forebay_rt::Instant, _why: LetGoFor) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

#[tokio::test(start_paused = true)]
async fn readers_that_stand_still_give_way_to_another_flow_of_their_level() {
    let control = FlowControl::new(&config(100), Clock::system());
    let time = tokio::spawn(control.clone().keep_time());
    let reader = Arc::new(Still::default());
    // Each flow takes what it is given, and reads nothing.
    let mut held = Vec::new();
    for name in ["a", "b"] {
        loop {
            let cost = price::object(100 << 10);
            let Some(turn) = turn_at(&control, name, cost).now_or_never() else { break };
            let ticket = turn.expect("no refusal");
            ticket.answered();
            let of_first: Arc<dyn Stalls> = reader.clone();
            if name == "a" {
                ticket.read_by(Arc::downgrade(&of_first));
            }
            held.push(ticket);
        }
    }
    assert!(held.len() > 2 && reader.0.load(Ordering::Relaxed) == 0);
    let waits = control.clone();
    let waits = tokio::spawn(async move { turn_at(&waits, "b", price::object(100 << 10)).await.map(drop) });
    Clock::system().sleep(Duration::from_secs(4)).await;
    assert_eq!(reader.0.load(Ordering::Relaxed), 0, "it has not stood still for long");
    Clock::system().sleep(Duration::from_secs(3)).await;
    assert!(reader.0.load(Ordering::Relaxed) > 0, "it holds more than its part, and another waits");
    // Those of whom that is said break off.
    held.clear();
    assert!(waits.await.expect("ends").is_ok());
    time.abort();
}

#[tokio::test]
async fn who_finds_no_memory_is_told_of_its_flow_and_of_its_price_once_that_is_known() {
    let control = one_seat();
    let caller =
        Caller { name: "a".into(), groups: vec!["system:authenticated".into()], ..Caller::anonymous() };
    let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Path("/x") };
    let request = OfRequest::classify(Some(&control), &asked);
    let told = |mut failure: Failure| {
        let header =
            request.explain(&mut failure).map(|(_, value)| value.to_str().expect("text").to_string());
        (failure.status.message, header)
    };
    let full = || Status::new(Reason::TooManyRequests, "Full.");
    let (message, header) = told(Failure::for_want_of_memory(full()));
    let flow = "Full. It is in the flow of \"a\" of FlowSchema \"global-default\" in PriorityLevelConfiguration \"global-default\"";
    assert_eq!(message, format!("{flow}; the server has no memory for it now."));
    let header = header.expect("a header");
    assert!(
        header.starts_with("reason=memory; level=global-default; schema=global-default; flow="),
        "{header}"
    );
    request.begin(&control, (&asked, "/x"), price::write(1_000, 0)).await.expect("a turn");
    let (message, header) = told(Failure::for_want_of_memory(full()));
    assert!(message.contains(", and would have held 1000 bytes and used "), "{message}");
    assert!(header.expect("a header").contains("; bytes=1000; cpu_us="));
    // What else is refused with that reason says why by itself.
    assert_eq!(told(full().into()), ("Full.".to_string(), None));
}
