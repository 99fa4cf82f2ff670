//! PriorityLevelConfigurations.
//!
//! In: a PriorityLevelConfiguration. Out: defaults, causes. Never: shares out anything.

use super::{SPEC, built_in, conditions};
use crate::field::{Causes, Path};
use crate::internal;
use crate::value::{Members, child, child_mut, child_or_empty, default, default_int, int, same_member, text};

const TYPES: [&str; 2] = ["Exempt", "Limited"];
const RESPONSES: [&str; 2] = ["Queue", "Reject"];
const SHARES_DEFAULT: i64 = 30;
const QUEUES_DEFAULT: i64 = 64;
const HAND_SIZE_DEFAULT: i64 = 8;
const QUEUE_LENGTH_DEFAULT: i64 = 50;
const QUEUES_MAX: i64 = 10_000_000;
/// Bits of a flow's hash that dealing a hand of queues may use.
const ENTROPY_BITS_MAX: f64 = 60.0;
/// What another version keeps a zero under, which this one says plainly.
const ZERO_SHARES: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

pub fn defaults(level: &mut Members) {
    let Some(spec) = child_mut(level, "spec") else { return };
    if let Some(exempt) = child_mut(spec, "exempt") {
        default(exempt, "nominalConcurrencyShares", 0);
        default(exempt, "lendablePercent", 0);
    }
    let Some(limited) = child_mut(spec, "limited") else { return };
    default(limited, "nominalConcurrencyShares", SHARES_DEFAULT);
    default(limited, "lendablePercent", 0);
    if let Some(queuing) =
        child_mut(limited, "limitResponse").and_then(|response| child_mut(response, "queuing"))
    {
        default_int(queuing, "handSize", HAND_SIZE_DEFAULT);
        default_int(queuing, "queues", QUEUES_DEFAULT);
        default_int(queuing, "queueLengthLimit", QUEUE_LENGTH_DEFAULT);
    }
}

pub fn validate(level: &Members, causes: &mut Causes) {
    let (meta, spec) = (child_or_empty(level, "metadata"), child_or_empty(level, "spec"));
    let name = text(meta, "name");
    if child_or_empty(meta, "annotations").contains_key(ZERO_SHARES) {
        let at = Path::root("metadata");
        causes.forbidden(&at.child("annotations"), &format!("annotation '{ZERO_SHARES}' is forbidden"));
    }
    validate_spec(spec, name, causes);
    fixed(spec, name, causes);
    conditions(level, causes);
}

fn validate_spec(spec: &Members, name: &str, causes: &mut Causes) {
    let kind = text(spec, "type");
    if (name == "exempt") != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        causes.invalid(&SPEC.child("type"), kind, detail);
    }
    let (exempt, limited) = (child(spec, "exempt"), child(spec, "limited"));
    match kind {
        "Exempt" => {
            if limited.is_some() {
                causes.forbidden(&SPEC.child("limited"), "must be nil if the type is not Limited");
            }
            if let Some(exempt) = exempt {
                let at = SPEC.child("exempt");
                shares(exempt, &at, causes);
                lendable(exempt, &at, causes);
            }
        }
        "Limited" => {
            if exempt.is_some() {
                causes.forbidden(&SPEC.child("exempt"), "must be nil if the type is Limited");
            }
            match limited {
                None => causes.required(&SPEC.child("limited"), "must not be empty when type is Limited"),
                Some(limited) => validate_limited(limited, &SPEC.child("limited"), causes),
            }
        }
        "" => causes.required(&SPEC.child("type"), ""),
        other => causes.not_supported(&SPEC.child("type"), other, &TYPES),
    }
}

fn shares(of: &Members, at: &Path<'_>, causes: &mut Causes) {
    if let Some(shares) = int(of, "nominalConcurrencyShares").filter(|shares| *shares < 0) {
        causes.invalid(&at.child("nominalConcurrencyShares"), shares, "must be a non-negative integer");
    }
}

fn lendable(of: &Members, at: &Path<'_>, causes: &mut Causes) {
    if let Some(percent) = int(of, "lendablePercent").filter(|percent| !(0..=100).contains(percent)) {
        causes.invalid(&at.child("lendablePercent"), percent, "must be between 0 and 100, inclusive");
    }
}

fn validate_limited(limited: &Members, at: &Path<'_>, causes: &mut Causes) {
    shares(limited, at, causes);
    response(child_or_empty(limited, "limitResponse"), &at.child("limitResponse"), causes);
    lendable(limited, at, causes);
    if let Some(percent) = int(limited, "borrowingLimitPercent").filter(|percent| *percent < 0) {
        let detail = "if specified, must be a non-negative integer";
        causes.invalid(&at.child("borrowingLimitPercent"), percent, detail);
    }
}

fn response(response: &Members, at: &Path<'_>, causes: &mut Causes) {
    let queues = child(response, "queuing");
    match (text(response, "type"), queues) {
        ("Reject", Some(_)) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            causes.forbidden(&at.child("queuing"), detail);
        }
        ("Reject", None) => {}
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            causes.required(&at.child("queuing"), detail);
        }
        ("Queue", Some(queues)) => queuing(queues, &at.child("queuing"), causes),
        ("", _) => causes.required(&at.child("type"), ""),
        (other, _) => causes.not_supported(&at.child("type"), other, &RESPONSES),
    }
}

fn queuing(queuing: &Members, at: &Path<'_>, causes: &mut Causes) {
    let number = |name| int(queuing, name).unwrap_or(0);
    let (queues, hand) = (number("queues"), number("handSize"));
    if number("queueLengthLimit") <= 0 {
        causes.invalid(&at.child("queueLengthLimit"), number("queueLengthLimit"), "must be positive");
    }
    if queues <= 0 {
        causes.invalid(&at.child("queues"), queues, "must be positive");
    } else if queues > QUEUES_MAX {
        causes.invalid(&at.child("queues"), queues, &format!("must not be greater than {QUEUES_MAX}"));
    }
    let at = at.child("handSize");
    if hand <= 0 {
        causes.invalid(&at, hand, "must be positive");
    } else if hand > queues {
        causes.invalid(&at, hand, &format!("should not be greater than queues ({queues})"));
    } else if ((queues as f64).log2() * hand as f64).ceil() > ENTROPY_BITS_MAX {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than \
             {ENTROPY_BITS_MAX}"
        );
        causes.invalid(&at, hand, &detail);
    }
}

/// The specs of some are fixed; of `exempt`, what it lends may change.
fn fixed(spec: &Members, name: &str, causes: &mut Causes) {
    let Some(fixed) = built_in("PriorityLevelConfiguration", name).filter(|built_in| built_in.mandatory)
    else {
        return;
    };
    let wanted = child_or_empty_of(&fixed.object);
    let same = |member| same_member(spec, wanted, member);
    let detail = match name {
        "exempt" if same("type") && same("limited") => return,
        "exempt" => "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value".to_string(),
        _ if same("type") && same("limited") && same("exempt") => return,
        _ => format!("spec of '{name}' must equal the fixed value"),
    };
    causes.invalid(&SPEC, internal::shown("flowcontrol.PriorityLevelConfigurationSpec", spec), &detail);
}

fn child_or_empty_of(object: &serde_json::Value) -> &Members {
    child_or_empty(object.as_object().expect("an object of ours"), "spec")
}
