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
/// back.
///
/// - `now`: seconds since 1970.
pub fn has_less(pod: &Map<String, Value>, now: i64) -> bool {
    let usage = QuotaSubject::of(&Evaluator::Pods, pod, &DeviceClasses::default(), now).usage;
    let resizes = || {
        let of = |part: &str, list: &str| pod.get(part).and_then(|part| part[list].as_array()).cloned();
        let asked = of("spec", "containers").unwrap_or_default();
        let has = of("status", "containerStatuses").unwrap_or_default();
        has.iter().any(|status| {
            // Few: the containers of one pod.
            let own = asked.iter().find(|container| container["name"] == status["name"]);
            status["resources"].is_object() && own.is_some_and(|own| own["resources"] != status["resources"])
        })
    };
    !usage.has("pods") || resizes()
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
