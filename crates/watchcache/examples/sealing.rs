//! What the window takes before and after it is sealed: 20,000 pods, each changed once.
//!
//! `cargo run --release -p forebay-watchcache --example sealing [pods]`

use std::sync::Arc;

use forebay_apimachinery::object::{Form, Layout, Scope};
use forebay_apimachinery::{Key, Object, Revision};
use forebay_backend::{Backend, Expect, Op, Txn};
use forebay_embedded::{Engine, Options};
use forebay_rt::{Clock, Duration, Random, Tasks};
use forebay_watchcache::limits::PACE;
use forebay_watchcache::{Cacher, Interest, Reach, Resource, WatchStep};

const PREFIX: &str = "/registry/pods/";

#[tokio::main]
async fn main() {
    let pods: u64 = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(20_000);
    let clock = Clock::system();
    let options = Options { clock: clock.clone(), ..Options::default() };
    let engine = Engine::open_in_memory(options).expect("a store in memory opens");
    let layout = Layout {
        prefix_len: PREFIX.len(),
        scope: Scope::Namespaced,
        form: Form::Typed,
        fields: vec![vec!["spec".into(), "nodeName".into()]],
    };
    let resource = Resource {
        name: "pods".into(),
        prefix: PREFIX.into(),
        layout,
        indexed: vec![0],
        pace: PACE,
        history: Default::default(),
    };
    let cacher = Cacher::start(resource, engine.clone(), clock.clone(), &Tasks::new());
    cacher.wait_ready().await;
    let random = Random::seeded(1);
    for phase in ["Pending", "Running"] {
        for from in (0..pods).step_by(500) {
            let batch = (from..(from + 500).min(pods)).map(|pod| put(&engine, pod, phase, &random));
            let batch: Vec<_> = batch.map(tokio::spawn).collect();
            for put in batch {
                put.await.expect("no panic");
            }
        }
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

fn put(engine: &Arc<Engine>, pod: u64, phase: &str, random: &Random) -> impl Future<Output = ()> + use<> {
    let key = Key::from(format!("{PREFIX}ns-{}/web-{pod}", pod % 50));
    let value = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{pod}","generateName":"web-","namespace":"ns-{}","uid":"{}","creationTimestamp":"2026-01-01T00:00:00Z","labels":{{"app":"web","pod-template-hash":"{:x}"}},"annotations":{{"checksum/config":"{:016x}{:016x}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-{:x}","uid":"{}","controller":true,"blockOwnerDeletion":true}}]}},"spec":{{"volumes":[{{"name":"kube-api-access-{:x}","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}}],"defaultMode":420}}}}],"containers":[{{"name":"web","image":"registry.example.com/team/web:v{}","ports":[{{"containerPort":8080,"protocol":"TCP"}}],"env":[{{"name":"POD_IP","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"status.podIP"}}}}}}],"resources":{{"limits":{{"cpu":"500m","memory":"512Mi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default","nodeName":"node-{}","securityContext":{{}},"schedulerName":"default-scheduler"}},"status":{{"phase":"{phase}","conditions":[{{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:{:02}Z"}},{{"type":"PodScheduled","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:{:02}Z"}}],"podIP":"10.{}.{}.{}","containerStatuses":[{{"name":"web","state":{{"running":{{"startedAt":"2026-01-01T00:00:05Z"}}}},"ready":true,"restartCount":0,"containerID":"containerd://{:016x}{:016x}{:016x}{:016x}"}}],"qosClass":"Burstable"}}}}"#,
        pod % 50,
        random.uuid(),
        random.below(1 << 40),
        random.next_u64(),
        random.next_u64(),
        random.below(1 << 40),
        random.uuid(),
        random.below(1 << 20),
        random.below(100),
        random.below(5000),
        random.below(60),
        random.below(60),
        random.below(256),
        random.below(256),
        random.below(256),
        random.next_u64(),
        random.next_u64(),
        random.next_u64(),
        random.next_u64(),
    );
    let engine = engine.clone();
    async move {
        let current = engine.get(&key).await.expect("reads").map(|found| found.revision);
        let expect = current.map_or(Expect::Absent, Expect::At);
        let op = Op::Put { value: value.into(), ttl: None };
        Backend::commit(&*engine, Txn { key, expect, op }).await.expect("commits");
    }
}

/// CPU time of this process; 0 where the system does not say.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<u64> = stat.split(' ').skip(13).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
    fields.iter().sum::<u64>() * 10
}

fn rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}
