//! The address families of a Service: what the client may leave out, and what its policy allows.
//!
//! In: a Service's spec, the one before it, the families that there are addresses of. Out: `ipFamilyPolicy`
//! and `ipFamilies` filled in, a second address taken away where one stack is asked for, or causes. Never:
//! takes addresses.
//!
//! Source: kubernetes v1.36.3 `registry/core/service/storage/alloc.go`.

use serde_json::{Value, json};

use super::service::needs_address;
use super::service_allocation::{AllocationError, Family};
use super::service_rules::addresses;
use crate::field::{Causes, Path};
use crate::format::sloppy_ip;
use crate::value::{Members, child_or_empty, list, same_member, text, text_opt, texts};
use forebay_apimachinery::bad_value::BadValue;

const SPEC: Path<'static> = Path::root("spec");
const ONE: &str = "SingleStack";
const PREFER_TWO: &str = "PreferDualStack";
const TWO: &str = "RequireDualStack";

/// Whether a Service that takes two stacks where there are two stays as it is: it follows no change of what
/// there is without being told.
pub fn keeps_its_stacks(spec: &Members, old: &Members) -> bool {
    let prefers = |spec: &Members| text(spec, "ipFamilyPolicy") == PREFER_TWO;
    prefers(spec)
        && (prefers(old) || !old.contains_key("ipFamilyPolicy"))
        && matches!(text(spec, "type"), "ClusterIP" | "NodePort" | "LoadBalancer")
        && text(spec, "type") == text(old, "type")
        && same_list(spec, old, "clusterIPs")
        && same_list(spec, old, "ipFamilies")
}

/// Fills in the policy and the families of a Service that needs an address.
///
/// - `old`: as readers see it.
/// - `known`: the families that there are addresses of; the first is the default.
///
/// # Errors
/// What is wrong with what the client asks for.
pub fn init_families(
    spec: &mut Members,
    old: Option<&Members>,
    known: &[Family],
) -> Result<(), AllocationError> {
    if !needs_address(spec) || old.is_some_and(|old| keeps_its_stacks(spec, old)) {
        return Ok(());
    }
    default_policy(spec, old);
    let mut causes = Causes::default();
    addresses(spec, old, &mut causes);
    checked(causes)?;
    let mut causes = Causes::default();
    if let Some(old) = old {
        give_up_second(spec, old, &mut causes);
    }
    check_policy(spec, &mut causes);
    infer_families(spec, known, &mut causes);
    checked(causes)?;
    // Whoever names the endpoints of a headless Service may name those of families that are not served.
    if text(spec, "clusterIP") != "None" || !child_or_empty(spec, "selector").is_empty() {
        let mut causes = Causes::default();
        check_known(spec, known, &mut causes);
        checked(causes)?;
        complete(spec, known, known.len() == 2);
    } else {
        complete(spec, known, true);
    }
    Ok(())
}

fn checked(causes: Causes) -> Result<(), AllocationError> {
    if causes.is_empty() { Ok(()) } else { Err(AllocationError::Invalid(causes.into_vec())) }
}

/// Without a policy, a Service has the one that it had, else a single stack.
fn default_policy(spec: &mut Members, old: Option<&Members>) {
    if spec.contains_key("ipFamilyPolicy") {
        return;
    }
    let before = old.and_then(|old| text_opt(old, "ipFamilyPolicy"));
    let headless = text(spec, "clusterIP") == "None" && child_or_empty(spec, "selector").is_empty();
    let policy = before.unwrap_or(if headless { TWO } else { ONE }).to_string();
    spec.insert("ipFamilyPolicy".into(), policy.into());
}

/// Asking for a single stack gives up the second address; leaving it out without asking is an error.
fn give_up_second(spec: &mut Members, old: &Members, causes: &mut Causes) {
    let rows = [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")];
    if text(spec, "ipFamilyPolicy") == ONE {
        for (name, _) in rows {
            if same_list(spec, old, name)
                && let Some(Value::Array(values)) = spec.get_mut(name)
            {
                values.truncate(1);
            }
        }
        return;
    }
    for (name, what) in rows {
        let count = list(spec, name).len();
        if count > 0 && count < list(old, name).len() {
            let detail = format!("must be '{ONE}' to release the secondary {what}");
            causes.invalid(
                &SPEC.child("ipFamilyPolicy"),
                BadValue::encoded(spec.get("ipFamilyPolicy")),
                &detail,
            );
        }
    }
}

fn check_policy(spec: &Members, causes: &mut Causes) {
    if text(spec, "ipFamilyPolicy") != ONE {
        return;
    }
    for (name, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if list(spec, name).len() == 2 {
            let detail = format!("must be '{TWO}' or '{PREFER_TWO}' when multiple {what} are specified");
            causes.invalid(
                &SPEC.child("ipFamilyPolicy"),
                BadValue::encoded(spec.get("ipFamilyPolicy")),
                &detail,
            );
        }
    }
}

/// An address that is asked for says its family.
fn infer_families(spec: &mut Members, known: &[Family], causes: &mut Causes) {
    let mut families: Vec<Value> = list(spec, "ipFamilies").to_vec();
    for (index, address) in texts(spec, "clusterIPs").enumerate().skip(families.len()) {
        let Some(family) = sloppy_ip(address).map(Family::of) else { break };
        // Few: two families.
        if known.contains(&family) {
            families.push(family.name().into());
        } else {
            let detail = format!("{} is not configured on this cluster", family.name());
            causes.invalid(&SPEC.child("clusterIPs").index(index), spec.get("clusterIPs"), &detail);
        }
    }
    if !families.is_empty() {
        spec.insert("ipFamilies".into(), families.into());
    }
}

fn check_known(spec: &Members, known: &[Family], causes: &mut Causes) {
    if text(spec, "ipFamilyPolicy") == TWO && known.len() < 2 {
        let detail = "this cluster is not configured for dual-stack services";
        causes.invalid(&SPEC.child("ipFamilyPolicy"), BadValue::encoded(spec.get("ipFamilyPolicy")), detail);
    }
    for (index, family) in texts(spec, "ipFamilies").enumerate() {
        // Few: two families.
        if !Family::parse(family).is_some_and(|family| known.contains(&family)) {
            let at = SPEC.child("ipFamilies");
            causes.invalid(&at.index(index), family, "not configured on this cluster");
        }
    }
}

/// The default family where none is named, and, if its policy takes a second one and there may be one, that.
fn complete(spec: &mut Members, known: &[Family], second: bool) {
    let named = texts(spec, "ipFamilies").next().and_then(Family::parse);
    let first = named.or(known.first().copied()).unwrap_or(Family::V4);
    let two = list(spec, "ipFamilies").len() > 1 || (second && text(spec, "ipFamilyPolicy") != ONE);
    if list(spec, "ipFamilies").len() < 2 {
        let families = if two { vec![first.name(), first.other().name()] } else { vec![first.name()] };
        spec.insert("ipFamilies".into(), json!(families));
    }
}

fn same_list(a: &Members, b: &Members, name: &str) -> bool {
    same_member(a, b, name)
}
