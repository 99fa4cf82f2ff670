//! Snapshots: what is in them, that damage is noticed wherever it is, and stores made of them.

mod common;

use std::path::Path;

use bytes::Bytes;
use common::{at, del, drain, key, options, put, put_ttl};
use forebay_apimachinery::Revision;
use forebay_backend::{Backend, Expect, FeedError, Range};
use forebay_embedded::snapshot::{
    BuildError, Builder, Decoder, Encoder, Entry, Head, Next, SnapshotError, State, Sum, Summary,
};
use forebay_embedded::{Engine, OpenError};
use forebay_rt::Clock;
use forebay_scratch::Scratch;

const NOW_MS: u64 = 1_700_000_000_000;

fn entry(name: &str, revision: u64, expires_ms: Option<u64>, value: &str) -> Entry {
    let value = Bytes::copy_from_slice(value.as_bytes());
    Entry { key: key(name), revision: Revision::from_log(revision), expires_ms, value }
}

/// A file of these blocks.
fn file(revision: u64, blocks: &[&[Entry]]) -> Vec<u8> {
    let head = Head { revision: Revision::from_log(revision), taken_ms: NOW_MS };
    let (mut encoder, mut file) = Encoder::begin(head);
    for block in blocks {
        file.extend(encoder.block(block));
    }
    file.extend(encoder.finish().0);
    file
}

fn read(file: &[u8]) -> Result<(Head, Vec<Entry>, Summary), SnapshotError> {
    let mut decoder = Decoder::begin(file, "backup")?;
    let mut all = Vec::new();
    loop {
        match decoder.read()? {
            Next::Entries(entries) => all.extend(entries),
            Next::End(summary) => return Ok((decoder.head(), all, summary)),
        }
    }
}

fn pages(state: &mut State) -> Vec<Entry> {
    let mut all = Vec::new();
    loop {
        let page = state.page().expect("kept");
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

async fn write(store: &Engine, txns: Vec<forebay_backend::Txn>) {
    for txn in txns {
        Backend::commit(store, txn).await.expect("written");
    }
}

#[tokio::test]
async fn a_state_is_that_of_one_revision_however_much_is_written_meanwhile() {
    let (clock, hand) = Clock::manual(NOW_MS);
    let scratch = Scratch::new();
    let store = Engine::open(scratch.path(), options(&clock)).expect("opens");
    let (none, large) = (Expect::Absent, "x".repeat(700_000));
    write(
        &store,
        vec![
            put("/registry/a", none, "first"),
            put("/registry/c", none, &large),
            put_ttl("/registry/b", none, "short", 5_000),
            put("/registry/d", none, &large),
            put("/registry/e", none, "gone"),
            put("/registry/a", at(2), "second"),
            del("/registry/e", at(6)),
        ],
    )
    .await;
    let mut state = store.state();
    assert_eq!((state.head().revision.get(), state.keys()), (8, 4));
    let later =
        vec![put("/registry/a", at(7), "third"), del("/registry/c", at(3)), put("/registry/f", none, "new")];
    write(&store, later).await;
    let expected = [
        entry("/registry/a", 7, None, "second"),
        entry("/registry/b", 4, Some(NOW_MS + 5_000), "short"),
        entry("/registry/c", 3, None, &large),
        entry("/registry/d", 5, None, &large),
    ];
    let all = pages(&mut state);
    assert!(all == expected, "{:?}", all.iter().map(|entry| &entry.key).collect::<Vec<_>>());
    // Who takes longer than history is kept is told so, and does not get half of it.
    let mut slow = store.state();
    for name in ["/registry/g", "/registry/h", "/registry/i"] {
        write(&store, vec![put(name, none, "new")]).await;
        hand.advance_ms(common::HISTORY_MS + common::MARK_EVERY_MS);
        store.settle().await;
    }
    assert!(store.oldest().await.expect("open") > slow.head().revision);
    let error = slow.page().expect_err("compacted").to_string();
    assert!(error.contains("is compacted"), "{error}");
    // The store is locked, and afterwards it is not.
    let locked = State::open(scratch.path()).err().expect("locked");
    assert!(matches!(locked, OpenError::Locked { .. }), "{locked}");
    store.close();
    let mut state = State::open(scratch.path()).expect("free");
    let names: Vec<_> = pages(&mut state).iter().map(|entry| entry.key.to_string()).collect();
    assert_eq!(names, ["a", "d", "f", "g", "h", "i"].map(|name| format!("/registry/{name}")));
    let absent = State::open(&scratch.path().join("elsewhere")).err().expect("nothing there");
    assert!(matches!(absent, OpenError::Absent { .. }), "{absent}");
    assert!(!scratch.path().join("elsewhere").exists());
}

#[test]
fn what_is_written_is_read_and_has_the_digest_of_its_content() {
    let long = "value ".repeat(100);
    let (a, b, c) = (entry("/a", 3, Some(7), "x"), entry("/b", 3, None, &long), entry("/c", 9, None, ""));
    let one = read(&file(9, &[&[a.clone(), b.clone()], std::slice::from_ref(&c)])).expect("whole");
    assert_eq!((one.0.revision.get(), one.0.taken_ms), (9, NOW_MS));
    assert_eq!(one.1, [a.clone(), b.clone(), c.clone()]);
    assert_eq!((one.2.keys, one.2.bytes), (3, 607));
    // The digest is of keys and values: not of blocks, nor of revisions.
    let other = read(&file(20, &[&[a.clone(), b.clone(), entry("/c", 10, Some(1), "")]])).expect("whole");
    assert_eq!(one.2, other.2);
    let other = read(&file(9, &[&[a, b]])).expect("whole");
    assert_ne!(one.2.digest, other.2.digest);
    let (head, all, summary) = read(&file(1, &[])).expect("whole");
    assert_eq!((head.revision.get(), all.len(), summary), (1, 0, Sum::default().finish()));
}

#[test]
fn whatever_is_changed_or_missing_or_too_much_is_noticed() {
    let first = [entry("/a", 3, Some(7), &"value ".repeat(30)), entry("/b", 4, None, "x")];
    let whole = file(9, &[&first, &[entry("/c", 9, None, "last")]]);
    assert!(read(&whole).is_ok());
    let mut parts = std::collections::BTreeSet::new();
    for len in 0..whole.len() {
        match read(&whole[..len]).expect_err("cut") {
            SnapshotError::Truncated { file, part, at } => {
                assert_eq!((file.as_str(), at), ("backup", len as u64));
                parts.insert(part);
            }
            other => panic!("cut at {len}: {other}"),
        }
    }
    let expected = ["block 1", "block 2", "block 3", "the end", "the header"];
    assert_eq!(parts.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            let error = read(&changed).expect_err("changed").to_string();
            assert!(error.starts_with("backup "), "{at}: {error}");
        }
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert!(matches!(read(&longer), Err(SnapshotError::Longer { at, .. }) if at == whole.len() as u64));
    // Whole parts in the wrong place.
    let other = file(9, &[&first, &[entry("/d", 9, None, "last")]]);
    let ends_at = whole.len() - 65;
    let spliced = [&other[..ends_at], &whole[ends_at..]].concat();
    let error = read(&spliced).expect_err("spliced").to_string();
    assert!(error.contains("is of another content"), "{error}");
}

/// A store of these entries at `dir`, with the history of none before `revision`.
fn build(dir: &Path, entries: Vec<Entry>, revision: u64) -> Result<(), BuildError> {
    let mut builder = Builder::begin(dir)?;
    builder.add(entries)?;
    builder.seal(Revision::from_log(revision))?.promote()
}

#[tokio::test]
async fn a_store_is_made_of_entries_and_goes_on_where_it_is_told_to() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    let (clock, hand) = Clock::manual(NOW_MS);
    let entries = vec![
        entry("/registry/a", 3, None, "one"),
        entry("/registry/b", 5, Some(NOW_MS + 9), "two"),
        // Of one transaction.
        entry("/registry/c", 3, None, "three"),
    ];
    let digest = {
        let mut sum = Sum::default();
        entries.iter().for_each(|entry| sum.add(entry.key.as_str(), &entry.value));
        sum.finish().digest
    };
    build(&dir, entries.clone(), 1_000).expect("built");
    let names = |dir: &Path| {
        let mut names: Vec<_> = std::fs::read_dir(dir)
            .expect("there")
            .map(|entry| entry.expect("entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(scratch.path()), ["store"], "nothing beside it");

    let mut state = State::open(&dir).expect("a store");
    let all = pages(&mut state);
    assert_eq!((all, state.head().revision.get()), (entries.clone(), 1_000));
    drop(state);
    let store = Engine::open(&dir, options(&clock)).expect("opens");
    assert_eq!(store.barrier().await.expect("open").get(), 1_000);
    for before in [1, 3, 5, 999] {
        let feed = Backend::feed(&*store, "/registry/", Revision::from_log(before)).await;
        assert!(matches!(feed, Err(FeedError::Compacted { .. })), "{before}");
    }
    let mut feed = Backend::feed(&*store, "/registry/", Revision::from_log(1_000)).await.expect("fed");
    hand.advance_ms(10);
    store.settle().await;
    write(&store, vec![put("/registry/a", at(3), "four")]).await;
    assert_eq!(drain(&mut feed), "/registry/b=-@1001 /registry/a=four@1002");
    let range = Range { prefix: key("/registry/"), start_after: None, limit: 9, at: None };
    let page = Backend::range(&*store, range).await.expect("read");
    assert_eq!(page.items.iter().map(|(_, read)| read.revision.get()).collect::<Vec<_>>(), [1_002, 3]);

    // There is something now.
    let refused = build(&dir, entries, 2_000).expect_err("it would have to be overwritten");
    assert!(matches!(refused, BuildError::NotEmpty { .. }), "{refused}");
    assert_ne!(digest, Sum::default().finish().digest);
    assert_eq!(names(scratch.path()), ["store"]);
}

#[test]
fn what_was_not_finished_is_no_store_and_no_empty_one_is_begun_in_its_place() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    let entries = || vec![entry("/registry/a", 3, None, "one")];
    // As a process leaves it that is killed at the end: all there, in the wrong place.
    let beside = {
        let mut builder = Builder::begin(&dir).expect("begun");
        builder.add(entries()).expect("added");
        let locked = Builder::begin(&dir).err().expect("another one is at it");
        assert!(matches!(locked, BuildError::Open(OpenError::Locked { .. })), "{locked}");
        let sealed = builder.seal(Revision::from_log(9)).expect("sealed");
        let copy = scratch.path().join("copy");
        std::fs::create_dir(&copy).expect("made");
        for file in std::fs::read_dir(sealed.beside()).expect("there") {
            let file = file.expect("entry");
            std::fs::copy(file.path(), copy.join(file.file_name())).expect("copied");
        }
        let beside = sealed.beside().to_path_buf();
        drop(sealed);
        assert!(!beside.exists(), "who gives up leaves nothing");
        std::fs::rename(copy, &beside).expect("moved");
        beside
    };
    let (clock, _hand) = Clock::manual(NOW_MS);
    let refused = Engine::open(&dir, options(&clock)).expect_err("unfinished").to_string();
    assert!(refused.contains("was not finished: do that again, or remove"), "{refused}");
    assert!(!dir.exists());
    build(&dir, entries(), 9).expect("built anew");
    assert!(!beside.exists());
    assert_eq!(pages(&mut State::open(&dir).expect("a store")), entries());
}

#[test]
fn what_a_store_does_not_take_is_named() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("store");
    let large = "x".repeat((4 << 20) + 1);
    let refused = build(&dir, vec![entry("/registry/large", 3, None, &large)], 9).expect_err("too large");
    assert_eq!(refused.to_string(), "/registry/large: the value has 4194305 bytes, a store takes 4194304");
    assert!(!dir.exists());
}
