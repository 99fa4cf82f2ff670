//! LimitRanger: pods and claims keep within the limits of their namespace, and get its defaults.
//!
//! Another server of the same store may just have made the first range of a namespace. So where the cache
//! has none, what is acknowledged is waited for, once in a while; where the store cannot say in time what
//! that is, what is cached counts.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/limitranger`.

use std::sync::Arc;

use forebay_api::Eventual;
use forebay_apimachinery::Status;
use forebay_apimachinery::fault_path::Path;
use forebay_apimachinery::lease::Meter;
use forebay_object::Object;
use forebay_quota::{Unfilled, fill_in, judge_claim, judge_pod};
use forebay_strategy::value::{Members, child_or_empty, text};
use forebay_strategy::{ANNOTATIONS_BYTES_MAX, Causes};
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes, value_of};

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

    fn decides_by(&self) -> &'static [ReadFrom] {
        &[RANGES]
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let Some(pod) = object.as_object_mut().filter(|_| write.of.resource == "pods") else {
            return Eventual::Now(Ok(()));
        };
        let known = match known_ranges(write, tools) {
            Ok(Known::None) => return Eventual::Now(Ok(())),
            Ok(known) => known,
            Err(unknown) => return Eventual::Now(Err(unknown)),
        };
        Eventual::later(async move {
            let ranges = known.or_looked_for(write, tools).await?;
            let mut meter = tools.lease.meter();
            for (at, range) in ranges.iter().enumerate() {
                give_way(at).await;
                let range = value_of(range);
                let Some(range) = range.as_ref().and_then(Value::as_object) else { continue };
                filled(range, pod, &mut meter)?;
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
        let judge = if write.of.resource == "pods" { judge_pod } else { judge_claim };
        let known = match known_ranges(write, tools) {
            Ok(known) => known,
            Err(unknown) => return Eventual::Now(Err(unknown)),
        };
        let Some(judged) = object.as_object().filter(|_| !matches!(known, Known::None)) else {
            return Eventual::Now(Ok(()));
        };
        Eventual::later(async move {
            let ranges = known.or_looked_for(write, tools).await?;
            for (at, range) in ranges.iter().enumerate() {
                give_way(at).await;
                let range = value_of(range);
                let Some(range) = range.as_ref().and_then(Value::as_object) else { continue };
                judge(range, judged).map_err(|why| write.forbidden(object, &why))?;
            }
            Ok(())
        })
    }
}

/// What the cache has of the ranges of a namespace.
enum Known {
    Some(Vec<Arc<Object>>),
    /// There was none a while ago, either.
    None,
    /// It has none, which may be because it lags.
    Perhaps,
}

fn known_ranges(write: &WriteAttributes<'_>, tools: &Tools<'_>) -> Result<Known, Status> {
    let ranges = tools.lookup.in_namespace(RANGES, write.of.namespace)?;
    let is_due = || tools.settings.ranges_looked_for.is_due(write.of.namespace, tools.clock.now());
    Ok(match ranges.is_empty() {
        false => Known::Some(ranges),
        true if is_due() => Known::Perhaps,
        true => Known::None,
    })
}

impl Known {
    async fn or_looked_for(
        self,
        write: &WriteAttributes<'_>,
        tools: &Tools<'_>,
    ) -> Result<Vec<Arc<Object>>, Status> {
        match self {
            Known::Some(ranges) => Ok(ranges),
            Known::None => Ok(Vec::new()),
            Known::Perhaps => {
                // Behind for so long it is behind for everybody: pods are made nevertheless.
                let _late = tools.lookup.fresh(RANGES).wait().await;
                tools.settings.ranges_looked_for.looked(write.of.namespace, tools.clock.now());
                tools.lookup.in_namespace(RANGES, write.of.namespace)
            }
        }
    }
}

/// Others have their turn between two ranges: a namespace may have as many as somebody makes, and each is
/// held against the whole pod. One of them at a time is a tree.
async fn give_way(at: usize) {
    if at > 0 {
        tokio::task::yield_now().await;
    }
}

fn filled(range: &Members, pod: &mut Members, meter: &mut Meter) -> Result<(), Status> {
    fill_in(range, pod, meter).map_err(|why| match why {
        Unfilled::TooLong => {
            let mut causes = Causes::default();
            causes.too_long(&Path::root("metadata").child("annotations"), ANNOTATIONS_BYTES_MAX);
            let name = text(child_or_empty(pod, "metadata"), "name");
            Status::invalid("", "Pod", name, causes.into_vec())
        }
        Unfilled::Exhausted(why) => why.into(),
    })
}
