//! Quotas: counted by admission when something is created, and by the controller when it is gone.

mod world;

use forebay_apimachinery::Reason;
use forebay_apimachinery::options::CreateOptions;
use serde_json::{Value, json};
use world::World;

const CONTROLLER: &str = "resourcequota-controller";

fn quota(hard: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}})
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn pod(name: &str, cpu: &str) -> Value {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}})
}

async fn used(world: &World, wanted: Value) {
    world
        .until("@v1/resourcequotas/default/q", |quota| {
            quota.is_some_and(|quota| quota["status"]["used"] == wanted)
        })
        .await;
}

#[tokio::test]
async fn what_is_there_is_counted_and_what_is_gone_is_given_back() {
    let world = World::with(CONTROLLER).await;
    world.create("@v1/configmaps/default", map("before")).await;
    world
        .create(
            "@v1/resourcequotas/default",
            quota(json!({"configmaps": "2", "pods": "1", "requests.cpu": "1500m"})),
        )
        .await;
    used(&world, json!({"configmaps": "1", "pods": "0", "requests.cpu": "0"})).await;
    let created = world.get("@v1/resourcequotas/default/q").await;
    assert_eq!(created["status"]["hard"], created["spec"]["hard"]);

    world.create("@v1/configmaps/default", map("second")).await;
    assert_eq!(world.get("@v1/resourcequotas/default/q").await["status"]["used"]["configmaps"], "2");
    let refused = world.try_create("@v1/configmaps/default", map("third")).await.expect_err("too many");
    assert_eq!(refused.reason, Reason::Forbidden);
    assert_eq!(
        refused.message,
        "configmaps \"third\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2"
    );
    world.delete("@v1/configmaps/default/before", None).await;
    used(&world, json!({"configmaps": "1", "pods": "0", "requests.cpu": "0"})).await;
    world.create("@v1/configmaps/default", map("third")).await;

    world.create("@v1/pods/default", pod("p", "1")).await;
    used(&world, json!({"configmaps": "2", "pods": "1", "requests.cpu": "1"})).await;
    world.merge("@v1/pods/default/p/status", json!({"status": {"phase": "Succeeded"}})).await;
    used(&world, json!({"configmaps": "2", "pods": "0", "requests.cpu": "0"})).await;
}

#[tokio::test]
async fn what_a_resize_gives_back_is_counted_once_the_status_says_so() {
    let world = World::with(CONTROLLER).await;
    world.create("@v1/resourcequotas/default", quota(json!({"pods": "2", "requests.cpu": "10"}))).await;
    used(&world, json!({"pods": "0", "requests.cpu": "0"})).await;
    let mut two = pod("p", "4");
    two["spec"]["initContainers"] = json!([
        {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
    ]);
    world.create("@v1/pods/default", two).await;
    used(&world, json!({"pods": "1", "requests.cpu": "6"})).await;
    let has = |name: &str, cpu: &str| {
        let status = json!({
            "name": name, "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
            "resources": {"requests": {"cpu": cpu}},
        });
        json!([status])
    };
    let status = |own: &str, sidecar: &str| {
        let own = has("c", own);
        json!({"status": {"containerStatuses": own, "initContainerStatuses": has("s", sidecar)}})
    };
    world.merge("@v1/pods/default/p/status", status("4", "2")).await;
    let asked = json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]);
    world.merge("@v1/pods/default/p/resize", json!({"spec": {"containers": asked}})).await;
    let resized = world.merge("@v1/pods/default/p/status", status("1", "2")).await;
    assert_eq!(resized["spec"]["containers"][0]["resources"]["requests"]["cpu"], "1");
    used(&world, json!({"pods": "1", "requests.cpu": "3"})).await;
    let asked = json!([
        {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
    ]);
    world.merge("@v1/pods/default/p/resize", json!({"spec": {"initContainers": asked}})).await;
    world.merge("@v1/pods/default/p/status", status("1", "500m")).await;
    used(&world, json!({"pods": "1", "requests.cpu": "1500m"})).await;
}

#[tokio::test]
async fn a_pod_that_is_given_a_deadline_leaves_the_quotas_of_those_without() {
    let world = World::with(CONTROLLER).await;
    let mut scoped = quota(json!({"pods": "1"}));
    scoped["spec"]["scopes"] = json!(["NotTerminating"]);
    world.create("@v1/resourcequotas/default", scoped).await;
    used(&world, json!({"pods": "0"})).await;
    world.create("@v1/pods/default", pod("p", "1")).await;
    used(&world, json!({"pods": "1"})).await;
    world.merge("@v1/pods/default/p", json!({"spec": {"activeDeadlineSeconds": 3600}})).await;
    used(&world, json!({"pods": "0"})).await;
}

#[tokio::test]
async fn a_dry_run_is_refused_and_counts_nothing() {
    let world = World::with(CONTROLLER).await;
    world.create("@v1/resourcequotas/default", quota(json!({"count/configmaps": "1"}))).await;
    used(&world, json!({"count/configmaps": "0"})).await;
    let dry = |name: &str| {
        let body = forebay_api::Body::Value(map(name));
        let (registry, target) = (world.registry.clone(), world.target("@v1/configmaps/default"));
        async move {
            let options = CreateOptions { dry_run: true, ..CreateOptions::default() };
            registry.create(&target, &body, &options).await.map(drop)
        }
    };
    dry("one").await.expect("it would fit");
    assert_eq!(world.get("@v1/resourcequotas/default/q").await["status"]["used"]["count/configmaps"], "0");
    world.create("@v1/configmaps/default", map("one")).await;
    assert_eq!(dry("two").await.expect_err("it would not").reason, Reason::Forbidden);
}

#[tokio::test]
async fn of_many_at_once_exactly_as_many_are_let_in_as_fit() {
    let world = World::with(CONTROLLER).await;
    world.create("@v1/resourcequotas/default", quota(json!({"configmaps": "20"}))).await;
    used(&world, json!({"configmaps": "0"})).await;
    let before = revision(&world).await;
    let mut creates = tokio::task::JoinSet::new();
    for number in 0..60 {
        let (registry, target) = (world.registry.clone(), world.target("@v1/configmaps/default"));
        creates.spawn(async move {
            let body = forebay_api::Body::Value(map(&format!("m{number}")));
            registry.create(&target, &body, &CreateOptions::default()).await.map(drop)
        });
    }
    let said = creates.join_all().await;
    assert_eq!(said.iter().filter(|said| said.is_ok()).count(), 20);
    assert!(
        said.iter().filter_map(|said| said.as_ref().err()).all(|status| status.reason == Reason::Forbidden)
    );
    assert_eq!(world.get("@v1/resourcequotas/default/q").await["status"]["used"]["configmaps"], "20");
    // Those that come together are counted together: there are fewer writes of the quota than creates.
    let of_the_quota = revision(&world).await - before - 20 - 1;
    assert!((1..=10).contains(&of_the_quota), "{of_the_quota}");
}

/// That of a new object which no quota counts.
async fn revision(world: &World) -> u64 {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"generateName": "s"}});
    let created = world.create("@v1/serviceaccounts/default", account).await;
    created["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a number")
}

#[tokio::test]
async fn custom_objects_are_counted_once_they_are_served() {
    let world = World::with(CONTROLLER).await;
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let limit = "count/widgets.example.com";
    world.create("@v1/resourcequotas/default", quota(json!({limit: "1"}))).await;
    world.create("apiextensions.k8s.io@v1/customresourcedefinitions", crd).await;
    used(&world, json!({limit: "0"})).await;
    let widget =
        |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
    world.create("example.com@v1/widgets/default", widget("a")).await;
    let refused =
        world.try_create("example.com@v1/widgets/default", widget("b")).await.expect_err("too many");
    assert_eq!(
        refused.message,
        "widgets.example.com \"b\" is forbidden: exceeded quota: q, requested: count/widgets.example.com=1, used: count/widgets.example.com=1, limited: count/widgets.example.com=1"
    );
}

#[tokio::test]
async fn every_quota_is_counted_anew_from_time_to_time() {
    let world = World::with(CONTROLLER).await;
    world.create("@v1/resourcequotas/default", quota(json!({"configmaps": "5"}))).await;
    used(&world, json!({"configmaps": "0"})).await;
    let wrong = json!({"status": {"used": {"configmaps": "4"}}});
    world.merge("@v1/resourcequotas/default/q/status", wrong).await;
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(301)).await;
    tokio::time::resume();
    used(&world, json!({"configmaps": "0"})).await;
}

#[tokio::test]
async fn limits_of_a_namespace_fill_in_and_refuse() {
    let world = World::with("-*").await;
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"},
        "spec": {"limits": [
            {"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}},
            {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
        ]},
    });
    world.create("@v1/limitranges/default", range).await;
    let mut bare = pod("bare", "1");
    bare["spec"]["containers"][0]["resources"] = json!({});
    let filled = world.create("@v1/pods/default", bare).await;
    assert_eq!(
        filled["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}})
    );
    assert_eq!(
        filled["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    let mut large = pod("large", "1");
    large["spec"]["containers"][0]["resources"]["limits"] = json!({"cpu": "3"});
    let refused = world.try_create("@v1/pods/default", large).await.expect_err("too large");
    assert_eq!(
        refused.message,
        "pods \"large\" is forbidden: maximum cpu usage per Container is 2, but limit is 3"
    );
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    });
    let refused = world.try_create("@v1/persistentvolumeclaims/default", claim).await.expect_err("too large");
    assert_eq!(
        refused.message,
        "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    );
}

#[tokio::test]
async fn a_range_of_many_names_and_a_pod_of_many_containers_are_refused_before_they_are_multiplied() {
    let world = World::with("-*").await;
    let many: Vec<(String, Value)> = (0..4_000).map(|at| (format!("a.b/c{at}"), json!("1"))).collect();
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"},
        "spec": {"limits": [{"type": "Container", "max": Value::Object(many.into_iter().collect())}]},
    });
    world.create("@v1/limitranges/default", range).await;
    let pod = |count: usize| {
        let containers: Vec<Value> =
            (0..count).map(|at| json!({"name": format!("c{at}"), "image": "i"})).collect();
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
    };
    let refused = world.try_create("@v1/pods/default", pod(20)).await.expect_err("160,000 amounts");
    assert_eq!(refused.reason, Reason::Invalid);
    assert_eq!(
        refused.message,
        "Pod \"p\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes"
    );
    let filled = world.create("@v1/pods/default", pod(1)).await;
    let resources = &filled["spec"]["containers"][0]["resources"];
    let amounts = |list: &str| resources[list].as_object().map(serde_json::Map::len);
    assert_eq!((amounts("requests"), amounts("limits")), (Some(4_000), Some(4_000)));
}
