//! DefaultTolerationSeconds: pods leave a node that is lost after a while, if they do not say when.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/defaulttolerationseconds`.

use serde_json::{Value, json};

use super::fill::{NOT_READY, push};
use crate::plugin::{Admitted, Plugin, Tools, WriteAttributes};
use crate::settings::LostNodes;
use forebay_strategy::value::{Members, child_made, objects, text};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

pub struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        (write.creates() || write.updates()) && write.is_of("", "pods")
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.filled(object, |pod| {
            tolerate_lost_nodes(pod, tools.settings.lost_nodes);
            Ok(())
        })
    }
}

fn tolerate_lost_nodes(pod: &mut Members, lost: LostNodes) {
    let spec = child_made(pod, "spec");
    for (key, seconds) in [(NOT_READY, lost.not_ready_seconds), (UNREACHABLE, lost.unreachable_seconds)] {
        let tolerated = objects(spec, "tolerations").any(|toleration| {
            let (own, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (own == key || own.is_empty()) && matches!(effect, "NoExecute" | "")
        });
        if !tolerated {
            let toleration = json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds,
            });
            push(spec, "tolerations", toleration);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(mut object: Value) -> Value {
        tolerate_lost_nodes(object.as_object_mut().expect("an object"), LostNodes::default());
        object
    }

    fn lost(key: &str) -> Value {
        json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    }

    #[test]
    fn pods_tolerate_lost_nodes_for_a_while_unless_they_say_how_long() {
        let own = json!({"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"});
        let all = json!({"operator": "Exists"});
        let other = json!({"key": NOT_READY, "operator": "Exists", "effect": "NoSchedule"});
        for (given, wanted) in [
            (json!(null), json!([lost(NOT_READY), lost(UNREACHABLE)])),
            (json!([own]), json!([own, lost(UNREACHABLE)])),
            (json!([all]), json!([all])),
            (json!([other]), json!([other, lost(NOT_READY), lost(UNREACHABLE)])),
        ] {
            let spec = if given.is_null() { json!({}) } else { json!({"tolerations": given}) };
            let pod = filled(json!({"spec": spec}));
            assert_eq!(pod["spec"]["tolerations"], wanted, "{given}");
            assert_eq!(filled(pod.clone()), pod, "{given}");
        }
        let mut pod = json!({"spec": {}});
        let lost = LostNodes { not_ready_seconds: 1, unreachable_seconds: 2 };
        tolerate_lost_nodes(pod.as_object_mut().expect("an object"), lost);
        let seconds = pod["spec"]["tolerations"].as_array().expect("a list").iter();
        assert_eq!(
            seconds.map(|one| one["tolerationSeconds"].clone()).collect::<Vec<_>>(),
            [json!(1), json!(2)]
        );
    }
}
