//! What a LimitRange fills into pods.
//!
//! In: a LimitRange and a pod. Out: the pod filled in, in kube-apiserver's words. What a range says is
//! multiplied by a pod's containers: what is to be made of that is counted before any of it is made. Never:
//! which writes are asked about.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/limitranger/admission.go` (`PodMutateLimitFunc`).

use std::collections::BTreeMap;

use forebay_apimachinery::json::weight::{self, MEMBER_BYTES, OBJECT_BYTES};
use forebay_apimachinery::lease::Meter;
use forebay_apimachinery::{Exhausted, steps};
use forebay_strategy::ANNOTATIONS_BYTES_MAX;
use forebay_strategy::value::{
    Members, child_made, child_mut, child_or_empty, objects, objects_mut, set, text,
};
use serde_json::Value;

use crate::limit_range::{CONTAINERS, of_type};

/// The annotation that says what was filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
const TOLD: &str = "LimitRanger plugin set: ";

/// Why a pod is not filled in; it is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfilled {
    /// The annotation that says what would be is longer than all of an object's annotations may be: upstream
    /// fills it in, and finds it invalid.
    TooLong,
    Exhausted(Exhausted),
}

/// Gives the containers of `pod` the requests and limits that they leave out and `range` has a default for.
///
/// Cost: that of reading both, and of what is charged to `meter`.
///
/// # Errors
/// [`Unfilled`].
pub fn fill_in(range: &Members, pod: &mut Members, meter: &mut Meter) -> Result<(), Unfilled> {
    let mut lists = [("requests", "request"), ("limits", "limit")].map(|(list, kind)| Defaults {
        list,
        kind,
        amounts: BTreeMap::new(),
    });
    for limit in of_type(range, "Container") {
        for (from, into) in ["defaultRequest", "default"].into_iter().zip(&mut lists) {
            let defaults = child_or_empty(limit, from).iter();
            into.amounts.extend(defaults.map(|(name, value)| (name.as_str(), value)));
        }
    }
    let made = to_make(&lists, child_or_empty(pod, "spec"));
    if made.names == 0 {
        return Ok(());
    }
    if ANNOTATION.len() + made.told > ANNOTATIONS_BYTES_MAX {
        return Err(Unfilled::TooLong);
    }
    // The containers, and the annotation in what may be a map of its own.
    let annotated = 2 * OBJECT_BYTES + 2 * MEMBER_BYTES + weight::text(made.told);
    meter.charge(made.bytes + annotated).map_err(Unfilled::Exhausted)?;
    let mut told = String::with_capacity(made.told);
    let Some(spec) = child_mut(pod, "spec") else { return Ok(()) };
    for (name, title) in CONTAINERS {
        for container in objects_mut(spec, name) {
            lists.iter().for_each(|defaults| defaults.fill(container, title, &mut told));
        }
    }
    let annotations = child_made(child_made(pod, "metadata"), "annotations");
    set(annotations, ANNOTATION, Some(told.into()));
    Ok(())
}

/// What is to be made of defaults.
#[derive(Clone, Copy, Default)]
struct ToMake {
    /// How many amounts.
    names: usize,
    /// What they take.
    bytes: usize,
    /// The length of the text that says so.
    told: usize,
}

impl ToMake {
    fn of(name: &str, value: &Value) -> ToMake {
        let bytes = MEMBER_BYTES + weight::text(name.len()) + weight::of(value);
        ToMake { names: 1, bytes, told: name.len() + ", ".len() }
    }

    fn add(&mut self, more: ToMake) {
        self.names += more.names;
        self.bytes += more.bytes;
        self.told += more.told;
    }

    fn take_away(&mut self, less: ToMake) {
        self.names -= less.names;
        self.bytes -= less.bytes;
        self.told -= less.told;
    }
}

/// What containers get in one list of their resources.
struct Defaults<'r> {
    list: &'static str,
    kind: &'static str,
    amounts: BTreeMap<&'r str, &'r Value>,
}

impl<'r> Defaults<'r> {
    /// What all of them come to for one container.
    fn all(&self) -> ToMake {
        let mut all = ToMake::default();
        self.amounts.iter().for_each(|(name, value)| all.add(ToMake::of(name, value)));
        all
    }

    /// What `container` gets.
    ///
    /// - `all`: what all of them come to.
    fn to_make(&self, all: ToMake, container: &Members, title: &str) -> ToMake {
        let (known, mut made) = (self.known(container), all);
        // Of the two the shorter one is walked.
        if known.len() < self.amounts.len() {
            steps::add(known.len() as u64);
            let given = known.keys().filter_map(|name| Some((name, self.amounts.get(name.as_str())?)));
            given.for_each(|(name, value)| made.take_away(ToMake::of(name, value)));
        } else {
            steps::add(self.amounts.len() as u64);
            let given = self.amounts.iter().filter(|(name, _)| known.contains_key(**name));
            given.for_each(|(name, value)| made.take_away(ToMake::of(name, value)));
        }
        if made.names > 0 {
            made.bytes += 2 * (OBJECT_BYTES + MEMBER_BYTES);
            made.told += " ".len() + self.kind.len() + " for ".len() + title.len() + " ".len();
            made.told += text(container, "name").len();
        }
        made
    }

    /// Fills in what is missing, and tells of it.
    fn fill(&self, container: &mut Members, title: &str, told: &mut String) {
        let known = self.known(container);
        let is_missing = |(name, _): &(&&str, &&Value)| !known.contains_key(**name);
        let missing: Vec<(&str, &Value)> =
            self.amounts.iter().filter(is_missing).map(|(name, value)| (*name, *value)).collect();
        steps::add(self.amounts.len() as u64);
        if missing.is_empty() {
            return;
        }
        told.push_str(if told.is_empty() { TOLD } else { "; " });
        for (at, (name, _)) in missing.iter().enumerate() {
            told.push_str(if at == 0 { "" } else { ", " });
            told.push_str(name);
        }
        for part in [" ", self.kind, " for ", title, " ", text(container, "name")] {
            told.push_str(part);
        }
        let amounts = child_made(child_made(container, "resources"), self.list);
        for (name, value) in missing {
            amounts.insert(name.to_string(), value.clone());
        }
    }

    fn known<'c>(&self, container: &'c Members) -> &'c Members {
        child_or_empty(child_or_empty(container, "resources"), self.list)
    }
}

fn to_make(lists: &[Defaults<'_>], spec: &Members) -> ToMake {
    let mut made = ToMake::default();
    for defaults in lists.iter().filter(|defaults| !defaults.amounts.is_empty()) {
        let all = defaults.all();
        for (name, title) in CONTAINERS {
            objects(spec, name).for_each(|one| made.add(defaults.to_make(all, one, title)));
        }
    }
    // What stands before the first of them takes the place of a separator.
    made.told = (made.told + TOLD.len()).saturating_sub("; ".len());
    made
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::Lease;
    use forebay_apimachinery::lease::Ledger;
    use serde_json::json;

    use super::*;
    use crate::ranges_of_tests::{bare, many, members, pod, range};

    /// Has so many bytes.
    struct Purse(usize);

    impl Ledger for Purse {
        fn try_take(&mut self, bytes: usize) -> bool {
            let left = self.0.checked_sub(bytes);
            self.0 = left.unwrap_or(self.0);
            left.is_some()
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
            let mut meter = Lease::of_server().meter();
            fill_in(members(&range), pod.as_object_mut().expect("a pod"), &mut meter).expect("filled in");
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
        let part = (json!({"memory": "512Mi"}), json!({}));
        let part = told(pod(std::slice::from_ref(&part), std::slice::from_ref(&part)));
        assert_eq!(
            part["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
            "LimitRanger plugin set: cpu request for container foo-0; cpu, memory limit for container foo-0; cpu request for init container foo-0; cpu, memory limit for init container foo-0"
        );
        let full = pod(&[(json!({"cpu": "1", "memory": "1Gi"}), json!({"cpu": "1", "memory": "1Gi"}))], &[]);
        assert_eq!(told(full.clone()), full);
    }

    #[test]
    fn what_a_range_and_a_pod_come_to_is_charged_before_any_of_it_is_made() {
        let (range, mut pod) = (many("default", 200), bare(50));
        let before = pod.clone();
        let lease = Lease::new(Purse(1 << 20), 0);
        let refused = fill_in(members(&range), pod.as_object_mut().expect("a pod"), &mut lease.meter());
        assert_eq!(refused, Err(Unfilled::Exhausted(Exhausted::NoRoom)));
        assert_eq!((lease.used(), &pod), (0, &before), "nothing is made");

        let lease = Lease::new(Purse(64 << 20), 0);
        let filled = fill_in(members(&range), pod.as_object_mut().expect("a pod"), &mut lease.meter());
        assert_eq!(filled, Ok(()));
        let made = weight::of(&pod) - weight::of(&before);
        assert!((made..2 * made).contains(&lease.used()), "{} charged for {made}", lease.used());
    }

    #[test]
    fn more_than_may_be_told_of_in_annotations_is_not_filled_in() {
        // What is told of one container: "; ", the names, and " limit for container foo-00".
        let told = |names: usize, containers: usize| {
            let each =
                "; ".len() + names * "a.b/c000000, ".len() - ", ".len() + " limit for container foo-00".len();
            ANNOTATION.len() + TOLD.len() - "; ".len() + containers * each
        };
        let fill = |names: usize| {
            let mut pod = bare(99);
            pod["spec"]["containers"].as_array_mut().expect("a list").drain(..10);
            let mut meter = Lease::of_server().meter();
            let mut filled = Ok(());
            let range = many("default", names);
            let object = pod.as_object_mut().expect("a pod");
            let steps = steps::counted(|| filled = fill_in(members(&range), object, &mut meter));
            let annotation =
                text(child_or_empty(child_or_empty(object, "metadata"), "annotations"), ANNOTATION);
            (filled, annotation.len(), steps)
        };
        let fitting = (1..).take_while(|names| told(*names, 89) <= ANNOTATIONS_BYTES_MAX).count();
        let (filled, len, _) = fill(fitting);
        assert_eq!((filled, ANNOTATION.len() + len), (Ok(()), told(fitting, 89)));
        assert_eq!(fill(fitting + 1).0, Err(Unfilled::TooLong));
        let (refused, _, steps) = fill(40_000);
        assert_eq!(refused, Err(Unfilled::TooLong));
        assert!(steps < 10_000, "{steps} for what comes to three million amounts");
    }

    #[test]
    fn what_is_given_already_is_neither_made_nor_charged() {
        let range = many("default", 1_000);
        let given = range["spec"]["limits"][0]["default"].clone();
        let mut few = given.clone();
        few.as_object_mut().expect("a list").remove("a.b/c000500");
        few["own"] = json!("1");
        for (limits, made) in [(given, 0), (few, 1)] {
            let mut pod = pod(&vec![(json!({}), limits); 100], &[]);
            let lease = Lease::new(Purse(1 << 20), 0);
            let filled = fill_in(members(&range), pod.as_object_mut().expect("a pod"), &mut lease.meter());
            assert_eq!((filled, lease.used() > 0), (Ok(()), made > 0));
            let told = pod["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default();
            assert_eq!(told.matches("a.b/c000500 limit for container").count(), made * 100);
            assert_eq!(told.matches("a.b/").count(), made * 100);
        }
    }
}
