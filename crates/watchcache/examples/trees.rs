//! The tree beside imbl's: memory an entry, an update with a snapshot held, a walk over all.
//!
//! `cargo run --release -p forebay-watchcache --example trees [entries]`

#[allow(dead_code, reason = "what the cache uses beside this")]
#[path = "../src/tree/mod.rs"]
mod tree;

use std::cmp::Ordering;
use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_rt::Random;
use imbl::OrdMap;
use tree::{Entry, Tree};

/// As large as the cache's, without its parts.
#[derive(Clone)]
struct Object {
    key: Key,
    _rest: [u64; 12],
}

impl Entry for Arc<Object> {
    type Key = Key;

    fn to_key(&self) -> Key {
        self.key.clone()
    }

    fn cmp_key(&self, key: &Key) -> Ordering {
        self.key.cmp(key)
    }

    fn cmp_entry(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }

    fn weight(&self) -> usize {
        self._rest[0] as usize
    }
}

/// What the two are asked to do.
trait State: Clone + Default {
    fn put(&mut self, object: Arc<Object>);
    fn walk(&self) -> usize;
}

impl State for Tree<Arc<Object>> {
    fn put(&mut self, object: Arc<Object>) {
        self.insert(object);
    }

    fn walk(&self) -> usize {
        self.places(0..self.len()).map(|object| Arc::as_ptr(object) as usize & 1).sum::<usize>() + self.len()
    }
}

impl State for OrdMap<Key, Arc<Object>> {
    fn put(&mut self, object: Arc<Object>) {
        self.insert(object.key.clone(), object);
    }

    fn walk(&self) -> usize {
        self.iter().map(|(_, object)| Arc::as_ptr(object) as usize & 1).sum::<usize>() + self.len()
    }
}

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [name, order, entries] = &args[..] {
        return one(name, order, entries.parse().expect("a number"));
    }
    let entries = args.first().map_or(vec!["100000", "1000000"], |entries| vec![entries]);
    for entries in entries {
        println!("{entries} entries");
        for (order, name) in [("sorted", "imbl"), ("sorted", "ours"), ("random", "imbl"), ("random", "ours")]
        {
            // In a process of its own, so that the memory of one is not used by the next.
            let this = std::env::current_exe().expect("it runs");
            let ran = Command::new(this).args([name, order, entries]).status();
            assert!(ran.is_ok_and(|status| status.success()), "{name} {order} {entries}");
        }
    }
}

fn one(name: &str, order: &str, entries: usize) {
    let random = Random::seeded(1);
    let key = |number: usize| {
        let namespace = number * 50 / entries;
        Key::from(format!("/registry/pods/ns-{namespace:02}/web-{number:08}-{:05x}", number * 7919 % 0xfffff))
    };
    // Made in order and not sorted, so that no memory is free when the measuring begins.
    let mut objects: Vec<_> =
        (0..entries).map(|number| Arc::new(Object { key: key(number), _rest: [1; 12] })).collect();
    if order == "random" {
        (0..entries).for_each(|at| objects.swap(at, random.below(entries as u64) as usize));
    }
    match name {
        "imbl" => measure::<OrdMap<Key, Arc<Object>>>(&format!("{name} {order}"), &objects, &random),
        _ => measure::<Tree<Arc<Object>>>(&format!("{name} {order}"), &objects, &random),
    }
}

fn measure<S: State>(name: &str, objects: &[Arc<Object>], random: &Random) {
    let held = rss();
    let mut state = S::default();
    let began = cpu_ns();
    objects.iter().for_each(|object| state.put(object.clone()));
    let fill = (cpu_ns() - began) / objects.len();
    let bytes = (rss() - held) as f64 / objects.len() as f64;
    let mut walks: Vec<f64> = (0..5)
        .map(|_| {
            let began = cpu_ns();
            black_box(state.walk());
            (cpu_ns() - began) as f64 / objects.len() as f64
        })
        .collect();
    walks.sort_by(f64::total_cmp);
    // One change and one snapshot each, as the cache does at a low rate; and a thousand to a snapshot.
    let update = |state: &mut S, batch: usize| {
        const UPDATES: usize = 200_000;
        let mut snapshot = state.clone();
        let began = cpu_ns();
        for number in 0..UPDATES {
            let old = &objects[random.below(objects.len() as u64) as usize];
            state.put(Arc::new(Object::clone(old)));
            if number % batch == 0 {
                snapshot = state.clone();
            }
        }
        drop(snapshot);
        (cpu_ns() - began) / UPDATES
    };
    let (one, many) = (update(&mut state, 1), update(&mut state, 1_000));
    println!(
        "  {name:<12} fill {fill:>5} ns  {bytes:>6.1} B an entry  walk {:>5.1} ns  update+snapshot {one:>5} ns, a thousand to a snapshot {many:>5} ns",
        walks[2]
    );
}

fn rss() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok()).unwrap_or(0) << 10
}

/// Time that this process has computed: others on this machine do not count.
fn cpu_ns() -> usize {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}
