//! NetworkPolicies.
//!
//! In: a NetworkPolicy. Out: defaults, causes, warnings. Never: a packet.

use forebay_apimachinery::Seen;
use serde_json::{Value, json};

use crate::address::{Range, cidr_warning, legacy_cidr};
use crate::field::{Causes, Path};
use crate::format;
use crate::meta::validate_built_in_update;
use crate::rule::Update;
use crate::selector;
use crate::value::{
    Members, child, child_made, child_or_empty, default, int, list, objects, objects_mut, text, text_opt,
    texts,
};

const SPEC: Path<'static> = Path::root("spec");
/// Rules, and what their peers are called.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

pub fn defaults(policy: &mut Members) {
    let spec = child_made(policy, "spec");
    if list(spec, "policyTypes").is_empty() {
        let types =
            if list(spec, "egress").is_empty() { json!(["Ingress"]) } else { json!(["Ingress", "Egress"]) };
        spec.insert("policyTypes".into(), types);
    }
    for (rules, _) in DIRECTIONS {
        for rule in objects_mut(spec, rules) {
            objects_mut(rule, "ports").for_each(|port| default(port, "protocol", "TCP"));
        }
    }
}

pub fn validate_create(policy: &Members, causes: &mut Causes) {
    validate(child_or_empty(policy, "spec"), &Seen::default(), causes);
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_update(new, update.old, causes);
    let mut known = Seen::default();
    each_block(child_or_empty(update.old, "spec"), |block, _| {
        known.again(text(block, "cidr"));
        known.extend(texts(block, "except"));
    });
    validate(child_or_empty(new, "spec"), &known, causes);
}

pub fn warnings(policy: &Members, warnings: &mut Vec<String>) {
    each_block(child_or_empty(policy, "spec"), |block, at| {
        warnings.extend(cidr_warning(text(block, "cidr"), &at.child("cidr")));
        for (index, except) in texts(block, "except").enumerate() {
            warnings.extend(cidr_warning(except, &at.child("except").index(index)));
        }
    });
}

fn each_block<'o>(spec: &'o Members, mut visit: impl FnMut(&'o Members, &Path<'_>)) {
    for (rules, peers) in DIRECTIONS {
        for (index, rule) in objects(spec, rules).enumerate() {
            let rules_at = SPEC.child(rules);
            let rule_at = rules_at.index(index);
            for (index, peer) in objects(rule, peers).enumerate() {
                let peers_at = rule_at.child(peers);
                if let Some(block) = child(peer, "ipBlock") {
                    visit(block, &peers_at.index(index).child("ipBlock"));
                }
            }
        }
    }
}

/// - `known`: ranges that the stored policy has, which are not judged again.
fn validate(spec: &Members, known: &Seen<&str>, causes: &mut Causes) {
    selector::validate(child_or_empty(spec, "podSelector"), &SPEC.child("podSelector"), causes);
    for (rules, peers) in DIRECTIONS {
        for (index, rule) in objects(spec, rules).enumerate() {
            let rules_at = SPEC.child(rules);
            let at = rules_at.index(index);
            for (index, of) in objects(rule, "ports").enumerate() {
                port(of, &at.child("ports").index(index), causes);
            }
            for (index, of) in objects(rule, peers).enumerate() {
                peer(of, known, &at.child(peers).index(index), causes);
            }
        }
    }
    const TYPES: [&str; 2] = ["Ingress", "Egress"];
    let at = SPEC.child("policyTypes");
    if list(spec, "policyTypes").len() > TYPES.len() {
        return causes.invalid(&at, spec.get("policyTypes"), "may not specify more than two policyTypes");
    }
    for (index, kind) in texts(spec, "policyTypes").enumerate().filter(|(_, kind)| !TYPES.contains(kind)) {
        causes.not_supported(&at.index(index), kind, &TYPES);
    }
}

fn port(port: &Members, at: &Path<'_>, causes: &mut Causes) {
    const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
    if let Some(protocol) = text_opt(port, "protocol").filter(|protocol| !PROTOCOLS.contains(protocol)) {
        causes.not_supported(&at.child("protocol"), protocol, &PROTOCOLS);
    }
    let (end, end_at) = (int(port, "endPort"), at.child("endPort"));
    match (port.get("port"), end) {
        (Some(Value::String(name)), end) => {
            if let Some(end) = end {
                causes.invalid(&end_at, end, "may not be specified when `port` is non-numeric");
            }
            causes.faults(&at.child("port"), name, format::port_name(name));
        }
        (Some(number), end) => {
            let number = number.as_i64().unwrap_or(0);
            if let Some(fault) = format::port_number(number) {
                causes.invalid(&at.child("port"), number, fault);
            }
            let Some(end) = end else { return };
            if end < number {
                causes.invalid(&end_at, number, "must be greater than or equal to `port`");
            }
            if let Some(fault) = format::port_number(end) {
                causes.invalid(&end_at, end, fault);
            }
        }
        (None, Some(end)) => {
            causes.invalid(&end_at, end, "may not be specified when `port` is not specified")
        }
        (None, None) => {}
    }
}

fn peer(peer: &Members, known: &Seen<&str>, at: &Path<'_>, causes: &mut Causes) {
    let mut count = 0;
    for name in ["podSelector", "namespaceSelector"] {
        if let Some(of) = child(peer, name) {
            count += 1;
            selector::validate(of, &at.child(name), causes);
        }
    }
    let block_of = child(peer, "ipBlock");
    if let Some(of) = block_of {
        count += 1;
        block(of, known, &at.child("ipBlock"), causes);
    }
    if count == 0 {
        causes.required(at, "must specify a peer");
    } else if count > 1 && block_of.is_some() {
        causes.forbidden(at, "may not specify both ipBlock and another peer");
    }
}

fn block(block: &Members, known: &Seen<&str>, at: &Path<'_>, causes: &mut Causes) {
    let whole = text(block, "cidr");
    if whole.is_empty() {
        return causes.required(&at.child("cidr"), "");
    }
    let Some(whole) = range(whole, known, &at.child("cidr"), causes) else { return };
    for (index, except) in texts(block, "except").enumerate() {
        let at = at.child("except");
        let at = at.index(index);
        let Some(part) = range(except, known, &at, causes) else { continue };
        if !whole.contains(part.address) || whole.bits >= part.bits {
            causes.invalid(&at, except, "must be a strict subset of `cidr`");
        }
    }
}

fn range(value: &str, known: &Seen<&str>, at: &Path<'_>, causes: &mut Causes) -> Option<Range> {
    if known.has(value) { Range::sloppy(value) } else { legacy_cidr(value, at, causes) }
}
