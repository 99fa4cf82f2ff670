//! Formats of times: dates, date-times, durations; and the strict RFC 3339 that object metadata uses.

use forebay_apimachinery::go_time::{self, Layout};
use forebay_apimachinery::schema_duration;

const DAY_SECONDS: i64 = 86_400;

/// `2006-01-02`.
pub(super) fn is_date(text: &str) -> bool {
    go_time::parse(Layout::Date, text).is_ok()
}

pub(super) fn is_duration(text: &str) -> bool {
    schema_duration::parse(text).is_ok()
}

/// Parses RFC 3339 as Go's `time.Parse` does; returns seconds since 1970.
///
/// # Errors
/// Go's text.
pub(crate) fn parse_rfc3339(text: &str) -> Result<i64, String> {
    go_time::parse(Layout::Rfc3339, text).map(|time| time.seconds)
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
}

/// The lenient RFC 3339 of the `date-time` format: the offset and the fraction are not judged further.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let fraction = match rest.strip_suffix('z') {
        Some(fraction) => Some(fraction),
        None => rest.len().checked_sub(6).and_then(|at| rest.split_at_checked(at)).and_then(
            |(fraction, offset)| {
                let b = offset.as_bytes();
                let is_offset = matches!(b[0], b'+' | b'-')
                    && b[3] == b':'
                    && digits(&[b[1], b[2], b[4], b[5]]).is_some();
                is_offset.then_some(fraction)
            },
        ),
    };
    let fraction_ok = fraction.is_some_and(|fraction| {
        let mut chars = fraction.chars();
        match chars.next() {
            None => true,
            Some(mark) => mark != '\n' && !chars.as_str().is_empty() && chars.all(|c| c.is_ascii_digit()),
        }
    });
    fraction_ok && is_clock(clock.as_bytes())
}

/// `15:04:05`.
fn is_clock(b: &[u8]) -> bool {
    let two = |at: usize, max: i64| digits(&b[at..at + 2]).is_some_and(|n| n <= max);
    b[2] == b':' && b[5] == b':' && two(0, 23) && two(3, 59) && two(6, 59)
}

/// Prints seconds since 1970 as `2006-01-02T15:04:05Z`.
pub(crate) fn print_rfc3339(seconds: i64) -> String {
    let (days, clock) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let z = days + 719_468;
    let (era, of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_they_are_read() {
        for text in
            ["1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z", "0001-01-01T00:00:00Z", "1999-12-31T00:00:01Z"]
        {
            assert_eq!(parse_rfc3339(text).map(print_rfc3339).as_deref(), Ok(text));
        }
    }
}
