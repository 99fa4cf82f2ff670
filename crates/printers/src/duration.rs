//! Durations for people, as `k8s.io/apimachinery/pkg/util/duration` words them.
//!
//! In: durations and points in time. Out: text such as `5d3h`. Never: a clock.

use jiff::{SignedDuration, Timestamp};

use crate::member::between;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Two to three significant figures: `90s`, `5m30s`, `3h15m`, `2d4h`, `1y200d`.
///
/// A negative duration above -2 s is clock skew and reads `0s`; below that it is `<invalid>`.
pub fn human(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(seconds, MINUTE, 'm', 1, 's'),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => pair(seconds, HOUR, 'h', MINUTE, 'm'),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => pair(seconds, DAY, 'd', HOUR, 'h'),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => pair(seconds, YEAR, 'y', DAY, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// One figure: `90s` is `1m`.
pub fn short_human(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        DAY..YEAR => format!("{}d", seconds / DAY),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// Time since `then`, or `<unknown>` when there is none.
pub fn since(then: Option<Timestamp>, now: Timestamp) -> String {
    then.map_or_else(|| "<unknown>".to_owned(), |then| human(between(then, now)))
}

/// `2d` or `2d4h`: whole units of the first size, and of the second if any are left.
fn pair(seconds: i64, big: i64, big_unit: char, small: i64, small_unit: char) -> String {
    match seconds % big / small {
        0 => format!("{}{big_unit}", seconds / big),
        rest => format!("{}{big_unit}{rest}{small_unit}", seconds / big),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn human_keeps_two_or_three_figures() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_859, "3h"),
            (10_860, "3h1m"),
            (28_799, "7h59m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_199, "7d23h"),
            (691_200, "8d"),
            (63_071_999, "729d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_287_999, "7y364d"),
            (252_288_000, "8y"),
            (9_223_372_036, "292y"),
        ] {
            assert_eq!(human(SignedDuration::from_secs(seconds)), text, "{seconds}");
        }
    }

    #[test]
    fn fractions_are_cut_towards_zero() {
        for (millis, text) in
            [(-1_999, "0s"), (-2_000, "<invalid>"), (-999, "0s"), (119_999, "119s"), (999, "0s")]
        {
            assert_eq!(human(SignedDuration::from_millis(millis)), text, "{millis}");
        }
    }

    #[test]
    fn short_human_keeps_one_figure() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (3_600, "1h"),
            (86_399, "23h"),
            (86_400, "1d"),
            (31_535_999, "364d"),
            (31_536_000, "1y"),
        ] {
            assert_eq!(short_human(SignedDuration::from_secs(seconds)), text, "{seconds}");
        }
    }

    #[test]
    fn time_before_go_can_count_stops_at_292_years() {
        let now: Timestamp = "2026-06-01T12:00:00Z".parse().unwrap();
        let at = |text: &str| since(Some(text.parse().unwrap()), now);
        assert_eq!(at("1600-01-01T00:00:00Z"), "292y");
        assert_eq!(at("2026-06-01T11:58:00Z"), "2m");
        assert_eq!(since(None, now), "<unknown>");
    }
}
