//! How much space the file takes, under churn, with time passing by hand: freed space is used again, and
//! given back when much less is live; at no time more than 2.5 times what is live or kept as history.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{HISTORY_MS, MARK_EVERY_MS, key, options};
use forebay_backend::{Backend, Expect, Op, Size, Txn, TxnResponse};
use forebay_embedded::Engine;
use forebay_rt::{Clock, ManualClock, Random};
use forebay_scratch::Scratch;

const KEYS: usize = 2_000;
/// Beside the ratio: what redb needs for itself, and what is not worth a copy.
const SLACK_BYTES: u64 = 128 << 10;

struct World {
    store: Arc<Engine>,
    hand: ManualClock,
    random: Random,
    held: Vec<Expect>,
    // The highest ratio seen, in percent.
    worst: u64,
}

impl World {
    fn new(dir: &Path) -> World {
        let (clock, hand) = Clock::manual(1_700_000_000_000);
        let store = Engine::open(dir, options(&clock)).expect("opens");
        let held = vec![Expect::Absent; KEYS];
        World { store, hand, random: Random::seeded(1), held, worst: 0 }
    }

    /// About 4 KB of which half compresses.
    fn value(&self) -> Op {
        let words = 50 + self.random.below(200);
        let value: String =
            (0..words).map(|_| format!("\"{:08x}\": ", self.random.next_u64() as u32)).collect();
        Op::Put { value: value.repeat(2).into(), ttl: None }
    }

    /// Changes `keys`, 64 at a time, as many clients would.
    async fn change(&mut self, keys: impl Iterator<Item = usize>, op: impl Fn(&World) -> Op) {
        let keys: Vec<_> = keys.collect();
        for chunk in keys.chunks(64) {
            let commit = |n: &usize| {
                let (store, op) = (self.store.clone(), op(self));
                let txn = Txn { key: key(&format!("/registry/{n}")), expect: self.held[*n], op };
                (*n, tokio::spawn(async move { Backend::commit(&*store, txn).await }))
            };
            for (n, task) in chunk.iter().map(commit).collect::<Vec<_>>() {
                let Ok(Ok(TxnResponse::Committed(revision))) = task.await else { panic!("one writer a key") };
                self.held[n] = Expect::At(revision);
            }
            self.look();
        }
    }

    fn look(&mut self) -> Size {
        let size = self.store.size();
        let percent = (size.file_bytes.saturating_sub(SLACK_BYTES) * 100).checked_div(size.live_bytes);
        self.worst = self.worst.max(percent.unwrap_or(0));
        size
    }

    async fn pass(&mut self, span_ms: u64) {
        self.hand.advance_ms(span_ms);
        self.store.settle().await;
        self.look();
    }
}

#[tokio::test]
async fn the_file_stays_small_and_private_under_churn() {
    let scratch = Scratch::new();
    let mut world = World::new(&scratch.path().join("store"));
    world.change(0..KEYS, World::value).await;
    // Several windows' worth of overwrites: a quarter of the keys each sixth of a window.
    for _ in 0..30 {
        let keys: Vec<_> = (0..KEYS).filter(|_| world.random.below(4) == 0).collect();
        world.change(keys.into_iter(), World::value).await;
        world.pass(HISTORY_MS / 6).await;
    }
    let churned = world.look();
    assert!(world.worst < 250, "{}% while overwriting, {churned:?}", world.worst);
    // Nothing but time.
    world.pass(MARK_EVERY_MS).await;
    world.pass(HISTORY_MS).await;
    let quiet = world.look();
    assert!(quiet.file_bytes < quiet.live_bytes * 5 / 2 + SLACK_BYTES, "{quiet:?}");
    assert!(quiet.file_bytes < churned.file_bytes, "{quiet:?} after {churned:?}");
    // Most of it deleted, by writers that go on.
    world.change((0..KEYS).filter(|n| n % 10 != 0), |_| Op::Delete).await;
    for _ in 0..12 {
        world.pass(HISTORY_MS / 6).await;
        world.change((0..KEYS).step_by(20), World::value).await;
    }
    world.pass(MARK_EVERY_MS).await;
    world.pass(HISTORY_MS).await;
    let deleted = world.look();
    assert_eq!(deleted.keys, KEYS as u64 / 10);
    assert!(deleted.file_bytes < deleted.live_bytes * 5 / 2 + SLACK_BYTES, "{deleted:?}");
    assert!(world.worst < 250, "{}%", world.worst);
    only_its_owner_may_read(&scratch.path().join("store"));
    let on_disk = disk_bytes(&scratch.path().join("store"));
    assert!(on_disk < deleted.file_bytes + SLACK_BYTES, "{on_disk} on disk, {deleted:?}");
}

/// The directory, and every file in it, that of a copy included.
#[cfg(unix)]
fn only_its_owner_may_read(dir: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o7777;
    assert_eq!(mode(dir), 0o700);
    let files = std::fs::read_dir(dir).expect("readable").map(|file| file.expect("readable").path());
    let modes: Vec<_> = files.map(|file| (mode(&file), file)).collect();
    assert!(modes.len() >= 3 && modes.iter().all(|(mode, _)| *mode == 0o600), "{modes:?}");
}

#[cfg(not(unix))]
fn only_its_owner_may_read(_: &Path) {}

/// What the files of a directory take on disk.
#[cfg(unix)]
fn disk_bytes(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let files = std::fs::read_dir(dir).expect("readable");
    files.map(|file| file.and_then(|file| file.metadata()).expect("readable").blocks() * 512).sum()
}

#[cfg(not(unix))]
fn disk_bytes(_: &Path) -> u64 {
    0
}
