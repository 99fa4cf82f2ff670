//! Pods of 3 KB in a cache, for the examples that measure it.

use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_backend::{Backend, Expect, Op, Txn};
use forebay_embedded::{Engine, Options};
use forebay_object::{Form, Layout, Scope};
use forebay_rt::{Clock, Random, Tasks};
use forebay_watchcache::limits::{self, Pace};
use forebay_watchcache::{Cacher, EarlyReaders, Resource, Room};

pub const PREFIX: &str = "/registry/pods/";

/// A cache of pods on a store in memory.
pub async fn cache(pace: Pace) -> (Cacher, Arc<Engine>, Clock) {
    let clock = Clock::system();
    let options = Options { clock: clock.clone(), ..Options::default() };
    let engine = Engine::open_in_memory(options).expect("a store in memory opens");
    let layout = Layout {
        prefix_len: PREFIX.len(),
        scope: Scope::Namespaced,
        form: Form::Typed,
        fields: vec![vec!["spec".into(), "nodeName".into()]],
    };
    let history = Default::default();
    let room = Arc::new(Room::new(limits::LOOSE_BYTES_MAX));
    let resource = Resource {
        name: "pods".into(),
        prefix: PREFIX.into(),
        layout,
        indexed: vec![0],
        pace,
        history,
        room,
        early: Arc::new(EarlyReaders::admitted()),
    };
    let cacher = Cacher::start(resource, engine.clone(), clock.clone(), &Tasks::new());
    cacher.wait_ready().await;
    (cacher, engine, clock)
}

/// Puts pods `0..pods`, many at once.
pub async fn put_all(engine: &Arc<Engine>, pods: u64, phase: &str, random: &Random) {
    for from in (0..pods).step_by(500) {
        let batch = (from..(from + 500).min(pods)).map(|pod| put(engine, pod, phase, random));
        let batch: Vec<_> = batch.map(tokio::spawn).collect();
        for put in batch {
            put.await.expect("no panic");
        }
    }
}

/// Puts a pod of 3 KB as it is now, in `phase`.
pub fn put(engine: &Arc<Engine>, pod: u64, phase: &str, random: &Random) -> impl Future<Output = ()> + use<> {
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
pub fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<u64> = stat.split(' ').skip(13).take(2).filter_map(|ticks| ticks.parse().ok()).collect();
    fields.iter().sum::<u64>() * 10
}

pub fn rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
}
