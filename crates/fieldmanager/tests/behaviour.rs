//! What clients do to a Deployment, and who owns what then. All of it is held against upstream's field
//! manager, too, in `upstream`.

use std::borrow::Cow;

use forebay_apimachinery::{Lease, Reason, Status};
use forebay_fieldmanager::{ConvertError, Created, FieldManager, FieldType, Sent, Versions, reset_fields};
use forebay_schema::builtin::codec;
use serde_json::{Value, json};

struct Deployments(FieldType<'static>);

impl Versions<'static> for Deployments {
    fn type_in(&self, api_version: &str) -> Result<FieldType<'static>, ConvertError> {
        if api_version == "apps/v1" { Ok(self.0) } else { Err(ConvertError::MissingVersion) }
    }

    fn convert(&self, _object: &Value, _api_version: &str) -> Result<Value, ConvertError> {
        unreachable!("there is one version")
    }
}

/// An object, and clients of it; each request is a second after the one before.
struct Cluster {
    live: Option<Value>,
    second: u32,
}

fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

impl Cluster {
    fn new() -> Cluster {
        Cluster { live: None, second: 0 }
    }

    fn ask<T>(
        &mut self,
        subresource: &str,
        ask: impl FnOnce(&FieldManager<'_, '_>, Option<&Value>) -> T,
    ) -> T {
        self.second += 1;
        let now = format!("2026-01-01T00:00:{:02}Z", self.second);
        let kind = Deployments(FieldType::of_kind("apps", "v1", "Deployment").expect("a kind"));
        let lease = Lease::of_server();
        let filters = reset_fields("apps", "deployments", subresource);
        let manager = FieldManager::new(&kind, "apps/v1", "Deployment", subresource, filters, &now, &lease);
        ask(&manager.expect("a version"), self.live.as_ref())
    }

    fn store(&mut self, mut object: Value) {
        let FieldType::BuiltIn(ty, _) = FieldType::of_kind("apps", "v1", "Deployment").expect("a kind")
        else {
            return;
        };
        codec::normalize(ty, &mut object).expect("a Deployment");
        object["metadata"]["uid"] = json!("u");
        self.live = Some(object);
    }

    /// Writes over what is there, with its entries, or with those that `object` has.
    fn update(&mut self, name: &str, subresource: &str, mut object: Value) -> &mut Cluster {
        let sent = Sent::of(&object, false);
        if let Some(live) = self.live.as_ref().filter(|_| object["metadata"]["managedFields"].is_null()) {
            object["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
        }
        let entries =
            self.ask(subresource, |manager, live| manager.update(live, &object, sent, name).expect("room"));
        object["metadata"]["managedFields"] = Value::Array(entries);
        self.store(object);
        self
    }

    fn apply(&mut self, name: &str, config: Value, force: bool) -> Result<&mut Cluster, Status> {
        let applied = self.ask("", |manager, live| {
            manager.apply(live.map(Cow::Borrowed), &config, name, force, usize::MAX)
        })?;
        self.store(applied);
        Ok(self)
    }

    /// A line an entry: who, how, to what, at which second, what.
    fn check(&mut self, want: &[&str]) -> &mut Cluster {
        let live = self.live.as_ref().expect("an object");
        let shown = live["metadata"]["managedFields"].as_array().into_iter().flatten().map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            let time = text("time").get(17..19).unwrap_or("--");
            let to = if text("subresource").is_empty() {
                String::new()
            } else {
                format!("/{}", text("subresource"))
            };
            format!("{} {}{to} {time} {}", text("manager"), text("operation"), entry["fieldsV1"])
        });
        assert_eq!(shown.collect::<Vec<_>>(), want);
        self
    }
}

const REPLICAS: &str = r#"{"f:spec":{"f:replicas":{}}}"#;

#[test]
fn who_creates_owns_what_is_there_and_who_updates_what_changes() {
    let container = json!({"name": "a", "image": "b"});
    let spec = json!({"replicas": 1, "template": {"spec": {"containers": [container]}}});
    let mut changed = spec.clone();
    changed["replicas"] = json!(2);
    let rest = r#"{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:name":{},"f:resources":{}}}}}}}"#;
    let (rest, all) = (
        format!("creator Update 01 {rest}"),
        rest.replacen("{\"f:spec\":{", "{\"f:spec\":{\"f:replicas\":{},", 1),
    );
    let mut cluster = Cluster::new();
    cluster.update("creator", "", deployment(spec)).check(&[&format!("creator Update 01 {all}")]);
    cluster.update("scaler", "", deployment(changed.clone()));
    cluster.check(&[&rest, &format!("scaler Update 02 {REPLICAS}")]);
    // Nothing changes, not even a time.
    cluster.update("other", "", deployment(changed));
    cluster.check(&[&rest, &format!("scaler Update 02 {REPLICAS}")]);
}

#[test]
fn who_applies_what_is_somebody_elses_is_told_whose_or_takes_it_by_force() {
    let mut cluster = Cluster::new();
    cluster.update("a", "", deployment(json!({"replicas": 1, "paused": true})));
    let Err(refusal) = cluster.apply("b", deployment(json!({"replicas": 2})), false).map(|_| ()) else {
        panic!("it was applied")
    };
    assert_eq!(refusal.reason, Reason::Conflict);
    assert_eq!(
        refusal.message,
        r#"Apply failed with 1 conflict: conflict with "a" using apps/v1: .spec.replicas"#
    );
    assert_eq!(refusal.causes[0].field, ".spec.replicas");
    assert_eq!(refusal.causes[0].message, r#"conflict with "a" using apps/v1"#);
    let wants = deployment(json!({"replicas": 2, "paused": false}));
    let Err(refusal) = cluster.apply("b", wants, false).map(|_| ()) else { panic!("it was applied") };
    let told = "Apply failed with 2 conflicts: conflicts with \"a\" using apps/v1:\n- .spec.paused\n- .spec.replicas";
    assert_eq!(refusal.message, told);
    cluster.apply("b", deployment(json!({"replicas": 2})), true).expect("force");
    let others = r#"a Update 01 {"f:spec":{"f:paused":{}}}"#;
    cluster.check(&[&format!("b Apply 04 {REPLICAS}"), others]);
    // Who gives up what nobody else owns takes it away.
    let mut nothing = deployment(Value::Null);
    nothing.as_object_mut().expect("an object").remove("spec");
    cluster.apply("b", nothing, false).expect("nothing is in the way");
    cluster.check(&[others]);
    let spec = &cluster.live.as_ref().expect("an object")["spec"];
    assert_eq!((&spec["paused"], &spec["replicas"]), (&json!(true), &Value::Null));
}

#[test]
fn kubectl_takes_over_what_it_noted_of_its_client_side_applies() {
    const NOTE: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let noted = deployment(json!({"replicas": 1})).to_string();
    let mut object = deployment(json!({"replicas": 1}));
    object["metadata"]["annotations"] = json!({NOTE: noted});
    let mut cluster = Cluster::new();
    cluster.update("kubectl-client-side-apply", "", object);
    let config = deployment(json!({"replicas": 2}));
    cluster.apply("kubectl", config.clone(), false).expect("its own");
    let live = cluster.live.clone().expect("an object");
    assert_eq!(live["spec"]["replicas"], 2);
    assert_eq!(live["metadata"]["annotations"][NOTE], format!("{config}\n"));
    let Err(refusal) = Cluster { live: Some(live), second: 9 }
        .apply("helm", deployment(json!({"replicas": 3})), false)
        .map(|_| ())
    else {
        panic!("it was applied")
    };
    assert_eq!(refusal.message, r#"Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas"#);
}

#[test]
fn an_empty_list_forgets_all_and_none_keeps_what_was_there() {
    let mut cluster = Cluster::new();
    let owned = format!("a Update 01 {REPLICAS}");
    cluster.update("a", "", deployment(json!({"replicas": 1}))).check(&[&owned]);
    let mut reset = deployment(json!({"replicas": 2}));
    reset["metadata"]["managedFields"] = json!([]);
    cluster.update("b", "", reset).check(&[]);
    // Nobody is remembered of an object that is there, before somebody applies.
    cluster.update("b", "", deployment(json!({"replicas": 3}))).check(&[]);
    cluster.apply("c", deployment(json!({"paused": true})), false).expect("nobody owns it");
    cluster.check(&[
        r#"c Apply 04 {"f:spec":{"f:paused":{}}}"#,
        &format!("before-first-apply Update 04 {REPLICAS}"),
    ]);
}

#[test]
fn a_status_is_owned_through_its_subresource_and_by_nothing_else() {
    let status = json!({"replicas": 1});
    let mut cluster = Cluster::new();
    let mut object = deployment(json!({"replicas": 1}));
    object["status"] = status.clone();
    let owned = format!("a Update 01 {REPLICAS}");
    cluster.update("a", "", object.clone()).check(&[&owned]);
    object["status"] = json!({"replicas": 2});
    object["spec"] = json!({"replicas": 5});
    cluster.update("b", "status", object);
    cluster.check(&[&owned, r#"b Update/status 02 {"f:status":{"f:replicas":{}}}"#]);
}

#[test]
fn what_is_applied_is_of_the_kind_and_says_nothing_of_managers() {
    let mut cluster = Cluster::new();
    let mut check = |change: &dyn Fn(&mut Value), want: &str| {
        let mut config = deployment(json!({}));
        change(&mut config);
        let refusal = cluster.apply("a", config, false).map(|_| ()).expect_err("a refusal");
        assert_eq!((refusal.reason, &*refusal.message), (Reason::BadRequest, want));
    };
    check(&|config| config["kind"] = json!("Pod"), "invalid object type: apps/v1, Kind=Pod");
    check(&|config| config["apiVersion"] = json!("v1"), "invalid object type: /v1, Kind=Deployment");
    check(&|config| config["metadata"]["managedFields"] = json!([]), "metadata.managedFields must be nil");
}

#[test]
fn a_new_object_is_owned_alike_whichever_way_that_is_found() {
    let mut cluster = Cluster::new();
    let mut check = |object: Value, is_apart: bool| {
        let sent = Sent::AsTheyAre;
        cluster.ask("", |manager, _| {
            let whole = manager.update(None, &object, sent, "a").expect("room");
            let created = match manager.create(&object, sent, "a").expect("room") {
                Created::Apart { mut entry, fields } => {
                    assert_eq!(entry["fieldsV1"], json!({}), "{object}");
                    entry["fieldsV1"] = serde_json::from_slice(&fields).expect("JSON");
                    Ok(vec![entry])
                }
                Created::Whole(entries) => Err(entries),
            };
            assert_eq!(
                (created.is_ok(), created.unwrap_or_else(|entries| entries)),
                (is_apart, whole.clone())
            );
            // What is there has nothing but its name: that takes a comparison.
            let nothing = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
            let compared = manager.update(Some(&nothing), &object, sent, "a").expect("room");
            assert_eq!(compared, whole, "{object}");
        });
    };
    let port = |number: u16| json!({"containerPort": number, "protocol": "TCP"});
    let spec = |ports: Vec<Value>| {
        let container = json!({"name": "a", "command": ["b"], "ports": ports, "image": "c\u{1}\"<"});
        let spec = json!({"containers": [container], "tolerations": [{"key": "d"}], "nodeSelector": {}});
        let labels = json!({"app": "e", "\"f\"\n": "g"});
        json!({"replicas": 1, "paused": true, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec}})
    };
    check(deployment(json!({})), false);
    check(deployment(spec(vec![])), true);
    check(deployment(spec(vec![port(2), port(1), port(10)])), true);
    // Objects are stored as HTML may hold them, and a set of fields alone is not written so.
    let mut in_html = spec(vec![]);
    in_html["template"]["metadata"]["annotations"] = json!({"<": ""});
    check(deployment(in_html), false);
    // One that comes twice is one value.
    check(deployment(spec(vec![port(1), port(2), port(1)])), false);
    let mut with_status = deployment(spec(vec![port(1)]));
    with_status["metadata"]["finalizers"] = json!(["h", "i"]);
    with_status["status"] = json!({"replicas": 1, "conditions": [{"type": "j"}]});
    check(with_status.clone(), true);
    with_status["metadata"]["managedFields"] = json!([{"manager": "k", "operation": "Update",
        "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:minReadySeconds": {}}}}]);
    cluster.ask("", |manager, _| {
        let created = manager.create(&with_status, Sent::AsTheyAre, "a").expect("room");
        assert!(matches!(created, Created::Whole(entries) if entries.len() == 2));
    });
}
