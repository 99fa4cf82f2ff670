//! What the store was asked and takes, in kube-apiserver's names: they say etcd whichever store it is.

use std::sync::Arc;

use forebay_catalog::Store;
use forebay_catalog::instrumented::Operation;

use super::text::Text;

/// Writes the metrics of the store.
pub fn write(text: &mut Text, stores: &[Arc<Store>]) {
    requests(text, stores);
    let Some(all) = stores.first().map(|store| store.backend.all()) else { return };
    let (size, sent) = (all.size(), all.sent());
    let id = if sent.is_some() { "etcd-0" } else { "embedded-0" };
    let name = "apiserver_storage_size_bytes";
    text.family(name, "gauge", "Bytes that the store takes on disk.");
    text.value(name, &[("storage_cluster_id", id)], size.file_bytes);
    let help = "Bytes on disk that hold live keys or kept history.";
    text.single("forebay_storage_live_bytes", "gauge", help, size.live_bytes);
    let Some(sent) = sent else { return };
    for (name, help, count) in [
        (
            "forebay_storage_requests_sent_total",
            "Requests sent to a store that is elsewhere, other than those of open feeds.",
            sent.requests,
        ),
        (
            "forebay_storage_barriers_total",
            "Quorum reads that were tried, each for all who waited for it.",
            sent.barriers,
        ),
        ("forebay_storage_feeds_reopened_total", "Feeds from it that were opened again.", sent.reopened),
    ] {
        text.single(name, "counter", help, count);
    }
}

fn requests(text: &mut Text, stores: &[Arc<Store>]) {
    let all = || {
        stores.iter().flat_map(|store| {
            store.backend.read().map(move |(operation, series)| (labels(operation, store), series))
        })
    };
    let name = "etcd_requests_total";
    text.family(name, "counter", "Requests to the store, by what they were for and about.");
    for (labels, series) in all() {
        text.value(name, &labels, series.seconds.count());
    }
    let name = "etcd_request_errors_total";
    text.family(name, "counter", "Those of them that failed. A write that came too late did not.");
    for (labels, series) in all() {
        text.value(name, &labels, series.errors());
    }
    let name = "etcd_request_duration_seconds";
    text.family(name, "histogram", "Time that the store took for them, in seconds.");
    for (labels, series) in all() {
        text.histogram(name, &labels, &series.seconds);
    }
}

fn labels(operation: Operation, store: &Store) -> [(&'static str, &str); 3] {
    [("group", &store.group), ("operation", operation.name()), ("resource", &store.resource)]
}
