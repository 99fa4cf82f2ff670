//! CSIDrivers.
//!
//! In: a CSIDriver. Out: defaults, its generation, causes, warnings. Never: asks the driver.

use forebay_apimachinery::Seen;
use serde_json::json;

use crate::field::{BadValue, Causes, Path};
use crate::lifecycle::bump_generation;
use crate::meta::{IMMUTABLE, validate_built_in_update};
use crate::rule::{Context, Update};
use crate::value::{
    Members, child_made, child_mut, child_or_empty, default, int, list, objects, same_member, text, text_opt,
    texts,
};

const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
const PERIOD_SECONDS_MIN: i64 = 10;
const SPEC: Path<'static> = Path::root("spec");

pub fn defaults(driver: &mut Members) {
    let spec = child_made(driver, "spec");
    default(spec, "attachRequired", true);
    for name in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        default(spec, name, false);
    }
    default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if list(spec, "volumeLifecycleModes").is_empty() {
        spec.insert("volumeLifecycleModes".into(), json!(["Persistent"]));
    }
}

/// The scaling of volume limits is behind a gate that is off.
pub fn drop_gated(driver: &mut Members, old: Option<&Members>) {
    const NAME: &str = "preventPodSchedulingIfMissing";
    if !old.is_some_and(|old| child_or_empty(old, "spec").contains_key(NAME))
        && let Some(spec) = child_mut(driver, "spec")
    {
        spec.remove(NAME);
    }
}

pub fn prepare_update(new: &mut Members, update: &Update<'_>, _: &Context<'_>) {
    drop_gated(new, Some(update.old));
    if !same_member(new, update.old, "spec") {
        bump_generation(new, update.old);
    }
}

pub fn validate(driver: &Members, causes: &mut Causes) {
    const POLICIES: [&str; 3] = ["File", "None", "ReadWriteOnceWithFSType"];
    const MODES: [&str; 2] = ["Persistent", "Ephemeral"];
    let spec = child_or_empty(driver, "spec");
    if let Some(policy) = text_opt(spec, "fsGroupPolicy").filter(|policy| !POLICIES.contains(policy)) {
        causes.not_supported(&SPEC.child("fsGroupPolicy"), policy, &POLICIES);
    }
    token_requests(spec, causes);
    for mode in texts(spec, "volumeLifecycleModes").filter(|mode| !MODES.contains(mode)) {
        causes.not_supported(&SPEC.child("volumeLifecycleModes"), mode, &MODES);
    }
    const PERIOD: &str = "nodeAllocatableUpdatePeriodSeconds";
    if let Some(period) = int(spec, PERIOD).filter(|period| *period < PERIOD_SECONDS_MIN) {
        causes.invalid(&SPEC.child(PERIOD), period, "must be greater than or equal to 10 seconds");
    }
    const IN_SECRETS: &str = "serviceAccountTokenInSecrets";
    if spec.contains_key(IN_SECRETS) && list(spec, "tokenRequests").is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        causes.invalid(&SPEC.child(IN_SECRETS), spec.get(IN_SECRETS), detail);
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    validate(new, causes);
    let (spec, old_spec) = (child_or_empty(new, "spec"), child_or_empty(update.old, "spec"));
    // Upstream names the first field otherwise.
    for (name, path) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        if !same_member(spec, old_spec, name) {
            causes.invalid(
                &SPEC.child(path),
                spec.get(name).map_or(BadValue::Nil, BadValue::Json),
                IMMUTABLE,
            );
        }
    }
}

pub fn warnings(driver: &Members, update: Option<&Update<'_>>, warnings: &mut Vec<String>) {
    let spec = child_or_empty(driver, "spec");
    let asked = match update {
        Some(update) => !same_member(spec, child_or_empty(update.old, "spec"), "tokenRequests"),
        None => true,
    };
    if asked && !list(spec, "tokenRequests").is_empty() && !spec.contains_key("serviceAccountTokenInSecrets")
    {
        warnings.push(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
             possible logging of tokens in volume attributes"
                .into(),
        );
    }
}

fn token_requests(spec: &Members, causes: &mut Causes) {
    let at = SPEC.child("tokenRequests");
    let mut known = Seen::default();
    for (index, request) in objects(spec, "tokenRequests").enumerate() {
        let at = at.index(index);
        let audience = text(request, "audience");
        if known.again(audience) {
            causes.duplicate(&at.child("audience"), audience);
            continue;
        }
        let (seconds, at) = (int(request, "expirationSeconds"), at.child("expirationSeconds"));
        if let Some(seconds) = seconds.filter(|seconds| *seconds < TOKEN_SECONDS_MIN) {
            causes.invalid(&at, seconds, "may not specify a duration less than 10 minutes");
        }
        if let Some(seconds) = seconds.filter(|seconds| *seconds > TOKEN_SECONDS_MAX) {
            causes.invalid(&at, seconds, "may not specify a duration larger than 2^32 seconds");
        }
    }
}
