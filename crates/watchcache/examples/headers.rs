//! What a cached pod costs besides its body: header, key, labels, fields, its place in the tree and in one
//! field's index.
//!
//! `cargo run --release -p forebay-watchcache --example headers [pods]`

#[allow(dead_code, reason = "what the cache uses beside this")]
#[path = "../src/tree/mod.rs"]
mod tree;

#[path = "../src/entries.rs"]
mod entries;

use std::sync::Arc;

use entries::ByField;
use forebay_apimachinery::{Key, Revision};
use forebay_object::{Form, Interner, Layout, Object, Scope};
use tree::Tree;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const FIELDS: [&str; 8] = [
    "spec.hostNetwork",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "status.nominatedNodeName",
    "status.phase",
    "status.podIP",
];

fn main() {
    let pods: usize = std::env::args().nth(1).and_then(|pods| pods.parse().ok()).unwrap_or(1_000_000);
    let split = |path: &str| path.split('.').map(String::from).collect();
    let fields = FIELDS.iter().map(|path| split(path)).collect();
    let layout = Layout { prefix_len: 15, scope: Scope::Namespaced, form: Form::Typed, fields };
    let mut interner = Interner::default();
    let mut decode = |number: usize| {
        let (key, value) = pod(number);
        let revision = Revision::from_log(number as u64 + 1_000_000);
        Arc::new(Object::decode(&layout, key, revision, value.as_bytes(), &mut interner).expect("a pod"))
    };
    let body_len = decode(pods / 2).body_len();
    let mut bodies = Vec::with_capacity(pods);
    let mut last = rss();
    let mut step = |name: &str, less: usize| {
        let now = rss();
        println!("{name:<40} {:>6} B a pod", (now - last) / pods - less);
        std::mem::replace(&mut last, now)
    };
    (0..pods).for_each(|pod| bodies.push(vec![pod as u8; body_len].into_boxed_slice()));
    let before = step("bodies alone", size_of::<Box<[u8]>>());
    let body = (rss() - before) / pods - size_of::<Box<[u8]>>();
    let objects: Vec<_> = (0..pods).map(&mut decode).collect();
    step("objects without bodies", body + size_of::<Arc<Object>>());
    let mut tree = Tree::default();
    objects.iter().for_each(|object| drop(tree.insert(object.clone())));
    step("tree", 0);
    let mut index = Tree::default();
    for object in &objects {
        index.insert(ByField { object: object.clone(), field: 1 });
    }
    step("index of spec.nodeName", 0);
    println!(
        "cost_bytes less the body {:>22}",
        objects[pods / 2].cost_bytes() - objects[pods / 2].body_len()
    );
    println!("Object {} B", size_of::<Object>());
    drop((bodies, tree, index));
}

/// As the bench's: replicas of one workload share their labels, addresses are unique.
fn pod(number: usize) -> (Key, String) {
    let (workload, node) = (number / 50, number * 7919 % 500);
    let name = format!("app-{workload:05}-{:08x}-{number:07}", workload * 104_729);
    let value = format!(
        concat!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"bench-0","uid":"u","#,
            r#""labels":{{"app.kubernetes.io/name":"app-{workload:05}","app.kubernetes.io/version":"v1.2","#,
            r#""pod-template-hash":"{workload:010x}","topology.example.com/zone":"zone-{zone}","tier":"backend"}}}},"#,
            r#""spec":{{"nodeName":"node-{node:04}","restartPolicy":"Always","schedulerName":"default-scheduler","#,
            r#""serviceAccountName":"default","hostNetwork":false}},"#,
            r#""status":{{"phase":"Running","podIP":"10.{a}.{b}.{c}"}}}}"#
        ),
        name = name,
        workload = workload,
        zone = number % 3,
        node = node,
        a = number >> 16,
        b = number >> 8 & 255,
        c = number & 255,
    );
    (Key::from(format!("/registry/pods/bench-{}/{name}", number * 10 / 1_000_000)), value)
}

fn rss() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok()).unwrap_or(0) << 10
}
