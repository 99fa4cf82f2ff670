//! What plugins fill in of pods and nodes: priority, tolerations, what a runtime class brings, a taint.
//!
//! In: a pod or a node, and the classes that there are. Out: the same filled in, or why it is refused. Never: IO.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/{priority,defaulttolerationseconds,runtimeclass,nodetaint}`.

use std::collections::{BTreeMap, HashMap};

use forebay_apimachinery::quantity;
use forebay_apimachinery::{Seen, steps};
use serde_json::{Value, json};

use super::plugins::{Classes, PRIORITY, RUNTIME};
use forebay_strategy::value::{
    Members, child, child_made, child_or_empty, entries, int, objects, set, take_over, text, text_opt,
};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// How long pods stay on a node that is lost, where they do not say it themselves.
const LOST_SECONDS: i64 = 300;

/// A new node takes no pods until somebody finds that it is ready.
pub fn taint_node(node: &mut Members) -> Result<(), String> {
    let spec = child_made(node, "spec");
    let known = |taint: &Members| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule";
    if !objects(spec, "taints").any(known) {
        push(spec, "taints", json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
    Ok(())
}

/// A pod's priority is that of its class. It stays what it was.
pub fn priority(pod: &mut Members, old: Option<&Members>, classes: &Classes) -> Result<(), String> {
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
        "" => default_priority(classes),
        name => Some(
            classes
                .named(PRIORITY, name)
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
fn default_priority(classes: &Classes) -> Option<Value> {
    let marked = classes.marked(PRIORITY, "\"globalDefault\":true").into_iter();
    let default = marked.filter(|class| class["globalDefault"] == true);
    default.min_by_key(|class| class["value"].as_i64())
}

/// Pods leave a node that is lost after a while, if they do not say when.
pub fn tolerate_lost_nodes(pod: &mut Members) -> Result<(), String> {
    let spec = child_made(pod, "spec");
    for key in [NOT_READY, UNREACHABLE] {
        let tolerated = objects(spec, "tolerations").any(|toleration| {
            let (own, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (own == key || own.is_empty()) && matches!(effect, "NoExecute" | "")
        });
        if !tolerated {
            let toleration = json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": LOST_SECONDS,
            });
            push(spec, "tolerations", toleration);
        }
    }
    Ok(())
}

/// A pod gets the overhead, the nodes and the tolerations of its runtime class.
pub fn runtime_class(pod: &mut Members, classes: &Classes) -> Result<(), String> {
    let spec = child_made(pod, "spec");
    let Some(class) = class_of(spec, classes)? else { return Ok(()) };
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
pub fn overhead_of_class(pod: &Members, classes: &Classes) -> Result<(), String> {
    let spec = child_or_empty(pod, "spec");
    let class = class_of(spec, classes)?;
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

fn class_of(spec: &Members, classes: &Classes) -> Result<Option<Value>, String> {
    let Some(name) = text_opt(spec, "runtimeClassName") else { return Ok(None) };
    let class = classes.named(RUNTIME, name);
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
    /// How long it holds, as far as that makes it narrower: of two that are alike otherwise the one that holds longer is wider.
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

/// What tolerations must be about to be one wider than the other: a key, or every one; an effect, or every one; a value, or
/// any.
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

fn push(object: &mut Members, name: &str, item: Value) {
    match object.get_mut(name) {
        Some(Value::Array(items)) => items.push(item),
        _ => set(object, name, Some(Value::Array(vec![item]))),
    }
}

#[cfg(test)]
mod tests;
