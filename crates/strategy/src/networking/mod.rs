//! The kinds of `networking.k8s.io`.
//!
//! In: objects. Out: rows for [`rules`](super::rules). Never: another group's kinds; allocates an address.
//!
//! Source: kubernetes v1.36.3 `registry/networking`, `apis/networking/{v1,validation}`.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;
#[cfg(test)]
mod tests;

use super::lifecycle::{begin, first_generation, reset_status, status_apart};
use super::names::NameRule;
use super::rule::{NONE, Rules};

pub const KINDS: &[Rules] = &[
    Rules {
        kind: "Ingress",
        name: Some(NameRule::Subdomain),
        prepare_create: begin,
        prepare_update: status_apart,
        validate_create: ingress::validate_create,
        validate_update: ingress::validate_update,
        warnings: ingress::warnings,
        ..NONE
    },
    Rules {
        kind: "IngressClass",
        namespaced: false,
        name: Some(NameRule::Subdomain),
        defaults: ingress_class::defaults,
        prepare_create: first_generation,
        prepare_update: ingress_class::prepare_update,
        validate_create: ingress_class::validate,
        validate_update: ingress_class::validate_update,
        ..NONE
    },
    Rules {
        kind: "NetworkPolicy",
        name: Some(NameRule::Subdomain),
        defaults: network_policy::defaults,
        prepare_create: first_generation,
        prepare_update: ingress_class::prepare_update,
        validate_create: network_policy::validate_create,
        validate_update: network_policy::validate_update,
        warnings: |policy, _, warnings| network_policy::warnings(policy, warnings),
        ..NONE
    },
    Rules {
        kind: "IPAddress",
        namespaced: false,
        name: Some(NameRule::Ip),
        validate_create: ip_address::validate,
        validate_update: ip_address::validate_update,
        ..NONE
    },
    Rules {
        kind: "ServiceCIDR",
        namespaced: false,
        name: Some(NameRule::Subdomain),
        prepare_create: reset_status,
        prepare_update: service_cidr::prepare_update,
        validate_create: service_cidr::validate_create,
        validate_update: service_cidr::validate_update,
        ..NONE
    },
];
