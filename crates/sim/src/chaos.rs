//! What goes wrong, and when: the disk, the machine, the way to the store. And the end of it, when everybody
//! must catch up.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_api::Caches as _;
use forebay_embedded::faults::{Crash, Faults};
use forebay_rt::Random;
use forebay_watchcache::limits;

use crate::client::within;
use crate::follower::Follower;
use crate::life::Life;
use crate::store::Trouble;
use crate::world::{Phase, World};
use crate::writer;

/// How long all writers may take together, at most.
const CHAOS_MS_MAX: u64 = 60 * 60 * 1000;
/// How long the server may take to be ready, once nothing fails any more. Caches that failed wait up to 30 s.
const READY_MS_MAX: u64 = 60_000;
/// Within this everybody who reads has what was written. Below the time between bookmarks, which would wake
/// them too.
const NOTICE_MS: u64 = 5_000;
/// Rounds of last words.
const ROUNDS: usize = 4;

/// The store's writer: does what waits for it, after a while.
pub async fn run_store(world: Rc<World>) {
    let random = world.fork();
    while let Some(life) = world.connect().await {
        tokio::select! {
            biased;
            () = life.ended.raised() => continue,
            () = life.store.nudge.notified() => {}
            // What is due without being asked for.
            () = world.pause(1_000 + random.below(3_000)) => {}
        }
        if random.below(2) == 0 {
            world.pause(random.below(15)).await;
        }
        if !life.ended.is_raised() {
            world.step(&life).await;
        }
        notice_failure(&world, &life);
    }
}

/// A store that takes no more writes is restarted, after a while.
fn notice_failure(world: &World, life: &Life) {
    let Some(cause) = life.engine().failure().filter(|_| !life.failed.get()) else { return };
    life.failed.set(true);
    world.trace("store", format_args!("read-only: {cause}"));
    let mut seen = world.seen.borrow_mut();
    if cause.contains("sync") {
        seen.sync_failures += 1;
    } else if cause.contains("down") {
        seen.machine_downs += 1;
    } else if cause.contains("space") {
        seen.full_disks += 1;
    } else {
        seen.disk_failures += 1;
    }
}

/// Runs the server from start to crash to start, until all has been written; then lets everybody catch up.
pub async fn direct(world: Rc<World>, followers: Vec<Rc<RefCell<Follower>>>) {
    let random = world.fork();
    world.start().await;
    if let Some(life) = world.life() {
        while !writer::prepare(&world, &life).await && !world.is_over() {}
    }
    while world.writing.get() > 0 && world.now_ms() < CHAOS_MS_MAX && !world.is_over() {
        one_life(&world, &random).await;
    }
    settle(&world, &followers, &random).await;
    world.phase.set(Phase::Over);
}

async fn one_life(world: &World, random: &Random) {
    let Some(life) = world.life() else { return };
    choose_disk_faults(world, random);
    let polls = if random.below(3) == 0 { random.below(300) } else { random.below(6_000) };
    world.crash_at.set((random.below(4) > 0).then(|| world.polls.get() + polls));
    let until_ms = world.now_ms() + 30_000 + random.below(420_000);
    while !life.ended.is_raised() && world.now_ms() < until_ms && world.writing.get() > 0 && !world.is_over()
    {
        if life.failed.get() {
            world.pause(random.below(5_000)).await;
            break;
        }
        let wait = world.pause(500 + random.below(20_000));
        if within(&life, wait).await.is_some() {
            choose_trouble(world, &life, random);
            match random.below(20) {
                0..5 => world.back_up(&life),
                5..9 => world.go_back(&life).await,
                _ => {}
            }
        }
    }
    world.crash_at.set(None);
    account(world, &life);
    world.crash(draw_crash(random));
    world.pause(random.below(3_000)).await;
    if !world.is_over() {
        world.start().await;
    }
}

/// Takes over what the life has counted, and holds what its caches use against their limits.
fn account(world: &World, life: &Life) {
    let mut seen = world.seen.borrow_mut();
    seen.failed_calls += life.store.failed();
    for store in life.registry.catalog().stores() {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (counters, window) = (store.cacher.counters(), store.cacher.window());
        seen.cache_resumptions += count(&counters.resumptions);
        seen.cache_refills += count(&counters.initializations).saturating_sub(1);
        if window.items > limits::EVENTS_MAX || window.bytes > limits::WINDOW_BYTES_MAX {
            let name = &store.cacher.resource().name;
            world.fail("memory", format_args!("the window of {name} holds {window:?}"));
        }
    }
}

fn choose_disk_faults(world: &World, random: &Random) {
    let mut faults = Faults::default();
    match random.below(8) {
        0 => faults.down_after = Some(random.below(600)),
        1 => faults.fail_after = Some(random.below(400)),
        2 => faults.fail_sync_after = Some(random.below(40)),
        3 => {
            faults.blocks_max = Some(8 + random.below(40) as usize);
            faults.hide_free_bytes = random.below(3) > 0;
        }
        _ => {}
    }
    world.trace("chaos", format_args!("{faults:?}"));
    world.machine.borrow().set_faults(faults);
}

fn choose_trouble(world: &World, life: &Life, random: &Random) {
    if life.store.is_troubled() {
        return;
    }
    let mut until = world.clock.now() + Duration::from_millis(100 + random.below(8_000));
    let mut trouble = Trouble::default();
    let mut seen = world.seen.borrow_mut();
    let what = match random.below(8) {
        0 => {
            trouble.stalled_until = Some(until);
            seen.stalls += 1;
            "the store stalls"
        }
        1 => {
            trouble.leaderless = Some((world.clock.now(), until));
            seen.leader_losses += 1;
            "the store has no leader"
        }
        2 => {
            trouble.feeds_lag_until = Some(until);
            seen.lagging_feeds += 1;
            "feeds lag"
        }
        3 => {
            if world.history_ms < 300_000 && random.below(3) == 0 {
                // Until the store itself has forgotten what they had not brought.
                until += Duration::from_millis(world.history_ms + 40_000);
            }
            (trouble.feeds_lag_until, trouble.feeds_forget) = (Some(until), true);
            // What was forgotten cannot always be asked for at once.
            let unheard = (until, until + Duration::from_secs(6));
            trouble.leaderless = (random.below(2) == 0).then_some(unheard);
            seen.forgetful_feeds += 1;
            "feeds lag, and forget"
        }
        _ => return,
    };
    drop(seen);
    world.trace("chaos", format_args!("{what}"));
    life.store.set_trouble(trouble);
}

pub fn draw_crash(random: &Random) -> Crash {
    match random.below(3) {
        0 => Crash::LoseUnsynced,
        1 => Crash::TearUnsynced { seed: random.next_u64() },
        _ => Crash::KeepAll,
    }
}

/// Nothing fails any more: every cache becomes ready, and every client gets everything, soon.
async fn settle(world: &World, followers: &[Rc<RefCell<Follower>>], random: &Random) {
    if world.is_over() {
        return;
    }
    world.trace("chaos", format_args!("settle"));
    world.machine.borrow().set_faults(Faults::default());
    if world.life().is_none_or(|life| life.failed.get()) {
        world.crash(draw_crash(random));
        world.start().await;
    }
    let Some(life) = world.life() else { return };
    life.store.set_trouble(Trouble::default());
    world.phase.set(Phase::Settling);
    world.settle.raise();
    if !ready(world, &life).await {
        return world.fail("settle", format_args!("the caches are not ready after {READY_MS_MAX} ms"));
    }
    // Whoever was between two attempts makes one.
    world.pause(5_000).await;
    for _ in 0..ROUNDS {
        writer::last_words(world, "last words", random).await;
        world.pause(NOTICE_MS).await;
        let history = world.history.borrow();
        for (number, follower) in followers.iter().enumerate() {
            if let Some(lag) = follower.borrow().lags(&history) {
                return world.fail("settle", format_args!("watcher {number} was not told in time: {lag}"));
            }
        }
    }
}

async fn ready(world: &World, life: &Life) -> bool {
    let until_ms = world.now_ms() + READY_MS_MAX;
    while life.registry.unready() > 0 {
        if world.now_ms() > until_ms {
            return false;
        }
        world.pause(100).await;
    }
    true
}
