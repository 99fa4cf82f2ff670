//! Past states that the window does not reach: from the store, as much as is asked for, by so many at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use expect_test::expect;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::{Backend, BoxFuture, Layer, Range, RangePage, ReadError as StoreError};
use forebay_embedded::Engine;
use forebay_embedded::limits::{HISTORY_MS, MARK_EVERY_MS};
use forebay_rt::{Clock, Tasks};
use tokio::sync::Semaphore;

use crate::limits::{PAST_PAGE, PAST_READERS_MAX, PAST_WAITING_MAX};
use crate::tests::{PREFIX, World, check, everything, labelled};
use crate::{ExactPage, Interest, Reach};

/// The readers of past states are counted over the whole process: tests that read them take turns.
static TURN: Semaphore = Semaphore::const_new(1);

/// The engine, but its feeds and so the cache's window begin at what is current, and its past states are read
/// only by whoever gets a permit.
struct Late {
    engine: Arc<Engine>,
    past: Semaphore,
}

impl Layer for Late {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine.clone()
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, StoreError>> {
        Box::pin(async move {
            let _permit = self.past.acquire().await.expect("open");
            Backend::range(&*self.engine, range).await
        })
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.engine.barrier()
    }
}

/// Ten pods, of which three were changed and two deleted before the cache began, at revision 16.
async fn world() -> (World, Arc<Late>, forebay_rt::ManualClock) {
    let (clock, hand) = Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), Tasks::new());
    let late = Arc::new(Late { engine: engine.clone(), past: Semaphore::new(100) });
    let first = World::start(engine.clone(), &clock, &tasks);
    let world = World { engine, cacher: first, tasks, clock };
    for number in 0..10 {
        world.put(&format!("a/p{number}"), if number % 3 == 0 { "app=web" } else { "" }).await;
    }
    for number in 0..3 {
        world.put(&format!("a/p{number}"), "app=new").await;
    }
    world.delete("a/p3").await;
    world.delete("a/p9").await;
    let cacher = World::start(late.clone(), &world.clock, &world.tasks);
    cacher.wait_ready().await;
    (World { cacher, ..world }, late, hand)
}

impl World {
    async fn page(&self, at: u64, interest: &Interest, after: Option<&str>, limit: Option<usize>) -> String {
        let after = after.map(|place| Key::from(format!("{PREFIX}{place}")));
        let at = Revision::from_log(at);
        let page = self.cacher.exact_page(at, interest, after.as_ref(), limit, self.soon()).await;
        let page = match page {
            Ok(page) => page,
            Err(error) => return error.to_string(),
        };
        let shown = |object: &Arc<forebay_object::Object>| format!("{}@{}", object.name(), object.revision());
        let items: Vec<String> = page.snapshot().candidates(interest, after.as_ref()).map(shown).collect();
        let (whole, more) = match page {
            ExactPage::Whole(_) => ("whole ", String::new()),
            ExactPage::Part { more: false, remaining: None, .. } => ("", String::new()),
            ExactPage::Part { more: true, remaining: None, .. } => ("", " ...".to_string()),
            ExactPage::Part { remaining: Some(remaining), .. } => ("", format!(" ... {remaining}")),
        };
        format!("{whole}{}: {}{more}", page.snapshot().revision(), items.join(" "))
    }
}

#[tokio::test]
async fn a_past_state_that_the_window_does_not_reach_comes_from_the_store() {
    let _turn = TURN.acquire().await;
    let (world, _late, _hand) = world().await;
    let one = Interest::all(Reach::One(format!("{PREFIX}a/p3").into()));
    let all = everything();
    check(
        expect!["11: p0@2 p1@3 p2@4 p3@5 p4@6 p5@7 p6@8 p7@9 p8@10 p9@11"],
        &world.page(11, &all, None, None).await,
    );
    check(expect!["14: p0@12 p1@13 ... 8"], &world.page(14, &all, None, Some(2)).await);
    check(expect!["14: p3@5 p4@6 ... 5"], &world.page(14, &all, Some("a/p2"), Some(2)).await);
    check(expect!["14: p9@11"], &world.page(14, &all, Some("a/p8"), Some(2)).await);
    check(expect!["11: p3@5 ..."], &world.page(11, &labelled("app=web"), Some("a/p0"), Some(1)).await);
    check(expect!["11: p9@11"], &world.page(11, &labelled("app=web"), Some("a/p6"), Some(1)).await);
    check(expect!["11: p3@5"], &world.page(11, &one, None, None).await);
    check(expect!["15: "], &world.page(15, &one, None, None).await);
    check(expect!["11: "], &world.page(11, &one, Some("a/p3"), None).await);
    check(
        expect!["whole 16: p0@12 p1@13 p2@14 p4@6 p5@7 p6@8 p7@9 p8@10"],
        &world.page(16, &all, None, None).await,
    );
    assert_eq!(world.cacher.counters().store_reads.load(Ordering::Relaxed), 9);
    let page =
        world.cacher.exact_page(Revision::from_log(14), &all, None, None, world.soon()).await.expect("kept");
    let now = world.cacher.snapshot().expect("ready");
    let shared = page
        .snapshot()
        .range(&all.reach, None)
        .filter(|object| now.get(object.key()).is_some_and(|current| Arc::ptr_eq(current, object)));
    assert_eq!(shared.count(), 8, "what has not changed since is the same object");
    let old = page.snapshot().get(&Key::new(&format!("{PREFIX}a/p2"))).expect("shown");
    assert!(old.is_at_rest(), "what is held for its reader alone is at rest");
}

#[tokio::test]
async fn a_past_state_that_is_more_than_a_page_is_at_rest_whatever_limit_it_was_asked_for_with() {
    let _turn = TURN.acquire().await;
    let (world, late, _hand) = world().await;
    let many = PAST_PAGE + 100;
    let mut at = Revision::FIRST;
    for number in 0..many {
        at = world.put(&format!("b/x{number:04}"), "").await;
    }
    for number in 0..many {
        world.put(&format!("b/x{number:04}"), "app=new").await;
    }
    let cacher = World::start(late.clone(), &world.clock, &world.tasks);
    cacher.wait_ready().await;
    let world = World { cacher, ..world };
    let interest = Interest::all(Reach::Below(format!("{PREFIX}b/").into()));
    let page =
        world.cacher.exact_page(at, &interest, None, Some(1_000_000), world.soon()).await.expect("kept");
    assert_eq!(page.snapshot().len(), many);
    let mut shown = page.snapshot().range(&interest.reach, None);
    assert!(shown.all(|object| object.is_at_rest()));
}

#[tokio::test]
async fn a_past_state_that_the_store_has_compacted_is_expired() {
    let _turn = TURN.acquire().await;
    let (world, _late, hand) = world().await;
    hand.advance_ms(MARK_EVERY_MS);
    world.engine.settle().await;
    hand.advance_ms(HISTORY_MS);
    world.engine.settle().await;
    check(expect!["too old resource version: 11 (16)"], &world.page(11, &everything(), None, None).await);
}

#[tokio::test(start_paused = true)]
async fn so_many_read_past_states_at_once_so_many_wait_and_the_others_are_told_to_come_again() {
    let _turn = TURN.acquire().await;
    let (world, late, _hand) = world().await;
    late.past.forget_permits(100);
    let world = Arc::new(world);
    let ask = || {
        let world = world.clone();
        tokio::spawn(async move { world.page(11, &everything(), Some("a/p8"), None).await })
    };
    let asked: Vec<_> = (0..PAST_READERS_MAX + PAST_WAITING_MAX).map(|_| ask()).collect();
    let busy = "too many reads of past states, please try again later";
    tokio::task::yield_now().await;
    assert_eq!(ask().await.expect("no panic"), busy, "at once");
    late.past.add_permits(PAST_READERS_MAX + PAST_WAITING_MAX);
    for one in asked {
        assert_eq!(one.await.expect("no panic"), "11: p9@11");
    }
    late.past.forget_permits(1000);
    let (asked, began): (Vec<_>, _) = ((0..PAST_READERS_MAX + 1).map(|_| ask()).collect(), world.clock.now());
    let mut waited = Vec::new();
    for one in asked.into_iter().rev() {
        if waited.is_empty() {
            waited.push(one.await.expect("no panic"));
        } else {
            one.abort();
        }
    }
    assert_eq!(waited, [busy], "at its deadline");
    assert_eq!(world.clock.now() - began, crate::limits::FRESH_WAIT);
}
