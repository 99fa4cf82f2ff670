//! Priority and runtime classes, disruption budgets, workloads and pod groups: what scheduling goes by.
//!
//! In: v1 values (v1alpha2 for Workload and PodGroup). Out: their cells. Never: a look at pods.

use jiff::Timestamp;
use serde_json::Value;

use crate::member::Member;
use crate::table::{AGE, NAME, Printer, boolean, cells, integer, string};

pub(crate) static PRIORITY_CLASS: Printer = Printer::new(
    &[
        NAME,
        integer("Value", "Priority of its pods."),
        boolean("Global-Default", "Whether pods without a class get it."),
        AGE,
        string("PreemptionPolicy", "Whether its pods preempt others."),
    ],
    priority_class_cells,
);

pub(crate) static RUNTIME_CLASS: Printer = Printer::new(&[NAME, string("Handler", ""), AGE], |class, now| {
    cells![class.name(), class.get("handler").text(), class.age(now)]
});

pub(crate) static POD_DISRUPTION_BUDGET: Printer = Printer::new(
    &[
        NAME,
        string("Min Available", "Pods that must stay available."),
        string("Max Unavailable", "Pods that may be unavailable."),
        integer("Allowed Disruptions", "Pods that may be disrupted now."),
        AGE,
    ],
    disruption_budget_cells,
);

pub(crate) static WORKLOAD: Printer =
    Printer::new(&[NAME, AGE], |workload, now| cells![workload.name(), workload.age(now)]);

pub(crate) static POD_GROUP: Printer = Printer::new(
    &[
        NAME,
        string("Policy", "Whether all pods are scheduled together."),
        string("Workload", "Workload it was made from."),
        string("Status", "How far scheduling is."),
        AGE,
    ],
    pod_group_cells,
);

fn priority_class_cells(class: Member<'_>, now: Timestamp) -> Vec<Value> {
    cells![
        class.name(),
        class.get("value").int(),
        class.get("globalDefault").flag(),
        class.age(now),
        class.get("preemptionPolicy").text_if_set().unwrap_or("PreemptLowerPriority"),
    ]
}

fn disruption_budget_cells(budget: Member<'_>, now: Timestamp) -> Vec<Value> {
    let limit = |field: &str| budget.get("spec").get(field).scalar().unwrap_or_else(|| "N/A".to_owned());
    cells![
        budget.name(),
        limit("minAvailable"),
        limit("maxUnavailable"),
        budget.get("status").get("disruptionsAllowed").int(),
        budget.age(now),
    ]
}

fn pod_group_cells(group: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = group.get("spec");
    let policy = if spec.get("schedulingPolicy").get("gang").is_set() { "Gang" } else { "Basic" };
    let template = spec.get("podGroupTemplateRef");
    let workload = match template.is_set() {
        true => template.get("workload").get("workloadName").text(),
        false => "<none>",
    };
    cells![group.name(), policy, workload, pod_group_status(group), group.age(now)]
}

/// Of two conditions of a type the last counts; disruption goes before scheduling.
fn pod_group_status(group: Member<'_>) -> &str {
    let last = |type_: &str| {
        let mut conditions = group.get("status").get("conditions").items().rev();
        conditions.find(|condition| condition.get("type").text() == type_)
    };
    match (last("DisruptionTarget"), last("PodGroupScheduled")) {
        (Some(target), _) => target.get("reason").text(),
        (None, Some(scheduled)) if scheduled.get("status").text() == "True" => "Scheduled",
        (None, Some(_)) => "Unschedulable",
        (None, None) => "Pending",
    }
}
