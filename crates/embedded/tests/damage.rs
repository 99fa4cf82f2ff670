//! Bytes that change behind the store's back: it opens and has everything, or it refuses. Never less in
//! silence.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use bytes::Bytes;
use common::{at, del, drain, key, put};
use forebay_apimachinery::Revision;
use forebay_backend::{Backend, Expect, FeedError, Range, TxnResponse};
use forebay_embedded::limits::RESTORE_GAP;
use forebay_embedded::{Engine, OpenError, Options};
use forebay_rt::Random;
use forebay_scratch::Scratch;

type State = BTreeMap<String, (u64, Bytes)>;

async fn fill(dir: &Path) {
    let store = Engine::open(dir, Options::default()).expect("opens");
    for n in 0..60 {
        let value = format!("value {n} ").repeat(1 + 40 * (n % 7));
        store.commit(put(&format!("/registry/{n}"), Expect::Absent, &value)).await.expect("works");
    }
    for n in 0..10 {
        store.commit(del(&format!("/registry/{n}"), at(2 + n))).await.expect("works");
    }
}

/// Everything the store says it has, or why it does not open.
async fn read(dir: &Path) -> Result<(State, String), OpenError> {
    let store = Engine::open(dir, Options::default())?;
    let range = Range { prefix: key("/"), start_after: None, limit: 1_000, at: None };
    let page = store.range(range).await.expect("what opened can be read");
    let state =
        page.items.into_iter().map(|(key, found)| (key.to_string(), (found.revision.get(), found.value)));
    let mut feed = store.feed("/", Revision::FIRST).await.expect("kept");
    // Changes alone: how far they reach is told after them.
    let told = drain(&mut feed);
    let changes = told.split(" progress ").next().unwrap_or_default();
    Ok((state.collect(), changes.to_string()))
}

async fn check(
    scratch: &Scratch,
    file: &[u8],
    witness: &[u8],
    expected: &(State, String),
    what: &str,
) -> bool {
    let dir = scratch.path().join("damaged");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("writable");
    fs::write(dir.join("store.redb"), file).expect("writable");
    fs::write(dir.join("store.witness"), witness).expect("writable");
    match read(&dir).await {
        Ok(found) => {
            assert_eq!(&found, expected, "{what}");
            true
        }
        Err(OpenError::Corrupt { .. } | OpenError::Lost { .. }) => false,
        Err(other) => panic!("{what}: {other:?}"),
    }
}

#[tokio::test]
async fn flipped_bytes_are_refused_or_harmless() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("whole");
    fill(&dir).await;
    let closed = fs::read(dir.join("store.redb")).expect("readable");
    let closed_witness = fs::read(dir.join("store.witness")).expect("readable");
    let store = Engine::open(&dir, Options::default()).expect("opens");
    store.commit(put("/registry/last", Expect::Absent, "the newest")).await.expect("works");
    // What a kill would leave, the newest commit included.
    let killed = fs::read(dir.join("store.redb")).expect("readable");
    let witness = fs::read(dir.join("store.witness")).expect("readable");
    store.close();
    let after_kill = read(&dir).await.expect("opens");
    let mut after_close = after_kill.clone();
    after_close.0.remove("/registry/last");
    after_close.1 = after_close
        .1
        .rsplit_once(' ')
        .and_then(|(rest, _)| rest.rsplit_once(' '))
        .expect("three words")
        .0
        .to_string();
    let random = Random::seeded(7);
    let (mut opened, mut refused) = (0, 0);
    for (file, expected) in [(&closed, &after_close), (&killed, &after_kill)] {
        let is_closed = std::ptr::eq(file, &closed);
        let witness = if is_closed { &closed_witness } else { &witness };
        assert!(check(&scratch, file, witness, expected, "whole").await);
        // Every byte of the header, and a sample of the rest.
        let used = file.iter().rposition(|byte| *byte != 0).expect("not empty");
        let offsets = (0..320).step_by(3).chain((0..150).map(|_| random.below(used as u64) as usize));
        for offset in offsets.collect::<Vec<_>>() {
            // A header that points to the commit before the close differs in nothing that was told.
            let mut damaged = file.clone();
            damaged[offset] ^= 1 << random.below(8);
            let what = format!("byte {offset} of {}, closed {is_closed}", file.len());
            match check(&scratch, &damaged, witness, expected, &what).await {
                true => opened += 1,
                false => refused += 1,
            }
        }
    }
    assert!(opened > 0 && refused > 0, "{opened} opened, {refused} refused");
}

#[tokio::test]
async fn a_file_cut_short_or_overwritten_with_zeros_is_refused() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("whole");
    fill(&dir).await;
    let expected = read(&dir).await.expect("opens");
    let (file, witness) = (fs::read(dir.join("store.redb")), fs::read(dir.join("store.witness")));
    let (file, witness) = (file.expect("readable"), witness.expect("readable"));
    for len in [0, 1, 9, 100, 4096, file.len() / 2] {
        assert!(!check(&scratch, &file[..len], &witness, &expected, &format!("cut at {len}")).await);
    }
    let mut zeroed = file.clone();
    zeroed[..4096].fill(0);
    assert!(!check(&scratch, &zeroed, &witness, &expected, "zeroed").await);
}

#[tokio::test]
async fn a_store_that_ends_before_what_was_acknowledged_is_refused() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    fill(&dir).await;
    let older = fs::read(dir.join("store.redb")).expect("readable");
    let store = Engine::open(&dir, Options::default()).expect("opens");
    store.commit(put("/registry/last", Expect::Absent, "x")).await.expect("works");
    drop(store);
    fs::write(dir.join("store.redb"), older).expect("writable");
    let refused = Engine::open(&dir, Options::default()).expect_err("older than what was told");
    assert!(matches!(&refused, OpenError::Lost { found: 71, acknowledged: 72, .. }), "{refused}");
    fs::remove_file(dir.join("store.redb")).expect("writable");
    let refused = Engine::open(&dir, Options::default()).expect_err("gone");
    assert!(matches!(&refused, OpenError::Lost { found: 0, acknowledged: 72, .. }), "{refused}");
    fs::remove_file(dir.join("store.witness")).expect("writable");
    Engine::open(&dir, Options::default()).expect("begins anew once that was chosen");
}

#[tokio::test]
async fn a_store_that_was_put_back_goes_on_far_above_what_was() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    fill(&dir).await;
    let backup = fs::read(dir.join("store.redb")).expect("readable");
    let store = Engine::open(&dir, Options::default()).expect("opens");
    let lost = store.commit(put("/registry/last", Expect::Absent, "x")).await.expect("works");
    assert_eq!(lost, TxnResponse::Committed(Revision::from_log(72)));
    drop(store);
    fs::write(dir.join("store.redb"), backup).expect("writable");
    fs::remove_file(dir.join("store.witness")).expect("writable");
    let past = Revision::from_log(71 + RESTORE_GAP);
    for round in 0..3 {
        let store = Engine::open(&dir, Options::default()).expect("opens");
        let current = store.barrier().await.expect("open");
        assert_eq!(
            (current.get(), store.oldest().await.expect("open")),
            (past.get() + round, past),
            "{round}"
        );
        for revision in [70, 71, 72, past.get() - 1] {
            let feed = Backend::feed(&*store, "/registry/", Revision::from_log(revision)).await;
            assert!(
                matches!(feed.err(), Some(FeedError::Compacted { oldest }) if oldest == past),
                "{revision}"
            );
        }
        let all = Range { prefix: "/registry/".into(), start_after: None, limit: 1000, at: Some(past) };
        let page = Backend::range(&*store, all).await.expect("held");
        assert!(!page.items.is_empty() && page.items.iter().all(|(_, found)| found.revision.get() <= 71));
        assert!(page.items.iter().all(|(key, _)| key.as_str() != "/registry/last"));
        let txn = put(&format!("/registry/new-{round}"), Expect::Absent, "x");
        let committed = store.commit(txn).await.expect("works");
        assert_eq!(committed, TxnResponse::Committed(Revision::from_log(past.get() + round + 1)));
    }
}

#[tokio::test]
async fn a_file_of_a_newer_format_is_refused() {
    let scratch = Scratch::new();
    fill(scratch.path()).await;
    let db = redb::Database::create(scratch.path().join("store.redb")).expect("opens");
    let txn = db.begin_write().expect("works");
    let meta = redb::TableDefinition::<&str, &[u8]>::new("meta");
    txn.open_table(meta).expect("there").insert("format", &2u32.to_le_bytes()[..]).expect("works");
    txn.commit().expect("works");
    drop(db);
    let refused = Engine::open(scratch.path(), Options::default()).expect_err("newer");
    assert!(matches!(refused, OpenError::Newer { found: 2, supported: 1, .. }), "{refused}");
}
