//! How fast an object's message is made of its JSON text, and how fast of a value that is parsed first; and
//! how fast the text is made of the message, straight and by way of a value. Run in release mode, on Linux.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement reads the clock and prints"
)]

use std::time::Duration;

use forebay_schema::builtin::protobuf::UnknownFields::PassedOver;
use forebay_schema::builtin::{TypeId, codec, protobuf, table};
use serde_json::{Value, json};

const PODS: usize = 20_000;

fn main() {
    let ty = table().kind("", "v1", "Pod").expect("a kind").ty;
    let pods: Vec<Vec<u8>> = (0..PODS).map(|number| pod(number).to_string().into_bytes()).collect();
    let json: usize = pods.iter().map(Vec::len).sum();
    for round in 1..=5 {
        let (mut bytes, start) = (0, cpu());
        for pod in &pods {
            let mut out = Vec::with_capacity(512);
            protobuf::encode_json(ty, pod, &mut out).expect("canonical");
            bytes += out.len();
        }
        let direct = cpu() - start;
        let start = cpu();
        for pod in &pods {
            let value: Value = serde_json::from_slice(pod).expect("JSON");
            let mut out = Vec::with_capacity(512);
            protobuf::encode(ty, &value, &mut out).expect("canonical");
        }
        let by_value = cpu() - start;
        let (straight, back) = back(ty, &pods);
        let rate = |time: Duration| json as f64 / 1e6 / time.as_secs_f64();
        let each = |time: Duration| time.as_secs_f64() * 1e6 / PODS as f64;
        println!(
            "{round}: {PODS} pods, {json} B of JSON, {bytes} B of messages; of the text {:.0} MB/s, {:.1} us a pod; of a value {:.0} MB/s, {:.1} us a pod; back straight {:.0} MB/s, {:.1} us a pod; by way of a value {:.0} MB/s, {:.1} us a pod",
            rate(direct),
            each(direct),
            rate(by_value),
            each(by_value),
            rate(straight),
            each(straight),
            rate(back),
            each(back),
        );
    }
}

/// The time that it takes to write all pods' messages as JSON, straight and by way of a value.
fn back(ty: TypeId, pods: &[Vec<u8>]) -> (Duration, Duration) {
    let message = |pod: &Vec<u8>| {
        let mut out = Vec::new();
        protobuf::encode_json(ty, pod, &mut out).expect("canonical");
        out
    };
    let messages: Vec<_> = pods.iter().map(message).collect();
    let start = cpu();
    for message in &messages {
        protobuf::stored_json(ty, message, PassedOver, &mut Vec::with_capacity(8192))
            .expect("as Go writes it");
    }
    let straight = cpu() - start;
    let start = cpu();
    for message in &messages {
        let mut value =
            protobuf::decode(ty, message, &forebay_apimachinery::Lease::of_server()).expect("a message");
        codec::normalize(ty, &mut value).expect("canonical");
        codec::encode(ty, &value, &mut Vec::with_capacity(8192)).expect("canonical");
    }
    (straight, cpu() - start)
}

/// Time that this thread was on a processor: what others do at the same time does not count.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(text.split(' ').next().and_then(|time| time.parse().ok()).expect("a number"))
}

fn pod(number: usize) -> Value {
    let env: Vec<Value> = (0..8)
        .map(|at| json!({"name": format!("VARIABLE_{at}"), "value": format!("value-{number}-{at}")}))
        .collect();
    let container = |name: &str| {
        json!({
            "name": name, "image": format!("registry.example.com/team/{name}:v1.{number}"), "env": env,
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10,
                "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3},
            "volumeMounts": [{"name": "token", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
        })
    };
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-02T03:04:05Z"});
    json!({
        "metadata": {
            "name": format!("web-{number}"), "generateName": "web-", "namespace": "default", "uid": format!("{number:08}-0000-4000-8000-000000000000"),
            "resourceVersion": format!("{}", 100_000 + number), "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": "web", "pod-template-hash": "5d4f8c7b9", "tier": "front"},
            "annotations": {"example.com/checksum": "0123456789abcdef0123456789abcdef"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4f8c7b9",
                "uid": "11111111-2222-4333-8444-555555555555", "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}], "defaultMode": 420}}],
            "containers": [container("app"), container("sidecar")], "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "serviceAccountName": "default",
            "serviceAccount": "default", "nodeName": format!("node-{}", number % 100), "securityContext": {},
            "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true, "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        },
        "status": {
            "phase": "Running", "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")],
            "hostIP": "192.0.2.1", "podIP": "198.51.100.7", "podIPs": [{"ip": "198.51.100.7"}], "startTime": "2026-01-02T03:04:05Z", "qosClass": "Burstable",
        },
    })
}
