//! Durations as Go writes them: `1h30m`, `1.5s`, `-2ms`, `0`.
//!
//! In: text. Out: signed nanoseconds, or what is wrong; and the other way round. Never: decides whether a
//! duration may be negative or long.
//!
//! Source: Go 1.24 `time.ParseDuration`, roundings included, and `time.Duration.String`.

use crate::json::go_quote;

/// Why a text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoDurationError<'t> {
    #[error("not a duration")]
    Invalid,
    /// More than an int64 of nanoseconds holds, which is 292 years. Go says the same of it as of what is
    /// invalid.
    #[error("too long")]
    TooLong,
    #[error("missing unit")]
    MissingUnit,
    #[error("unknown unit {0:?}")]
    UnknownUnit(&'t str),
}

impl GoDurationError<'_> {
    /// The error of `time.ParseDuration`.
    ///
    /// - `text`: the whole duration.
    pub fn as_go_says(&self, text: &str) -> String {
        let text = go_quote(text);
        match self {
            Self::Invalid | Self::TooLong => format!("time: invalid duration {text}"),
            Self::MissingUnit => format!("time: missing unit in duration {text}"),
            Self::UnknownUnit(unit) => format!("time: unknown unit {} in duration {text}", go_quote(unit)),
        }
    }
}

/// One more than the most nanoseconds of a positive duration, and the most of a negative one.
const NANOS_MAX: u64 = 1 << 63;

/// Returns the nanoseconds that a duration stands for.
///
/// # Errors
/// When it is none, or longer than 292 years.
pub fn parse(text: &str) -> Result<i64, GoDurationError<'_>> {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(GoDurationError::Invalid);
    }
    let (mut rest, mut total) = (rest, 0u64);
    while !rest.is_empty() {
        let (nanos, after) = term(rest)?;
        total = total.checked_add(nanos).filter(|sum| *sum <= NANOS_MAX).ok_or(GoDurationError::TooLong)?;
        rest = after;
    }
    let nanos = if text.starts_with('-') { 0i64.checked_sub_unsigned(total) } else { total.try_into().ok() };
    nanos.ok_or(GoDurationError::TooLong)
}

/// The text of so many nanoseconds.
pub fn show(nanos: i64) -> String {
    let (sign, rest) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let of = |unit_nanos: u64, nanos: u64| {
        let digits = unit_nanos.ilog10() as usize;
        let (whole, part) = (nanos / unit_nanos, format!("{:0digits$}", nanos % unit_nanos));
        match part.trim_end_matches('0') {
            "" => whole.to_string(),
            part => format!("{whole}.{part}"),
        }
    };
    const SECOND: u64 = 1_000_000_000;
    let (minutes, seconds) = (rest / SECOND / 60, of(SECOND, rest % (60 * SECOND)));
    match rest {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{rest}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", of(1_000, rest)),
        1_000_000..SECOND => format!("{sign}{}ms", of(1_000_000, rest)),
        _ if minutes == 0 => format!("{sign}{seconds}s"),
        _ if minutes < 60 => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{}h{}m{seconds}s", minutes / 60, minutes % 60),
    }
}

/// One number with its unit, from the front of `text`, and what stands behind it.
fn term(text: &str) -> Result<(u64, &str), GoDurationError<'_>> {
    let (whole, rest) = split_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => split_digits(after),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(GoDurationError::Invalid);
    }
    let (unit, rest) =
        rest.split_at(rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len()));
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        // Go reads the number first.
        _ if whole_number(whole).is_none() => return Err(GoDurationError::TooLong),
        "" => return Err(GoDurationError::MissingUnit),
        _ => return Err(GoDurationError::UnknownUnit(unit)),
    };
    let whole = whole_number(whole).and_then(|number| number.checked_mul(scale));
    let nanos = whole.and_then(|whole| whole.checked_add(part(fraction, scale)));
    Ok((nanos.filter(|nanos| *nanos <= NANOS_MAX).ok_or(GoDurationError::TooLong)?, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The number that digits spell; `None` when it is more than [`NANOS_MAX`].
fn whole_number(digits: &str) -> Option<u64> {
    match digits {
        "" => Some(0),
        digits => digits.parse().ok().filter(|number| *number <= NANOS_MAX),
    }
}

/// `scale` times `0.digits`, in floating point as Go has it; digits that an int64 has no room for change
/// nothing.
fn part(digits: &str, scale: u64) -> u64 {
    let (mut numerator, mut denominator) = (0u64, 1f64);
    for digit in digits.bytes() {
        if numerator > (NANOS_MAX - 1) / 10 {
            break;
        }
        let next = numerator * 10 + u64::from(digit - b'0');
        if next > NANOS_MAX {
            break;
        }
        (numerator, denominator) = (next, denominator * 10.0);
    }
    (numerator as f64 * (scale as f64 / denominator)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// The rows of Go's own test, and what others read of it.
    #[test]
    fn durations_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", 0),
            ("5s", 5 * SECOND),
            ("30s", 30 * SECOND),
            ("1478s", 1478 * SECOND),
            ("-5s", -5 * SECOND),
            ("+5s", 5 * SECOND),
            ("-0", 0),
            ("+0", 0),
            ("5.0s", 5 * SECOND),
            ("5.6s", 5_600_000_000),
            ("5.s", 5 * SECOND),
            (".5s", SECOND / 2),
            ("1.0s", SECOND),
            ("1.00s", SECOND),
            ("1.004s", 1_004_000_000),
            ("1.0040s", 1_004_000_000),
            ("100.00100s", 100_001_000_000),
            ("10ns", 10),
            ("11us", 11_000),
            ("12µs", 12_000),
            ("12μs", 12_000),
            ("13ms", 13_000_000),
            ("14s", 14 * SECOND),
            ("15m", 15 * 60 * SECOND),
            ("16h", 16 * 3600 * SECOND),
            ("3h30m", 12_600 * SECOND),
            ("10.5s4m", 250_500_000_000),
            ("-2m3.4s", -123_400_000_000),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006),
            ("39h9m14.425s", 140_954_425_000_000),
            ("52763797000ns", 52_763_797_000),
            ("0.3333333333333333333h", 1200 * SECOND),
            ("9007199254740993ns", 9_007_199_254_740_993),
            ("9223372036854775807ns", i64::MAX),
            ("9223372036854775.807us", i64::MAX),
            ("9223372036s854ms775us807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("-9223372036854775.808us", i64::MIN),
            ("-2562047h47m16.854775808s", i64::MIN),
            ("0.100000000000000000000h", 360 * SECOND),
            ("0.830103483285477580700h", 2988 * SECOND + 372_539_827),
        ] {
            assert_eq!(parse(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn durations_are_shown_as_go_shows_them() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (4 * 60 * SECOND + 5 * SECOND, "4m5s"),
            (4 * 60 * SECOND + 5_001_000_000, "4m5.001s"),
            (5 * 3600 * SECOND + 6 * 60 * SECOND + 7_001_000_000, "5h6m7.001s"),
            (8 * 60 * SECOND + 1, "8m0.000000001s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
            (-1_500_000, "-1.5ms"),
        ] {
            assert_eq!(show(nanos), text);
            assert_eq!(parse(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_says_why() {
        use GoDurationError::{Invalid, MissingUnit, TooLong, UnknownUnit};
        for (text, want) in [
            ("", Invalid),
            ("3", MissingUnit),
            ("-", Invalid),
            ("s", Invalid),
            (".", Invalid),
            ("-.", Invalid),
            (".s", Invalid),
            ("+.s", Invalid),
            ("1d", UnknownUnit("d")),
            ("1 s", UnknownUnit(" s")),
            ("1é", UnknownUnit("é")),
            ("9223372036854775810ns", TooLong),
            ("9223372036854775808ns", TooLong),
            ("-9223372036854775809ns", TooLong),
            ("9223372036854776us", TooLong),
            ("3000000h", TooLong),
            ("9223372036854775.808us", TooLong),
            ("9223372036854ms775us808ns", TooLong),
            ("99999999999999999999d", TooLong),
        ] {
            assert_eq!(parse(text), Err(want), "{text}");
        }
    }

    #[test]
    fn errors_have_the_words_of_go() {
        for (text, want) in [
            ("3", r#"time: missing unit in duration "3""#),
            ("3d", r#"time: unknown unit "d" in duration "3d""#),
            ("x", r#"time: invalid duration "x""#),
            ("3000000h", r#"time: invalid duration "3000000h""#),
        ] {
            assert_eq!(parse(text).unwrap_err().as_go_says(text), want);
        }
    }
}
