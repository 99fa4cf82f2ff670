//! What kinds do together: evictions and budgets, classes and those who use them, two versions of one kind.

use forebay_api::{Answer, Body, PatchKind};
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{Lease, Reason, Status};
use forebay_catalog::Target;
use forebay_embedded::{Engine, Options};
use forebay_reads::{As, IncludeObject};
use forebay_registry::{Admission, Config, Registry};
use forebay_rt::{Clock, Random, Tasks};
use serde_json::{Value, json};

struct World {
    registry: Registry,
    _tasks: Tasks,
}

impl World {
    async fn new(admission: Admission) -> World {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let config = Config { admission, ..Config::default() };
        let tasks = Tasks::new();
        let registry = Registry::new(config, engine, clock, Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        World { registry, _tasks: tasks }
    }

    /// `group@version/resource/[namespace/]name/subresource`
    fn target(&self, path: &str) -> Target {
        let mut parts = path.split('/').map(String::from);
        let gv = parts.next().expect("group@version");
        let (group, version) = gv.split_once('@').expect("group@version");
        let resource = parts.next().expect("a resource");
        let served = self.registry.catalog().resource(group, version, &resource).expect("served").clone();
        let namespace = if served.namespaced { parts.next() } else { None };
        Target {
            served,
            namespace,
            name: parts.next(),
            subresource: parts.next(),
            caller: None,
            lease: Lease::of_server(),
            context: forebay_catalog::RequestContext::default(),
        }
    }

    async fn create(&self, path: &str, body: Value) -> Result<Value, Status> {
        let body = Body::Json(body.to_string().into());
        self.registry.create(&self.target(path), &body, &CreateOptions::default()).await.map(object)
    }

    async fn update(&self, path: &str, body: Value) -> Result<Value, Status> {
        let body = Body::Json(body.to_string().into());
        self.registry.update(&self.target(path), &body, &UpdateOptions::default()).await.map(object)
    }

    async fn patch(&self, path: &str, kind: PatchKind, patch: Value) -> Result<Value, Status> {
        let body = serde_json::to_vec(&patch).expect("serializes");
        self.registry.patch(&self.target(path), kind, &body, &PatchOptions::default()).await.map(object)
    }

    async fn merge(&self, path: &str, patch: Value) -> Result<Value, Status> {
        self.patch(path, PatchKind::Merge, patch).await
    }

    async fn get(&self, path: &str) -> Result<Value, Status> {
        let target = self.target(path);
        target.served.to_value(&*self.registry.get(&target, "").await?)
    }

    /// The Table of a collection.
    async fn table(&self, path: &str) -> Value {
        let shown = As::Table(IncludeObject::None);
        let mut body =
            self.registry.list(&self.target(path), &Default::default(), shown).await.expect("a list");
        let mut out = Vec::new();
        while body.next_chunk(64, &mut out) {}
        serde_json::from_slice(&out).expect("a Table is JSON")
    }

    async fn delete(&self, path: &str) -> Result<Value, Status> {
        self.registry.delete(&self.target(path), &DeleteOptions::default()).await.map(object)
    }

    async fn pod(&self, name: &str, spec: Value) -> Result<Value, Status> {
        let mut spec = spec;
        spec["containers"] = json!([{"name": "c", "image": "i"}]);
        let meta = json!({"name": name, "labels": {"a": "b"}});
        self.create(
            "@v1/pods/default",
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}),
        )
        .await
    }

    async fn running_pod(&self, name: &str, ready: bool) {
        self.pod(name, json!({"nodeName": "n"})).await.expect("a pod");
        let ready = if ready { "True" } else { "False" };
        let status =
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
        self.merge(&format!("@v1/pods/default/{name}/status"), status).await.expect("it runs");
    }

    async fn budget(&self, name: &str, status: Value) {
        let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}});
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec,
        });
        self.create("policy@v1/poddisruptionbudgets/default", budget).await.expect("a budget");
        let path = format!("policy@v1/poddisruptionbudgets/default/{name}/status");
        self.merge(&path, json!({"status": status})).await.expect("its status");
    }

    async fn evict(&self, name: &str, options: Value) -> Result<Value, Status> {
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, "deleteOptions": options,
        });
        self.create(&format!("@v1/pods/default/{name}/eviction"), eviction).await
    }
}

fn object(answer: Answer) -> Value {
    serde_json::from_slice(&answer.outcome.json()).expect("an answer is JSON")
}

fn message(refused: Result<Value, Status>) -> String {
    refused.expect_err("refused").message
}

const BUDGETS: &str = "policy@v1/poddisruptionbudgets/default";

#[tokio::test]
async fn an_eviction_takes_a_disruption_of_the_budget_until_there_is_none() {
    let world = World::new(Config::default().admission).await;
    let status = json!({
        "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
    });
    world.budget("x", status).await;
    world.running_pod("p", true).await;
    world.running_pod("q", true).await;

    world.evict("p", json!({"dryRun": ["All"]})).await.expect("it would be let through");
    let untouched = world.get(&format!("{BUDGETS}/x")).await.expect("a budget");
    assert_eq!(untouched["status"]["disruptionsAllowed"], 1);
    assert!(
        world.get("@v1/pods/default/p").await.expect("a pod")["metadata"].get("deletionTimestamp").is_none()
    );

    let done = world.evict("p", json!({})).await.expect("let through");
    assert_eq!((&done["kind"], &done["status"]), (&json!("Status"), &json!("Success")));
    let pod = world.get("@v1/pods/default/p").await.expect("a pod on its way out");
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(pod["status"]["conditions"][1]["reason"], "EvictionByEvictionAPI");
    let budget = world.get(&format!("{BUDGETS}/x")).await.expect("a budget");
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["p"].is_string());
    assert_eq!(budget["status"]["conditions"][0]["reason"], "InsufficientPods");

    let refused = world.evict("q", json!({})).await.expect_err("nothing is left");
    assert_eq!((refused.reason, refused.retry_after_seconds), (Reason::TooManyRequests, 0));
    assert_eq!(refused.message, "Cannot evict pod as it would violate the pod's disruption budget.");
    assert_eq!(refused.causes[0].reason.as_str(), "DisruptionBudget");
    let why = "The disruption budget x does not allow evicting pods currently";
    assert_eq!(refused.causes[0].message, why);

    world.budget("y", json!({})).await;
    let two = world.evict("q", json!({})).await.expect_err("two budgets");
    assert_eq!(two.reason, Reason::Unknown);
    assert!(two.message.starts_with("This pod has more than one PodDisruptionBudget"), "{}", two.message);
}

/// Whoever may bind or evict in one namespace may not have hooks and policies judge it as of another.
#[tokio::test]
async fn what_is_sent_to_a_subresource_is_of_the_namespace_of_its_path() {
    let world = World::new(Config::default().admission).await;
    world.pod("p", json!({})).await.expect("a pod");
    let of = |api_version: &str, kind: &str, namespace: &str| {
        let metadata = json!({"name": "p", "namespace": namespace});
        let target = json!({"kind": "Node", "name": "n"});
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "target": target})
    };
    let elsewhere =
        "the namespace of the provided object does not match the namespace sent on the request".to_string();
    for path in ["@v1/pods/default/p/binding", "@v1/bindings/default"] {
        let refused = world.create(path, of("v1", "Binding", "other")).await;
        assert_eq!(message(refused), elsewhere, "{path}");
    }
    let mut eviction = of("policy/v1", "Eviction", "other");
    eviction.as_object_mut().expect("an object").remove("target");
    assert_eq!(message(world.create("@v1/pods/default/p/eviction", eviction).await), elsewhere);
    let pod = world.get("@v1/pods/default/p").await.expect("a pod");
    assert!(pod["spec"].get("nodeName").is_none() && pod["metadata"].get("deletionTimestamp").is_none());
    world.create("@v1/pods/default/p/binding", of("v1", "Binding", "default")).await.expect("binds");
    assert_eq!(world.get("@v1/pods/default/p").await.expect("a pod")["spec"]["nodeName"], "n");
}

#[tokio::test]
async fn a_scale_without_a_namespace_is_of_that_of_its_path() {
    let world = World::new(Config::default().admission).await;
    let selector = json!({"a": "b"});
    let template = json!({
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let controller = json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "c"},
        "spec": {"replicas": 1, "selector": selector, "template": template},
    });
    world.create("@v1/replicationcontrollers/default", controller).await.expect("creates");
    let scale = |metadata: Value| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": 3},
        })
    };
    let path = "@v1/replicationcontrollers/default/c/scale";
    let refused = world.update(path, scale(json!({"name": "c", "namespace": "other"}))).await;
    assert_eq!(refused.expect_err("another namespace").reason, Reason::BadRequest);
    let scaled = world.update(path, scale(json!({"name": "c"}))).await.expect("scales");
    assert_eq!(
        (&scaled["metadata"]["namespace"], &scaled["spec"]["replicas"]),
        (&json!("default"), &json!(3))
    );
}

#[tokio::test]
async fn the_generation_goes_up_for_a_zero_where_its_absence_means_something_else() {
    let world = World::new(Config::default().admission).await;
    let policy = |spec: Value| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p"}, "spec": spec,
        })
    };
    let path = "networking.k8s.io@v1/networkpolicies/default";
    let created = world.create(path, policy(json!({"podSelector": {}}))).await.expect("creates");
    let updated = world.update(&format!("{path}/p"), policy(json!({}))).await.expect("updates");
    assert_eq!(updated["metadata"], created["metadata"], "nothing was written");

    let deployment = |csi: Value| {
        let spec = json!({
            "containers": [{"name": "c", "image": "i"}], "volumes": [{"name": "v", "csi": csi}],
        });
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": spec});
        let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec})
    };
    let path = "apps@v1/deployments/default";
    world.create(path, deployment(json!({"driver": "x"}))).await.expect("creates");
    let path = format!("{path}/d");
    for (csi, generation) in [
        (json!({"driver": "x"}), 1),
        (json!({"driver": "x", "readOnly": false}), 2),
        (json!({"driver": "x", "readOnly": false, "fsType": ""}), 3),
    ] {
        let updated = world.update(&path, deployment(csi.clone())).await.expect("updates");
        assert_eq!(updated["metadata"]["generation"], generation, "{csi}");
    }
}

#[tokio::test]
async fn a_budget_that_nobody_has_looked_at_lets_nothing_through_but_what_disrupts_nothing() {
    let world = World::new(Config::default().admission).await;
    world.budget("x", json!({})).await;
    world.running_pod("p", true).await;
    let refused = world.evict("p", json!({})).await.expect_err("not processed");
    assert_eq!(refused.retry_after_seconds, 10);
    assert_eq!(refused.causes[0].message, "The disruption budget x is still being processed by the server.");

    world.pod("pending", json!({"nodeName": "n"})).await.expect("a pod");
    world.evict("pending", json!({})).await.expect("it has not begun");
    assert_eq!(message(world.evict("none", json!({})).await), "pods \"none\" not found");
}

#[tokio::test]
async fn a_pod_that_is_not_ready_goes_without_the_budget_as_it_was_found() {
    let world = World::new(Config::default().admission).await;
    let status = json!({
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 3,
    });
    world.budget("x", status).await;
    world.running_pod("p", false).await;
    world.evict("p", json!({"gracePeriodSeconds": 0})).await.expect("it counts for nothing");
    assert_eq!(message(world.get("@v1/pods/default/p").await), "pods \"p\" not found");
}

#[tokio::test]
async fn a_pod_has_the_priority_of_its_class() {
    let world = World::new(Config::default().admission).await;
    let pod = world.pod("none", json!({})).await.expect("let in");
    assert_eq!(
        (&pod["spec"]["priority"], &pod["spec"]["preemptionPolicy"]),
        (&json!(0), &json!("PreemptLowerPriority"))
    );
    let pod =
        world.pod("critical", json!({"priorityClassName": "system-node-critical"})).await.expect("let in");
    assert_eq!(pod["spec"]["priority"], 2_000_001_000);
    for (spec, why) in [
        (json!({"priorityClassName": "nope"}), "no PriorityClass with name nope was found"),
        (
            json!({"priority": 5}),
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name",
        ),
        (
            json!({"preemptionPolicy": "Never"}),
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
        ),
        (json!({"runtimeClassName": "nope"}), "pod rejected: RuntimeClass \"nope\" not found"),
        (
            json!({"overhead": {"cpu": "1"}}),
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
        ),
    ] {
        assert_eq!(
            message(world.pod("refused", spec).await),
            format!("pods \"refused\" is forbidden: {why}")
        );
    }
    let class = |name: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 5,
            "globalDefault": true, "preemptionPolicy": "Never",
        })
    };
    world.create("scheduling.k8s.io@v1/priorityclasses", class("low")).await.expect("a class");
    world
        .registry
        .list(&world.target("scheduling.k8s.io@v1/priorityclasses"), &Default::default(), As::Object)
        .await
        .expect("seen");
    let pod = world.pod("default", json!({})).await.expect("let in");
    assert_eq!((&pod["spec"]["priority"], &pod["spec"]["priorityClassName"]), (&json!(5), &json!("low")));
    assert_eq!(
        message(world.create("scheduling.k8s.io@v1/priorityclasses", class("other")).await),
        "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass low is already marked as default. Only one default can exist"
    );
    assert_eq!(
        message(world.delete("scheduling.k8s.io@v1/priorityclasses/system-node-critical").await),
        "priorityclasses.scheduling.k8s.io \"system-node-critical\" is forbidden: this is a system priority class and cannot be deleted"
    );
}

#[tokio::test]
async fn plugins_that_are_turned_off_do_nothing() {
    let off = Admission::without(["Priority", "DefaultTolerationSeconds", "RuntimeClass", "ServiceAccount"]);
    let world = World::new(off).await;
    let pod = world
        .pod("p", json!({"priorityClassName": "nope", "runtimeClassName": "nope"}))
        .await
        .expect("let in");
    assert!(pod["spec"].get("priority").is_none() && pod["spec"].get("tolerations").is_none(), "{pod}");
}

#[tokio::test]
async fn a_runtime_class_brings_overhead_nodes_and_tolerations() {
    let world = World::new(Config::default().admission).await;
    let class = json!({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "rt"}, "handler": "h",
        "overhead": {"podFixed": {"cpu": "1"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
    });
    world.create("node.k8s.io@v1/runtimeclasses", class).await.expect("a class");
    let pod = world
        .pod("p", json!({"runtimeClassName": "rt", "overhead": {"cpu": "1000m"}}))
        .await
        .expect("let in");
    assert_eq!(
        (&pod["spec"]["overhead"], &pod["spec"]["nodeSelector"]),
        (&json!({"cpu": "1"}), &json!({"a": "b"}))
    );
    assert_eq!(pod["spec"]["tolerations"][2], json!({"key": "k", "operator": "Exists"}));
    assert_eq!(
        message(world.pod("q", json!({"runtimeClassName": "rt", "nodeSelector": {"a": "c"}})).await),
        "pods \"q\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c"
    );
    assert_eq!(
        message(world.pod("q", json!({"runtimeClassName": "rt", "overhead": {"cpu": "2"}})).await),
        "pods \"q\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    );
}

#[tokio::test]
async fn claims_and_ingresses_get_the_default_class() {
    let world = World::new(Config::default().admission).await;
    let marked = |mark: &str| json!({"name": "def", "annotations": {mark: "true"}});
    let storage = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "a.b",
        "metadata": marked("storageclass.kubernetes.io/is-default-class"),
    });
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "spec": {"controller": "a.b/c"},
        "metadata": marked("ingressclass.kubernetes.io/is-default-class"),
    });
    for (path, class) in
        [("storage.k8s.io@v1/storageclasses", storage), ("networking.k8s.io@v1/ingressclasses", ingress)]
    {
        world.create(path, class).await.expect("a class");
        world.registry.list(&world.target(path), &Default::default(), As::Object).await.expect("seen");
    }
    let claim = |name: &str, class: Value| {
        let mut spec =
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        if !class.is_null() {
            spec["storageClassName"] = class;
        }
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec})
    };
    for (name, class, wanted) in [("a", json!(null), "def"), ("b", json!(""), ""), ("c", json!("own"), "own")]
    {
        let made =
            world.create("@v1/persistentvolumeclaims/default", claim(name, class)).await.expect("a claim");
        assert_eq!(made["spec"]["storageClassName"], wanted, "{name}");
    }
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"},
        "spec": {"defaultBackend": backend},
    });
    let made = world.create("networking.k8s.io@v1/ingresses/default", ingress).await.expect("an Ingress");
    assert_eq!(made["spec"]["ingressClassName"], "def");
}

#[tokio::test]
async fn an_autoscaler_is_one_object_in_both_versions() {
    let world = World::new(Config::default().admission).await;
    let (v1, v2) = (
        "autoscaling@v1/horizontalpodautoscalers/default",
        "autoscaling@v2/horizontalpodautoscalers/default",
    );
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let created = world
        .create(
            v1,
            json!({
                "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
                "spec": {"scaleTargetRef": target, "maxReplicas": 3},
            }),
        )
        .await
        .expect("an autoscaler");
    assert_eq!(created["apiVersion"], "autoscaling/v1");
    assert_eq!(created["spec"]["targetCPUUtilizationPercentage"], 80);
    let owned = &created["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    assert_eq!(
        owned["f:targetCPUUtilizationPercentage"],
        json!({}),
        "what is filled in is whose the object is"
    );
    let mut other = world.get(&format!("{v2}/h")).await.expect("the same");
    assert_eq!(other["metadata"]["uid"], created["metadata"]["uid"]);
    assert_eq!(other["apiVersion"], "autoscaling/v2");
    assert_eq!(other["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);

    let memory = json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Mi"}}});
    other["spec"]["metrics"] = json!([memory]);
    world.update(&format!("{v2}/h"), other).await.expect("changed");
    let seen = world.merge(&format!("{v1}/h"), json!({"spec": {"maxReplicas": 4}})).await.expect("changed");
    let annotation = &seen["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"];
    assert_eq!(
        *annotation,
        r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Mi"}}]"#
    );
    assert!(seen["spec"].get("targetCPUUtilizationPercentage").is_none());
    let after = world.get(&format!("{v2}/h")).await.expect("the same");
    assert_eq!((&after["spec"]["metrics"], &after["spec"]["maxReplicas"]), (&json!([memory]), &json!(4)));
    assert!(after["metadata"].get("annotations").is_none());

    let status =
        json!({"status": {"currentReplicas": 2, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 7}});
    world.merge(&format!("{v1}/h/status"), status).await.expect("changed");
    let after = world.get(&format!("{v2}/h")).await.expect("the same");
    assert_eq!(after["status"]["currentMetrics"][0]["resource"]["current"]["averageUtilization"], 7);
    let kept = world
        .merge(&format!("{v1}/h"), json!({"metadata": {"finalizers": ["a.b/c"]}}))
        .await
        .expect("changed");
    assert_eq!(kept["status"]["currentCPUUtilizationPercentage"], 7);
    let metrics = json!([{"type": "External", "external": {"metric": {"name": "m"}, "current": {}}}]);
    let status = json!({"status": {"desiredReplicas": 2, "currentMetrics": metrics}});
    let before = world.merge(&format!("{v2}/h/status"), status).await.expect("changed");
    world.merge(&format!("{v1}/h"), json!({"spec": {"maxReplicas": 6}})).await.expect("changed");
    let after = world.get(&format!("{v2}/h")).await.expect("the same");
    assert_eq!(after["status"], before["status"], "a write in v1 leaves what v1 does not show");
    let (one, two) = (world.table(v1).await, world.table(v2).await);
    assert_eq!(
        one["rows"][0]["cells"], two["rows"][0]["cells"],
        "the cells of a Table are of what is stored"
    );
    assert_eq!(one["rows"][0]["cells"][4], 6, "{}", one["rows"][0]["cells"]);
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}});
    let rate = json!({"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "2"}}});
    let spec = json!({"spec": {"metrics": [cpu, rate]}});
    world.merge(&format!("{v2}/h"), spec).await.expect("changed");
    let targets = &world.table(v1).await["rows"][0]["cells"][2];
    assert_eq!(targets, "cpu: <unknown>/60%, <unknown>/2", "in the order of v2");
    world.merge(&format!("{v2}/h"), json!({"spec": {"metrics": [memory]}})).await.expect("changed");
    let ending = world.delete(&format!("{v1}/h")).await.expect("begun");
    assert_eq!(ending["apiVersion"], "autoscaling/v1");
    assert_eq!(
        world.get(&format!("{v2}/h")).await.expect("on its way out")["spec"]["metrics"],
        json!([memory])
    );
}

#[tokio::test]
async fn a_patch_that_makes_an_object_too_large_or_too_deep_is_refused() {
    let world = World::new(Config::default().admission).await;
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "1" } });
    let made = world.create("@v1/configmaps/default", map).await.expect("creates");
    let deeper = |count: usize| "/data".repeat(count);
    let doubling = |n: usize| json!({ "op": "copy", "from": "/data", "path": format!("/data/x{n}") });
    let last = json!({ "op": "remove", "path": "/data" });
    let copies: Vec<_> = (0..40).map(doubling).chain([last]).collect();
    let nested = (0..10).map(|n| json!({ "op": "copy", "from": "/data", "path": deeper((1 << n) + 1) }));
    let moved = (0..600).flat_map(|_| {
        let wrap = json!({ "op": "add", "path": "/y", "value": {} });
        [
            wrap,
            json!({ "op": "move", "from": "/data", "path": "/y/x" }),
            json!({ "op": "move", "from": "/y", "path": "/data" }),
        ]
    });
    for patch in [copies, nested.collect(), moved.collect()] {
        let status =
            world.patch("@v1/configmaps/default/a", PatchKind::Json, json!(patch)).await.unwrap_err();
        let message = "the server rejected our request due to an error in our request";
        assert_eq!((status.reason, &*status.message), (Reason::Invalid, message));
    }
    let twice = json!([doubling(1), { "op": "remove", "path": "/data/x1" }]);
    let taken = world.patch("@v1/configmaps/default/a", PatchKind::Json, twice).await.expect("small");
    assert_eq!(taken, made);
}

#[tokio::test]
async fn the_author_of_a_pod_is_told_of_an_annotation_that_became_a_field() {
    let world = World::new(Admission::without(["ServiceAccount"])).await;
    let key = "container.apparmor.security.beta.kubernetes.io/c";
    let meta = json!({"name": "p", "annotations": {key: "runtime/default"}});
    let pod = json!({"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let body = Body::Json(pod.to_string().into());
    let target = world.target("@v1/pods/default");
    let answer = world.registry.create(&target, &body, &CreateOptions::default()).await.expect("a pod");
    let why = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
    assert_eq!(answer.warnings, [format!("metadata.annotations[{key}]: {why}")]);
    let pod = world.get("@v1/pods/default/p").await.expect("stored");
    let profile = &pod["spec"]["containers"][0]["securityContext"]["appArmorProfile"];
    assert_eq!(*profile, json!({"type": "RuntimeDefault"}));
}
