//! What a LimitRange fills in and refuses.
//!
//! In: a LimitRange and a pod or a claim. Out: the pod filled in; what is against it, in kube-apiserver's
//! words. Never: which writes are asked about. Where upstream says several things in no order, here they come
//! by name.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/limitranger/admission.go`.

use crate::amounts::{Amount, Amounts};
use crate::pod::{AmountList, By, sum};
use forebay_strategy::value::{
    Members, child, child_made, child_mut, child_or_empty, objects, objects_mut, set, text,
};

/// The annotation that says what was filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Gives the containers of `pod` the requests and limits that they leave out and `range` has a default for.
pub fn fill_in(range: &Members, pod: &mut Members) {
    let (mut requests, mut limits) = (Members::new(), Members::new());
    for limit in of_type(range, "Container") {
        for (from, into) in [("defaultRequest", &mut requests), ("default", &mut limits)] {
            let defaults = child_or_empty(limit, from).iter();
            into.extend(defaults.map(|(name, value)| (name.clone(), value.clone())));
        }
    }
    if requests.is_empty() && limits.is_empty() {
        return;
    }
    let mut told = Vec::new();
    let Some(spec) = child_mut(pod, "spec") else { return };
    for (name, title) in [("containers", "container"), ("initContainers", "init container")] {
        for container in objects_mut(spec, name) {
            for (list, defaults) in [("requests", &requests), ("limits", &limits)] {
                let filled = fill(container, list, defaults);
                if !filled.is_empty() {
                    let kind = list.trim_end_matches('s');
                    told.push(format!(
                        "{} {kind} for {title} {}",
                        filled.join(", "),
                        text(container, "name")
                    ));
                }
            }
        }
    }
    if !told.is_empty() {
        let annotations = child_made(child_made(pod, "metadata"), "annotations");
        let told = format!("LimitRanger plugin set: {}", told.join("; "));
        set(annotations, ANNOTATION, Some(told.into()));
    }
}

/// The names of the resources that were filled into a list of `container`.
fn fill<'d>(container: &mut Members, list: &str, defaults: &'d Members) -> Vec<&'d str> {
    let known = child_or_empty(child_or_empty(container, "resources"), list);
    let mut missing: Vec<&str> =
        defaults.keys().filter(|name| !known.contains_key(*name)).map(String::as_str).collect();
    missing.sort_unstable();
    if !missing.is_empty() {
        let amounts = child_made(child_made(container, "resources"), list);
        for name in &missing {
            set(amounts, name, defaults.get(*name).cloned());
        }
    }
    missing
}

/// What `range` has against `pod`.
///
/// # Errors
/// All of it.
pub fn judge_pod(range: &Members, pod: &Members) -> Result<(), String> {
    let mut faults = Vec::new();
    let spec = child_or_empty(pod, "spec");
    for limit in limits(range) {
        match text(limit, "type") {
            "Container" => {
                for container in ["containers", "initContainers"].iter().flat_map(|name| objects(spec, name))
                {
                    let resources = child_or_empty(container, "resources");
                    let list = |name: &str| Amounts::of(child_or_empty(resources, name));
                    let asked = Asked { requests: list("requests"), limits: list("limits") };
                    asked.against(limit, &mut faults);
                }
            }
            "Pod" => {
                let asked = Asked {
                    requests: sum(pod, AmountList::Requests, By::LimitRange),
                    limits: sum(pod, AmountList::Limits, By::LimitRange),
                };
                asked.against(limit, &mut faults);
            }
            _ => {}
        }
    }
    all_of(faults)
}

/// What `range` has against `claim`, a PersistentVolumeClaim.
///
/// # Errors
/// All of it.
pub fn judge_claim(range: &Members, claim: &Members) -> Result<(), String> {
    let resources = child_or_empty(child_or_empty(claim, "spec"), "resources");
    let asked =
        Asked { requests: Amounts::of(child_or_empty(resources, "requests")), limits: Amounts::default() };
    let mut faults = Vec::new();
    for limit in of_type(range, "PersistentVolumeClaim") {
        for (name, least) in Amounts::of(child_or_empty(limit, "min")).iter() {
            faults.extend(asked.below("PersistentVolumeClaim", name, least));
        }
        for (name, most) in Amounts::of(child_or_empty(limit, "max")).iter() {
            let told = format!("maximum {name} usage per PersistentVolumeClaim is {most}");
            match asked.requests.get(name) {
                None => faults.push(format!("{told}.  No request is specified")),
                Some(request) if is_more(request, most) => {
                    faults.push(format!("{told}, but request is {request}"))
                }
                Some(_) => {}
            }
        }
    }
    all_of(faults)
}

fn limits(range: &Members) -> impl Iterator<Item = &Members> {
    child(range, "spec").into_iter().flat_map(|spec| objects(spec, "limits"))
}

fn of_type<'r>(range: &'r Members, wanted: &'static str) -> impl Iterator<Item = &'r Members> {
    limits(range).filter(move |limit| text(limit, "type") == wanted)
}

/// Faults as upstream joins them: each once.
fn all_of(mut faults: Vec<String>) -> Result<(), String> {
    let mut seen = std::collections::HashSet::new();
    faults.retain(|fault| seen.insert(fault.clone()));
    match faults.len() {
        0 => Ok(()),
        1 => Err(faults.remove(0)),
        _ => Err(format!("[{}]", faults.join(", "))),
    }
}

/// What a container, a pod or a claim asks for.
struct Asked {
    requests: Amounts,
    limits: Amounts,
}

impl Asked {
    fn against(&self, limit: &Members, faults: &mut Vec<String>) {
        let of = text(limit, "type");
        for (name, least) in Amounts::of(child_or_empty(limit, "min")).iter() {
            faults.extend(self.below(of, name, least));
        }
        for (name, most) in Amounts::of(child_or_empty(limit, "max")).iter() {
            faults.extend(self.above(of, name, most));
        }
        for (name, ratio) in Amounts::of(child_or_empty(limit, "maxLimitRequestRatio")).iter() {
            faults.extend(self.beyond_ratio(of, name, ratio));
        }
    }

    fn below(&self, of: &str, name: &str, least: Amount) -> Option<String> {
        let told = format!("minimum {name} usage per {of} is {least}");
        let Some(request) = self.requests.get(name) else {
            return Some(format!("{told}.  No request is specified"));
        };
        if is_more(least, request) {
            return Some(format!("{told}, but request is {request}"));
        }
        let limit = self.limits.get(name).filter(|limit| is_more(least, *limit))?;
        Some(format!("{told}, but limit is {limit}"))
    }

    fn above(&self, of: &str, name: &str, most: Amount) -> Option<String> {
        let told = format!("maximum {name} usage per {of} is {most}");
        let Some(limit) = self.limits.get(name) else {
            return Some(format!("{told}.  No limit is specified"));
        };
        if is_more(limit, most) {
            return Some(format!("{told}, but limit is {limit}"));
        }
        let request = self.requests.get(name).filter(|request| is_more(*request, most))?;
        Some(format!("{told}, but request is {request}"))
    }

    fn beyond_ratio(&self, of: &str, name: &str, ratio: Amount) -> Option<String> {
        let told = format!("{name} max limit to request ratio per {of} is {ratio}");
        let some = |list: &Amounts| list.get(name).filter(|amount| amount.nanos != 0);
        let Some(request) = some(&self.requests) else {
            return Some(format!("{told}, but no request is specified or request is 0"));
        };
        let Some(limit) = some(&self.limits) else {
            return Some(format!("{told}, but no limit is specified or limit is 0"));
        };
        let (request, limit) = (request.thousandths() as f64, limit.thousandths() as f64);
        let given = limit / request;
        (given * 1000.0 > ratio.thousandths() as f64)
            .then(|| format!("{told}, but provided ratio is {given:.6}"))
    }
}

/// Whether it is more, by thousandths that are begun.
fn is_more(one: Amount, other: Amount) -> bool {
    one.thousandths() > other.thousandths()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn members(value: &Value) -> &Members {
        value.as_object().expect("an object")
    }

    fn range(limit: Value) -> Value {
        json!({"spec": {"limits": [limit]}})
    }

    /// A pod of containers that ask for these, and as many init containers.
    fn pod(containers: &[(Value, Value)], init: &[(Value, Value)]) -> Value {
        let listed = |all: &[(Value, Value)]| -> Vec<Value> {
            let named = all.iter().enumerate();
            named
                .map(|(at, (requests, limits))| {
                    json!({"name": format!("foo-{at}"), "resources": {"requests": requests, "limits": limits}})
                })
                .collect()
        };
        json!({"metadata": {}, "spec": {"containers": listed(containers), "initContainers": listed(init)}})
    }

    fn judged(limit: Value, asked: &[(Value, Value)]) -> String {
        let judged = judge_pod(members(&range(limit)), members(&pod(asked, &[])));
        judged.err().unwrap_or_else(|| "fine".into())
    }

    fn cpu(amount: &str) -> Value {
        json!({"cpu": amount})
    }

    fn memory(amount: &str) -> Value {
        json!({"memory": amount})
    }

    #[test]
    fn containers_keep_within_their_limits() {
        let none = || json!({});
        for (limit, requests, limits, said) in [
            (json!({"min": cpu("50m")}), cpu("100m"), none(), "fine"),
            (json!({"min": cpu("50m")}), cpu("100m"), cpu("200m"), "fine"),
            (
                json!({"min": cpu("50m")}),
                none(),
                none(),
                "minimum cpu usage per Container is 50m.  No request is specified",
            ),
            (
                json!({"min": cpu("50m")}),
                cpu("20m"),
                none(),
                "minimum cpu usage per Container is 50m, but request is 20m",
            ),
            (
                json!({"min": cpu("50m")}),
                cpu("50m"),
                cpu("10m"),
                "minimum cpu usage per Container is 50m, but limit is 10m",
            ),
            (json!({"max": cpu("2")}), none(), cpu("1"), "fine"),
            (
                json!({"max": cpu("2")}),
                none(),
                none(),
                "maximum cpu usage per Container is 2.  No limit is specified",
            ),
            (
                json!({"max": cpu("2")}),
                none(),
                cpu("3"),
                "maximum cpu usage per Container is 2, but limit is 3",
            ),
            (
                json!({"max": cpu("2")}),
                cpu("3"),
                cpu("1"),
                "maximum cpu usage per Container is 2, but request is 3",
            ),
            (json!({"max": memory("1Gi")}), memory("250Mi"), memory("500Mi"), "fine"),
            (json!({"maxLimitRequestRatio": cpu("1500m")}), cpu("500m"), cpu("750m"), "fine"),
            (
                json!({"maxLimitRequestRatio": cpu("1250m")}),
                cpu("1250m"),
                cpu("2500m"),
                "cpu max limit to request ratio per Container is 1250m, but provided ratio is 2.000000",
            ),
            (
                json!({"maxLimitRequestRatio": cpu("2")}),
                none(),
                cpu("2"),
                "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            ),
            (
                json!({"maxLimitRequestRatio": cpu("2")}),
                cpu("2"),
                none(),
                "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
            ),
        ] {
            let mut limit = limit;
            limit["type"] = json!("Container");
            assert_eq!(judged(limit.clone(), &[(requests, limits)]), said, "{limit}");
        }
    }

    #[test]
    fn a_pod_keeps_within_its_limits_as_a_whole() {
        let of = |mut limit: Value| {
            limit["type"] = json!("Pod");
            limit
        };
        let two = |requests: Value, limits: Value| [(requests.clone(), limits.clone()), (requests, limits)];
        assert_eq!(judged(of(json!({"min": cpu("100m")})), &two(cpu("75m"), json!({}))), "fine");
        assert_eq!(
            judged(of(json!({"min": cpu("200m")})), &two(cpu("75m"), json!({}))),
            "minimum cpu usage per Pod is 200m, but request is 150m"
        );
        assert_eq!(
            judged(of(json!({"max": memory("1Gi")})), &two(json!({}), memory("600Mi"))),
            "maximum memory usage per Pod is 1Gi, but limit is 1200Mi"
        );
    }

    #[test]
    fn everything_that_is_wrong_is_said_once() {
        let both = json!({"type": "Container", "min": {"cpu": "1", "memory": "1Gi"}});
        assert_eq!(
            judged(both, &[(json!({}), json!({})), (json!({}), json!({}))]),
            "[minimum cpu usage per Container is 1.  No request is specified, minimum memory usage per Container is 1Gi.  No request is specified]"
        );
    }

    #[test]
    fn a_claim_asks_for_neither_too_much_nor_too_little() {
        let range = range(
            json!({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}),
        );
        for (storage, said) in [
            ("2Gi", "fine"),
            ("500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"),
            ("6Gi", "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"),
        ] {
            let claim = json!({"spec": {"resources": {"requests": {"storage": storage}}}});
            let judged = judge_claim(members(&range), members(&claim));
            assert_eq!(judged.err().unwrap_or_else(|| "fine".into()), said);
        }
    }

    #[test]
    fn what_is_left_out_is_filled_in_and_told() {
        let range = range(json!({
            "type": "Container",
            "default": {"cpu": "75m", "memory": "10Mi"},
            "defaultRequest": {"cpu": "50m", "memory": "5Mi"},
        }));
        let told = |mut pod: Value| {
            fill_in(members(&range), pod.as_object_mut().expect("a pod"));
            pod
        };
        let empty = told(pod(&[(json!({}), json!({}))], &[]));
        assert_eq!(
            empty["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
            "LimitRanger plugin set: cpu, memory request for container foo-0; cpu, memory limit for container foo-0"
        );
        assert_eq!(
            empty["spec"]["containers"][0]["resources"],
            json!({"requests": {"cpu": "50m", "memory": "5Mi"}, "limits": {"cpu": "75m", "memory": "10Mi"}})
        );
        let part = (memory("512Mi"), json!({}));
        let part = told(pod(std::slice::from_ref(&part), std::slice::from_ref(&part)));
        assert_eq!(
            part["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
            "LimitRanger plugin set: cpu request for container foo-0; cpu, memory limit for container foo-0; cpu request for init container foo-0; cpu, memory limit for init container foo-0"
        );
        let full = pod(&[(json!({"cpu": "1", "memory": "1Gi"}), json!({"cpu": "1", "memory": "1Gi"}))], &[]);
        assert_eq!(told(full.clone()), full);
    }
}
