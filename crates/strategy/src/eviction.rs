//! Evicting a pod: which disruption budgets have a say, and what an eviction costs them.
//!
//! In: a pod, budgets of its namespace. Out: a refusal, or the budget that has one disruption less; the pod
//! with its condition. Never: IO, a retry.
//!
//! Source: kubernetes v1.36.3 `registry/core/pod/storage/eviction.go`, `component-helpers/apps/poddisruptionbudget`.

use serde_json::{Value, json};

use super::selector;
use super::value::{
    Members, child, child_made, child_or_empty, int, list_mut, objects, set, take_over, text,
};

/// Evictions that the controller of budgets has not seen yet, at most, for one budget.
const DISRUPTED_MAX: usize = 2000;

/// Why a budget does not let a pod go.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its status is that of an older spec.
    Unprocessed,
    /// It makes no sense: the reason.
    Broken(&'static str),
    /// Nothing is left of it: how clients are told.
    Spent(String),
}

/// What a pod that is not ready may do beside its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The budget pays.
    Counted,
    /// It goes without: the budget does not count it.
    Uncounted,
}

/// Whether a pod's end disrupts nothing: it has ended, has not begun, or is on its way out.
pub fn disrupts_nothing(pod: &Value) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed" | "Pending") || is_deleted(pod)
}

/// Whether a pod that disrupts nothing may do so in a moment, so that it must be deleted as it is now.
pub fn may_begin(pod: &Value) -> bool {
    !matches!(phase(pod), "Succeeded" | "Failed") && !is_deleted(pod)
}

fn phase(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or("")
}

fn is_deleted(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

/// Whether `budget` is for `pod`.
pub fn covers(budget: &Value, pod: &Value) -> bool {
    let (Some(budget), Some(pod)) = (budget.as_object(), pod.as_object()) else { return false };
    let labels = child(child_or_empty(pod, "metadata"), "labels");
    selector::of(child_or_empty(budget, "spec"), "selector")
        .is_ok_and(|selector| selector::selects(&selector, labels))
}

/// Whether the only budget of `pod` has to pay for it.
pub fn standing(budget: &Value, pod: &Value) -> Standing {
    let (Some(budget), Some(pod)) = (budget.as_object(), pod.as_object()) else { return Standing::Counted };
    let ready = objects(child_or_empty(pod, "status"), "conditions")
        .any(|condition| text(condition, "type") == "Ready" && text(condition, "status") == "True");
    let status = child_or_empty(budget, "status");
    let (current, desired) = healthy(status);
    let always = text(child_or_empty(budget, "spec"), "unhealthyPodEvictionPolicy") == "AlwaysAllow";
    if !ready && (always || (current >= desired && desired > 0)) {
        Standing::Uncounted
    } else {
        Standing::Counted
    }
}

/// The pods that are healthy, and those that must be.
fn healthy(status: &Members) -> (i64, i64) {
    (int(status, "currentHealthy").unwrap_or(0), int(status, "desiredHealthy").unwrap_or(0))
}

/// Takes one disruption of `budget` for the pod `name`.
///
/// # Errors
/// [`Refusal`], the budget unchanged.
pub fn spend(budget: &mut Value, name: &str, now: &str) -> Result<(), Refusal> {
    let Some(budget) = budget.as_object_mut() else { return Err(Refusal::Unprocessed) };
    let meta = child_or_empty(budget, "metadata");
    let (generation, own) = (int(meta, "generation").unwrap_or(0), text(meta, "name").to_string());
    let status = child_made(budget, "status");
    if int(status, "observedGeneration").unwrap_or(0) < generation {
        return Err(Refusal::Unprocessed);
    }
    let allowed = int(status, "disruptionsAllowed").unwrap_or(0);
    if allowed < 0 {
        return Err(Refusal::Broken("pdb disruptions allowed is negative"));
    }
    if child_or_empty(status, "disruptedPods").len() > DISRUPTED_MAX {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Refusal::Broken(why));
    }
    if allowed == 0 {
        return Err(Refusal::Spent(why_spent(&own, status)));
    }
    set(status, "disruptionsAllowed", Some((allowed - 1).into()));
    if allowed == 1 {
        let generation = status.get("observedGeneration").cloned();
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
            "lastTransitionTime": now,
        });
        set_condition(status, condition, generation);
    }
    child_made(status, "disruptedPods").insert(name.to_string(), now.into());
    Ok(())
}

fn why_spent(name: &str, status: &Members) -> String {
    let refusal = objects(status, "conditions").find(|condition| {
        text(condition, "type") == "DisruptionAllowed"
            && text(condition, "status") == "False"
            && !text(condition, "message").is_empty()
    });
    let (reason, message) =
        refusal.map_or(("", ""), |condition| (text(condition, "reason"), text(condition, "message")));
    let (current, desired) = healthy(status);
    if reason == "SyncFailed" {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    if current <= desired {
        return format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        );
    }
    match refusal {
        Some(_) => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
            )
        }
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Tells in the pod's status that it is being evicted.
pub fn mark_disrupted(pod: &mut Value, now: &str) {
    let Some(pod) = pod.as_object_mut() else { return };
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastTransitionTime": now,
    });
    set_condition(child_made(pod, "status"), condition, None);
}

/// Puts a condition in the place of the one of its type. Its time stays unless its status changes.
fn set_condition(status: &mut Members, condition: Value, observed_generation: Option<Value>) {
    let Value::Object(mut condition) = condition else { return };
    set(&mut condition, "observedGeneration", observed_generation);
    let mut known = list_mut(status, "conditions").iter_mut().filter_map(Value::as_object_mut);
    if let Some(before) = known.find(|before| text(before, "type") == text(&condition, "type")) {
        if text(before, "status") == text(&condition, "status") {
            take_over(&mut condition, before, "lastTransitionTime");
        }
        *before = condition;
        return;
    }
    match status.get_mut("conditions") {
        Some(Value::Array(conditions)) => conditions.push(Value::Object(condition)),
        _ => set(status, "conditions", Some(Value::Array(vec![Value::Object(condition)]))),
    }
}
