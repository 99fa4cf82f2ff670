//! What the writer of a CRD may leave out.
//!
//! In: a CRD as it came. Out: the same with its defaults. Never: touches a schema or judges.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apis/apiextensions/v1/defaults.go`.

use serde_json::{Map, Value, json};

/// Sets the defaults of a CRD: names that follow from the kind, no conversion, a webhook's port, the first
/// stored version.
///
/// Values of the wrong type stay as they are. To be called at every create and update, before it is judged.
pub fn apply(crd: &mut Value) {
    let Some(crd) = crd.as_object_mut() else { return };
    let Some(spec) = crd.entry("spec").or_insert_with(|| json!({})).as_object_mut() else { return };
    names(spec);
    conversion(spec);
    let storage = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
    let storage =
        storage.filter(|version| version["storage"] == true).find_map(|version| version.get("name").cloned());
    if let Some(storage) = storage {
        stored_versions(crd, storage);
    }
}

fn names(spec: &mut Map<String, Value>) {
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or("").to_owned();
    if kind.is_empty() {
        return;
    }
    for (key, name) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names.get(key).is_none_or(says_nothing) {
            names.insert(key.to_owned(), name.into());
        }
    }
}

fn conversion(spec: &mut Map<String, Value>) {
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({ "strategy": "None" }));
    }
    let service = spec.get_mut("conversion").and_then(|c| c.pointer_mut("/webhook/clientConfig/service"));
    if let Some(service) = service.and_then(Value::as_object_mut)
        && service.get("port").is_none_or(Value::is_null)
    {
        service.insert("port".to_owned(), 443.into());
    }
}

fn stored_versions(crd: &mut Map<String, Value>, storage: Value) {
    let status = crd.entry("status").or_insert_with(|| json!({}));
    if status.is_null() {
        *status = json!({});
    }
    let Some(status) = status.as_object_mut() else { return };
    if status.get("storedVersions").is_none_or(says_nothing) {
        status.insert("storedVersions".to_owned(), json!([storage]));
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut crd: Value, want: Value) {
        let given = crd.clone();
        apply(&mut crd);
        assert_eq!(crd, want, "{given}");
        apply(&mut crd);
        assert_eq!(crd, want, "a second time: {given}");
    }

    #[test]
    fn names_follow_from_the_kind() {
        let filled = |given: Value, want: Value| {
            let none = json!({ "strategy": "None" });
            check(
                json!({ "spec": { "names": given } }),
                json!({ "spec": { "names": want, "conversion": none } }),
            );
        };
        filled(
            json!({ "kind": "CronTab" }),
            json!({ "kind": "CronTab", "singular": "crontab", "listKind": "CronTabList" }),
        );
        filled(
            json!({ "kind": "A", "singular": "", "listKind": null }),
            json!({ "kind": "A", "singular": "a", "listKind": "AList" }),
        );
        filled(
            json!({ "kind": "A", "singular": "b", "listKind": "C" }),
            json!({ "kind": "A", "singular": "b", "listKind": "C" }),
        );
        filled(json!({ "kind": "" }), json!({ "kind": "" }));
    }

    #[test]
    fn a_webhook_service_has_a_port() {
        let webhook = |service: Value| json!({ "spec": { "conversion": { "strategy": "Webhook", "webhook": { "clientConfig": { "service": service } } } } });
        check(webhook(json!({ "name": "a" })), webhook(json!({ "name": "a", "port": 443 })));
        check(webhook(json!({ "port": 8443 })), webhook(json!({ "port": 8443 })));
    }

    #[test]
    fn the_storage_version_is_the_first_stored_one() {
        let none = json!({ "strategy": "None" });
        let spec =
            json!({ "conversion": none, "versions": [{ "name": "v1" }, { "name": "v2", "storage": true }] });
        let stored = |versions: Value| json!({ "spec": spec, "status": { "storedVersions": versions } });
        check(json!({ "spec": spec }), stored(json!(["v2"])));
        check(stored(json!([])), stored(json!(["v2"])));
        check(stored(json!(["v1"])), stored(json!(["v1"])));
    }

    #[test]
    fn what_is_no_crd_stays_as_it_is() {
        for value in [json!(null), json!([]), json!({ "spec": 5 })] {
            check(value.clone(), value);
        }
        check(
            json!({ "spec": { "conversion": "x", "names": 1 } }),
            json!({ "spec": { "conversion": "x", "names": 1 } }),
        );
    }
}
