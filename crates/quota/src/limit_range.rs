//! What a LimitRange refuses.
//!
//! In: a LimitRange and a pod or a claim. Out: what is against it, in kube-apiserver's words. What a range
//! says is multiplied by a pod's containers: faults are made as far as they are told. Never: which writes are
//! asked about. Where upstream says several things in no order, here they come by name.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/limitranger/admission.go`.

use std::collections::HashSet;

use forebay_apimachinery::{FaultBytes, steps};
use forebay_strategy::value::{Members, child, child_or_empty, objects, text};

use crate::amounts::{Amount, Amounts};
use crate::pod::{AmountList, By, sum};

/// Lists of a pod's containers, and what these are called.
pub const CONTAINERS: [(&str, &str); 2] = [("containers", "container"), ("initContainers", "init container")];

/// What `range` has against `pod`.
///
/// Cost: that of reading both, and of the faults that are made.
///
/// # Errors
/// All of it, as far as it is told.
pub fn judge_pod(range: &Members, pod: &Members) -> Result<(), String> {
    let mut faults = Faults::default();
    let spec = child_or_empty(pod, "spec");
    for limit in limits(range) {
        let of = text(limit, "type");
        match of {
            "Container" => {
                let bounds = Bounds::of(limit);
                for container in CONTAINERS.iter().flat_map(|(name, _)| objects(spec, name)) {
                    let resources = child_or_empty(container, "resources");
                    let list = |name: &str| Amounts::of(child_or_empty(resources, name));
                    let asked = Asked { requests: list("requests"), limits: list("limits") };
                    asked.against(of, &bounds, &mut faults);
                }
            }
            "Pod" => {
                let asked = Asked {
                    requests: sum(pod, AmountList::Requests, By::LimitRange),
                    limits: sum(pod, AmountList::Limits, By::LimitRange),
                };
                asked.against(of, &Bounds::of(limit), &mut faults);
            }
            _ => {}
        }
    }
    faults.into_result()
}

/// What `range` has against `claim`, a PersistentVolumeClaim.
///
/// # Errors
/// All of it.
pub fn judge_claim(range: &Members, claim: &Members) -> Result<(), String> {
    let resources = child_or_empty(child_or_empty(claim, "spec"), "resources");
    let asked =
        Asked { requests: Amounts::of(child_or_empty(resources, "requests")), limits: Amounts::default() };
    let mut faults = Faults::default();
    for limit in of_type(range, "PersistentVolumeClaim") {
        let bounds = Bounds::of(limit);
        faults.of(&bounds.min, |name, least| asked.below("PersistentVolumeClaim", name, least));
        faults.of(&bounds.max, |name, most| {
            let told = || format!("maximum {name} usage per PersistentVolumeClaim is {most}");
            match asked.requests.get(name) {
                None => Some(format!("{}.  No request is specified", told())),
                Some(request) if is_more(request, most) => {
                    Some(format!("{}, but request is {request}", told()))
                }
                Some(_) => None,
            }
        });
    }
    faults.into_result()
}

fn limits(range: &Members) -> impl Iterator<Item = &Members> {
    child(range, "spec").into_iter().flat_map(|spec| objects(spec, "limits"))
}

/// What `range` says of a type.
pub fn of_type<'r>(range: &'r Members, wanted: &'static str) -> impl Iterator<Item = &'r Members> {
    limits(range).filter(move |limit| text(limit, "type") == wanted)
}

/// Faults as upstream joins them, each once: as many as are told.
#[derive(Default)]
struct Faults {
    found: Vec<String>,
    // The same: a limit is as much against one container as against the next.
    known: HashSet<String>,
    bytes: FaultBytes,
}

impl Faults {
    /// What there is against each of `bounds`, up to that behind which nothing more is told.
    fn of(&mut self, bounds: &Amounts, fault: impl Fn(&str, Amount) -> Option<String>) {
        for (name, bound) in bounds.iter() {
            if self.bytes.is_full() {
                return;
            }
            steps::add(1);
            let Some(fault) = fault(name, bound) else { continue };
            self.bytes.add(fault.len());
            if self.known.insert(fault.clone()) {
                self.found.push(fault);
            }
        }
    }

    fn into_result(mut self) -> Result<(), String> {
        match self.found.len() {
            0 => Ok(()),
            1 => Err(self.found.remove(0)),
            _ => Err(format!("[{}]", self.found.join(", "))),
        }
    }
}

/// What a limit says, read once for all containers.
struct Bounds {
    min: Amounts,
    max: Amounts,
    ratio: Amounts,
}

impl Bounds {
    fn of(limit: &Members) -> Bounds {
        let list = |name: &str| Amounts::of(child_or_empty(limit, name));
        Bounds { min: list("min"), max: list("max"), ratio: list("maxLimitRequestRatio") }
    }
}

/// What a container, a pod or a claim asks for.
struct Asked {
    requests: Amounts,
    limits: Amounts,
}

impl Asked {
    fn against(&self, of: &str, bounds: &Bounds, faults: &mut Faults) {
        faults.of(&bounds.min, |name, least| self.below(of, name, least));
        faults.of(&bounds.max, |name, most| self.above(of, name, most));
        faults.of(&bounds.ratio, |name, ratio| self.beyond_ratio(of, name, ratio));
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
    use forebay_apimachinery::FAULT_BYTES_MAX;
    use serde_json::{Value, json};

    use super::*;
    use crate::ranges_of_tests::{bare, many, members, pod, range};

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
    fn faults_are_made_as_far_as_they_are_told() {
        for list in ["min", "max", "maxLimitRequestRatio"] {
            let (range, pod) = (many(list, 20_000), bare(100));
            let mut judged = Ok(());
            let steps = steps::counted(|| judged = judge_pod(members(&range), members(&pod)));
            let told = judged.expect_err("nothing is said").len();
            assert!((FAULT_BYTES_MAX / 2..FAULT_BYTES_MAX + (64 << 10)).contains(&told), "{list}: {told}");
            assert!(steps < 50_000, "{list}: {steps} for two million limits");
        }
    }
}
