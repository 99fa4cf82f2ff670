//! Priority: a pod's priority is that of its class, and one class at most is the default.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/priority`.

use serde_json::{Value, json};

use super::fill::name_of;
use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};
use forebay_strategy::value::{
    Members, child_made, child_or_empty, int, is_true, set, take_over, text, text_opt,
};

const CLASSES: ReadFrom = ("scheduling.k8s.io", "priorityclasses");

pub struct Priority;

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        let is_of = write.is_of("", "pods") || write.is_of(CLASSES.0, CLASSES.1);
        is_of && (write.creates() || write.updates())
    }

    fn decides_by(&self) -> &'static [ReadFrom] {
        &[CLASSES]
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.filled(object, |pod| match write.of.resource {
            "pods" => priority(pod, write.old.and_then(Value::as_object), tools),
            _ => Ok(()),
        })
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.judged(object, |class| match write.of.resource {
            "priorityclasses" => only_one_default(class, tools),
            _ => Ok(()),
        })
    }
}

/// A pod's priority is that of its class. It stays what it was.
fn priority(pod: &mut Members, old: Option<&Members>, tools: &Tools<'_>) -> Result<(), String> {
    let spec = child_made(pod, "spec");
    if let Some(old) = old {
        let old = child_or_empty(old, "spec");
        for name in ["priority", "preemptionPolicy"] {
            if !spec.contains_key(name) {
                take_over(spec, old, name);
            }
        }
        return Ok(());
    }
    let class = match text(spec, "priorityClassName") {
        "" => default_priority(tools)?,
        name => Some(
            tools
                .class(CLASSES, name)
                .ok_or_else(|| format!("no PriorityClass with name {name} was found"))?,
        ),
    };
    let none = json!({"preemptionPolicy": "PreemptLowerPriority"});
    let class = class.as_ref().unwrap_or(&none);
    let value = class["value"].as_i64().unwrap_or(0);
    if let Some(name) = class["metadata"]["name"].as_str() {
        set(spec, "priorityClassName", Some(name.into()));
    }
    if let Some(given) = int(spec, "priority").filter(|given| *given != value) {
        return Err(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        ));
    }
    set(spec, "priority", Some(value.into()));
    let Some(policy) = class["preemptionPolicy"].as_str() else { return Ok(()) };
    if let Some(given) = text_opt(spec, "preemptionPolicy").filter(|given| *given != policy) {
        return Err(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        ));
    }
    set(spec, "preemptionPolicy", Some(policy.into()));
    Ok(())
}

/// The class of pods that name none: the lowest of those that are said to be it.
fn default_priority(tools: &Tools<'_>) -> Result<Option<Value>, String> {
    let marked = tools.marked_classes(CLASSES, "\"globalDefault\":true").map_err(|status| status.message)?;
    let default = marked.into_iter().filter(|class| class["globalDefault"] == true);
    Ok(default.min_by_key(|class| class["value"].as_i64()))
}

/// A second default is refused.
fn only_one_default(class: &Members, tools: &Tools<'_>) -> Result<(), String> {
    if !is_true(class, "globalDefault") {
        return Ok(());
    }
    let own = text(child_or_empty(class, "metadata"), "name");
    match default_priority(tools)?.as_ref().and_then(name_of).filter(|name| *name != own) {
        Some(name) => {
            Err(format!("PriorityClass {name} is already marked as default. Only one default can exist"))
        }
        None => Ok(()),
    }
}
