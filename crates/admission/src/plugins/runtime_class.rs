//! RuntimeClass: a pod gets the overhead, the nodes and the tolerations of its runtime class.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/runtimeclass`.

use std::collections::{BTreeMap, HashMap};

use forebay_apimachinery::quantity;
use forebay_apimachinery::{Seen, steps};
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};
use forebay_strategy::value::{
    Members, child, child_made, child_or_empty, entries, int, objects, set, text, text_opt,
};

const CLASSES: ReadFrom = ("node.k8s.io", "runtimeclasses");

pub struct RuntimeClass;

impl Plugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.creates() && write.is_of("", "pods")
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
        write.filled(object, |pod| runtime_class(pod, tools))
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.judged(object, |pod| overhead_of_class(pod, tools))
    }
}

/// A pod gets the overhead, the nodes and the tolerations of its runtime class.
fn runtime_class(pod: &mut Members, tools: &Tools<'_>) -> Result<(), String> {
    let spec = child_made(pod, "spec");
    let Some(class) = class_of(spec, tools)? else { return Ok(()) };
    let Some(class) = class.as_object() else { return Ok(()) };
    if let Some(overhead) = child(class, "overhead") {
        let fixed = child_or_empty(overhead, "podFixed");
        let given = child_or_empty(spec, "overhead");
        if !given.is_empty() && !same_amounts(given, fixed) {
            return Err(OTHER_OVERHEAD.into());
        }
        set(spec, "overhead", (!fixed.is_empty()).then(|| Value::Object(fixed.clone())));
    }
    if let Some(scheduling) = child(class, "scheduling") {
        select_nodes(spec, scheduling)?;
        let both = objects(spec, "tolerations").chain(objects(scheduling, "tolerations"));
        let merged = merged(&both.collect::<Vec<_>>());
        set(spec, "tolerations", (!merged.is_empty()).then_some(Value::Array(merged)));
    }
    Ok(())
}

const OTHER_OVERHEAD: &str = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// A pod has the overhead of its class, and no other.
fn overhead_of_class(pod: &Members, tools: &Tools<'_>) -> Result<(), String> {
    let spec = child_or_empty(pod, "spec");
    let class = class_of(spec, tools)?;
    let overhead = class.as_ref().and_then(Value::as_object).and_then(|class| child(class, "overhead"));
    let given = child_or_empty(spec, "overhead");
    match overhead {
        Some(overhead) if !same_amounts(given, child_or_empty(overhead, "podFixed")) => {
            Err(OTHER_OVERHEAD.into())
        }
        None if spec.contains_key("overhead") => {
            Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead".into())
        }
        _ => Ok(()),
    }
}

fn class_of(spec: &Members, tools: &Tools<'_>) -> Result<Option<Value>, String> {
    let Some(name) = text_opt(spec, "runtimeClassName") else { return Ok(None) };
    let class = tools.class(CLASSES, name);
    class.map(Some).ok_or_else(|| format!("pod rejected: RuntimeClass {name:?} not found"))
}

fn same_amounts(a: &Members, b: &Members) -> bool {
    let equal = |(resource, amount): (&String, &Value)| {
        b.get(resource).is_some_and(|other| quantity::of(amount) == quantity::of(other))
    };
    a.len() == b.len() && a.iter().all(equal)
}

fn select_nodes(spec: &mut Members, scheduling: &Members) -> Result<(), String> {
    let given = child_or_empty(spec, "nodeSelector");
    for (key, value) in entries(scheduling, "nodeSelector") {
        if let Some(own) = text_opt(given, key).filter(|own| *own != value) {
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
            ));
        }
    }
    let wanted = child_or_empty(scheduling, "nodeSelector");
    if !wanted.is_empty() {
        child_made(spec, "nodeSelector").extend(wanted.clone());
    }
    Ok(())
}

/// Tolerations without those that another one of them makes needless; the first of equal ones stays.
fn merged(all: &[&Members]) -> Vec<Value> {
    let mut after = Wide::default();
    let all: Vec<(&Members, Toleration<'_>)> = all.iter().map(|of| (*of, Toleration::of(of))).collect();
    all.iter().for_each(|(_, toleration)| after.add(*toleration));
    let (mut kept, mut is_kept, mut same) = (Vec::new(), Wide::default(), Seen::default());
    for (members, toleration) in all {
        after.remove(toleration);
        let needless = same.has(&toleration) || is_kept.covers(toleration) || after.covers(toleration);
        if !needless {
            same.again(toleration);
            is_kept.add(toleration);
            kept.push(Value::Object(members.clone()));
        }
    }
    kept
}

/// All that a toleration says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Toleration<'o> {
    /// How long it holds, as far as that makes it narrower: of two that are alike otherwise the one that
    /// holds longer is wider.
    limit: Limit,
    key: &'o str,
    operator: &'o str,
    value: &'o str,
    effect: &'o str,
    seconds: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Limit {
    Seconds(i64),
    None,
}

/// What tolerations must be about to be one wider than the other: a key, or every one; an effect, or every
/// one; a value, or any.
type About<'o> = (Option<&'o str>, &'o str, Option<&'o str>);

impl<'o> Toleration<'o> {
    fn of(toleration: &'o Members) -> Toleration<'o> {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|name| text(toleration, name));
        let seconds = int(toleration, "tolerationSeconds");
        let limit = seconds.filter(|_| effect == "NoExecute").map_or(Limit::None, Limit::Seconds);
        Toleration { limit, key, operator, value, effect, seconds }
    }

    /// What it is about as a wide one; none where it can be wider than none but its like.
    fn about(self) -> Option<About<'o>> {
        match self.operator {
            "Exists" => Some((Some(self.key).filter(|key| !key.is_empty()), self.effect, None)),
            "Equal" | "" => Some((Some(self.key), self.effect, Some(self.value))),
            _ => None,
        }
    }

    /// What one must be about that is wider.
    fn narrower_than(self) -> impl Iterator<Item = About<'o>> {
        let value = (self.operator == "Equal").then_some((Some(self.key), Some(self.value)));
        let key = Some((Some(self.key).filter(|key| !key.is_empty()), None));
        let every_key = (!self.key.is_empty()).then_some((None, None));
        let effects = [self.effect, ""].into_iter().take(if self.effect.is_empty() { 1 } else { 2 });
        effects.flat_map(move |effect| {
            [key, every_key, value].into_iter().flatten().map(move |(key, value)| (key, effect, value))
        })
    }
}

/// Tolerations by what they are about, the widest last.
#[derive(Default)]
struct Wide<'o>(HashMap<About<'o>, BTreeMap<Toleration<'o>, usize>>);

impl<'o> Wide<'o> {
    fn add(&mut self, toleration: Toleration<'o>) {
        steps::add(1);
        if let Some(about) = toleration.about() {
            *self.0.entry(about).or_default().entry(toleration).or_default() += 1;
        }
    }

    fn remove(&mut self, toleration: Toleration<'o>) {
        steps::add(1);
        let Some(alike) = toleration.about().and_then(|about| self.0.get_mut(&about)) else { return };
        if let Some(count) = alike.get_mut(&toleration) {
            *count -= 1;
            if *count == 0 {
                alike.remove(&toleration);
            }
        }
    }

    /// Whether one of them that is not the same tolerates all that `narrow` does.
    fn covers(&self, narrow: Toleration<'o>) -> bool {
        let holds = |wide: &Toleration<'o>| match (wide.limit, narrow.seconds) {
            (Limit::None, _) => true,
            (Limit::Seconds(_), None) => false,
            (Limit::Seconds(seconds), Some(own)) => own <= seconds,
        };
        narrow.narrower_than().any(|about| {
            steps::add(1);
            let alike = self.0.get(&about).into_iter().flat_map(BTreeMap::keys);
            // The widest, or the one below it.
            alike.rev().take(2).find(|wide| **wide != narrow).is_some_and(holds)
        })
    }
}

#[cfg(test)]
mod tests;
