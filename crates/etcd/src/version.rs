//! Which versions of etcd announce progress in order (kubernetes' reference: etcd-io/etcd#15220, #17507).

/// Whether what a member of `version` says of progress can be trusted: from 3.4.31, from 3.5.13, and all after those.
pub fn is_trusted(version: &str) -> bool {
    let mut numbers = version.split(['.', '-', '+']).map(|number| number.parse::<u32>().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    match (next(), next(), next()) {
        (3, 4, patch) => patch >= 31,
        (3, 5, patch) => patch >= 13,
        (major, minor, _) => (major, minor) > (3, 5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_with_progress_out_of_order_are_not_trusted() {
        for good in ["3.4.31", "3.5.13", "3.5.27", "3.6.0", "3.6.0-rc.1", "3.7.3", "4.0.0"] {
            assert!(is_trusted(good), "{good}");
        }
        for bad in ["3.3.27", "3.4.30", "3.5.0", "3.5.12", "2.3.8", "", "x.y.z"] {
            assert!(!is_trusted(bad), "{bad}");
        }
    }
}
