//! Kinds that the expressions of a policy are checked over.

mod world;

use serde_json::json;
use world::World;

const POLICIES: &str = "admissionregistration.k8s.io@v1/validatingadmissionpolicies";

/// Eight kinds of the core group, without those that are no objects of their own.
const CORE: [&str; 8] =
    ["secrets", "pods", "nodes", "services", "configmaps", "namespaces", "endpoints", "limitranges"];
const APPS: [&str; 5] = ["statefulsets", "deployments", "daemonsets", "replicasets", "controllerrevisions"];

/// The kinds that are told of a policy with such rules.
async fn kinds(world: &World, name: &str, rules: &[(&str, &[&str])]) -> Vec<String> {
    let rule = |(group, resources): &(&str, &[&str])| json!({ "apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": resources });
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "resourceRules": rules.iter().map(rule).collect::<Vec<_>>() },
            "validations": [{ "expression": "object.nope == 1" }],
        },
    });
    world.create(POLICIES, policy).await;
    let path = format!("{POLICIES}/{name}");
    world.until(&path, |found| found.is_some_and(|found| found["status"]["observedGeneration"] == 1)).await;
    let checked = world.find(&path).await.expect("it is there");
    let warning = checked["status"]["typeChecking"]["expressionWarnings"][0]["warning"].clone();
    let lines = warning.as_str().unwrap_or_default().lines();
    let told = lines.filter_map(|line| Some(line.split_once("Kind=")?.1.split_once(':')?.0.to_owned()));
    told.collect()
}

#[tokio::test]
async fn ten_kinds_of_each_rule_are_looked_at_and_no_rule_behind_one_with_as_many() {
    let world = World::with("validatingadmissionpolicy-status-controller").await;
    let core = ["ConfigMap", "Endpoints", "LimitRange", "Namespace", "Node", "Pod", "Secret", "Service"];
    let apps = ["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"];
    let both: Vec<&str> = core.into_iter().chain(apps).collect();
    assert_eq!(kinds(&world, "both", &[("", &CORE), ("apps", &APPS)]).await, both);
    let more = ["persistentvolumes", "podtemplates", "replicationcontrollers", "resourcequotas"];
    let all: Vec<&str> = CORE.into_iter().chain(more).collect();
    // By name, of which the last two are too many.
    let ten = ["ConfigMap", "Endpoints", "LimitRange", "Namespace", "Node"];
    let ten: Vec<&str> = ten
        .into_iter()
        .chain(["PersistentVolume", "Pod", "PodTemplate", "ReplicationController", "ResourceQuota"])
        .collect();
    assert_eq!(kinds(&world, "first", &[("", &all), ("apps", &APPS)]).await, ten);
}
