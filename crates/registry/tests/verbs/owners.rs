//! Who owns which fields of what is written, and what that may take.

use forebay_api::{Api, Body, PatchKind};
use forebay_apimachinery::options::PatchOptions;
use forebay_apimachinery::{Key, Reason};
use forebay_backend::{Backend, Expect, Op, Txn};
use serde_json::{Value, json};

use crate::{CM, World, configmap, object, rv};

/// As a kube-apiserver beside this server has it, which notes who manages the fields.
#[tokio::test]
async fn a_no_op_update_of_an_object_with_managers_writes_nothing() {
    const MANAGED: &str = r#""managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2023-11-14T22:13:20Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:k":{}}}}]"#;
    let world = World::new().await;
    let path = "@v1/configmaps/default/a";
    world.create(CM, configmap("a", json!({ "k": "v" }))).await.expect("creates");
    let stripped = json!({ "metadata": { "managedFields": [{}] } });
    let created = world.patch(path, PatchKind::Merge, stripped).await.expect("patches");
    assert_eq!(created["metadata"].get("managedFields"), None, "they were given up");
    let key = Key::from("/registry/configmaps/default/a");
    let found = world.engine.get(&key).await.expect("reads").expect("is there");
    let value = String::from_utf8(found.value.to_vec()).expect("text");
    let noted = value.replace("},\"data\"", &format!(",{MANAGED}}},\"data\""));
    let op = Op::Put { value: noted.into(), ttl: None };
    world.engine.commit(Txn { key, expect: Expect::At(found.revision), op }).await.expect("commits");
    let stored = world.get(path).await.expect("is there");
    assert_eq!(stored["metadata"]["managedFields"][0]["manager"], "kubectl");

    let mut proposed = created.clone();
    proposed["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    for proposed in [stored.clone(), proposed] {
        assert_eq!(world.update(path, proposed).await.expect("updates"), stored);
    }
    for kind in [PatchKind::Merge, PatchKind::StrategicMerge] {
        assert_eq!(world.patch(path, kind, json!({})).await.expect("patches"), stored);
    }
    let changed =
        world.patch(path, PatchKind::Merge, json!({ "data": { "k": "w" } })).await.expect("patches");
    assert_ne!(rv(&changed), rv(&stored));
    let managers = changed["metadata"]["managedFields"].as_array().into_iter().flatten();
    let managers: Vec<_> = managers.map(|entry| (&entry["manager"], &entry["fieldsV1"])).collect();
    assert_eq!(
        managers,
        [
            (&json!("kube-apiserver"), &json!({ "f:data": { "f:k": {} } })),
            (&json!("kubectl"), &json!({ "f:data": {} })),
        ]
    );
}

/// Each of its fields takes as much among its owners' as in itself.
#[tokio::test]
async fn what_is_too_large_with_its_owners_is_stored_without_them() {
    let world = World::new().await;
    let data = |value: &str| {
        let member = |index: usize| (format!("{index:0>250}"), Value::from(value));
        Value::Object((0..9_000).map(member).collect())
    };
    let created = world.create(CM, configmap("a", data(""))).await.expect("creates");
    assert_eq!(created["metadata"].get("managedFields"), None);
    let small = world.create(CM, configmap("b", json!({ "k": "v" }))).await.expect("creates");
    assert!(small["metadata"]["managedFields"].is_array());
    let updated = world.update("@v1/configmaps/default/b", configmap("b", data(""))).await.expect("updates");
    assert_eq!((updated["metadata"].get("managedFields"), &updated["data"]), (None, &created["data"]));
    // An apply is about its owners.
    let options = PatchOptions { field_manager: "me".into(), ..PatchOptions::default() };
    let (target, config) = (world.target("@v1/configmaps/default/c"), configmap("c", data("")).to_string());
    let config = Body::Json(config.into());
    let applied = Api::apply(&world.registry, &target, &config, &options, None).wait().await;
    assert_eq!(applied.map(object).expect_err("is refused").reason, Reason::RequestEntityTooLarge);
}

/// What a new object's only manager owns is kept apart from it while it is written.
#[tokio::test]
async fn policies_see_the_fields_that_a_new_object_s_manager_owns() {
    let world = World::new().await;
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "p" },
        "spec": {
            "matchConstraints": { "resourceRules": [
                { "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"] },
            ] },
            "validations": [{
                "expression": "dyn(object).metadata.managedFields[0].fieldsV1 == {}",
                "messageExpression": "string(size(dyn(object).metadata.managedFields[0].fieldsV1))",
            }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": "b" }, "spec": { "policyName": "p", "validationActions": ["Deny"] },
    });
    let of_policies = "admissionregistration.k8s.io@v1";
    world.create(&format!("{of_policies}/validatingadmissionpolicies"), policy).await.expect("creates");
    world
        .create(&format!("{of_policies}/validatingadmissionpolicybindings"), binding)
        .await
        .expect("creates");
    let labelled = |name: &str| {
        let mut object = configmap(name, json!({ "k": "v" }));
        object["metadata"]["labels"] = json!({ "a": "b" });
        object
    };
    // f:data and f:metadata.
    let refusal = world.create(CM, labelled("a")).await.expect_err("is refused");
    assert!(refusal.message.ends_with("denied request: 2"), "{}", refusal.message);
}

/// Go leaves an empty name out, and then the item has no key: the fields have no owners, as upstream has it.
#[tokio::test]
async fn of_a_new_object_with_an_item_that_has_no_key_nobody_owns_anything() {
    let world = World::new().await;
    let account = |secret: &str| {
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": format!("a{secret}") },
            "secrets": [{ "name": secret }],
        })
    };
    let path = "@v1/serviceaccounts/default";
    let keyed = world.create(path, account("s")).await.expect("creates");
    assert!(keyed["metadata"]["managedFields"].is_array(), "{keyed}");
    let unkeyed = world.create(path, account("")).await.expect("creates");
    assert!(unkeyed["metadata"].get("managedFields").is_none(), "{unkeyed}");
}
