//! kube-apiserver's flags that are refused until they are served, and why ignoring them would do harm.
//!
//! A flag comes out of this table when what it asks for is done, never because it is in the way.

use super::spec::FlagType::{List, One};
use super::spec::{Class, Flag, FlagType};

const fn refused(name: &'static str, kind: FlagType, why: &'static str) -> Flag {
    Flag { name, kind, class: Class::Refused(why) }
}

const ABAC: &str = "ABAC is what RBAC has taken the place of: no request would be judged by it";

pub(super) const REFUSED: &[Flag] = &[
    refused("authorization-policy-file", One, ABAC),
    refused("etcd-servers-overrides", List, "all objects are kept in one store"),
    refused("service-account-signing-endpoint", One, "tokens would be signed with a key kept here"),
];
