//! Many seeds of: clients write, keys expire, history is compacted, the disk fails or the machine goes down
//! at a random call, and the store is opened again on what is left. What a reply or a feed ever said must
//! then be there.

mod common;
mod world;

use common::{at, del, put, show};
use forebay_backend::{Backend, Expect, Txn, TxnError};
use forebay_embedded::faults::{Crash, Faults, Machine};
use forebay_embedded::{Engine, Options};
use world::{Seen, World};

/// Runs four lives of one store for each seed; the first three end with `faults` and `crash`, drawn for each.
fn check(
    seeds: std::ops::Range<u64>,
    faults: impl Fn(&World) -> Faults,
    crash: impl Fn(&World) -> Crash,
) -> Seen {
    let mut seen = Seen::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    for seed in seeds {
        runtime.block_on(async {
            let mut world = World::new(seed);
            for _ in 0..3 {
                world.machine.set_faults(faults(&world));
                world.live(40).await;
                world.read_everything().await;
                world.crash(crash(&world)).await;
            }
            world.machine.set_faults(Faults::default());
            world.live(5).await;
            world.read_everything().await;
            seen += world.seen;
        });
    }
    assert!(
        seen.failures > 0
            && seen.defragmented > 0
            && seen.conflicts > 0
            && seen.expired > 0
            && seen.compacted > 0,
        "{seen:?}"
    );
    seen
}

fn torn(world: &World) -> Crash {
    Crash::TearUnsynced { seed: world.random.next_u64() }
}

fn down(world: &World) -> Faults {
    Faults { down_after: Some(world.random.below(600)), ..Faults::default() }
}

#[test]
fn a_machine_that_loses_everything_unsynced_loses_nothing_that_was_told() {
    check(0..120, down, |_| Crash::LoseUnsynced);
}

#[test]
fn a_machine_that_tears_unsynced_writes_leaves_no_write_half_there() {
    check(1_000..1_150, down, torn);
}

#[test]
fn a_killed_process_loses_nothing_that_was_told() {
    let seen = check(2_000..2_060, down, |_| Crash::KeepAll);
    assert!(seen.survived_unacknowledged > 0, "{seen:?}");
}

#[test]
fn after_a_disk_failure_writes_stop_and_reads_go_on() {
    let fails = |world: &World| Faults { fail_after: Some(world.random.below(400)), ..Faults::default() };
    let seen = check(3_000..3_070, fails, torn);
    assert!(seen.reads_after_failure > 0, "{seen:?}");
    check(3_100..3_130, fails, |_| Crash::KeepAll);
}

#[test]
fn after_a_failed_sync_writes_stop_and_reads_go_on() {
    let fails = |world: &World| Faults { fail_sync_after: Some(world.random.below(30)), ..Faults::default() };
    let seen = check(4_000..4_070, fails, torn);
    assert!(seen.reads_after_failure > 0, "{seen:?}");
    check(4_100..4_130, fails, |_| Crash::LoseUnsynced);
}

#[test]
fn when_the_disk_fills_up_within_a_commit_writes_stop_and_reads_go_on() {
    let full = |world: &World| {
        let blocks_max = Some(10 + world.random.below(200) as usize);
        Faults { blocks_max, hide_free_bytes: true, ..Faults::default() }
    };
    let seen = check(5_000..5_070, full, torn);
    assert!(seen.reads_after_failure > 0, "{seen:?}");
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_refuses_puts_and_takes_them_again_when_there_is_space() {
    let machine = Machine::new();
    let (store, mut stepper) = Engine::open_stepped(machine.disk(), Options::default()).expect("opens");
    let mut commit = async |txn: Txn| {
        let store = store.clone();
        let reply = tokio::spawn(async move { Backend::commit(&*store, txn).await });
        tokio::task::yield_now().await;
        stepper.step();
        reply.await.expect("no panic")
    };
    commit(put("/a", Expect::Absent, "1")).await.expect("there is space");
    let blocks = forebay_embedded::limits::FREE_BYTES_MIN as usize / 4096;
    machine.set_faults(Faults { blocks_max: Some(blocks), ..Faults::default() });
    let refused = commit(put("/b", Expect::Absent, "1")).await;
    assert!(
        matches!(&refused, Err(TxnError::Failed { cause }) if cause.contains("no space left")),
        "{refused:?}"
    );
    let deleted = commit(del("/a", at(2))).await.expect("deletes lead out");
    assert_eq!(show(&deleted), "committed 3");
    machine.set_faults(Faults { blocks_max: Some(2 * blocks), ..Faults::default() });
    let outcome = commit(put("/b", Expect::Absent, "1")).await.expect("there is space again");
    assert_eq!(show(&outcome), "committed 4");
}
