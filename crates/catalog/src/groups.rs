//! How API groups rank: which of two that have a resource of the same name clients take.
//!
//! In: a group's name. Out: the priority that its APIService carries and that discovery lists it by.
//!
//! Source: the APIService priorities of kube-apiserver v1.36.3.

/// Priorities of the built-in groups, highest first. Clients that search by kind or short name look in this
/// order.
const PRIORITIES: [(&str, u32); 24] = [
    ("apiregistration.k8s.io", 20_000),
    ("", 18_000),
    ("apps", 17_800),
    ("events.k8s.io", 17_750),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("networking.k8s.io", 17_200),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("storage.k8s.io", 16_800),
    ("apiextensions.k8s.io", 16_700),
    ("admissionregistration.k8s.io", 16_700),
    ("scheduling.k8s.io", 16_600),
    ("coordination.k8s.io", 16_500),
    ("node.k8s.io", 16_300),
    ("discovery.k8s.io", 16_200),
    ("resource.k8s.io", 16_200),
    ("flowcontrol.apiserver.k8s.io", 16_100),
    ("internal.apiserver.k8s.io", 16_000),
    ("storagemigration.k8s.io", 15_800),
    ("apidiscovery.k8s.io", 15_700),
];

/// Priority of a group that only CRDs have.
pub const CUSTOM_PRIORITY: u32 = 1_000;

/// How early a group is listed; the higher, the earlier.
pub fn group_priority(group: &str) -> u32 {
    let known = PRIORITIES.iter().find(|(name, _)| *name == group);
    known.map_or(CUSTOM_PRIORITY, |(_, priority)| *priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_crds_comes_after_the_built_in_ones() {
        assert!(PRIORITIES.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        assert!(PRIORITIES.iter().all(|(_, priority)| *priority > group_priority("stable.example.com")));
    }
}
