//! What it takes to note a request at Metadata in a file, in each mode: `cargo run --release -p forebay-audit
//! --example note`.
//!
//! In: nothing. Out: microseconds a request, of wall time and of all CPUs, for one client and for sixty-four.

use std::sync::Arc;

use forebay_apimachinery::{About, Attributes, Caller, ResourceAttributes, Verb};
use forebay_audit::{
    Audit, AuditEvent, AuditLevel, AuditMode, AuditOptions, AuditPolicy, AuditStage, BatchOptions, LogFormat,
    LogOptions, Noted, ObjectRef, Trail, TrailShape, TruncateOptions,
};
use forebay_rt::{Clock, Duration, Random};
use serde_json::json;
use tokio::task::JoinSet;

const REQUESTS: usize = 200_000;

#[tokio::main]
async fn main() {
    for (name, mode) in [
        ("batch", AuditMode::Batch),
        ("blocking", AuditMode::Blocking),
        ("blocking-strict", AuditMode::BlockingStrict),
    ] {
        for clients in [1, 64] {
            let dir = std::env::temp_dir().join(format!("forebay-audit-example-{}", std::process::id()));
            let audit = Arc::new(begin(&dir, mode));
            let (clock, cpu) = (Clock::system(), cpu_us());
            let begun = clock.now();
            let each = REQUESTS / clients;
            let mut all = JoinSet::new();
            for _ in 0..clients {
                let audit = audit.clone();
                all.spawn(async move {
                    for _ in 0..each {
                        request(&audit).await;
                    }
                });
            }
            all.join_all().await;
            audit.finish(Duration::from_secs(60)).await;
            let took = (clock.now() - begun).as_secs_f64() * 1e6 / REQUESTS as f64;
            let cpu = (cpu_us() - cpu) as f64 / REQUESTS as f64;
            println!("{name}, {clients} clients: {took:.1} µs a request, {cpu:.1} µs of CPU");
            std::fs::remove_dir_all(&dir).expect("its own directory");
        }
    }
}

fn begin(dir: &std::path::Path, mode: AuditMode) -> Audit {
    let tree =
        json!({ "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{ "level": "Metadata" }] });
    let (policy, _) = AuditPolicy::of(&tree).expect("a policy");
    let log = LogOptions {
        path: dir.join("audit.log"),
        format: LogFormat::Json,
        age_days_max: 366,
        backups_max: 2,
        megabytes_max: 100,
        compresses: false,
        batch: BatchOptions {
            mode,
            buffer: 1_000_000,
            size_max: 1,
            wait_max: Duration::ZERO,
            throttle: None,
        },
        truncate: TruncateOptions { is_on: false, event_bytes_max: 102_400, batch_bytes_max: 10 << 20 },
    };
    let options = AuditOptions { log: Some(log), webhook: None };
    Audit::begin(policy, &options, None, Clock::system(), Random::system()).expect("a file")
}

/// What is done for one.
async fn request(audit: &Arc<Audit>) {
    let groups = vec!["system:authenticated".to_owned(), "dev".to_owned()];
    let caller = Arc::new(Caller { name: "alice@example.com".into(), groups, ..Caller::default() });
    let of = ResourceAttributes {
        version: "v1",
        namespace: "default",
        resource: "configmaps",
        name: "one",
        ..ResourceAttributes::default()
    };
    let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Resource(of) };
    let noted = |_: AuditLevel| -> Box<dyn Fn() -> Noted + Send + Sync> { Box::new(Noted::default) };
    let event = || AuditEvent {
        level: AuditLevel::None,
        id: "2c6b1d1e-6f0a-4a4e-9a5d-0d3c8c7d7c11".into(),
        stage: AuditStage::RequestReceived,
        uri: "/api/v1/namespaces/default/configmaps/one".into(),
        verb: "get".into(),
        user: Some(caller.clone()),
        impersonated: None,
        impersonation_constraint: String::new(),
        source_ips: vec![[127, 0, 0, 1].into()],
        user_agent: "kubectl/v1.36.3 (linux/amd64) kubernetes/0123456".into(),
        object: Some(ObjectRef {
            resource: "configmaps".into(),
            namespace: "default".into(),
            name: "one".into(),
            version: "v1".into(),
            ..ObjectRef::default()
        }),
        status: None,
        request_object: None,
        response_object: None,
        received_us: audit.clock().unix_us() as i64,
        stage_us: 0,
        annotations: Default::default(),
    };
    let trail = Trail::begin(audit, &asked, TrailShape::Whole, noted, event).expect("it is noted");
    trail.received().kept().await.expect("kept");
    trail.note("authorization.k8s.io/decision", "allow");
    trail.note("authorization.k8s.io/reason", "");
    trail.code(200);
    trail.complete().kept().await.expect("kept");
}

/// Of this process so far.
fn cpu_us() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().unwrap_or_default()).sum();
    ticks * 10_000
}
