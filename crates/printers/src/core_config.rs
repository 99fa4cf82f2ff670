//! The small kinds of core: config maps, secrets, service accounts, quotas, pod templates, and the Status of
//! an operation.
//!
//! In: v1 values. Out: their cells. Never: the content of a secret.

use forebay_apimachinery::quantity::Precision;
use jiff::Timestamp;
use serde_json::Value;

use crate::containers::Containers;
use crate::labels::format_labels;
use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static CONFIG_MAP: Printer =
    Printer::new(&[NAME, string("Data", "Number of keys, binary ones included."), AGE], config_map_cells);

pub(crate) static SECRET: Printer = Printer::new(
    &[NAME, string("Type", "What the secret is for."), string("Data", "Number of keys."), AGE],
    secret_cells,
);

pub(crate) static SERVICE_ACCOUNT: Printer =
    Printer::new(&[NAME, AGE], |account, now| cells![account.name(), account.age(now)]);

pub(crate) static RESOURCE_QUOTA: Printer = Printer::new(
    &[
        NAME,
        string("Request", "Used and allowed, for all but limits."),
        string("Limit", "Used and allowed, for limits."),
        AGE,
    ],
    resource_quota_cells,
);

pub(crate) static POD_TEMPLATE: Printer = Printer::new(
    &[
        NAME,
        string("Containers", "Container names of the template."),
        string("Images", "Container images of the template."),
        string("Pod Labels", "Labels of the template."),
    ],
    pod_template_cells,
);

pub(crate) static STATUS: Printer = Printer::new(
    &[
        string("Status", "Success or Failure."),
        string("Reason", "Why the operation failed, for machines."),
        string("Message", ""),
    ],
    status_cells,
);

fn config_map_cells(map: Member<'_>, now: Timestamp) -> Vec<Value> {
    cells![map.name(), map.get("data").count() + map.get("binaryData").count(), map.age(now)]
}

fn secret_cells(secret: Member<'_>, now: Timestamp) -> Vec<Value> {
    let (data, texts) = (secret.get("data"), secret.get("stringData"));
    // Texts become data on the way in; where they have not yet, they count as what they will be.
    let more = texts.entries().filter(|(key, _)| !data.has(key)).count() as i64;
    cells![secret.name(), secret.get("type").text_or("Opaque"), data.count() + more, secret.age(now)]
}

fn resource_quota_cells(quota: Member<'_>, now: Timestamp) -> Vec<Value> {
    let status = quota.get("status");
    let mut hard: Vec<(&str, Member<'_>)> = status.get("hard").entries().collect();
    hard.sort_unstable_by_key(|&(resource, _)| resource);
    let column = |is_limits: bool| {
        let chosen = hard.iter().filter(|(resource, _)| resource.starts_with("limits.") == is_limits);
        let texts = chosen.map(|&(resource, hard)| {
            format!("{resource}: {}/{}", amount(status.get("used").get(resource)), amount(hard))
        });
        texts.collect::<Vec<_>>().join(", ")
    };
    cells![quota.name(), column(false), column(true), quota.age(now)]
}

fn amount(quantity: Member<'_>) -> String {
    quantity.quantity(Precision::Milli).unwrap_or_else(|| "0".to_owned())
}

fn pod_template_cells(object: Member<'_>, _now: Timestamp) -> Vec<Value> {
    let template = object.get("template");
    let containers = Containers::of(template);
    let labels = format_labels(template.get("metadata").get("labels").value());
    cells![object.name(), containers.names, containers.images, labels]
}

fn status_cells(status: Member<'_>, _now: Timestamp) -> Vec<Value> {
    cells![status.get("status").text(), status.get("reason").text(), status.get("message").text()]
}
