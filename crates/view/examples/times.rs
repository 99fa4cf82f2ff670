//! What it takes to look at an object, beside serde_json on the same bytes.
//!
//! In: nothing. Out: a table of nanoseconds a call, min/median/max of five runs, for pods of a common size,
//! plain and at rest. Never: a judgement; docs/adr/0049 has it.
//!
//! `cargo run --release -p forebay-view --example times`

use std::hint::black_box;
use std::sync::Arc;

use forebay_apimachinery::{FieldPath, Key, Revision};
use forebay_client::wire::{LAST_APPLIED, MANAGED_FIELDS, Projection};
use forebay_object::seal::{RecentBlocks, Sealer};
use forebay_object::{Form, Interner, Layout, Object, Scope};
use forebay_rt::Clock;
use forebay_view::{Handle, TypeMeta};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

const OBJECTS: usize = 2_000;
const RUNS: usize = 5;

fn main() {
    let plain: Vec<Arc<Object>> = (0..OBJECTS).map(object).collect();
    // No block is kept inflated: each object is asked for behind many others.
    let sealed = Sealer::new(Arc::new(RecentBlocks::default())).seal(&plain);
    let of = Arc::new(TypeMeta::new("Pod", "v1"));
    let handle = |object: &Arc<Object>| Handle::<Pod>::new(object.clone(), of.clone());
    let texts: Vec<Vec<u8>> =
        plain.iter().map(|object| handle(object).to_json().expect("in memory")).collect();
    println!("{OBJECTS} pods of {} bytes; ns a call: min median max of {RUNS} runs", texts[0].len());
    // Neighbours are in other blocks.
    let order = |at: usize| at * 613 % OBJECTS;
    let node: FieldPath = "spec.nodeName".parse().expect("a path");
    let tree: Vec<Value> = texts.iter().map(|text| serde_json::from_slice(text).expect("JSON")).collect();

    row("serde_json::from_slice::<Pod>", |at| {
        black_box(serde_json::from_slice::<Pod>(&texts[order(at)]).is_ok())
    });
    row("serde_json::from_slice::<Value>", |at| {
        black_box(serde_json::from_slice::<Value>(&texts[order(at)]).is_ok())
    });
    row("serde_json::from_value::<Pod>", |at| {
        black_box(serde_json::from_value::<Pod>(tree[order(at)].clone()).is_ok())
    });
    for (state, objects) in [("plain", &plain), ("at rest", &sealed)] {
        row(&format!("body, {state}"), |at| black_box(objects[order(at)].body().len()) > 0);
        row(&format!("typed, {state}"), |at| handle(&objects[order(at)]).typed().is_ok());
        row(&format!("metadata, {state}"), |at| handle(&objects[order(at)]).metadata().is_ok());
        row(&format!("field, {state}"), |at| {
            handle(&objects[order(at)]).field_at(&node).is_ok_and(|node| node.is_some())
        });
        row(&format!("to_json, {state}"), |at| {
            !handle(&objects[order(at)]).to_json().expect("in memory").is_empty()
        });
    }
    row("field, plain, path read each time", |at| {
        handle(&plain[order(at)]).field("spec.nodeName").is_ok_and(|node| node.is_some())
    });
    let drop = [MANAGED_FIELDS, LAST_APPLIED].map(|path| path.parse().expect("a path"));
    let less = Projection::new(&drop, None).expect("a projection");
    for (what, projection) in [("less", &less), ("metadata only", &Projection::metadata_only())] {
        row(&format!("projection, {what}"), |at| projection.apply(&texts[order(at)]).is_ok());
    }
    row("label, plain", |at| handle(&plain[order(at)]).label("app").is_some());
}

fn row(what: &str, mut call: impl FnMut(usize) -> bool) {
    let clock = Clock::system();
    let mut runs: Vec<u128> = (0..RUNS)
        .map(|_| {
            let from = clock.now();
            assert!((0..OBJECTS).all(&mut call), "{what}");
            (clock.now() - from).as_nanos() / OBJECTS as u128
        })
        .collect();
    runs.sort_unstable();
    println!("{what:36} {:8} {:8} {:8}", runs[0], runs[RUNS / 2], runs[RUNS - 1]);
}

fn object(index: usize) -> Arc<Object> {
    let fields = json!({"f:metadata": {"f:labels": {"f:app": {}, "f:tier": {}}}, "f:spec": {"f:containers": {
        "k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}}}});
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1});
    let container = |name: &str| {
        json!({"name": name, "image": format!("registry.example/team/{name}:v1.{index}"), "imagePullPolicy": "IfNotPresent",
            "args": ["--port=8080", format!("--shard={index}"), "--log=json"],
            "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                {"name": "SHARD", "value": index.to_string()}, {"name": "LEVEL", "value": "info"}],
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "livenessProbe": probe("/livez"), "readinessProbe": probe("/readyz"),
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "kube-api-access", "readOnly": true}]})
    };
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"});
    let metadata = json!({"name": format!("web-{index}"), "namespace": "default", "uid": format!("0b2c7c1e-0000-4000-8000-{index:012}"),
        "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"app": "web", "tier": "front", "pod-template-hash": "6d4cf56db6"},
        "annotations": {"checksum/config": format!("{index:064x}")},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6d4cf56db6", "uid": "5b1c", "controller": true, "blockOwnerDeletion": true}],
        "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": fields},
            {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": "status"}]});
    let spec = json!({"nodeName": format!("node-{}", index % 100), "restartPolicy": "Always", "serviceAccountName": "web",
        "containers": [container("web"), container("proxy")],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        "volumes": [{"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}]});
    let status = json!({"phase": "Running", "podIP": format!("10.0.{}.{}", index / 250, index % 250), "hostIP": "192.168.0.1", "qosClass": "Burstable",
        "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition("PodScheduled")]});
    let value = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{metadata},"spec":{spec},"status":{status}}}"#
    );
    let layout = Layout {
        prefix_len: "/registry/pods/".len(),
        scope: Scope::Namespaced,
        form: Form::Typed,
        fields: vec![],
    };
    let key = Key::from(format!("/registry/pods/default/web-{index}"));
    let object = Object::decode(
        &layout,
        key,
        Revision::from_log(1 + index as u64),
        value.as_bytes(),
        &mut Interner::default(),
    );
    Arc::new(object.expect("a pod"))
}
