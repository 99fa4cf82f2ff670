//! What containers have to say, and do not: which ones leave out what a quota may count.
//!
//! In: a pod. Out: its containers' names, each once, for as long as the pod waits for a quota; what is said
//! of them, in kube-apiserver's words. Never: a quota.
//!
//! Source: kubernetes v1.36.3 `pkg/quota/v1/evaluator/core/pods.go` (`Constraints`).

use std::collections::BTreeSet;

use forebay_apimachinery::json::weight;
use forebay_strategy::value::{Members, child_or_empty, objects, text};

use crate::limits::{COMPUTE_NAMES, UNSAID_BYTES_MAX};
use crate::pod::has_own_resources;

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub struct Unsaid {
    // A container, and a bit for each row of COMPUTE that it leaves out; <= UNSAID_BYTES_MAX of them.
    containers: Vec<(Box<str>, u8)>,
}

/// What each container has to say once a quota counts it, by name: in which of its lists, and as what.
/// Upstream calls it a mistake, and keeps it.
const COMPUTE: [(&str, &str, &str); COMPUTE_NAMES] = [
    ("cpu", "requests", "cpu"),
    ("limits.cpu", "limits", "cpu"),
    ("limits.memory", "limits", "memory"),
    ("memory", "requests", "memory"),
    ("requests.cpu", "requests", "cpu"),
    ("requests.memory", "requests", "memory"),
];

impl Unsaid {
    /// Of a pod: nothing where it says it as a whole.
    pub fn of(pod: &Members) -> Unsaid {
        let mut containers = Vec::new();
        if has_own_resources(pod) {
            return Unsaid::default();
        }
        let (mut bytes, mut known) = (0, 0);
        let spec = child_or_empty(pod, "spec");
        for container in ["containers", "initContainers"].iter().flat_map(|name| objects(spec, name)) {
            let missing = missing(child_or_empty(container, "resources"));
            let is_told = bytes < UNSAID_BYTES_MAX || missing & !known != 0;
            if missing != 0 && is_told {
                let name = text(container, "name");
                bytes += name.len() + ",".len();
                known |= missing;
                containers.push((name.into(), missing));
            }
        }
        Unsaid { containers }
    }

    /// What has to be said of amounts that `is_counted`, and is not.
    pub fn told(&self, is_counted: impl Fn(&str) -> bool) -> Option<String> {
        let mut told = Vec::new();
        for (at, (name, _, _)) in COMPUTE.iter().enumerate().filter(|(_, (name, _, _))| is_counted(name)) {
            let missing = self.containers.iter().filter(|(_, missing)| missing & (1 << at) != 0);
            let containers: BTreeSet<&str> = missing.map(|(container, _)| &**container).collect();
            if !containers.is_empty() {
                told.push(format!("{name} for: {}", Vec::from_iter(containers).join(",")));
            }
        }
        (!told.is_empty()).then(|| format!("must specify {}", told.join("; ")))
    }

    /// What it takes.
    pub fn bytes(&self) -> usize {
        let name = |(name, _): &(Box<str>, u8)| weight::text(name.len());
        weight::array(self.containers.len()) + self.containers.iter().map(name).sum::<usize>()
    }
}

/// Which rows of [`COMPUTE`] a container leaves out.
fn missing(resources: &Members) -> u8 {
    let is_missing =
        |(_, list, resource): &(&str, &str, &str)| !child_or_empty(resources, list).contains_key(*resource);
    let bits = COMPUTE.iter().enumerate().filter(|(_, row)| is_missing(row)).map(|(at, _)| 1 << at);
    bits.fold(0, |all, bit: u8| all | bit)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn unsaid(containers: Vec<Value>) -> Unsaid {
        Unsaid::of(json!({"spec": {"containers": containers}}).as_object().expect("a pod"))
    }

    #[test]
    fn containers_are_told_by_what_they_leave_out() {
        let cpu = json!({"name": "b", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}});
        let unsaid = unsaid(vec![json!({"name": "c"}), cpu, json!({"name": "a"})]);
        assert_eq!(
            unsaid.told(|_| true).as_deref(),
            Some(
                "must specify cpu for: a,c; limits.cpu for: a,c; limits.memory for: a,b,c; memory for: a,b,c; requests.cpu for: a,c; requests.memory for: a,b,c"
            )
        );
        assert_eq!(
            unsaid.told(|name| name == "limits.cpu").as_deref(),
            Some("must specify limits.cpu for: a,c")
        );
        assert_eq!(unsaid.told(|name| name == "pods"), None);
    }

    #[test]
    fn each_name_is_held_once_and_as_many_as_are_told() {
        let bare = |at: usize| json!({"name": format!("container-{at:06}")});
        let few = unsaid((0..1_000).map(bare).collect());
        assert!(few.bytes() < 150 * 1_000, "{}", few.bytes());
        let all = json!({"cpu": "1", "memory": "1"});
        let mut many: Vec<Value> = (0..40_000).map(bare).collect();
        many.iter_mut().for_each(|one| one["resources"]["limits"] = all.clone());
        many.push(json!({"name": "last", "resources": {"requests": all.clone()}}));
        let many = unsaid(many);
        assert!(many.bytes() < 8 * UNSAID_BYTES_MAX, "{}", many.bytes());
        let told = many.told(|name| name == "cpu").expect("they are silent");
        assert!((UNSAID_BYTES_MAX..UNSAID_BYTES_MAX + 64).contains(&told.len()), "{}", told.len());
        let of_the_last = Some("must specify limits.memory for: last");
        assert_eq!(many.told(|name| name == "limits.memory").as_deref(), of_the_last);
    }
}
