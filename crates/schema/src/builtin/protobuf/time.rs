//! Times between seconds since 1970 and the canonical text of `metav1.Time` and `metav1.MicroTime`.
//!
//! In and out: text in UTC, seconds and nanoseconds. Never: a clock, or text that is not canonical.

use std::fmt::Write;

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

use super::error::DecodeError;

/// Go's zero time, 0001-01-01T00:00:00Z, which is an empty message and `null` in JSON.
const ZERO: i64 = -62_135_596_800;

/// How much of a second the type keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Micros,
}

/// A protobuf `Timestamp`; `None` in its place is Go's zero time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Timestamp {
    pub(super) seconds: i64,
    pub(super) nanos: i32,
}

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// Returns the canonical text; `None` for the zero time.
///
/// # Errors
/// [`DecodeError::Time`] outside the years 0 to 9999, which Go would write but not read.
pub(super) fn text(stamp: Timestamp, precision: Precision) -> Result<Option<String>, DecodeError> {
    let out_of_range = DecodeError::Time { seconds: stamp.seconds };
    let micros = if precision == Precision::Micros { i64::from(stamp.nanos / 1000) } else { 0 };
    let Some(seconds) = stamp.seconds.checked_add(micros.div_euclid(1_000_000)) else {
        return Err(out_of_range);
    };
    let micros = micros.rem_euclid(1_000_000);
    if seconds == ZERO && micros == 0 {
        return Ok(None);
    }
    let Some(time) = EPOCH.checked_add(SignedDuration::from_secs(seconds)).ok().filter(|t| t.year() >= 0)
    else {
        return Err(out_of_range);
    };
    let mut text = String::with_capacity("0000-00-00T00:00:00.000000Z".len());
    // Some of what is read most: no formatting of numbers in general.
    let mut digits = |number: i8, behind: &str| {
        text.push((b'0' + number as u8 / 10) as char);
        text.push((b'0' + number as u8 % 10) as char);
        text.push_str(behind);
    };
    digits((time.year() / 100) as i8, "");
    digits((time.year() % 100) as i8, "-");
    digits(time.month(), "-");
    digits(time.day(), "T");
    digits(time.hour(), ":");
    digits(time.minute(), ":");
    digits(time.second(), "");
    if precision == Precision::Micros {
        // Writing to a String cannot fail.
        let _ = write!(text, ".{micros:06}");
    }
    text.push('Z');
    Ok(Some(text))
}

/// Reads canonical text: `Some(None)` is the zero time, `None` is text that is not canonical.
pub(super) fn stamp(text: &str, precision: Precision) -> Option<Option<Timestamp>> {
    let time: DateTime = text.strip_suffix('Z')?.parse().ok()?;
    let nanos = if precision == Precision::Micros { time.subsec_nanosecond() / 1000 * 1000 } else { 0 };
    let whole = time.with().subsec_nanosecond(0).build().ok()?;
    let seconds = whole.duration_since(EPOCH).as_secs();
    Some((seconds != ZERO || nanos != 0).then_some(Timestamp { seconds, nanos }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_there_and_back() {
        let check = |seconds, nanos, precision, want: &str| {
            let got = text(Timestamp { seconds, nanos }, precision).unwrap();
            assert_eq!(got.as_deref().unwrap_or("none"), want);
            let nanos = if precision == Precision::Micros { nanos / 1000 * 1000 } else { 0 };
            if let Some(got) = got {
                assert_eq!(stamp(&got, precision), Some(Some(Timestamp { seconds, nanos })), "{want}");
            }
        };
        check(0, 5, Precision::Seconds, "1970-01-01T00:00:00Z");
        check(-1, 0, Precision::Seconds, "1969-12-31T23:59:59Z");
        check(253_402_300_799, 0, Precision::Seconds, "9999-12-31T23:59:59Z");
        check(ZERO, 999, Precision::Seconds, "none");
        check(ZERO, 999, Precision::Micros, "none");
        check(ZERO, 1000, Precision::Micros, "0001-01-01T00:00:00.000001Z");
        check(ZERO - 1, 0, Precision::Seconds, "0000-12-31T23:59:59Z");
        check(-1, 999_999_999, Precision::Micros, "1969-12-31T23:59:59.999999Z");
        check(1_709_251_199, 0, Precision::Micros, "2024-02-29T23:59:59.000000Z");
    }

    #[test]
    fn nanoseconds_carry_into_the_seconds() {
        let check = |seconds, nanos, want: &str| {
            assert_eq!(text(Timestamp { seconds, nanos }, Precision::Micros).unwrap().unwrap(), want);
        };
        check(0, -1000, "1969-12-31T23:59:59.999999Z");
        check(0, -999, "1970-01-01T00:00:00.000000Z");
        check(0, 2_000_001_000, "1970-01-01T00:00:02.000001Z");
    }

    #[test]
    fn years_beyond_four_digits_are_refused() {
        for seconds in [253_402_300_800, i64::MAX, i64::MIN, -62_167_219_201] {
            let got = text(Timestamp { seconds, nanos: -1_000_000_000 }, Precision::Micros);
            assert_eq!(got.is_ok(), seconds == 253_402_300_800, "{seconds}");
            let got = text(Timestamp { seconds, nanos: 0 }, Precision::Seconds);
            assert_eq!(got, Err(DecodeError::Time { seconds }));
        }
        for text in ["10000-01-01T00:00:00Z", "", "Z", "2024-01-01T00:00:00", "2024-13-01T00:00:00Z"] {
            assert_eq!(stamp(text, Precision::Seconds), None, "{text}");
        }
    }
}
