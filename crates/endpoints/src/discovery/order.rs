//! Which group and which version comes first.
//!
//! In: names. Out: orderings. Never: looks at the resources.
//!
//! Source: the APIService priorities of kube-apiserver v1.36.3 and apimachinery `version/helpers.go`.

use std::cmp::Ordering;

/// Priorities of the built-in groups, highest first. Clients that search by kind or short name look in this order.
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
const CUSTOM_PRIORITY: u32 = 1_000;

/// How early a group is listed; the higher, the earlier.
pub fn group_priority(group: &str) -> u32 {
    let known = PRIORITIES.iter().find(|(name, _)| *name == group);
    known.map_or(CUSTOM_PRIORITY, |(_, priority)| *priority)
}

/// Compares versions as Kubernetes ranks them: the greater is the preferred one.
///
/// Stable ones rank over beta, beta over alpha, then the higher number; names of any other form come last, in
/// reverse alphabetical rank.
pub fn kube_aware(a: &str, b: &str) -> Ordering {
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => b.cmp(a),
    }
}

/// Stability (2 is stable, 1 beta, 0 alpha), major and minor number.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let (stability, minor) = match rest {
        "" => (2, "0"),
        _ => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
            (Some(minor), _) => (1, minor),
            (_, Some(minor)) => (0, minor),
            _ => return None,
        },
    };
    Some((stability, number(major)?, number(minor)?))
}

/// A number that fits Go's `int`.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten().filter(|number| i64::try_from(*number).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rank_by_stability_then_number_then_other_names() {
        let ranked = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "bar",
            "foo1",
            "foo10",
            "v",
            "v1beta",
            "v99999999999999999999",
        ];
        let mut sorted = ranked.to_vec();
        sorted.reverse();
        sorted.sort_by(|a, b| kube_aware(b, a));
        assert_eq!(sorted, ranked);
    }

    #[test]
    fn a_group_of_crds_comes_after_the_built_in_ones() {
        assert!(PRIORITIES.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        assert!(PRIORITIES.iter().all(|(_, priority)| *priority > group_priority("stable.example.com")));
    }
}
