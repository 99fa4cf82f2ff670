//! Durable puts a second for 1, 16 and 64 writers with 1.5 KB values, beside a bare loop of append and
//! fdatasync; then how long opening takes, and how large the file is after churn.
//!
//! `cargo run --release --package forebay-embedded --example throughput -- DIR`; DIR must be on the disk to
//! measure.

#![allow(clippy::disallowed_methods, reason = "an example measures with the machine's clock")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use forebay_apimachinery::Key;
use forebay_backend::{Backend, Expect, Op, Txn, TxnResponse};
use forebay_embedded::{Engine, Options};
use forebay_rt::{Clock, Random};

const SPAN: Duration = Duration::from_secs(4);

fn main() {
    let dir = PathBuf::from(std::env::args().nth(1).expect("a directory to write to"));
    fs::create_dir_all(&dir).expect("writable");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let only = std::env::args().nth(2);
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wanted("sync") {
        println!("bare append + fdatasync, 1.5 KB: {:.0}/s", bare(&dir));
    }
    if wanted("puts") {
        for writers in [1, 16, 64] {
            runtime.block_on(puts(&dir, writers));
        }
    }
    if wanted("first") {
        runtime.block_on(first(&dir));
    }
    if wanted("open") {
        runtime.block_on(open(&dir, 20_000, 4_096));
    }
    if wanted("churn") {
        runtime.block_on(churn(&dir));
    }
}

fn bare(dir: &Path) -> f64 {
    let mut file = File::create(dir.join("bare")).expect("writable");
    let (value, start, mut count) = (vec![1; 1_500], Instant::now(), 0);
    while start.elapsed() < SPAN {
        file.write_all(&value).and_then(|()| file.sync_data()).expect("writable");
        count += 1;
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

/// JSON-like text of `len` bytes whose values are random hex.
fn value(random: &Random, len: usize) -> Bytes {
    let mut text = String::with_capacity(len + 64);
    while text.len() < len {
        text.push_str(&format!("{{\"name\":\"{:016x}\",\"image\":\"registry/x\"}},", random.next_u64()));
    }
    text.truncate(len);
    Bytes::from(text)
}

async fn put(store: &Engine, key: Key, expect: Expect, value: Bytes) -> Expect {
    let txn = Txn { key, expect, op: Op::Put { value, ttl: None } };
    match Backend::commit(store, txn).await.expect("works") {
        TxnResponse::Committed(revision) => Expect::At(revision),
        TxnResponse::Conflict(there) => panic!("conflict with {:?}", there.map(|there| there.revision)),
    }
}

async fn puts(dir: &Path, writers: usize) {
    let dir = dir.join(format!("puts-{writers}"));
    let _ = fs::remove_dir_all(&dir);
    let store = Engine::open(&dir, Options::default()).expect("opens");
    let (start, latencies) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let cpu = cpu();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let (store, worst) = (store.clone(), latencies.clone());
            tokio::spawn(async move {
                let random = Random::seeded(writer as u64);
                let (mut count, mut spent) = (0, Vec::new());
                while start.elapsed() < SPAN {
                    let (value, asked) = (value(&random, 1_500), Instant::now());
                    put(&store, Key::new(&format!("/registry/pods/{writer}/{count}")), Expect::Absent, value)
                        .await;
                    spent.push(asked.elapsed().as_micros() as u64);
                    count += 1;
                }
                worst.fetch_max(spent.iter().copied().max().unwrap_or(0), Ordering::Relaxed);
                (count, spent)
            })
        })
        .collect();
    let (mut count, mut spent) = (0, Vec::new());
    for task in tasks {
        let (done, took) = task.await.expect("no panic");
        count += done;
        spent.extend(took);
    }
    spent.sort_unstable();
    let rate = f64::from(count) / start.elapsed().as_secs_f64();
    let cpu_us = (self::cpu() - cpu) * 1e6 / f64::from(count);
    let size = store.size();
    println!(
        "{writers} writers: {rate:.0}/s, p50 {} us, p99 {} us, max {} us, {cpu_us:.0} us CPU each, file {:.2} of live",
        spent[spent.len() / 2],
        spent[spent.len() * 99 / 100],
        spent[spent.len() - 1],
        size.file_bytes as f64 / size.live_bytes as f64,
    );
}

/// Seconds of CPU that this process has used.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

async fn first(dir: &Path) {
    let dir = dir.join("first");
    for _ in 0..3 {
        let _ = fs::remove_dir_all(&dir);
        let start = Instant::now();
        let store = Engine::open(&dir, Options::default()).expect("opens");
        let opened = start.elapsed();
        put(&store, Key::new("/a"), Expect::Absent, Bytes::from_static(b"x")).await;
        println!(
            "empty open {opened:?}, with first commit {:?}, resident {} KiB",
            start.elapsed(),
            resident_kib()
        );
    }
}

async fn open(dir: &Path, keys: usize, len: usize) {
    let dir = dir.join("open");
    let _ = fs::remove_dir_all(&dir);
    let store = Engine::open(&dir, Options::default()).expect("opens");
    let (random, start) = (Random::seeded(1), Instant::now());
    let mut tasks = Vec::new();
    for n in 0..keys {
        let (store, value) = (store.clone(), value(&random, len));
        let key = Key::new(&format!("/registry/pods/default/pod-{n}"));
        tasks.push(tokio::spawn(async move { put(&store, key, Expect::Absent, value).await }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    println!("{keys} keys of {len} B in {:?}: {:?}", start.elapsed(), store.size());
    for crash in [false, true, true] {
        if crash {
            // A copy of the file as it is now is what a kill would leave.
            let store = Engine::open(&dir, Options::default()).expect("opens");
            put(
                &store,
                Key::new(&format!("/x{}", random.next_u64())),
                Expect::Absent,
                Bytes::from_static(b"x"),
            )
            .await;
            let copy = dir.with_extension("copy");
            let _ = fs::remove_dir_all(&copy);
            fs::create_dir_all(&copy).expect("writable");
            fs::copy(dir.join("store.redb"), copy.join("store.redb")).expect("readable");
            store.close();
            timed_open(&copy, "after a crash");
        } else {
            store.close();
            timed_open(&dir, "after a close");
        }
    }
}

fn timed_open(dir: &Path, what: &str) {
    let start = Instant::now();
    let store = Engine::open(dir, Options::default()).expect("opens");
    println!("open {what}: {:?}, resident {} KiB", start.elapsed(), resident_kib());
    store.close();
}

/// Overwrites a fixed set of keys, with time passing quickly, and prints the file's size as it goes.
async fn churn(dir: &Path) {
    let dir = dir.join("churn");
    let _ = fs::remove_dir_all(&dir);
    let (clock, hand) = Clock::manual(1_700_000_000_000);
    let options =
        || Options { clock: clock.clone(), history_ms: 10_000, mark_every_ms: 1_000, ..Options::default() };
    let store = Engine::open(&dir, options()).expect("opens");
    let (keys, random) = (5_000, Random::seeded(1));
    let mut held = vec![Expect::Absent; keys];
    for round in 0..40 {
        let mut tasks = Vec::new();
        let start = Instant::now();
        for _ in 0..5_000 / 64 {
            // Neighbours in a batch are different keys.
            let first = random.below(keys as u64) as usize;
            for n in (0..64).map(|step| (first + step * 37) % keys) {
                let len = if random.below(50) == 0 { 60_000 } else { 500 + random.below(4_000) as usize };
                let (store, value, expect) = (store.clone(), value(&random, len), held[n]);
                let key = Key::new(&format!("/registry/pods/default/pod-{n}"));
                tasks.push((n, tokio::spawn(async move { put(&store, key, expect, value).await })));
            }
            for (n, task) in tasks.drain(..) {
                held[n] = task.await.expect("no panic");
            }
        }
        hand.advance_ms(2_000);
        let size = store.size();
        println!(
            "round {round}: {:?}, live {:.1} MB, file {:.1} MB, {:.2}",
            start.elapsed(),
            size.live_bytes as f64 / 1e6,
            size.file_bytes as f64 / 1e6,
            size.file_bytes as f64 / size.live_bytes as f64
        );
    }
    hand.advance_ms(60_000);
    store.settle().await;
    hand.advance_ms(60_000);
    store.settle().await;
    let size = store.size();
    println!("settled: {size:?}, {:.2}", size.file_bytes as f64 / size.live_bytes as f64);
    store.close();
    let start = Instant::now();
    let store = Engine::open(&dir, options()).expect("opens");
    let size = store.size();
    println!(
        "opened again in {:?}: {size:?}, {:.2}",
        start.elapsed(),
        size.file_bytes as f64 / size.live_bytes as f64
    );
}
