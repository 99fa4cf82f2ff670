//! What is used of one quota, and its status.
//!
//! In: a quota by name, and the kinds that quotas limit. Out: its status, written where it is another. Never:
//! keeps a snapshot longer than it counts.
//!
//! Source: apiserver v0.36.3 `pkg/quota/v1` (`CalculateUsage`); kubernetes v1.36.3 `controller/resourcequota`.

use forebay_apimachinery::Status;
use forebay_catalog::Target;
use forebay_quota::{Amounts, DeviceClasses, Evaluator, QuotaSubject, ResourceQuota};
use serde_json::{Map, Value};

use super::{Counted, tree};
use crate::acting::ActingRegistry;
use crate::limits;
use crate::objects::{built_in, collection, find, named, update};

/// Counts what is used of a quota, and writes that down.
///
/// # Errors
/// What cannot be counted, and a conflict with who wrote it meanwhile.
pub async fn sync(
    registry: &ActingRegistry,
    kinds: &[Counted],
    namespace: &str,
    name: &str,
) -> Result<(), Status> {
    let quotas = built_in(registry, "", "v1", "resourcequotas")?;
    let target = named(&quotas, namespace, name);
    let Some(found) = find(registry, &target).await? else { return Ok(()) };
    let mut quota = quotas.to_value(&found)?;
    let hard = list(&quota["spec"]["hard"]);
    let counted = count(registry, kinds, namespace, &quota, &hard).await?;
    let mut used = list(&quota["status"]["used"]).only(|name, _| hard.has(name));
    counted.iter().for_each(|(name, amount)| used.set(name, amount));
    if !is_behind(&quota) && used == list(&quota["status"]["used"]) {
        return Ok(());
    }
    let hard = quota["spec"].get("hard").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    quota["status"] = Value::Object(Map::new());
    quota["status"]["hard"] = hard;
    quota["status"]["used"] = used.to_value();
    let target = Target { subresource: Some("status".to_owned()), ..target };
    update(registry, &target, quota).await
}

/// Whether the status is not of these limits, or nobody has counted for it.
pub fn is_behind(quota: &Value) -> bool {
    let (spec, status) = (list(&quota["spec"]["hard"]), &quota["status"]);
    let is_counted = status["hard"].is_object() && status["used"].is_object();
    spec != list(&status["hard"]) || (!is_counted && !spec.is_empty())
}

/// Whether there may be less in use than before a pod was written as it is: it has ended, or gave something
/// back, as one does that is resized once its status says so. Cost: a walk over each.
///
/// - `previous`: the pod as it was told of last; none if it was not.
/// - `now`: seconds since 1970.
pub fn has_less(previous: Option<&Map<String, Value>>, pod: &Map<String, Value>, now: i64) -> bool {
    let usage = |pod| QuotaSubject::of(&Evaluator::Pods, pod, &DeviceClasses::default(), now).usage;
    let uses = usage(pod);
    !uses.has("pods") || previous.is_some_and(|previous| !usage(previous).beyond(&uses).is_empty())
}

async fn count(
    registry: &ActingRegistry,
    kinds: &[Counted],
    namespace: &str,
    quota: &Value,
    hard: &Amounts,
) -> Result<Amounts, Status> {
    let scopes = quota.as_object().map(|quota| ResourceQuota::of(quota).scopes).unwrap_or_default();
    let classes = device_classes(registry).await?;
    let now = registry.timestamp().as_second();
    let mut all = Amounts::default();
    for Counted { served, evaluator } in kinds {
        let wanted = hard.only(|name, _| evaluator.counts(name, &classes));
        if wanted.is_empty() {
            continue;
        }
        let objects = registry.objects(&collection(served, Some(namespace))).await?;
        objects.are_all()?;
        let mut sum = Amounts::none_of(wanted.names());
        for (at, object) in objects.iter().enumerate() {
            if at % limits::QUOTA_COUNTED_MAX == limits::QUOTA_COUNTED_MAX - 1 {
                tokio::task::yield_now().await;
            }
            let value = match evaluator {
                // One is one, whatever it says.
                Evaluator::Objects { .. } => Value::Object(Map::new()),
                _ => served.to_value(object)?,
            };
            let Some(object) = value.as_object() else { continue };
            let subject = QuotaSubject::of(evaluator, object, &classes, now);
            if subject.is_in(&scopes) {
                sum.add(&subject.usage);
            }
        }
        all.add(&sum.only(|name, _| wanted.has(name)));
    }
    Ok(all)
}

async fn device_classes(registry: &ActingRegistry) -> Result<DeviceClasses, Status> {
    let classes = built_in(registry, "resource.k8s.io", "v1", "deviceclasses")?;
    let classes = registry.objects(&collection(&classes, None)).await?;
    let members = |class: Value| class.as_object().cloned();
    Ok(DeviceClasses::of(classes.iter().filter_map(|class| tree(class)).filter_map(members)))
}

fn list(value: &Value) -> Amounts {
    value.as_object().map(Amounts::of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::steps;
    use serde_json::json;

    use super::*;

    fn less(previous: Option<&Value>, pod: &Value) -> bool {
        has_less(previous.and_then(Value::as_object), pod.as_object().expect("a pod"), 0)
    }

    /// A pod whose containers in `list` are to have so much, and have it.
    fn pod(list: &str, asked: &str, has: &str) -> Value {
        let resources = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let mut pod = json!({"spec": {list: [{"name": "c", "resources": resources(asked)}]}});
        pod["spec"][list][0]["restartPolicy"] = json!("Always");
        pod["status"][if list == "containers" { "containerStatuses" } else { "initContainerStatuses" }] =
            json!([{"name": "c", "resources": resources(has)}]);
        pod
    }

    #[test]
    fn a_resize_gives_back_when_the_status_says_so() {
        for list in ["containers", "initContainers"] {
            let pod = |asked: &str, has: &str| pod(list, asked, has);
            let (before, asked, resized) = (pod("4", "4"), pod("1", "4"), pod("1", "1"));
            assert!(!less(Some(&before), &asked), "{list}: it has four yet");
            assert!(less(Some(&asked), &resized), "{list}");
            assert!(!less(Some(&resized), &resized), "{list}: once");
            assert!(less(Some(&before), &resized), "{list}: both were told of at once");
            assert!(!less(Some(&resized), &pod("4", "1")), "{list}: admission counted it");
            assert!(!less(Some(&pod("4", "1")), &before), "{list}: it has what it is counted for");
            assert!(less(Some(&pod("4", "1")), &resized), "{list}: it is given up");
            assert!(!less(None, &asked), "{list}: nothing is known of it");
        }
    }

    #[test]
    fn what_has_ended_gives_back() {
        let running = pod("containers", "1", "1");
        let mut ended = running.clone();
        ended["status"]["phase"] = json!("Succeeded");
        assert!(less(Some(&running), &ended) && less(None, &ended));
    }

    #[test]
    fn a_pod_costs_what_it_is_long() {
        let steps_of = |count: usize| {
            let named = |prefix: &str, has: Value| -> Vec<Value> {
                (0..count).map(|at| json!({"name": format!("{prefix}{at}"), "resources": has})).collect()
            };
            let pod = json!({
                "spec": {"containers": named("c", json!({"requests": {"cpu": "1"}}))},
                "status": {"containerStatuses": named("other", json!({}))},
            });
            steps::counted(|| assert!(!less(Some(&pod), &pod)))
        };
        let (few, many) = (steps_of(500), steps_of(2_000));
        assert!(few > 500 && many < 5 * few, "{few} steps for 500, {many} for 2,000");
    }
}
