//! PodTolerationRestriction: the pods of a namespace tolerate what its annotations say, at least and at
//! most.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/podtolerationrestriction`, `pkg/util/tolerations`.

use forebay_api::Eventual;
use forebay_apimachinery::{Reason, Status};
use forebay_strategy::pod_class;
use forebay_strategy::value::{Members, child_made, child_or_empty, list, set, text};
use serde_json::{Value, json};

use super::fill::namespace;
use crate::optional::optional;
use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};

const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const WHITELIST: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
/// Tolerations that are held against each other, each against all: 2^18 looks. A pod with more is refused.
const TOLERATIONS_MAX: usize = 512;

pub struct PodTolerationRestriction;

impl Plugin for PodTolerationRestriction {
    optional! { "PodTolerationRestriction", stores "pods" }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        Eventual::later(async move {
            let namespace = namespace(write, tools).await?;
            let mut more = Vec::new();
            if write.creates() {
                more =
                    said(&namespace, DEFAULTS)?.unwrap_or_else(|| tools.settings.tolerations.default.clone());
            }
            let Some(pod) = object.as_object_mut() else { return Ok(()) };
            if pod_class(child_or_empty(pod, "spec")) != "BestEffort" {
                more.push(json!({ "key": MEMORY_PRESSURE, "operator": "Exists", "effect": "NoSchedule" }));
            }
            if !more.is_empty() {
                let spec = child_made(pod, "spec");
                let all = list(spec, "tolerations").iter().cloned().chain(more).collect::<Vec<_>>();
                let merged = merged(all).map_err(|why| write.forbidden_as(write.of.name, &why))?;
                set(spec, "tolerations", Some(merged.into()));
            }
            judge(write, object, tools, &namespace)
        })
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        Eventual::later(async move {
            let namespace = namespace(write, tools).await?;
            judge(write, object, tools, &namespace)
        })
    }
}

/// The tolerations in an annotation of a namespace; none, if it says nothing.
fn said(namespace: &Value, annotation: &str) -> Result<Option<Vec<Value>>, Status> {
    match namespace["metadata"]["annotations"][annotation].as_str() {
        None => Ok(None),
        Some("") => Ok(Some(Vec::new())),
        Some(said) => {
            let read = serde_json::from_str::<Vec<Value>>(said);
            read.map(Some).map_err(|why| Status::new(Reason::Unknown, why.to_string()))
        }
    }
}

fn judge(
    write: &WriteAttributes<'_>,
    pod: &Value,
    tools: &Tools<'_>,
    namespace: &Value,
) -> Result<(), Status> {
    let empty = Members::new();
    let own = list(child_or_empty(pod.as_object().unwrap_or(&empty), "spec"), "tolerations");
    if own.len() > TOLERATIONS_MAX {
        return Err(write.forbidden(pod, &too_many(own.len())));
    }
    let (allowed, whose) = match said(namespace, WHITELIST)? {
        Some(own) => (own, "namespace"),
        None => (tools.settings.tolerations.whitelist.clone(), "cluster"),
    };
    // Few: as many as TOLERATIONS_MAX.
    let covered = |one: &Value| allowed.iter().any(|allowed| covers(allowed, one));
    match allowed.is_empty() || own.iter().all(covered) {
        true => Ok(()),
        false => {
            let why = format!(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its \
                 {whose} whitelist"
            );
            Err(Status::new(Reason::Unknown, why))
        }
    }
}

fn too_many(count: usize) -> String {
    format!("it has {count} tolerations, and no more than {TOLERATIONS_MAX} are held against each other")
}

/// Those of `all` that no other one covers; of equal ones the first.
fn merged(all: Vec<Value>) -> Result<Vec<Value>, String> {
    if all.len() > TOLERATIONS_MAX {
        return Err(too_many(all.len()));
    }
    let mut merged: Vec<Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        // Few: as many as TOLERATIONS_MAX.
        let is_covered = merged.iter().any(|other| covers(other, one))
            // Few: the same.
            || all[index + 1..].iter().any(|other| other != one && covers(other, one));
        if !is_covered {
            merged.push(one.clone());
        }
    }
    Ok(merged)
}

/// Whether who tolerates what `wide` says tolerates what `one` says.
fn covers(wide: &Value, one: &Value) -> bool {
    let empty = Members::new();
    let [wide, one] = [wide, one].map(|toleration| toleration.as_object().unwrap_or(&empty));
    let both = |name: &str| (text(wide, name), text(one, name));
    if wide == one {
        return true;
    }
    let (wide_key, key) = both("key");
    let (wide_operator, operator) = both("operator");
    let (wide_effect, effect) = both("effect");
    let is_any_key = wide_key.is_empty() && wide_operator == "Exists";
    if (key != wide_key && !is_any_key) || (effect != wide_effect && !wide_effect.is_empty()) {
        return false;
    }
    let seconds = |toleration: &Members| toleration.get("tolerationSeconds").and_then(Value::as_i64);
    if wide_effect == "NoExecute"
        && let Some(longest) = seconds(wide)
        && seconds(one).is_none_or(|seconds| seconds > longest)
    {
        return false;
    }
    let (wide_value, value) = both("value");
    match wide_operator {
        "Equal" | "" => operator == "Equal" && value == wide_value,
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(said: &str) -> Value {
        let mut parts = said.split(' ');
        let mut made = Members::new();
        for name in ["key", "operator", "value", "effect"] {
            if let Some(text) = parts.next().filter(|text| *text != "-") {
                made.insert(name.into(), text.into());
            }
        }
        if let Some(seconds) = parts.next() {
            made.insert("tolerationSeconds".into(), seconds.parse::<i64>().expect("a number").into());
        }
        made.into()
    }

    /// As upstream's `TestIsSuperset`.
    #[test]
    fn a_toleration_covers_what_it_tolerates_too() {
        for (wide, one, want) in [
            ("- Exists - -", "foo Equal bar NoExecute 10", true),
            ("- Exists - NoSchedule", "foo Exists - NoExecute", false),
            ("foo Exists - -", "foo Equal bar -", true),
            ("foo Exists - -", "faz Exists - -", false),
            ("foo Equal bar -", "foo Equal bar NoExecute", true),
            ("foo Equal bar -", "foo Equal baz -", false),
            ("foo Equal bar NoSchedule", "foo Exists - NoSchedule", false),
            ("foo Exists - NoExecute", "foo Exists - NoExecute 10", true),
            ("foo Exists - NoExecute 10", "foo Exists - NoExecute 0", true),
            ("foo Exists - NoExecute 10", "foo Exists - NoExecute", false),
            ("foo Exists - NoExecute 0", "foo Exists - NoExecute 10", false),
        ] {
            assert_eq!(covers(&toleration(wide), &toleration(one)), want, "{wide} over {one}");
        }
    }

    #[test]
    fn what_another_one_covers_is_left_out() {
        let all = ["foo Equal bar -", "faz Exists - -", "faz Exists - -", "foo Exists - -"].map(toleration);
        assert_eq!(merged(all.to_vec()), Ok(["faz Exists - -", "foo Exists - -"].map(toleration).to_vec()));
        assert!(merged(vec![toleration("a Exists - -"); TOLERATIONS_MAX + 1]).is_err());
    }
}
