//! PodNodeSelector: the pods of a namespace run on the nodes that its annotation says, or the administrator.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/podnodeselector`.

use std::collections::BTreeMap;

use forebay_api::Eventual;
use forebay_apimachinery::{Reason, Status};
use forebay_strategy::value::{Members, child_made, child_or_empty, entries, set};
use serde_json::Value;

use super::fill::namespace;
use crate::optional::optional;
use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";

/// Labels by key.
type Labels = BTreeMap<String, String>;

pub struct PodNodeSelector;

impl Plugin for PodNodeSelector {
    optional! { "PodNodeSelector", creates "pods" }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        Eventual::later(async move {
            let wanted = wanted(write, tools).await?;
            let own = own(object);
            agree(write, object, &wanted, &own)?;
            let mut merged = wanted;
            merged.extend(own);
            if let (Some(pod), false) = (object.as_object_mut(), merged.is_empty()) {
                let labels = merged.into_iter().map(|(key, value)| (key, Value::from(value)));
                set(child_made(pod, "spec"), "nodeSelector", Some(labels.collect::<Members>().into()));
            }
            within(write, object, tools)
        })
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        Eventual::later(async move {
            let wanted = wanted(write, tools).await?;
            agree(write, object, &wanted, &own(object))?;
            within(write, object, tools)
        })
    }
}

/// What a pod says itself.
fn own(pod: &Value) -> Labels {
    let empty = Members::new();
    let spec = child_or_empty(pod.as_object().unwrap_or(&empty), "spec");
    entries(spec, "nodeSelector").map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// What its namespace says, or the administrator for it.
async fn wanted(write: &WriteAttributes<'_>, tools: &Tools<'_>) -> Result<Labels, Status> {
    let found = namespace(write, tools).await?;
    let said = found["metadata"]["annotations"][ANNOTATION].as_str();
    labels(said.unwrap_or_else(|| tools.settings.node_selectors.default_selector())).map_err(unknown)
}

/// Whether a pod says nothing else than its namespace.
fn agree(write: &WriteAttributes<'_>, pod: &Value, wanted: &Labels, own: &Labels) -> Result<(), Status> {
    let is_other = |(key, value): (&String, &String)| own.get(key).is_some_and(|own| own != value);
    match wanted.iter().any(is_other) {
        true => {
            let why = "pod node label selector conflicts with its namespace node label selector";
            Err(write.forbidden(pod, why))
        }
        false => Ok(()),
    }
}

/// Whether all that a pod says is what its namespace's pods may say.
fn within(write: &WriteAttributes<'_>, pod: &Value, tools: &Tools<'_>) -> Result<(), Status> {
    let allowed = labels(tools.settings.node_selectors.of_namespace(write.of.namespace));
    let allowed = allowed.map_err(unknown)?;
    match allowed.is_empty() || own(pod).iter().all(|(key, value)| allowed.get(key) == Some(value)) {
        true => Ok(()),
        false => {
            Err(write.forbidden(pod, "pod node label selector labels conflict with its namespace whitelist"))
        }
    }
}

/// An error that upstream has no kind for.
fn unknown(why: String) -> Status {
    Status::new(Reason::Unknown, why)
}

/// `a=b,c=d`.
fn labels(selector: &str) -> Result<Labels, String> {
    if selector.is_empty() {
        return Ok(Labels::new());
    }
    let label = |label: &str| match label.split('=').collect::<Vec<_>>().as_slice() {
        [key, value] => Ok((key.trim().to_owned(), value.trim().to_owned())),
        parts => Err(format!("invalid selector: [{}]", parts.join(" "))),
    };
    selector.split(',').map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_labels_that_are_equal_to_something() {
        let read = labels("a=b, c = d").expect("read");
        assert_eq!(read, Labels::from([("a".into(), "b".into()), ("c".into(), "d".into())]));
        assert_eq!(labels(""), Ok(Labels::new()));
        assert_eq!(labels("a"), Err("invalid selector: [a]".into()));
        assert_eq!(labels("a==b"), Err("invalid selector: [a  b]".into()));
    }
}
