//! What it costs to keep objects plain, in blocks, or as they are kept: ADR 29's table.
//!
//! `cargo run --release -p forebay-watchcache --example policies [pods]`; each policy in a process of its
//! own.

mod pods;

use std::process::Command;
use std::sync::Arc;

use flate2::{Compress, Compression, FlushCompress};
use forebay_apimachinery::Revision;
use forebay_embedded::Engine;
use forebay_object::{Deflated, Scratch, Segment, Segments};
use forebay_rt::{Clock, Duration, Random};
use forebay_watchcache::limits::{PACE, Pace};
use forebay_watchcache::{Cacher, Interest, Reach, Snapshot, WatchStep};
use pods::{PREFIX, cpu_ms, put_all, rss_kb};

/// Nothing is ever sealed; everything at once, however often it changes; what is quiet.
const POLICIES: [(&str, Pace); 3] = [
    ("plain", Pace { cool_ms: 1 << 40, late_ms: 1 << 40, period: PACE.period, recent: PACE.recent }),
    ("blocks", Pace { cool_ms: 0, late_ms: 0, period: Duration::from_millis(50), recent: PACE.recent }),
    ("mixed", PACE),
];

const PODS: u64 = 20_000;
const LISTS: u64 = 20;
/// Updates at an even pace; of two, one is of the few that change all the time.
const UPDATES: u64 = 2_000;
const UPDATE_PERIOD: Duration = Duration::from_millis(10);
const HOT: u64 = 50;

#[tokio::main(worker_threads = 2)]
async fn main() {
    let arg = |place| std::env::args().nth(place);
    let pods = arg(1).and_then(|count| count.parse().ok()).unwrap_or(PODS);
    let named = |name: &str| POLICIES.iter().find(|(known, _)| *known == name);
    if let Some((name, pace)) = arg(2).as_deref().and_then(named) {
        return measure(name, *pace, pods).await;
    }
    println!("{pods} pods; CPU of all threads");
    println!(
        "| | held, MB | RSS, MB | load, us a write | update, us a write | identity LIST, ms | gzip LIST, ms | filtered LIST, ms | replay, us an event |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, _) in POLICIES {
        let program = std::env::current_exe().expect("this program");
        let done = Command::new(program).args([&pods.to_string(), name]).status();
        assert!(done.is_ok_and(|done| done.success()), "{name}");
    }
}

async fn measure(name: &str, pace: Pace, pods: u64) {
    let (cacher, engine, clock) = pods::cache(pace).await;
    let random = Random::seeded(1);
    let begun = cpu_ms();
    put_all(&engine, pods, "Running", &random).await;
    settle(&cacher, &clock).await;
    let load = (cpu_ms() - begun) * 1_000 / pods;
    let (begun, before) = (cpu_ms(), cacher.fresh(soon(&clock)).await.expect("current").revision());
    update(&engine, &clock, pods, &random).await;
    settle(&cacher, &clock).await;
    let update = (cpu_ms() - begun) * 1_000 / UPDATES;
    let now = cacher.fresh(soon(&clock)).await.expect("current");
    let (held, rss) = (now.held().total() + cacher.window().bytes, rss_kb());
    let all = Interest::all(Reach::Below(PREFIX.into()));
    let [identity, gzip, filtered] =
        [identity, gzip, filtered].map(|list: fn(&Snapshot, &Interest) -> usize| {
            let begun = cpu_ms();
            (0..LISTS).for_each(|_| assert!(list(&now, &all) > 0));
            (cpu_ms() - begun) as f64 / LISTS as f64
        });
    let replay = replay(&cacher, &all, before);
    let mb = |bytes: usize| bytes as f64 / 1e6;
    println!(
        "| {name} | {:.1} | {:.0} | {load} | {update} | {identity:.1} | {gzip:.1} | {filtered:.1} | {replay:.1} |",
        mb(held),
        rss as f64 / 1e3,
    );
}

fn soon(clock: &Clock) -> forebay_rt::Instant {
    clock.now() + Duration::from_secs(3)
}

/// Waits until nothing is put at rest any more.
async fn settle(cacher: &Cacher, clock: &Clock) {
    let (mut last, mut same) = (0, 0);
    while same < 4 {
        clock.sleep(Duration::from_secs(2)).await;
        let now = cacher.snapshot().expect("ready").bytes() + cacher.window().bytes;
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
}

async fn update(engine: &Arc<Engine>, clock: &Clock, pods: u64, random: &Random) {
    for number in 0..UPDATES {
        let pod = if number % 2 == 0 { random.below(HOT) * (pods / HOT) } else { random.below(pods) };
        pods::put(engine, pod, "Running", random).await;
        clock.sleep(UPDATE_PERIOD).await;
    }
}

/// As a LIST's body is made: what is deflated together as it is, others one by one.
fn walk(now: &Snapshot, all: &Interest, mut whole: impl FnMut(Deflated<'_>), mut one: impl FnMut(&[u8])) {
    let (mut rest, mut scratch) = (Segments::new(now.range(&all.reach, None)), Scratch::default());
    while let Some(Segment { objects, deflated }) = rest.next_segment() {
        match deflated {
            Some(deflated) => whole(deflated),
            None => objects.iter().for_each(|object| one(&scratch.plain(object).body())),
        }
    }
}

fn identity(now: &Snapshot, all: &Interest) -> usize {
    let (out, bytes) = (std::cell::RefCell::new(Vec::with_capacity(256 << 10)), std::cell::Cell::new(0));
    let flush = |out: &mut Vec<u8>| {
        if out.len() > 64 << 10 {
            bytes.set(bytes.get() + out.len());
            out.clear();
        }
    };
    walk(
        now,
        all,
        |deflated| {
            let mut out = out.borrow_mut();
            deflated.inflate_into(&mut out);
            flush(&mut out);
        },
        |body| {
            let mut out = out.borrow_mut();
            out.extend_from_slice(body);
            flush(&mut out);
        },
    );
    bytes.get() + out.borrow().len()
}

fn gzip(now: &Snapshot, all: &Interest) -> usize {
    struct Out {
        plain: Vec<u8>,
        deflated: Vec<u8>,
        compress: Compress,
        bytes: usize,
    }
    impl Out {
        fn flush(&mut self) {
            self.compress.reset();
            self.deflated.clear();
            self.deflated.reserve(self.plain.len() + 1_024);
            let done = self.compress.compress_vec(&self.plain, &mut self.deflated, FlushCompress::Sync);
            assert!(done.is_ok());
            self.bytes += self.deflated.len();
            self.plain.clear();
        }
    }
    let compress = Compress::new(Compression::fast(), false);
    let out = Out { plain: Vec::new(), deflated: Vec::new(), compress, bytes: 0 };
    let out = std::cell::RefCell::new(out);
    walk(
        now,
        all,
        |deflated| {
            let mut out = out.borrow_mut();
            if !out.plain.is_empty() {
                out.flush();
            }
            out.deflated.clear();
            out.deflated.extend_from_slice(deflated.bytes());
            out.bytes += deflated.bytes().len();
        },
        |body| {
            let mut out = out.borrow_mut();
            out.plain.extend_from_slice(body);
            if out.plain.len() > 128 << 10 {
                out.flush();
            }
        },
    );
    out.borrow().bytes
}

/// One object in a hundred, here and there.
fn filtered(now: &Snapshot, all: &Interest) -> usize {
    let (mut scratch, mut out) = (Scratch::default(), Vec::new());
    for object in now.range(&all.reach, None).filter(|object| object.key().as_str().ends_with("77")) {
        out.extend_from_slice(&scratch.plain(object).body());
    }
    out.len()
}

/// CPU of an event, in microseconds.
fn replay(cacher: &Cacher, all: &Interest, after: Revision) -> f64 {
    let (begun, mut events, mut out) = (cpu_ms(), 0_u32, Vec::new());
    for _ in 0..LISTS {
        let mut watcher = cacher.watch(all.clone(), after).expect("held");
        while let Some(step) = watcher.try_next() {
            if let WatchStep::Event { object, .. } = step {
                out.clear();
                object.write_body(None, None, &mut out);
                events += 1;
            }
        }
    }
    (cpu_ms() - begun) as f64 * 1e3 / f64::from(events.max(1))
}
