//! What pods that run already have against the level that their namespace is given.
//!
//! In: a level, and the pods of a namespace. Out: what their writer is told of them. Never: longer than a
//! second, or half of what the request has left; more than one pod's tree at a time, and that uncharged; a
//! refusal.
//!
//! Source: pod-security-admission v0.36.3 `admission/admission.go`, `EvaluatePodsInNamespace`.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::json;
use forebay_apimachinery::lease::{Exhausted, TREE_BYTES_MAX};
use forebay_object::Object;
use forebay_pod_security::{LevelVersion, faults, spec_and_meta};
use forebay_rt::Instant;
use forebay_strategy::value;
use serde::Deserialize;

use crate::plugin::{ReadFrom, Tools};

const PODS: ReadFrom = ("", "pods");

/// Pods that are looked at, as upstream has it.
const EXISTING_MAX: usize = 3_000;
/// How long, as upstream has it.
const SPAN_MAX: Duration = Duration::from_secs(1);
/// Others have their turn after so many bytes: some half a millisecond of reading.
const TURN_BYTES: usize = 64 << 10;

/// When it is to end, and when others are let in between.
struct Pace<'a> {
    tools: &'a Tools<'a>,
    until: Instant,
    since_turn: usize,
}

/// Of a pod's metadata. What is not so made nothing that it is counted with.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Owned {
    #[serde(rename = "ownerReferences")]
    owners: Option<Vec<Owner>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Owner {
    uid: Option<String>,
    controller: Option<bool>,
}

/// What is told of the pods of `namespace` under the level `new`.
pub(super) async fn judged(namespace: String, new: LevelVersion, tools: &Tools<'_>) -> Vec<String> {
    let mut pace = Pace::begin(tools);
    // Who cannot be told of them now is told nothing, as where there is no time.
    let pods = tools.lookup.in_namespace(PODS, &namespace).unwrap_or_default();
    let (total, ordered) = (pods.len(), in_order(pods, &mut pace).await);
    // warning -> the first pod by name, and how many there are
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    let mut looked_at = 0;
    for pod in ordered.iter().take(EXISTING_MAX) {
        let text = pod.untyped_json();
        // No room is as good as no time.
        let Ok(reasons) = reasons(&text, new, tools) else { break };
        looked_at += 1;
        if let Some(reasons) = reasons {
            let known = found.entry(reasons).or_insert_with(|| (pod.name().to_string(), 0));
            known.0 = pod.name().min(&known.0).to_string();
            known.1 += 1;
        }
        if !pace.goes_on(text.len()).await {
            break;
        }
    }
    let mut told = Vec::new();
    if looked_at < total {
        told.push(format!(
            "new PodSecurity enforce level only checked against the first {looked_at} of {total} existing pods"
        ));
    }
    if !found.is_empty() {
        told.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{new}\""
        ));
    }
    let mut each: Vec<String> = found
        .into_iter()
        .map(|(why, (pod, count))| match count {
            1 => format!("{pod}: {why}"),
            2 => format!("{pod} (and 1 other pod): {why}"),
            _ => format!("{pod} (and {} other pods): {why}", count - 1),
        })
        .collect();
    each.sort();
    told.extend(each);
    told
}

/// One of each owner first: those made from one template are alike. Those for which there is no time are
/// others.
async fn in_order(pods: Vec<Arc<Object>>, pace: &mut Pace<'_>) -> Vec<Arc<Object>> {
    let (mut owners, mut first, mut others) = (HashSet::new(), Vec::new(), Vec::new());
    let mut has_time = true;
    for pod in pods {
        let (mut is_other, mut bytes) = (!has_time, 0);
        if has_time {
            let meta = pod.metadata();
            bytes = meta.len();
            is_other = controller(&meta).is_some_and(|uid| !owners.insert(uid));
        }
        if is_other {
            others.push(pod)
        } else {
            first.push(pod)
        }
        has_time = has_time && pace.goes_on(bytes).await;
    }
    first.append(&mut others);
    first
}

/// What a pod has against the level, if anything.
///
/// - `text`: its JSON.
///
/// # Errors
/// There is no room to look at it.
fn reasons(text: &[u8], new: LevelVersion, tools: &Tools<'_>) -> Result<Option<String>, Exhausted> {
    let lease = tools.lease.part(TREE_BYTES_MAX);
    lease.charge(text.len())?;
    let Ok(tree) = json::parse(text, &lease) else {
        return lease.exhausted().map_or(Ok(None), Err);
    };
    let Some((meta, spec)) = tree.value.as_object().and_then(|pod| spec_and_meta("", "pods", pod)) else {
        return Ok(None);
    };
    if tools.security.exempts_runtime_class(value::text(spec, "runtimeClassName")) {
        return Ok(None);
    }
    let faults = faults(new, meta, spec);
    Ok((!faults.is_empty()).then(|| faults.reasons()))
}

/// The uid of what made a pod.
fn controller(meta: &[u8]) -> Option<String> {
    let owned: Owned = serde_json::from_slice(meta).unwrap_or_default();
    let controller = owned.owners?.into_iter().find(|owner| owner.controller == Some(true))?;
    Some(controller.uid.unwrap_or_default())
}

impl<'a> Pace<'a> {
    fn begin(tools: &'a Tools<'a>) -> Pace<'a> {
        let now = tools.clock.now();
        let left = tools.deadline.map(|deadline| deadline.saturating_duration_since(now) / 2);
        let until = now + left.map_or(SPAN_MAX, |left| left.min(SPAN_MAX));
        Pace { tools, until, since_turn: 0 }
    }

    /// Whether there is time for more, once so many bytes are read. Others have their turn meanwhile.
    async fn goes_on(&mut self, bytes: usize) -> bool {
        self.since_turn += bytes;
        if self.since_turn >= TURN_BYTES {
            self.since_turn = 0;
            tokio::task::yield_now().await;
        }
        self.tools.clock.now() < self.until
    }
}
