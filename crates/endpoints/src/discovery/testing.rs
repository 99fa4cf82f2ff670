//! A catalog of the built-in resources without stores, for tests.

use forebay_registry::catalog::{self, Catalog};
use forebay_schema::builtin;

/// The named groups that are served from the first version on.
pub const ISSUE_GROUPS: [&str; 7] = [
    "apiextensions.k8s.io",
    "apps",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "rbac.authorization.k8s.io",
];

pub fn catalog() -> Catalog {
    let resources = builtin::table().resources().iter();
    let served = |resource| catalog::table::served(resource, forebay_strategy::convert::of, None);
    Catalog::new(resources.filter_map(served), None)
}
