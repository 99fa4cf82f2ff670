//! What a request was about, as labels, and its record from the first byte in to the last one out.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::Verb;
use forebay_catalog::Served;
use forebay_catalog::histogram::{Bounds, Histogram};
use forebay_rt::{Duration, Instant};
use forebay_spans::OpenSpan;
use forebay_transport::Counter;
use http::Method;

use super::Metrics;
use crate::request_info::RequestInfo;
use crate::status;

/// Labels of a request. None of them is a text that a client chose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestLabels {
    pub component: &'static str,
    pub dry_run: &'static str,
    pub group: Arc<str>,
    pub resource: Arc<str>,
    pub scope: &'static str,
    pub subresource: Arc<str>,
    pub verb: &'static str,
    pub version: Arc<str>,
}

/// What is counted of requests with the same labels.
#[derive(Debug)]
pub struct RequestSeries {
    // HTTP code -> requests; a handful.
    pub codes: std::sync::Mutex<Vec<(u16, u64)>>,
    pub seconds: Histogram,
    /// The same without what was waited for, a turn and webhooks.
    pub own_seconds: Histogram,
    pub bytes: Histogram,
    /// Long-running ones that are open.
    pub open: std::sync::atomic::AtomicI64,
    /// Refused for being too many, or timed out.
    pub terminations: Counter,
    /// Bodies that broke off.
    pub aborts: Counter,
}

impl RequestSeries {
    pub fn new() -> RequestSeries {
        RequestSeries {
            codes: std::sync::Mutex::default(),
            seconds: Histogram::new(SECONDS),
            own_seconds: Histogram::new(OWN_SECONDS),
            bytes: Histogram::new(BYTES),
            open: std::sync::atomic::AtomicI64::new(0),
            terminations: Counter::default(),
            aborts: Counter::default(),
        }
    }
}

impl RequestSeries {
    /// Whether any of them was more than refused for who asked, or for how many did.
    pub fn was_let_in(&self) -> bool {
        let codes = self.codes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        codes.iter().any(|(code, _)| !status::is_not_let_in(*code))
    }
}

impl RequestLabels {
    /// Labels of a request for `served`, or for none that is known.
    pub fn new(method: &Method, info: &RequestInfo, served: Option<&Served>, dry_run: bool) -> RequestLabels {
        let empty: Arc<str> = Arc::from("");
        let dry_run = if dry_run { "All" } else { "" };
        let Some(served) = served else {
            let subresource =
                if info.is_resource { empty.clone() } else { Arc::from(known_path(&info.path)) };
            let (group, resource, version) = (empty.clone(), empty.clone(), empty);
            let verb = verb(method, &Verb::None);
            return RequestLabels {
                component: "",
                dry_run,
                group,
                resource,
                scope: "",
                subresource,
                verb,
                version,
            };
        };
        let subresource = served.subresource(&info.subresource).map_or(empty, |known| known.name.clone());
        let scope = scope(info);
        RequestLabels {
            component: "apiserver",
            dry_run,
            group: served.gvr.group.clone(),
            resource: served.gvr.resource.clone(),
            scope,
            subresource,
            verb: verb(method, &info.verb),
            version: served.gvr.version.clone(),
        }
    }

    /// Where what is beyond the limit of series is counted.
    pub fn other() -> RequestLabels {
        let other: Arc<str> = Arc::from("other");
        let (group, resource, subresource, version) = (other.clone(), other.clone(), other.clone(), other);
        RequestLabels {
            component: "apiserver",
            dry_run: "",
            group,
            resource,
            scope: "",
            subresource,
            verb: "other",
            version,
        }
    }
}

/// Whether a request is about one object, those of a namespace, or all.
pub fn scope(info: &RequestInfo) -> &'static str {
    match (info.name.is_empty() && info.verb != Verb::Create, info.namespace.is_empty()) {
        (false, _) => "resource",
        (true, false) => "namespace",
        (true, true) => "cluster",
    }
}

fn verb(method: &Method, verb: &Verb) -> &'static str {
    match (verb, method.as_str()) {
        (Verb::List, _) => "LIST",
        (Verb::Watch, _) => "WATCH",
        (Verb::DeleteCollection, _) => "DELETECOLLECTION",
        (_, "GET") => "GET",
        (_, "HEAD") => "HEAD",
        (_, "POST") => "POST",
        (_, "PUT") => "PUT",
        (_, "PATCH") => "PATCH",
        (_, "DELETE") => "DELETE",
        (_, "OPTIONS") => "OPTIONS",
        (_, "CONNECT") => "CONNECT",
        _ => "other",
    }
}

fn known_path(path: &str) -> &'static str {
    const KNOWN: [&str; 9] = [
        "/healthz",
        "/livez",
        "/readyz",
        "/version",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/apis",
        "/api",
    ];
    let below = |known: &&&str| {
        path.strip_prefix(**known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    KNOWN.iter().find(below).copied().unwrap_or("")
}

/// A request in work; counted when it is over.
pub struct Record {
    metrics: Arc<Metrics>,
    series: Arc<RequestSeries>,
    started: Instant,
    code: u16,
    bytes: usize,
    is_long_running: bool,
    // Of a GET or LIST, whose sizes are interesting.
    is_sized: bool,
    counted: bool,
    // Upstream has its own time of what is no dry run.
    is_dry_run: bool,
    waited: Duration,
    // Ends with it.
    span: Option<OpenSpan>,
}

impl Record {
    pub fn begin(
        metrics: &Arc<Metrics>,
        labels: &RequestLabels,
        started: Instant,
        is_long_running: bool,
    ) -> Record {
        let series = metrics.requests.of(labels);
        if is_long_running {
            series.open.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        Record {
            metrics: metrics.clone(),
            series,
            started,
            code: 0,
            bytes: 0,
            is_long_running,
            is_sized: matches!(labels.verb, "GET" | "LIST"),
            counted: false,
            is_dry_run: !labels.dry_run.is_empty(),
            waited: Duration::ZERO,
            span: None,
        }
    }

    /// It is told of by `span`, which ends with it.
    pub fn tell(&mut self, span: Option<OpenSpan>) {
        self.span = span;
    }

    /// It waited so long for its turn and for webhooks.
    pub fn waited(&mut self, span: Duration) {
        self.waited = span;
    }

    /// What it is answered with.
    pub fn answered(&mut self, code: u16) {
        self.code = code;
        if let Some(span) = &mut self.span {
            span.set("http.response.status_code", i64::from(code));
            if status::is_own_fault(code) {
                span.fail("");
            }
        }
        if status::is_termination(code) {
            self.series.terminations.add(1);
        }
    }

    pub fn sent(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// A piece of a list or a watch, which is on its way until it is dropped.
    pub fn carry(&self, piece: Bytes) -> Bytes {
        let flight = if self.is_long_running { &self.metrics.watches } else { &self.metrics.lists };
        flight.carry(piece)
    }

    /// The answer is complete.
    pub fn complete(&mut self) {
        if std::mem::replace(&mut self.counted, true) {
            return;
        }
        let mut codes = self.series.codes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match codes.iter_mut().find(|(code, _)| *code == self.code) {
            Some((_, count)) => *count += 1,
            None => codes.push((self.code, 1)),
        }
        drop(codes);
        let took = self.metrics.clock.now().duration_since(self.started);
        self.series.seconds.observe(took.as_secs_f64());
        if !self.is_dry_run {
            self.series.own_seconds.observe(took.saturating_sub(self.waited).as_secs_f64());
        }
        if self.is_sized {
            self.series.bytes.observe(self.bytes as f64);
        }
    }

    /// The body broke off.
    pub fn abort(&mut self) {
        self.series.aborts.add(1);
        self.complete();
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.is_long_running {
            self.series.open.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        }
        self.complete();
    }
}

const SECONDS: Bounds = &[
    ("0.005", 0.005),
    ("0.025", 0.025),
    ("0.05", 0.05),
    ("0.1", 0.1),
    ("0.2", 0.2),
    ("0.4", 0.4),
    ("0.6", 0.6),
    ("0.8", 0.8),
    ("1", 1.0),
    ("1.25", 1.25),
    ("1.5", 1.5),
    ("2", 2.0),
    ("3", 3.0),
    ("4", 4.0),
    ("5", 5.0),
    ("6", 6.0),
    ("8", 8.0),
    ("10", 10.0),
    ("15", 15.0),
    ("20", 20.0),
    ("30", 30.0),
    ("45", 45.0),
    ("60", 60.0),
];

/// As upstream has them of the other one: those of a twentieth of a second and more.
const OWN_SECONDS: Bounds = SECONDS.split_at(2).1;

const BYTES: Bounds = &[
    ("1000", 1e3),
    ("10000", 1e4),
    ("100000", 1e5),
    ("1e+06", 1e6),
    ("1e+07", 1e7),
    ("1e+08", 1e8),
    ("1e+09", 1e9),
];
