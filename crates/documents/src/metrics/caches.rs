//! What the watch caches say of themselves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_catalog::Store;
use forebay_catalog::counts::ListCount;
use forebay_watchcache::Held;

use super::text::Text;

/// A cache's revision is cut to its last 15 digits, as in kube-apiserver: a float holds no more.
const REVISION_MODULUS: u64 = 1_000_000_000_000_000;

/// One resource's numbers, read at one time.
struct Row {
    group: Arc<str>,
    resource: Arc<str>,
    /// `deployments.apps`.
    name: String,
    received: u64,
    dispatched: u64,
    woken: u64,
    went_back: u64,
    holes: u64,
    checks: u64,
    checks_failed: u64,
    mismatches: u64,
    store_reads: u64,
    lanes: usize,
    init: u64,
    initializations: u64,
    terminated: u64,
    decode_errors: u64,
    unreadable: usize,
    begun_late: u64,
    window_events: usize,
    window_bytes: usize,
    window_capacity: usize,
    window_grown: u64,
    window_shrunk: u64,
    pressed_out: u64,
    message_bytes: u64,
    recent: usize,
    loose: u64,
    loose_max: u64,
    overdrawn: u64,
    held: Held,
    // By the index that they went by.
    lists: BTreeMap<String, ListCount>,
    // Revision, objects and their bytes; `None` while the cache is being filled.
    state: Option<(u64, usize, usize)>,
}

/// Writes the metrics of every cache.
pub fn write(text: &mut Text, stores: &[Arc<Store>]) {
    let rows = rows(stores);
    counters(text, &rows);
    lists(text, &rows);
    checks(text, &rows);
    gauges(text, &rows);
}

fn rows(stores: &[Arc<Store>]) -> Vec<Row> {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    stores
        .iter()
        .map(|store| {
            let (counters, window) = (store.cacher.counters(), store.cacher.window());
            let state = store.cacher.snapshot().ok();
            Row {
                group: store.group.clone(),
                resource: store.resource.clone(),
                name: store.cacher.resource().name.clone(),
                received: read(&counters.events_received),
                dispatched: read(&counters.events_dispatched),
                store_reads: read(&counters.store_reads),
                went_back: read(&counters.went_back),
                holes: read(&counters.holes_bridged),
                checks: read(&counters.checks),
                checks_failed: read(&counters.checks_failed),
                mismatches: read(&counters.mismatches),
                woken: read(&counters.watchers_woken),
                lanes: store.cacher.lanes(),
                init: read(&counters.init_events),
                initializations: read(&counters.initializations),
                terminated: read(&counters.terminated_watchers),
                decode_errors: read(&counters.decode_errors),
                begun_late: read(&counters.windows_begun_late),
                unreadable: state.as_ref().map_or(0, |snapshot| snapshot.unreadable_len()),
                window_events: window.items,
                window_bytes: window.bytes,
                window_capacity: window.capacity,
                window_grown: window.grown,
                window_shrunk: window.shrunk,
                pressed_out: window.pressed_out,
                message_bytes: store.cacher.message_bytes().get(),
                recent: store.cacher.recent_snapshots(),
                loose: read(&counters.loose_bytes),
                loose_max: read(&counters.loose_bytes_max),
                overdrawn: read(&counters.rooms_overdrawn),
                lists: store.lists.read(),
                held: state.as_ref().map(|snapshot| snapshot.held()).unwrap_or_default(),
                state: state.map(|snapshot| (snapshot.revision().get(), snapshot.len(), snapshot.bytes())),
            }
        })
        .collect()
}

/// Name, help, and what to read.
type Counted = (&'static str, &'static str, fn(&Row) -> u64);

const COUNTERS: [Counted; 16] = [
    (
        "forebay_watch_cache_windows_begun_late_total",
        "Times that a cache was filled without history, because that was compacted faster than it could be read.",
        |row| row.begun_late,
    ),
    (
        "forebay_watch_cache_holes_total",
        "Times that a cache went on across a hole in the store's history.",
        |row| row.holes,
    ),
    (
        "forebay_watch_cache_mismatches_total",
        "Keys at which a cache was found to differ from the store; it was filled anew each time.",
        |row| row.mismatches,
    ),
    (
        "forebay_watch_cache_went_back_total",
        "Times that the store was found at an older revision than before.",
        |row| row.went_back,
    ),
    (
        "forebay_watch_cache_store_reads_total",
        "Lists of a past state that only the store still had.",
        |row| row.store_reads,
    ),
    ("watch_cache_capacity_increase_total", "Times that a cache's window was given more room.", |row| {
        row.window_grown
    }),
    ("watch_cache_capacity_decrease_total", "Times that a cache's window gave back room.", |row| {
        row.window_shrunk
    }),
    (
        "forebay_watch_cache_pressed_out_total",
        "Events that a cache's window forgot before their time, for want of room.",
        |row| row.pressed_out,
    ),
    ("apiserver_watch_cache_events_received_total", "Changes that a cache took from the store.", |row| {
        row.received
    }),
    ("apiserver_watch_cache_events_dispatched_total", "Events that a cache gave to its watchers.", |row| {
        row.dispatched
    }),
    (
        "forebay_watch_cache_rooms_overdrawn_total",
        "Times that a cache went on although it had waited in vain for room for plain bytes.",
        |row| row.overdrawn,
    ),
    ("forebay_watch_cache_watchers_woken_total", "Times that an event woke a waiting watcher.", |row| {
        row.woken
    }),
    ("apiserver_init_events_total", "Objects sent as the initial state of watches.", |row| row.init),
    ("apiserver_watch_cache_initializations_total", "Times that a cache was filled.", |row| {
        row.initializations
    }),
    (
        "apiserver_terminated_watchers_total",
        "Watchers that fell behind further than history reaches.",
        |row| row.terminated,
    ),
    ("apiserver_storage_decode_errors_total", "Stored values that could not be read.", |row| {
        row.decode_errors
    }),
];

fn counters(text: &mut Text, rows: &[Row]) {
    for (name, help, of) in COUNTERS {
        text.family(name, "counter", help);
        for row in rows {
            text.value(name, &row.labels(), of(row));
        }
    }
}

/// Names and labels are kube-apiserver's.
fn lists(text: &mut Text, rows: &[Row]) {
    let by_index: [Listed; 2] = [
        (
            "apiserver_cache_list_total",
            "LISTs that a cache served, by the index that they went by.",
            |count| count.lists,
        ),
        (
            "apiserver_cache_list_fetched_objects_total",
            "Objects that a cache looked at for LISTs, by the index that they went by.",
            |count| count.fetched,
        ),
    ];
    for (name, help, of) in by_index {
        text.family(name, "counter", help);
        for row in rows {
            let [group, resource] = row.labels();
            for (index, count) in &row.lists {
                text.value(name, &[group, ("index", index), resource], of(count));
            }
        }
    }
    let name = "apiserver_cache_list_returned_objects_total";
    text.family(name, "counter", "Objects that a cache returned to LISTs.");
    for row in rows.iter().filter(|row| !row.lists.is_empty()) {
        text.value(name, &row.labels(), row.lists.values().map(|count| count.returned).sum::<u64>());
    }
}

type Listed = (&'static str, &'static str, fn(&ListCount) -> u64);

const GAUGES: [Counted; 10] = [
    (
        "forebay_watch_cache_unreadable_values",
        "Values in the store that cannot be read, which a cache leaves out and names in the log.",
        |row| row.unreadable as u64,
    ),
    ("watch_cache_capacity", "Events that a cache's window has room for at present.", |row| {
        row.window_capacity as u64
    }),
    ("forebay_watch_cache_window_events", "Events in a cache's window.", |row| row.window_events as u64),
    (
        "forebay_watch_cache_window_bytes",
        "Bytes of replaced objects that only a cache's window holds.",
        |row| row.window_bytes as u64,
    ),
    (
        "forebay_watch_cache_lanes",
        "Narrow parts of a cache's window that somebody reads: one name, one node.",
        |row| row.lanes as u64,
    ),
    ("forebay_watch_cache_object_bytes", "Bytes of the objects in a cache.", |row| {
        row.state.map_or(0, |(_, _, bytes)| bytes as u64)
    }),
    (
        "forebay_watch_cache_recent_snapshots",
        "Past states that a cache keeps for the next pages of lists.",
        |row| row.recent as u64,
    ),
    (
        "forebay_watch_cache_message_bytes",
        "Bytes of protobuf messages of a cache's objects, kept while somebody asks for them.",
        |row| row.message_bytes,
    ),
    (
        "forebay_watch_cache_loose_bytes",
        "Bytes of a cache's objects that are in plain form and have not been put at rest yet.",
        |row| row.loose,
    ),
    ("forebay_watch_cache_loose_bytes_max", "The most of them that there have been.", |row| row.loose_max),
];

fn checks(text: &mut Text, rows: &[Row]) {
    let name = "apiserver_storage_consistency_checks_total";
    text.family(name, "counter", "Times that a cache was held against the store, key by key.");
    for row in rows {
        let [group, resource] = row.labels();
        for (status, count) in [("success", row.checks), ("failure", row.checks_failed)] {
            text.value(name, &[group, resource, ("status", status)], count);
        }
    }
}

fn gauges(text: &mut Text, rows: &[Row]) {
    let name = "apiserver_watch_cache_resource_version";
    text.family(name, "gauge", "Revision that a cache has reached, its last 15 digits.");
    for row in rows {
        if let Some((revision, ..)) = row.state {
            text.value(name, &row.labels(), revision % REVISION_MODULUS);
        }
    }
    for (name, help, of) in GAUGES {
        text.family(name, "gauge", help);
        for row in rows {
            text.value(name, &row.labels(), of(row));
        }
    }
    let name = "forebay_watch_cache_held_bytes";
    text.family(name, "gauge", "Bytes that a cache holds, by what they are used for.");
    for row in rows {
        let [group, resource] = row.labels();
        for (used, bytes) in row.uses() {
            text.value(name, &[group, resource, ("use", used)], bytes);
        }
    }
    let objects = |row: &Row| row.state.map_or(-1, |(_, objects, _)| objects as i64);
    let name = "apiserver_resource_objects";
    text.family(name, "gauge", "Objects of a resource; -1 while they are not known.");
    for row in rows {
        text.value(name, &row.labels(), objects(row));
    }
    let name = "apiserver_storage_objects";
    text.family(name, "gauge", "Objects of a resource, under its older name; -1 while they are not known.");
    for row in rows {
        text.value(name, &[("resource", &row.name)], objects(row));
    }
}

impl Row {
    fn uses(&self) -> [(&'static str, u64); 6] {
        let Held { plain, blocks, headers, places } = self.held;
        [
            ("plain", plain as u64),
            ("blocks", blocks as u64),
            ("headers", headers as u64),
            ("places", places as u64),
            ("window", self.window_bytes as u64),
            ("messages", self.message_bytes),
        ]
    }

    fn labels(&self) -> [(&'static str, &str); 2] {
        [("group", &self.group), ("resource", &self.resource)]
    }
}
