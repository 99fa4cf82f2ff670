//! LimitRanger: pods and claims keep within the limits of their namespace, and get its defaults.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/limitranger`.

use forebay_quota::{fill_in, judge_claim, judge_pod};
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};

const RANGES: ReadFrom = ("", "limitranges");

pub struct LimitRanger;

impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    /// Containers of a pod that is there change by a resize alone. What is being deleted is let be.
    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        let resizes = write.updates() && write.is_of_part("", "pods", "resize");
        let is_of = match write.of.resource {
            "pods" => write.creates() && write.is_of("", "pods"),
            _ => (write.creates() || write.updates()) && write.is_of("", "persistentvolumeclaims"),
        };
        let is_deleted = |old: &Value| !old["metadata"]["deletionTimestamp"].is_null();
        (is_of || resizes) && !write.old.is_some_and(is_deleted)
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.filled(object, |object| {
            if write.of.resource == "pods" {
                for range in tools.in_namespace(RANGES, write.of.namespace) {
                    range.as_object().into_iter().for_each(|range| fill_in(range, object));
                }
            }
            Ok(())
        })
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.judged(object, |object| {
            let judge = if write.of.resource == "pods" { judge_pod } else { judge_claim };
            let mut ranges = tools.in_namespace(RANGES, write.of.namespace);
            ranges.try_for_each(|range| range.as_object().map_or(Ok(()), |range| judge(range, object)))
        })
    }
}
