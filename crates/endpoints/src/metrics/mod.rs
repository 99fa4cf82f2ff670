//! `/metrics`, in kube-apiserver's own names for what exists here too.
//!
//! In: what happened, from the rooms of the edge; the caches' own counters. Out: the classic text format.
//! Every label has a bounded set of values.

mod audit;
mod connections;
mod family;
mod flight;
mod memory;
mod neighbours;
mod request;
mod watch;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use forebay_audit::AuditCounts;
use forebay_authorization::AuthorizationMetrics;
use forebay_catalog::histogram::Histogram;
use forebay_catalog::{Catalog, Served};
use forebay_documents::metrics::{
    AuthenticationMetrics, Availability, SignerMetrics, Text, authorization, caches, encryption, flow,
    pod_security, process, storage, tasks, webhooks,
};
use forebay_documents::version::VersionInfo;
use forebay_encryption::EncryptionMetrics;
use forebay_pieces::{EventBlocks, SharedLists};
use forebay_rt::Clock;
use forebay_transport::{ConnectionCounts, StalledReaders};
use forebay_usage::Usage;
use forebay_webhooks::WebhookMetrics;

use crate::flow_control::FlowControl;
use crate::identity::IdentityCounts;
use crate::inflight::{Inflight, RequestKind};
use crate::memory::Memory;
use crate::neighbourhood::Neighbourhood;
use crate::request_info::RequestInfo;
use crate::rooms::Rooms;
use family::Family;
use flight::Flight;
use request::RequestSeries;
pub use request::{Record, RequestLabels};
pub use watch::WatchEvents;
use watch::{LIST_SECONDS, SIZES, WatchLabels, WatchListLabels};

/// Everything that the edge counts.
pub struct Metrics {
    clock: Clock,
    requests: Family<RequestLabels, RequestSeries>,
    watch_events: Family<WatchLabels, Histogram>,
    watch_lists: Family<WatchListLabels, Histogram>,
    /// What is on its way of lists, and of watches.
    lists: Flight,
    watches: Flight,
    identity: Arc<IdentityCounts>,
    pub connections: Arc<ConnectionCounts>,
    others: CountedElsewhere,
}

/// What others count.
#[derive(Default)]
pub struct CountedElsewhere {
    /// What this is, once that is known.
    pub version: Option<VersionInfo>,
    pub webhooks: Arc<WebhookMetrics>,
    pub authentication: Arc<AuthenticationMetrics>,
    pub authorization: Arc<AuthorizationMetrics>,
    /// Where something is encrypted at rest.
    pub encryption: Option<Arc<EncryptionMetrics>>,
    /// Where somebody else signs service accounts' tokens.
    pub token_signer: Option<Arc<SignerMetrics>>,
}

impl CountedElsewhere {
    fn write(&self, text: &mut Text) {
        if let Some(version) = &self.version {
            version.write(text);
        }
        webhooks::write_plugins(text, &self.webhooks.plugins);
        webhooks::write(text, &self.webhooks.counted());
        authorization::write(text, &self.authorization.counted());
        self.authentication.write(text);
        webhooks::write_conversions(text, &self.webhooks.conversions.counted());
        webhooks::write_policies(text, &self.webhooks.policies.counted());
        pod_security::write(text, &self.webhooks.pod_security.counted());
        if let Some(counted) = &self.encryption {
            encryption::write(text, &counted.counted());
        }
        if let Some(counted) = &self.token_signer {
            counted.write(text);
        }
    }
}

impl Metrics {
    pub fn new(clock: Clock, identity: Arc<IdentityCounts>, others: CountedElsewhere) -> Metrics {
        let other: Arc<str> = Arc::from("other");
        Metrics {
            clock,
            requests: Family::new(RequestLabels::other(), RequestSeries::new),
            watch_lists: Family::new((other.clone(), other.clone(), "", other.clone()), || {
                Histogram::new(LIST_SECONDS)
            }),
            watch_events: Family::new((other.clone(), other.clone(), other), || Histogram::new(SIZES)),
            lists: Flight::default(),
            watches: Flight::default(),
            identity,
            connections: Arc::default(),
            others,
        }
    }

    /// Counts the events of one watch of `served`.
    pub fn watch_events(
        &self,
        served: &Served,
        info: &RequestInfo,
        usage: Option<Arc<Usage>>,
    ) -> WatchEvents {
        let gvr = &served.gvr;
        let sizes = (gvr.group.clone(), gvr.resource.clone(), gvr.version.clone());
        let lists = (gvr.group.clone(), gvr.resource.clone(), request::scope(info), gvr.version.clone());
        WatchEvents::new(self.watch_events.of(&sizes), self.watch_lists.of(&lists), self.clock.clone(), usage)
    }

    /// The whole text.
    pub fn render(
        &self,
        catalog: &Catalog,
        (inflight, flow_control, neighbourhood): (&Inflight, Option<&FlowControl>, Option<&Neighbourhood>),
        (memory, rooms, stalled_readers): (&Memory, &Rooms, &StalledReaders),
        shared: (&EventBlocks, &SharedLists),
        (availability, audit): (&Availability, Option<&Arc<AuditCounts>>),
    ) -> String {
        let mut text = Text::default();
        self.requests(&mut text);
        self.deprecated(&mut text, catalog);
        self.watches(&mut text);
        let name = "apiserver_current_inflight_requests";
        text.family(name, "gauge", "Requests in work that hold a seat.");
        for (kind, label) in [(RequestKind::Mutating, "mutating"), (RequestKind::ReadOnly, "readOnly")] {
            text.value(name, &[("request_kind", label)], inflight.taken(kind));
        }
        self.others.write(&mut text);
        availability.write(&mut text);
        audit::write(&mut text, audit.map(|counts| &**counts));
        flow::write(&mut text, &flow_control.map(FlowControl::metrics).unwrap_or_default());
        let counts = &*self.connections;
        let help = "Connections that failed before they were secure.";
        text.single("apiserver_tls_handshake_errors_total", "counter", help, counts.handshake_errors.get());
        let help = "Connections that were accepted.";
        text.single("forebay_connections_accepted_total", "counter", help, counts.accepted.get());
        let help = "Connections that were closed at once, as there were too many.";
        text.single("forebay_connections_refused_total", "counter", help, counts.refused.get());
        self.identity(&mut text);
        connections::write(&mut text, counts);
        neighbours::write(&mut text, neighbourhood, counts);
        self.flights(&mut text);
        memory::write(&mut text, memory, rooms, stalled_readers, shared);
        let mut stores = catalog.stores();
        stores.sort_by(|a, b| (&a.group, &a.resource).cmp(&(&b.group, &b.resource)));
        caches::write(&mut text, &stores);
        storage::write(&mut text, &stores);
        tasks::write(&mut text, &forebay_rt::long_turns());
        process::write(&mut text);
        text.finish()
    }

    fn identity(&self, text: &mut Text) {
        let name = "forebay_identity_replaced_total";
        text.family(name, "counter", "Files of identity that had changed and were taken in.");
        for (part, replaced, _) in self.identity.all() {
            text.value(name, &[("part", part.name())], replaced);
        }
        let name = "forebay_identity_refused";
        text.family(
            name,
            "gauge",
            "Files of identity that have changed and cannot be taken in: what they were counts.",
        );
        for (part, _, is_refused) in self.identity.all() {
            text.value(name, &[("part", part.name())], u64::from(is_refused));
        }
    }

    fn flights(&self, text: &mut Text) {
        let kinds = [("list", &self.lists), ("watch", &self.watches)];
        let name = "forebay_answer_frames_in_flight";
        text.family(name, "gauge", "Pieces of answers that were made and are not with the kernel yet.");
        for (kind, flight) in kinds {
            text.value(name, &[("kind", kind)], flight.frames());
        }
        let name = "forebay_answer_bytes_in_flight";
        text.family(name, "gauge", "Bytes of answers that were made and are not with the kernel yet.");
        for (kind, flight) in kinds {
            text.value(name, &[("kind", kind)], flight.bytes());
        }
    }

    fn requests(&self, text: &mut Text) {
        let series = self.requests.read();
        let name = "apiserver_request_total";
        text.family(
            name,
            "counter",
            "Requests that were answered, by what they were about and the HTTP code.",
        );
        for (labels, of) in &series {
            let codes = of.codes.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for (code, count) in codes {
                let code = code.to_string();
                let mut all = vec![("code", code.as_str())];
                all.extend(labels.all());
                text.value(name, &all, count);
            }
        }
        let name = "apiserver_request_duration_seconds";
        text.family(name, "histogram", "Time from a request's head to the end of its answer, in seconds.");
        for (labels, of) in &series {
            text.histogram(name, &labels.all(), &of.seconds);
        }
        let name = "apiserver_request_sli_duration_seconds";
        text.family(
            name,
            "histogram",
            "The same without the time that a request waited for its turn and for webhooks.",
        );
        for (labels, of) in series.iter().filter(|(_, of)| of.own_seconds.count() > 0) {
            text.histogram(name, &labels.without_dry_run(), &of.own_seconds);
        }
        let name = "apiserver_response_sizes";
        text.family(name, "histogram", "Size of the answers to GET and LIST, in bytes.");
        for (labels, of) in series.iter().filter(|(labels, _)| matches!(labels.verb, "GET" | "LIST")) {
            text.histogram(name, &labels.without_dry_run(), &of.bytes);
        }
        let name = "apiserver_longrunning_requests";
        text.family(name, "gauge", "Watches and the like that are open.");
        for (labels, of) in series.iter().filter(|(labels, _)| labels.verb == "WATCH") {
            text.value(name, &labels.without_dry_run(), of.open.load(Ordering::Relaxed));
        }
        let name = "apiserver_request_terminations_total";
        text.family(name, "counter", "Requests that were refused for being too many, or timed out.");
        for (labels, of) in series.iter().filter(|(_, of)| of.terminations.get() > 0) {
            text.value(name, &labels.without_dry_run(), of.terminations.get());
        }
        let name = "apiserver_request_aborts_total";
        text.family(name, "counter", "Answers that broke off because nobody read on.");
        for (labels, of) in series.iter().filter(|(_, of)| of.aborts.get() > 0) {
            text.value(name, &labels.without_dry_run(), of.aborts.get());
        }
    }

    /// What was asked for that is deprecated.
    fn deprecated(&self, text: &mut Text, catalog: &Catalog) {
        let name = "apiserver_requested_deprecated_apis";
        text.family(name, "gauge", "Deprecated APIs that were asked for: 1.");
        let is_deprecated = |labels: &RequestLabels| {
            let served = catalog.resource(&labels.group, &labels.version, &labels.resource);
            served.is_some_and(|served| served.deprecation_warning().is_some())
        };
        let series = self.requests.read();
        // By other labels there are several of one.
        let asked: BTreeSet<_> = series
            .iter()
            .filter(|(labels, of)| {
                labels.component == "apiserver" && of.was_let_in() && is_deprecated(labels)
            })
            .map(|(RequestLabels { group, version, resource, subresource, .. }, _)| {
                (&**group, &**resource, &**subresource, &**version)
            })
            .collect();
        for (group, resource, subresource, version) in asked {
            // None of them says when it goes.
            let labels = [
                ("group", group),
                ("removed_release", ""),
                ("resource", resource),
                ("subresource", subresource),
                ("version", version),
            ];
            text.value(name, &labels, 1);
        }
    }

    fn watches(&self, text: &mut Text) {
        let series = self.watch_events.read();
        let name = "apiserver_watch_events_total";
        text.family(name, "counter", "Events that were sent to watchers.");
        let labels = |(group, resource, version): &WatchLabels| {
            [("group", group.clone()), ("resource", resource.clone()), ("version", version.clone())]
        };
        for (of, sizes) in &series {
            let labels = labels(of);
            let count = sizes.read().0.last().copied().unwrap_or(0);
            text.value(name, &labels.each_ref().map(|(name, value)| (*name, &**value)), count);
        }
        let name = "apiserver_watch_events_sizes";
        text.family(name, "histogram", "Size of the events that were sent to watchers, in bytes.");
        for (of, sizes) in &series {
            let labels = labels(of);
            text.histogram(name, &labels.each_ref().map(|(name, value)| (*name, &**value)), sizes);
        }
        let name = "apiserver_watch_list_duration_seconds";
        text.family(name, "histogram", "Time until the initial state of a watch-list was sent, in seconds.");
        for ((group, resource, scope, version), seconds) in &self.watch_lists.read() {
            if seconds.read().0.last().is_some_and(|count| *count > 0) {
                let labels =
                    [("group", &**group), ("resource", resource), ("scope", scope), ("version", version)];
                text.histogram(name, &labels, seconds);
            }
        }
    }
}

impl RequestLabels {
    fn all(&self) -> [(&'static str, &str); 8] {
        [
            ("component", self.component),
            ("dry_run", self.dry_run),
            ("group", &self.group),
            ("resource", &self.resource),
            ("scope", self.scope),
            ("subresource", &self.subresource),
            ("verb", self.verb),
            ("version", &self.version),
        ]
    }

    fn without_dry_run(&self) -> [(&'static str, &str); 7] {
        let [component, _, group, resource, scope, subresource, verb, version] = self.all();
        [component, group, resource, scope, subresource, verb, version]
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::request_info::RequestInfo;
    use forebay_apimachinery::options::Query;

    #[test]
    fn a_request_is_counted_when_its_answer_is_over() {
        let metrics = Arc::new(Metrics::new(Clock::system(), Arc::default(), CountedElsewhere::default()));
        let info = RequestInfo::parse(&Method::GET, "/healthz/ping", &Query::default()).expect("a path");
        let labels = RequestLabels::new(&Method::GET, &info, None, false);
        let mut record = Record::begin(&metrics, &labels, metrics.clock.now(), false);
        record.answered(200);
        record.sent(2);
        let count = |metrics: &Metrics| {
            let mut text = Text::default();
            metrics.requests(&mut text);
            let text = text.finish();
            text.lines()
                .filter(|line| line.starts_with("apiserver_request_total{"))
                .map(String::from)
                .collect::<Vec<_>>()
        };
        assert_eq!(count(&metrics), Vec::<String>::new());
        drop(record);
        assert_eq!(
            count(&metrics),
            [
                r#"apiserver_request_total{code="200",component="",dry_run="",group="",resource="",scope="",subresource="/healthz",verb="GET",version=""} 1"#
            ]
        );
    }

    #[test]
    fn unknown_paths_and_methods_make_no_new_labels() {
        for (method, path) in [("FOO", "/x/1"), ("BAR", "/x/2"), ("FOO", "/apis/a/b/c/d")] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let info = RequestInfo::parse(&method, path, &Query::default()).expect("a path");
            let labels = RequestLabels::new(&method, &info, None, false);
            assert_eq!((labels.verb, &*labels.subresource, &*labels.resource), ("other", "", ""), "{path}");
        }
    }
}
