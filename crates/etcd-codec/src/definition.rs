//! Definitions of custom resources as kube-apiserver keeps them: in the form of
//! `apiextensions.k8s.io/v1beta1`, which nothing serves any more (kubernetes#82292).
//!
//! In: a stored definition as a value. Out: the same in the form of v1. What is written from here is in that
//! form, which kube-apiserver reads as well.

use serde_json::{Map, Value, json};

/// As what kube-apiserver keeps definitions.
pub const OLD_VERSION: &str = "apiextensions.k8s.io/v1beta1";
pub const VERSION: &str = "apiextensions.k8s.io/v1";

/// What all versions share stands beside them in the old form, and in each of them in the new one.
pub fn renew(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let shared = [
        ("schema", spec.remove("validation")),
        ("subresources", spec.remove("subresources")),
        ("additionalPrinterColumns", spec.remove("additionalPrinterColumns")),
        ("selectableFields", spec.remove("selectableFields")),
    ];
    let only = spec.remove("version").filter(Value::is_string);
    let versions = spec.entry("versions").or_insert_with(|| json!([]));
    if let (Some(name), Some([])) = (only, versions.as_array().map(Vec::as_slice)) {
        *versions = json!([{ "name": name, "served": true, "storage": true }]);
    }
    for version in versions.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        for (name, shared) in &shared {
            if let (Some(shared), false) = (shared, version.contains_key(*name)) {
                version.insert((*name).to_string(), shared.clone());
            }
        }
        renew_columns(version);
    }
    if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
        spec.remove("preserveUnknownFields");
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        renew_conversion(conversion);
    }
    definition["apiVersion"] = VERSION.into();
}

fn renew_columns(version: &mut Map<String, Value>) {
    let columns = version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
    for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(path) = column.remove("JSONPath") {
            column.insert("jsonPath".to_string(), path);
        }
    }
}

fn renew_conversion(conversion: &mut Map<String, Value>) {
    let client = conversion.remove("webhookClientConfig");
    let versions = conversion.remove("conversionReviewVersions");
    if client.is_none() && versions.is_none() {
        return;
    }
    let mut webhook = Map::new();
    let members = [("clientConfig", client), ("conversionReviewVersions", versions)];
    webhook.extend(members.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))));
    conversion.insert("webhook".to_string(), webhook.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_versions_share_goes_into_each_that_has_none_of_its_own() {
        let mut definition = json!({ "apiVersion": OLD_VERSION, "spec": {
            "group": "g.io", "version": "v1", "preserveUnknownFields": false,
            "validation": { "openAPIV3Schema": { "type": "object" } },
            "additionalPrinterColumns": [{ "name": "a", "type": "string", "JSONPath": ".a" }],
            "versions": [
                { "name": "v1", "served": true, "storage": true },
                { "name": "v2", "served": true, "storage": false, "schema": { "openAPIV3Schema": { "type": "x" } } },
            ],
            "conversion": { "strategy": "Webhook", "webhookClientConfig": { "url": "u" }, "conversionReviewVersions": ["v1"] },
        }});
        renew(&mut definition);
        let columns = json!([{ "name": "a", "type": "string", "jsonPath": ".a" }]);
        let expected = json!({ "apiVersion": VERSION, "spec": {
            "group": "g.io",
            "versions": [
                { "name": "v1", "served": true, "storage": true,
                  "schema": { "openAPIV3Schema": { "type": "object" } }, "additionalPrinterColumns": columns },
                { "name": "v2", "served": true, "storage": false,
                  "schema": { "openAPIV3Schema": { "type": "x" } }, "additionalPrinterColumns": columns },
            ],
            "conversion": { "strategy": "Webhook",
                "webhook": { "clientConfig": { "url": "u" }, "conversionReviewVersions": ["v1"] } },
        }});
        assert_eq!(definition, expected);
        let mut oldest = json!({ "spec": { "version": "v1" } });
        renew(&mut oldest);
        assert_eq!(oldest["spec"]["versions"], json!([{ "name": "v1", "served": true, "storage": true }]));
    }
}
