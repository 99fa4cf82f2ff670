//! What the versions of etcd can do, and where they are wrong.
//!
//! In: the version that a member says it has, asked of each one that is connected to. Out: what may be relied
//! on.

/// Whether what a member of `version` says of progress can be trusted: from 3.4.31, from 3.5.13, and all
/// after those.
///
/// Before 3.4.25 and 3.5.8 it is announced ahead of events (etcd-io/etcd#15220), before 3.4.31 and 3.5.13 it
/// can be announced by a watch that is not synchronized (etcd-io/etcd#17507). What comes before a release is
/// not that release.
pub fn is_trusted(version: &str) -> bool {
    match Numbers::of(version) {
        Some(Numbers { series: (3, 4), patch, is_early }) => patch >= 31 + u32::from(is_early),
        Some(Numbers { series: (3, 5), patch, is_early }) => patch >= 13 + u32::from(is_early),
        Some(Numbers { series, .. }) => series > (3, 5),
        None => false,
    }
}

/// What a member is at least that says how it is, and which version, to root alone: 3.6 does (seen with
/// 3.6.8), while 3.5.35 and 3.7.3 say it to everybody whom they let in.
pub const OF_DENIAL: &str = "3.6.0";

/// Whether a member of `version` has RangeStream: from 3.7 on. Who asks is told so all the same where one has
/// not.
pub fn has_range_stream(version: &str) -> bool {
    Numbers::of(version).is_some_and(|numbers| numbers.series >= (3, 7))
}

struct Numbers {
    series: (u32, u32),
    patch: u32,
    // Of a release that was still to come: `-alpha.0`, `-rc.1`.
    is_early: bool,
}

impl Numbers {
    /// `None` for what is no version.
    fn of(version: &str) -> Option<Numbers> {
        let release = version.split('+').next()?;
        let (release, early) = release.split_once('-').map_or((release, None), |(r, e)| (r, Some(e)));
        let mut numbers = release.split('.').map(|number| number.parse::<u32>().ok());
        let (major, minor, patch) = (numbers.next()??, numbers.next()??, numbers.next()??);
        Some(Numbers { series: (major, minor), patch, is_early: early.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_with_progress_out_of_order_are_not_trusted() {
        for good in ["3.4.31", "3.5.13", "3.5.27", "3.6.0", "3.6.0-rc.1", "3.7.3", "3.5.14-rc.0", "4.0.0"] {
            assert!(is_trusted(good), "{good}");
        }
        for bad in [
            "3.3.27",
            "3.4.30",
            "3.4.31-rc.0",
            "3.5.0",
            "3.5.12",
            "3.5.13-rc.0",
            "2.3.8",
            "",
            "3.7",
            "not_decided",
            "x.y.z",
        ] {
            assert!(!is_trusted(bad), "{bad}");
        }
    }

    #[test]
    fn ranges_are_streamed_from_3_7_on() {
        for (version, has) in [
            ("3.7.0", true),
            ("3.7.0-rc.0", true),
            ("3.8.1", true),
            ("4.0.0", true),
            ("3.6.99", false),
            ("3.5.35", false),
            ("", false),
        ] {
            assert_eq!(has_range_stream(version), has, "{version}");
        }
    }
}
