//! Workload controllers: replicas wanted, there and ready. ReplicationControllers of core are among them.
//!
//! In: v1 values. Out: their cells. Never: a look at pods.

use jiff::Timestamp;
use serde_json::Value;

use crate::containers::Containers;
use crate::labels::{format_labels, format_selector, selector};
use crate::member::Member;
use crate::table::{AGE, CONTAINERS, Column, IMAGES, NAME, Printer, cells, integer, string};

const SELECTOR: Column = string("Selector", "Labels of the pods it controls.").wide();

pub(crate) static DEPLOYMENT: Printer = Printer::new(
    &[
        NAME,
        string("Ready", "Pods that are ready, of those wanted."),
        string("Up-to-date", "Pods of the latest template."),
        string("Available", "Pods that have been ready for long enough."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    deployment_cells,
);

const REPLICA_COLUMNS: &[Column] = &[
    NAME,
    integer("Desired", "Pods wanted."),
    integer("Current", "Pods there are."),
    integer("Ready", "Pods that are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) static REPLICA_SET: Printer = Printer::new(REPLICA_COLUMNS, replica_set_cells);
pub(crate) static REPLICATION_CONTROLLER: Printer =
    Printer::new(REPLICA_COLUMNS, replication_controller_cells);

pub(crate) static STATEFUL_SET: Printer = Printer::new(
    &[NAME, string("Ready", "Pods that are ready, of those wanted."), AGE, CONTAINERS, IMAGES],
    stateful_set_cells,
);

pub(crate) static DAEMON_SET: Printer = Printer::new(
    &[
        NAME,
        integer("Desired", "Nodes that should run its pod."),
        integer("Current", "Nodes that run its pod and should."),
        integer("Ready", "Nodes whose pod is ready."),
        integer("Up-to-date", "Nodes that run the latest template."),
        integer("Available", "Nodes whose pod has been ready for long enough."),
        string("Node Selector", "Labels of the nodes it runs on."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    daemon_set_cells,
);

pub(crate) static CONTROLLER_REVISION: Printer = Printer::new(
    &[
        NAME,
        string("Controller", "Object whose state this is."),
        string("Revision", "Number of the revision."),
        AGE,
    ],
    controller_revision_cells,
);

/// What defaulting would write.
fn replicas(object: Member<'_>) -> i64 {
    object.get("spec").get("replicas").int_if_set().unwrap_or(1)
}

fn deployment_cells(deployment: Member<'_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (deployment.get("spec"), deployment.get("status"));
    let containers = Containers::of(spec.get("template"));
    cells![
        deployment.name(),
        format!("{}/{}", status.get("readyReplicas").int(), replicas(deployment)),
        status.get("updatedReplicas").int(),
        status.get("availableReplicas").int(),
        deployment.age(now),
        containers.names,
        containers.images,
        selector(spec.get("selector").value()).unwrap_or_else(|| "<invalid>".to_owned()),
    ]
}

fn replica_set_cells(set: Member<'_>, now: Timestamp) -> Vec<Value> {
    let selector = format_selector(set.get("spec").get("selector").value());
    replica_cells(set, selector, now)
}

/// The selector of a ReplicationController is a plain label set, by default that of its template.
fn replication_controller_cells(controller: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = controller.get("spec");
    let selector = match spec.get("selector") {
        empty if empty.count() == 0 => spec.get("template").get("metadata").get("labels"),
        selector => selector,
    };
    replica_cells(controller, format_labels(selector.value()), now)
}

fn replica_cells(object: Member<'_>, selector: String, now: Timestamp) -> Vec<Value> {
    let status = object.get("status");
    let containers = Containers::of(object.get("spec").get("template"));
    cells![
        object.name(),
        replicas(object),
        status.get("replicas").int(),
        status.get("readyReplicas").int(),
        object.age(now),
        containers.names,
        containers.images,
        selector,
    ]
}

fn stateful_set_cells(set: Member<'_>, now: Timestamp) -> Vec<Value> {
    let containers = Containers::of(set.get("spec").get("template"));
    cells![
        set.name(),
        format!("{}/{}", set.get("status").get("readyReplicas").int(), replicas(set)),
        set.age(now),
        containers.names,
        containers.images,
    ]
}

fn daemon_set_cells(set: Member<'_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (set.get("spec"), set.get("status"));
    let containers = Containers::of(spec.get("template"));
    cells![
        set.name(),
        status.get("desiredNumberScheduled").int(),
        status.get("currentNumberScheduled").int(),
        status.get("numberReady").int(),
        status.get("updatedNumberScheduled").int(),
        status.get("numberAvailable").int(),
        format_labels(spec.get("template").get("spec").get("nodeSelector").value()),
        set.age(now),
        containers.names,
        containers.images,
        format_selector(spec.get("selector").value()),
    ]
}

fn controller_revision_cells(revision: Member<'_>, now: Timestamp) -> Vec<Value> {
    let mut owners = revision.get("metadata").get("ownerReferences").items();
    let controller = owners.find(|owner| owner.get("controller").flag());
    let controller = controller.map_or_else(|| "<none>".to_owned(), owner_name);
    cells![revision.name(), controller, revision.get("revision").int(), revision.age(now)]
}

/// `statefulset.apps/web`
fn owner_name(owner: Member<'_>) -> String {
    let (kind, name) = (owner.get("kind").text(), owner.get("name").text());
    let group = owner.get("apiVersion").text().split_once('/').map_or("", |(group, _)| group);
    match (kind, group) {
        ("", "") => name.to_owned(),
        (kind, "") => format!("{}/{name}", kind.to_lowercase()),
        (kind, group) => format!("{}.{}/{name}", kind.to_lowercase(), group.to_lowercase()),
    }
}
