//! Dynamic resource allocation: device classes, claims, slices, pools, taints.
//!
//! In: resource.k8s.io values. Out: their cells. Never: an allocation.

use jiff::Timestamp;
use serde_json::Value;

use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, integer, string};

/// Device classes and claim templates: nothing but their age.
pub(crate) static NAME_AND_AGE: Printer =
    Printer::new(&[NAME, AGE], |object, now| cells![object.name(), object.age(now)]);

pub(crate) static RESOURCE_CLAIM: Printer = Printer::new(
    &[NAME, string("State", "Whether it is allocated and reserved."), AGE],
    resource_claim_cells,
);

pub(crate) static RESOURCE_SLICE: Printer = Printer::new(
    &[
        NAME,
        string("Node", "Node that has the devices."),
        string("Driver", "Driver of the devices."),
        string("Pool", "Pool the devices belong to."),
        AGE,
    ],
    resource_slice_cells,
);

pub(crate) static RESOURCE_POOL_STATUS_REQUEST: Printer = Printer::new(
    &[
        NAME,
        string("Driver", "Driver whose pools are asked for."),
        string("Total", "Devices of all pools."),
        string("Available", "Devices that are free."),
        string("Allocated", "Devices that are taken."),
        string("Unavailable", "Devices that cannot be used."),
        string("Errors", "Pools that are not valid."),
        integer("Pools", "Pools that match."),
        string("Status", "How far the request is."),
        string("Completed", "Time since it was answered."),
    ],
    pool_status_cells,
);

pub(crate) static DEVICE_TAINT_RULE: Printer = Printer::new(
    &[
        NAME,
        string("Key", "Key of the taint."),
        string("Value", "Value of the taint."),
        string("Effect", "What the taint does."),
        string("TimeAdded", "Time since the taint was added."),
        AGE,
    ],
    device_taint_rule_cells,
);

fn resource_claim_cells(claim: Member<'_>, now: Timestamp) -> Vec<Value> {
    cells![claim.name(), claim_state(claim), claim.age(now)]
}

fn claim_state(claim: Member<'_>) -> &'static str {
    let status = claim.get("status");
    let is_reserved = status.get("reservedFor").count() > 0;
    match (claim.is_deleting(), status.get("allocation").is_set(), is_reserved) {
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
    }
}

fn resource_slice_cells(slice: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = slice.get("spec");
    cells![
        slice.name(),
        spec.get("nodeName").text(),
        spec.get("driver").text(),
        spec.get("pool").get("name").text(),
        slice.age(now),
    ]
}

fn pool_status_cells(request: Member<'_>, now: Timestamp) -> Vec<Value> {
    let status = request.get("status");
    let outcome = Outcome::of(request);
    let is_counted = status.is_set() && !matches!(outcome, Outcome::Failed);
    let count = |count: i64| if is_counted { count.to_string() } else { "-".to_owned() };
    let pools = || status.get("pools").items();
    let sum =
        |field: &str| count(pools().fold(0, |sum: i64, pool| sum.saturating_add(pool.get(field).int())));
    cells![
        request.name(),
        request.get("spec").get("driver").text(),
        sum("totalDevices"),
        sum("availableDevices"),
        sum("allocatedDevices"),
        sum("unavailableDevices"),
        count(pools().filter(|pool| pool.get("validationError").is_set()).count() as i64),
        status.get("poolCount").int(),
        outcome.text(status),
        outcome.completed(now),
    ]
}

/// How a request for the status of pools ended: the first condition that is true and says so.
enum Outcome<'a> {
    Pending,
    Complete(Member<'a>),
    Failed,
}

impl<'a> Outcome<'a> {
    fn of(request: Member<'a>) -> Self {
        let conditions = request.get("status").get("conditions").items();
        let mut conditions = conditions.filter(|condition| condition.get("status").text() == "True");
        let outcome = conditions.find_map(|condition| match condition.get("type").text() {
            "Complete" => Some(Outcome::Complete(condition)),
            "Failed" => Some(Outcome::Failed),
            _ => None,
        });
        outcome.unwrap_or(Outcome::Pending)
    }

    fn text(&self, status: Member<'_>) -> String {
        let (shown, total) = (status.get("pools").count(), status.get("poolCount").int());
        match self {
            Outcome::Pending => "Pending".to_owned(),
            Outcome::Failed => "Failed".to_owned(),
            Outcome::Complete(_) if total > shown => format!("Complete ({shown}/{total} pools)"),
            Outcome::Complete(_) => "Complete".to_owned(),
        }
    }

    fn completed(&self, now: Timestamp) -> String {
        match self {
            Outcome::Complete(condition) => condition.get("lastTransitionTime").since(now),
            _ => "<none>".to_owned(),
        }
    }
}

fn device_taint_rule_cells(rule: Member<'_>, now: Timestamp) -> Vec<Value> {
    let taint = rule.get("spec").get("taint");
    let added = taint.get("timeAdded");
    cells![
        rule.name(),
        taint.get("key").text(),
        taint.get("value").text(),
        taint.get("effect").text(),
        // Defaulting writes the present where there is none.
        if added.is_set() { added.since(now) } else { "0s".to_owned() },
        rule.age(now),
    ]
}
