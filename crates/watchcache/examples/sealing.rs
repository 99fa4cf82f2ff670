//! What the window takes before and after it is sealed: 20,000 pods, each changed once.
//!
//! `cargo run --release -p forebay-watchcache --example sealing [pods]`

mod pods;

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_object::Object;
use forebay_rt::{Duration, Random};
use forebay_watchcache::limits::PACE;
use forebay_watchcache::{Interest, Reach, WatchStep};
use pods::{PREFIX, cpu_ms, put_all, rss_kb};

#[tokio::main]
async fn main() {
    let pods: u64 = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let (cacher, engine, clock) = pods::cache(PACE).await;
    let random = Random::seeded(1);
    for phase in ["Pending", "Running"] {
        put_all(&engine, pods, phase, &random).await;
    }
    let now = cacher.fresh(clock.now() + Duration::from_secs(3)).await.expect("current");
    let (plain, per_pod) = (cacher.window(), now.bytes() as u64 / pods);
    println!("{pods} pods of {per_pod} B, each put twice");
    println!("window, plain:  {:>6} events {:>10} bytes  RSS {} KB", plain.items, plain.bytes, rss_kb());
    let cpu = cpu_ms();
    let mut last = usize::MAX;
    while cacher.window().bytes != last || last == plain.bytes {
        last = cacher.window().bytes;
        clock.sleep(Duration::from_secs(3)).await;
    }
    let sealed = cacher.window();
    let spent = cpu_ms() - cpu;
    println!("window, sealed: {:>6} events {:>10} bytes  RSS {} KB", sealed.items, sealed.bytes, rss_kb());
    println!("sealing took {spent} ms of CPU, {} us a pod", spent * 1000 / pods);
    let (cpu, mut bytes) = (cpu_ms(), 0);
    let all = Interest::all(Reach::Below(PREFIX.into()));
    let mut watcher = cacher.watch(all, Revision::from_log(plain.items as u64 / 4)).expect("held");
    let mut events = 0;
    while let Some(step) = watcher.try_next() {
        let WatchStep::Event { object, .. } = step else { continue };
        bytes += body(&object);
        events += 1;
    }
    println!("a replay of {events} events, {bytes} bytes, took {} ms of CPU", cpu_ms() - cpu);
}

fn body(object: &Arc<Object>) -> usize {
    let mut out = Vec::with_capacity(object.body_len());
    object.write_body(None, None, &mut out);
    out.len()
}
