//! Which of two versions comes first.
//!
//! In: names. Out: an ordering. Never: looks at the resources.
//!
//! Source: apimachinery v0.36.3 `version/helpers.go`.

use std::cmp::Ordering;

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
}
