//! What is quiet is sealed, and nobody can tell.

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_backend::Op;
use forebay_embedded::limits::{HISTORY_MS, MARK_EVERY_MS};
use forebay_object::Object;
use forebay_object::seal::{CHAIN_MAX, Direction, Piece, pieces};
use forebay_rt::{Clock, Duration, ManualClock, Tasks};

use crate::limits::{PACE, SEAL_MS};
use crate::tests::{World, everything, labelled};
use crate::{Budget, Cacher, Interest, Relief, Snapshot, WatchStep};

const PODS: usize = 60;
const ROUNDS: usize = 5;

/// Everything that a watcher from `after` on is sent: kind, bytes with the event's revision.
async fn told(cacher: &Cacher, after: u64) -> Vec<(String, Vec<u8>)> {
    let mut watcher = cacher.watch(everything(), Revision::from_log(after)).expect("held");
    let mut out = Vec::new();
    while let Some(step) = watcher.try_next() {
        let WatchStep::Event { kind, object, revision } = step else { panic!("{step:?}") };
        let mut bytes = Vec::new();
        object.write_body(Some(revision), None, &mut bytes);
        out.push((format!("{kind:?} {} {}", object.name(), object.label("round").unwrap_or("")), bytes));
    }
    out
}

async fn states(cacher: &Cacher, world: &World) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    for at in (1..(PODS * ROUNDS) as u64).step_by(37) {
        let past = cacher.exact(Revision::from_log(at), world.soon()).await.expect("held");
        let write = |object: &Arc<Object>| {
            let mut bytes = Vec::new();
            object.write_body(None, None, &mut bytes);
            bytes
        };
        out.extend(past.range(&everything().reach, None).map(write));
    }
    out
}

#[tokio::test(start_paused = true)]
async fn what_only_the_window_holds_is_sealed_and_nobody_can_tell() {
    let (clock, hand) = forebay_rt::Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), forebay_rt::Tasks::new());
    let cacher = World::start(engine.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let world = World { engine, cacher, tasks, clock };
    for round in 0..ROUNDS {
        for pod in 0..PODS {
            world.put_on(&format!("a/pod-{pod}"), &format!("round=r{round}"), "node").await;
        }
    }
    world.delete("a/pod-7").await;
    let now = world.cacher.fresh(world.soon()).await.expect("fresh");
    let (events, before) = (told(&world.cacher, 1).await, world.cacher.window());
    assert_eq!(before.items, PODS * ROUNDS + 1);
    let mut held = world.cacher.watch(everything(), Revision::FIRST).expect("held");
    let _first = held.try_next();
    hand.advance_ms(SEAL_MS + 1);
    world.clock.sleep(PACE.period + Duration::from_millis(1)).await;
    let mut rounds = 0;
    while world.cacher.window().bytes * 5 > before.bytes * 4 {
        rounds += 1;
        assert!(rounds < 100, "{:?} {before:?}", world.cacher.window());
        background_is_through(&world.clock).await;
    }
    assert_eq!(told(&world.cacher, 1).await, events);
    assert_eq!(told(&world.cacher, 200).await, events[199..]);
    let sealed = states(&world.cacher, &world).await;
    // A cache that was filled just now has sealed nothing yet.
    let plain = World::start(world.engine.clone(), &world.clock, &world.tasks);
    plain.wait_ready().await;
    assert_eq!(states(&plain, &world).await, sealed);
    assert!(parts(&now).iter().all(Option::is_none), "who has the state has it as it was");
    // Its event is older than what follows, and was pulled before.
    assert!(matches!(held.try_next(), Some(WatchStep::Event { object, .. }) if object.name() == "pod-1"));
}

#[tokio::test(start_paused = true)]
async fn versions_of_an_object_are_kept_behind_each_other_and_nobody_can_tell() {
    const VERSIONS: usize = 30;
    let timed = Timed::new().await;
    let random = forebay_rt::Random::seeded(7);
    // As much that is random in each pod as a pod has, the same in all its versions.
    let noise = || (0..300).map(|_| format!("{:x}", random.below(1 << 40))).collect::<String>();
    let notes: Vec<String> = (0..4).map(|_| noise()).collect();
    let (mut events, mut last) = (Vec::new(), 0);
    for round in 0..VERSIONS {
        for (pod, note) in notes.iter().enumerate() {
            // One rests for longer than the others, so that some successors are in blocks and some are plain.
            if pod > 0 || round % 5 == 0 {
                let value = format!(
                    r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"pod-{pod}","namespace":"a","uid":"u","annotations":{{"note":"{note}"}}}},"spec":{{}},"status":{{"round":{round}}}}}"#
                );
                timed.world.commit(&format!("a/pod-{pod}"), Op::Put { value: value.into(), ttl: None }).await;
            }
        }
        timed.world.cacher.fresh(timed.world.soon()).await.expect("fresh");
        let new = told(&timed.world.cacher, last.max(1)).await;
        last = timed.now().revision().get();
        events.extend(new);
        timed.pass(3).await;
    }
    timed.pass(10).await;
    assert_eq!(told(&timed.world.cacher, 1).await, events);
    let mut watcher = timed.world.cacher.watch(everything(), Revision::from_log(1)).expect("held");
    let (mut chains, mut blocks) = ([0; CHAIN_MAX as usize + 1], 0);
    while let Some(WatchStep::Event { object, .. }) = watcher.try_next() {
        chains[usize::from(object.chain())] += 1;
        blocks += usize::from(object.is_sealed());
    }
    assert!(chains.iter().all(|count| *count > 0), "some of each length: {chains:?}");
    assert!(blocks >= 4, "the last version of each is in a block");
    // Each of them is 3 KB of which nothing can be saved alone.
    let (each, window) = (timed.now().bytes() / 4, timed.world.cacher.window());
    assert!(window.bytes < each * window.items / 3, "{each} {window:?}");
}

/// Waits for what was asked of the background up to now, and lets it be put in place.
async fn background_is_through(clock: &Clock) {
    forebay_rt::background(|| ()).finished().await.expect("no panic");
    clock.sleep(PACE.period).await;
}

/// For each object of the state, in order: its place in its block, and how many the block has.
fn parts(snapshot: &Snapshot) -> Vec<Option<(usize, usize)>> {
    snapshot.range(&everything().reach, None).map(|object| object.place()).collect()
}

fn bodies(snapshot: &Snapshot) -> Vec<Vec<u8>> {
    snapshot.range(&everything().reach, None).map(|object| object.body().to_vec()).collect()
}

/// The blocks of a state: how many objects each has; 0 is an object outside of blocks, and of a broken block
/// each object is a minus.
fn blocks(snapshot: &Snapshot) -> String {
    let mut out = Vec::new();
    for Piece { objects } in pieces(snapshot.range(&everything().reach, None), Direction::On) {
        match objects[0].place() {
            Some((_, of)) if of == objects.len() => out.push(of.to_string()),
            Some(_) => out.extend(objects.iter().map(|_| "-".to_owned())),
            None => out.push("0".to_owned()),
        }
    }
    out.join(" ")
}

/// A world of time that is moved by hand.
struct Timed {
    world: World,
    hand: ManualClock,
}

impl Timed {
    async fn new() -> Timed {
        let (clock, hand) = Clock::manual(1_000_000);
        let (engine, tasks) = (World::engine(&clock), Tasks::new());
        let cacher = World::start(engine.clone(), &clock, &tasks);
        cacher.wait_ready().await;
        Timed { world: World { engine, cacher, tasks, clock }, hand }
    }

    /// A pod of 2 KB, most of it as in the others.
    async fn put(&self, number: usize, round: usize) {
        let note = "something that every pod says ".repeat(60);
        self.world.put_on(&format!("a/pod-{number:04}"), &format!("round={note}{round}"), "node").await;
    }

    /// Lets so many seconds pass, and what is to be sealed then be sealed.
    async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.hand.advance_ms(1_000);
            self.world.clock.sleep(PACE.period).await;
        }
        // What the background's thread is at is not known; it is through when nothing has changed for a
        // while.
        let (mut last, mut same) = (String::new(), 0);
        while same < 20 {
            background_is_through(&self.world.clock).await;
            let now = blocks(&self.now());
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
    }

    fn now(&self) -> Arc<Snapshot> {
        self.world.cacher.snapshot().expect("ready")
    }
}

/// What the initial state comes as to who wants blocks: how many objects each time, those of blocks in
/// brackets; and the names.
fn in_blocks(timed: &Timed, interest: Interest) -> (String, Vec<String>) {
    let mut watcher = timed.world.cacher.watch_list(interest, timed.now()).expect("held");
    let (mut shape, mut names, mut budget) = (Vec::new(), Vec::new(), Budget::new(usize::MAX));
    let mut alone = 0;
    while watcher.is_initial() {
        let block = watcher.next_segment(&mut budget);
        if block.is_some() && alone > 0 {
            shape.push(std::mem::take(&mut alone).to_string());
        }
        if let Some(objects) = block {
            shape.push(format!("[{}]", objects.len()));
            names.extend(objects.iter().map(|object| object.name().to_owned()));
            continue;
        }
        if let Some(WatchStep::Event { object, .. }) = watcher.try_next() {
            alone += 1;
            names.push(object.name().to_owned());
        }
    }
    if alone > 0 {
        shape.push(alone.to_string());
    }
    (shape.join(" "), names)
}

#[tokio::test(start_paused = true)]
async fn an_initial_state_comes_in_blocks_to_who_wants_them_and_has_each_object_once() {
    let timed = Timed::new().await;
    for number in 0..200 {
        timed.put(number, 0).await;
    }
    timed.world.cacher.fresh(timed.world.soon()).await.expect("fresh");
    let names: Vec<String> = (0..200).map(|number| format!("pod-{number:04}")).collect();
    assert_eq!(in_blocks(&timed, everything()), ("200".to_owned(), names.clone()), "nothing is sealed yet");
    timed.pass(5).await;
    assert_eq!(blocks(&timed.now()), "33 34 33 33 34 33");
    assert_eq!(in_blocks(&timed, everything()), ("[33] [34] [33] [33] [34] [33]".to_owned(), names.clone()));
    // A selector that all match is looked at all the same.
    assert_eq!(in_blocks(&timed, labelled("!absent")), ("200".to_owned(), names.clone()));
    for (number, shape) in [(40, "[33] 34 [33] [33] [34] [33]"), (199, "[33] 34 [33] [33] [34] 33")] {
        timed.put(number, 1).await;
        timed.world.cacher.fresh(timed.world.soon()).await.expect("fresh");
        assert_eq!(in_blocks(&timed, everything()), (shape.to_owned(), names.clone()));
    }
    let mut watcher = timed.world.cacher.watch_list(everything(), timed.now()).expect("held");
    assert!(watcher.next_segment(&mut Budget::new(0)).is_none(), "others work first");
    let mut budget = Budget::new(1);
    assert_eq!(watcher.next_segment(&mut budget).map(|block| block.len()), Some(33), "one is whole");
    assert!(watcher.next_segment(&mut budget).is_none());
}

#[tokio::test(start_paused = true)]
async fn quiet_neighbours_are_put_in_blocks_of_even_size() {
    let timed = Timed::new().await;
    for number in 0..200 {
        timed.put(number, 0).await;
    }
    let plain = timed.world.cacher.fresh(timed.world.soon()).await.expect("fresh");
    let mut watcher = timed.world.cacher.watch(everything(), plain.revision()).expect("held");
    timed.pass(2).await;
    assert_eq!(blocks(&timed.now()), vec!["0"; 200].join(" "), "too early");
    timed.pass(3).await;
    let sealed = timed.now();
    assert_eq!(blocks(&sealed), "33 34 33 33 34 33");
    assert_eq!((sealed.revision(), bodies(&sealed)), (plain.revision(), bodies(&plain)));
    assert!(sealed.bytes() * 3 < plain.bytes(), "{} {}", sealed.bytes(), plain.bytes());
    assert!(watcher.try_next().is_none(), "nothing has happened");
    // One changes: its block gets its old group back.
    timed.put(40, 1).await;
    timed.world.cacher.fresh(timed.world.soon()).await.expect("fresh");
    assert!(blocks(&timed.now()).starts_with("33 - - - - - - - 0 - "));
    timed.pass(5).await;
    assert_eq!(blocks(&timed.now()), "33 34 33 33 34 33");
    // One is deleted, one comes between others, and one behind them all.
    timed.world.delete("a/pod-0150").await;
    timed.world.put_on("a/pod-0001b", "round=new", "node").await;
    timed.put(200, 0).await;
    timed.pass(5).await;
    assert_eq!(blocks(&timed.now()), "34 34 33 33 33 34");
    // A cache that is filled now says the same.
    let again = World::start(timed.world.engine.clone(), &timed.world.clock, &timed.world.tasks);
    again.wait_ready().await;
    let filled = again.snapshot().expect("ready");
    assert_eq!(bodies(&timed.now()), bodies(&filled));
}

#[tokio::test(start_paused = true)]
async fn what_changes_all_the_time_stays_plain_between_whole_blocks() {
    let timed = Timed::new().await;
    for number in 0..100 {
        timed.put(number, 0).await;
    }
    timed.world.cacher.fresh(timed.world.soon()).await.expect("fresh");
    timed.pass(10).await;
    assert_eq!(blocks(&timed.now()), "33 34 33");
    for round in 0..12 {
        timed.put(50, round).await;
        timed.pass(10).await;
    }
    assert_eq!(blocks(&timed.now()), "33 17 0 49");
    timed.pass(60).await;
    assert_eq!(blocks(&timed.now()), "33 18 49", "it rests now");
}

#[tokio::test(start_paused = true)]
async fn a_cache_is_at_rest_when_it_is_filled() {
    let timed = Timed::new().await;
    for number in 0..60 {
        timed.put(number, 0).await;
    }
    let plain = timed.world.cacher.fresh(timed.world.soon()).await.expect("fresh");
    // The store's history is over, so that everything comes with the filling.
    timed.hand.advance_ms(MARK_EVERY_MS);
    timed.world.engine.settle().await;
    timed.hand.advance_ms(HISTORY_MS);
    timed.world.engine.settle().await;
    let again = World::start(timed.world.engine.clone(), &timed.world.clock, &timed.world.tasks);
    again.wait_ready().await;
    let filled = again.snapshot().expect("ready");
    assert_eq!((again.window().items, bodies(&filled)), (0, bodies(&plain)));
    assert!(parts(&filled).iter().all(Option::is_some), "{}", blocks(&filled));
}

#[tokio::test(start_paused = true)]
async fn inflated_blocks_give_way_when_memory_is_short() {
    let timed = Timed::new().await;
    for number in 0..60 {
        timed.put(number, 0).await;
    }
    timed.world.cacher.fresh(timed.world.soon()).await.expect("fresh");
    timed.pass(10).await;
    let now = timed.now();
    let read = || now.range(&everything().reach, None).next().map(|object| object.body()).expect("one");
    let (first, again) = (read(), read());
    assert_eq!(first.as_ptr(), again.as_ptr(), "the block is kept inflated");
    let relief = Relief { made: true, snapshots: false, windows_bytes_max: usize::MAX, windows: false };
    timed.world.cacher.relieve(Relief { made: false, ..relief });
    assert_eq!(first.as_ptr(), read().as_ptr());
    timed.world.cacher.relieve(relief);
    let anew = read();
    assert_ne!(first.as_ptr(), anew.as_ptr());
    assert_eq!(&*first, &*anew);
}

#[tokio::test(start_paused = true)]
async fn what_was_forgotten_before_it_was_looked_at_is_found_all_the_same() {
    let timed = Timed::new().await;
    for number in 0..70 {
        timed.put(number, 0).await;
    }
    timed.world.cacher.fresh(timed.world.soon()).await.expect("fresh");
    // Five minutes at once: the window has nothing left of it.
    timed.hand.advance_ms(crate::limits::WINDOW_MS + 1_000);
    timed.world.clock.sleep(crate::limits::EVICT_PERIOD * 2).await;
    assert!(timed.world.cacher.window().items <= 1);
    timed.put(70, 0).await;
    timed.pass(60).await;
    assert_eq!(blocks(&timed.now()), "35 36");
}

#[tokio::test(start_paused = true)]
async fn a_trickle_is_sealed_once_it_is_worth_it() {
    let (clock, hand) = forebay_rt::Clock::manual(1_000_000);
    let (engine, tasks) = (World::engine(&clock), forebay_rt::Tasks::new());
    let cacher = World::start(engine.clone(), &clock, &tasks);
    cacher.wait_ready().await;
    let world = World { engine, cacher, tasks, clock };
    let (mut each, note) = (0, "x".repeat(200));
    for round in 0..60 {
        world.put_on("a/pod", &format!("round={note}{round:02}"), "node").await;
        world.cacher.fresh(world.soon()).await.expect("fresh");
        if round == 1 {
            // The first that was replaced, plain.
            each = world.cacher.window().bytes;
        }
        hand.advance_ms(1_000);
        world.clock.sleep(PACE.period).await;
    }
    hand.advance_ms(SEAL_MS);
    let mut rounds = 0;
    while world.cacher.window().bytes * 3 > 60 * each * 2 {
        rounds += 1;
        assert!(rounds < 100, "{:?} {each}", world.cacher.window());
        background_is_through(&world.clock).await;
    }
    assert_eq!(told(&world.cacher, 1).await.len(), 60);
}
