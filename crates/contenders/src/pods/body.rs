//! The JSON of a workload's pods, with gaps for what each pod has of its own.
//!
//! In: a shape, names, and what to draw the workload's own values from. Out: the body of a create, and two
//! patches of the status: of a pod that runs since it began, and of one that was restarted. Never: a value
//! that a server defaults.

use serde_json::{Map, Value, json};

use super::fields::fields;
use super::shape::{Container, Shape};
use crate::draw::Draw;

/// Names of a workload.
#[derive(Debug)]
pub struct Facts<'a> {
    pub namespace: &'a str,
    pub app: &'a str,
    pub owner: &'a str,
    pub hash: &'a str,
}

/// With gaps.
#[derive(Debug)]
pub struct Bodies {
    pub create: Value,
    pub running: Value,
    pub restarted: Value,
}

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The bodies of a workload's pods.
pub fn of(shape: &Shape, facts: &Facts<'_>, draw: &mut Draw) -> Bodies {
    let images: Vec<Image> =
        shape.containers.iter().map(|own| Image::of(shape.name, own.name, draw)).collect();
    let init = Image::of(shape.name, "init", draw);
    let mut metadata = metadata(shape, facts, draw);
    let spec = spec(shape, facts, &images, &init, draw);
    let running = status(shape, &images, &init, false);
    let restarted = status(shape, &images, &init, true);

    let written = json!({"metadata": metadata, "spec": spec});
    let annotations = &mut metadata["annotations"];
    annotations["managed-fields.example.com/kube-controller-manager"] = entry(&written, "«time:0»");
    annotations["managed-fields.example.com/kubelet"] = entry(&json!({"status": running}), "«time:9»");
    if shape.has_networks {
        let written = json!({"metadata": {"annotations": {"networks.example.com/status": ""}}});
        annotations["managed-fields.example.com/multus"] = entry(&written, "«time:2»");
    }
    let create = json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec});
    Bodies { create, running: json!({"status": running}), restarted: json!({"status": restarted}) }
}

fn entry(written: &Value, time: &str) -> Value {
    format!("Update v1 {time} {}", fields(written)).into()
}

#[derive(Debug)]
struct Image {
    name: String,
    digest: String,
}

impl Image {
    fn of(app: &str, container: &str, draw: &mut Draw) -> Image {
        let repository = format!(
            "registry.example.com/{}/{app}/{container}",
            draw.pick(&["shop", "core", "data", "infra"])
        );
        let name = format!("{repository}:v{}.{}.{}", draw.below(5), draw.below(40), draw.below(20));
        Image { name, digest: format!("{repository}@sha256:{}", draw.hex(64)) }
    }
}

fn metadata(shape: &Shape, facts: &Facts<'_>, draw: &mut Draw) -> Value {
    let mut annotations = Map::new();
    let all = [
        ("identity.example.com/fingerprint", "sha256:«hex:64:identity»".to_owned()),
        ("checksum/config", draw.hex(64)),
        ("prometheus.io/port", "9090".to_owned()),
        (
            "kubectl.kubernetes.io/restartedAt",
            format!("2026-03-{:02}T08:{:02}:11Z", draw.below(28) + 1, draw.below(60)),
        ),
        ("deploy.example.com/commit", draw.hex(40)),
        ("team.example.com/owner", format!("platform-{}@example.com", draw.below(30))),
    ];
    annotations
        .extend(all.into_iter().take(shape.annotations).map(|(key, value)| (key.to_owned(), value.into())));
    if shape.has_mesh {
        let status =
            r#"{"initContainers":[],"containers":["mesh-proxy"],"volumes":["mesh-certs"],"revision":"r7"}"#;
        annotations.insert("mesh.example.com/status".into(), status.into());
    }
    if shape.has_networks {
        let status = r#"[{"name":"cluster","interface":"eth0","ips":["«pod_ip»"],"mac":"0a:58:«letters:2»:«below:90»","default":true}]"#;
        annotations.insert("networks.example.com/status".into(), status.into());
    }
    json!({
        "name": "«name»", "namespace": facts.namespace, "generateName": format!("{}-", facts.owner),
        "labels": {
            "app.kubernetes.io/name": facts.app, "app.kubernetes.io/part-of": shape.name,
            "app.kubernetes.io/version": format!("v{}.{}", draw.below(5), draw.below(40)),
            "pod-template-hash": facts.hash, "tier": draw.pick(&["backend", "frontend", "batch", "data"]),
        },
        "annotations": annotations,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": facts.owner, "uid": "«owner»",
            "controller": true, "blockOwnerDeletion": true}],
    })
}

fn spec(shape: &Shape, facts: &Facts<'_>, images: &[Image], init: &Image, draw: &mut Draw) -> Value {
    let containers: Vec<Value> = shape
        .containers
        .iter()
        .zip(images)
        .map(|(own, image)| container(shape, own, image, facts, draw))
        .collect();
    let mut spec = json!({
        "volumes": volumes(shape, facts), "containers": containers,
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default", "serviceAccount": "default", "nodeName": "«node»",
        "securityContext": {"runAsUser": 1000, "fsGroup": 2000}, "schedulerName": "default-scheduler",
        "tolerations": tolerations(shape.tolerations), "priority": 0, "enableServiceLinks": true,
        "preemptionPolicy": "PreemptLowerPriority",
    });
    if shape.has_init {
        spec["initContainers"] = json!([{
            "name": "init", "image": init.name, "command": ["/bin/migrate", "--wait=60s", "up"], "resources": {},
            "volumeMounts": mounts(shape), "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
        }]);
    }
    let selector = json!({"matchLabels": {"app.kubernetes.io/name": facts.app}});
    if shape.has_affinity {
        spec["affinity"] = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}}]}});
    }
    if shape.has_spread {
        spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}]);
    }
    spec
}

fn container(shape: &Shape, own: &Container, image: &Image, facts: &Facts<'_>, draw: &mut Draw) -> Value {
    let args = [
        "--config=/etc/app/config.yaml",
        "--v=2",
        "--leader-elect=true",
        "--metrics-addr=:9090",
        "--drain=30s",
        "--zone=a",
    ];
    let ports: Vec<Value> = [("http", 8080), ("metrics", 9090)][..own.ports]
        .iter()
        .map(|(name, port)| json!({"name": format!("{name}-{}", &own.name[..3]), "containerPort": port, "protocol": "TCP"}))
        .collect();
    let mut container = json!({
        "name": own.name, "image": image.name, "args": args[..own.args.min(args.len())], "ports": ports,
        "env": env(own, facts, draw), "resources": resources(own), "volumeMounts": mounts(shape),
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    });
    if shape.has_mesh {
        container["securityContext"] =
            json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    }
    if own.args == 0 {
        container.as_object_mut().and_then(|members| members.remove("args"));
    }
    if own.has_probes {
        container["readinessProbe"] = probe("/ready", 10);
    }
    if own.has_probes && own.ports > 1 {
        container["livenessProbe"] = probe("/live", 20);
    }
    container
}

fn probe(path: &str, period: u32) -> Value {
    json!({"httpGet": {"path": path, "port": 8080, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": period,
           "successThreshold": 1, "failureThreshold": 3})
}

fn resources(own: &Container) -> Value {
    match own.has_limits {
        true => {
            json!({"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}})
        }
        false => json!({}),
    }
}

fn env(own: &Container, facts: &Facts<'_>, draw: &mut Draw) -> Vec<Value> {
    let mut env = Vec::new();
    for at in 0..own.shared_env {
        let name = draw.pick(&["DATABASE", "CACHE", "QUEUE", "UPSTREAM", "TELEMETRY", "STORAGE"]);
        let value = format!(
            "https://{}-{}.{}.svc.cluster.local:8443/v1",
            name.to_lowercase(),
            draw.letters(4),
            facts.namespace
        );
        env.push(json!({"name": format!("{name}_URL_{at}"), "value": value}));
    }
    for at in 0..own.own_env {
        let value = format!("«hex:80:{}:{at}»", own.name);
        env.push(json!({"name": format!("INSTANCE_TOKEN_{at}"), "value": value}));
    }
    let referred = [
        ("POD_IP", json!({"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}})),
        ("PASSWORD", json!({"secretKeyRef": {"name": format!("{}-secrets", facts.app), "key": "password"}})),
        ("REGION", json!({"configMapKeyRef": {"name": format!("{}-config", facts.app), "key": "region"}})),
    ];
    let referred = referred.into_iter().take(own.referring_env);
    env.extend(referred.map(|(name, from)| json!({"name": name, "valueFrom": from})));
    env
}

fn volumes(shape: &Shape, facts: &Facts<'_>) -> Vec<Value> {
    let all = [
        json!({"name": "config", "configMap": {"name": format!("{}-config", facts.app), "defaultMode": 420}}),
        json!({"name": "secrets", "secret": {"secretName": format!("{}-secrets", facts.app), "defaultMode": 420}}),
        json!({"name": "scratch", "emptyDir": {"sizeLimit": "256Mi"}}),
    ];
    let mut volumes: Vec<Value> = all.into_iter().take(shape.volumes).collect();
    volumes.push(json!({"name": "kube-api-access-«letters:5»", "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}}]}}));
    volumes
}

/// The first volumes, and the token's last.
fn mounts(shape: &Shape) -> Vec<Value> {
    let all = [
        json!({"name": "config", "readOnly": true, "mountPath": "/etc/app"}),
        json!({"name": "secrets", "readOnly": true, "mountPath": "/var/secrets"}),
        json!({"name": "scratch", "mountPath": "/tmp"}),
    ];
    let mut mounts: Vec<Value> = all.into_iter().take(shape.volumes).collect();
    mounts.push(json!({"name": "kube-api-access-«letters:5»", "readOnly": true, "mountPath": TOKEN_PATH}));
    mounts
}

fn tolerations(more: usize) -> Vec<Value> {
    let always = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let mut all: Vec<Value> = always
        .iter()
        .map(|key| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}))
        .collect();
    let extra = ["pool", "arch"].iter().take(more);
    all.extend(
        extra.map(|key| json!({"key": key, "operator": "Equal", "value": "spot", "effect": "NoSchedule"})),
    );
    all
}

fn status(shape: &Shape, images: &[Image], init: &Image, was_restarted: bool) -> Value {
    let began = ["«time:1»", "«time:4»", "«time:8»", "«time:8»", "«time:0»"];
    let types = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    let conditions: Vec<Value> = types
        .iter()
        .zip(began)
        .map(|(kind, time)| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": time}))
        .collect();
    let containers = shape.containers.iter().zip(images).enumerate();
    let containers: Vec<Value> = containers
        .map(|(at, (own, image))| container_status(shape, own.name, image, was_restarted && at == 0))
        .collect();
    let mut status = json!({
        "phase": "Running", "conditions": conditions, "hostIP": "«host_ip»", "hostIPs": [{"ip": "«host_ip»"}],
        "podIP": "«pod_ip»", "podIPs": [{"ip": "«pod_ip»"}], "startTime": "«time:1»", "containerStatuses": containers,
    });
    if shape.has_init {
        let mut done = container_status(shape, "init", init, false);
        done["state"] = terminated("init", "Completed", 0, "«time:2»", "«time:4»");
        done["started"] = false.into();
        status["initContainerStatuses"] = json!([done]);
    }
    status
}

fn container_status(shape: &Shape, name: &str, image: &Image, was_restarted: bool) -> Value {
    let mounts: Vec<Value> = mounts(shape)
        .into_iter()
        .map(|mut mount| {
            if mount["readOnly"] == true {
                mount["recursiveReadOnly"] = "Disabled".into();
            }
            mount
        })
        .collect();
    let (restarts, last, since) = match was_restarted {
        true => ("«#below:9»#", terminated(name, "Error", 137, "«time:6»", "«time:90000»"), "«time:90010»"),
        false => ("", json!({}), "«time:6»"),
    };
    json!({
        "name": name, "state": {"running": {"startedAt": since}}, "lastState": last, "ready": true,
        "restartCount": if was_restarted { Value::from(restarts) } else { 0.into() },
        "image": image.name, "imageID": image.digest, "containerID": format!("containerd://«hex:64:{name}»"),
        "started": true, "volumeMounts": mounts,
    })
}

fn terminated(name: &str, reason: &str, code: u32, began: &str, ended: &str) -> Value {
    json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": ended,
        "containerID": format!("containerd://«hex:64:{name}:last»")}})
}
