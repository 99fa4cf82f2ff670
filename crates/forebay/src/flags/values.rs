//! Values as Go spells them: booleans, whole numbers and durations.
//!
//! Text in, a value or the reason why not out. Pure.

use std::time::Duration;

use forebay_apimachinery::go_duration::{self, GoDurationError};
use forebay_apimachinery::quantity;

/// Reads a boolean with the spellings of Go's `strconv.ParseBool`.
///
/// # Errors
/// The reason, to follow the name of the flag.
pub fn bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("not true or false".to_owned()),
    }
}

/// Reads a whole number of at most `max`.
///
/// # Errors
/// The reason; a negative number is told in kube-apiserver's words.
pub fn number(text: &str, max: u32) -> Result<u32, String> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.len() > 1 && digits.starts_with('-') && digits[1..].bytes().all(|b| b.is_ascii_digit()) {
        return Err("can not be negative value".to_owned());
    }
    match digits.parse::<u64>() {
        Ok(number) if number <= u64::from(max) => Ok(number as u32),
        Ok(_) => Err(format!("more than {max}")),
        Err(_) => Err("not a whole number".to_owned()),
    }
}

/// Reads bytes as Kubernetes' quantities have them: "512Mi", "1.5G", "1073741824". Fractions of a byte are
/// left off.
///
/// # Errors
/// The reason.
pub fn bytes(text: &str) -> Result<u64, String> {
    // A quantity without digits is 0 to Kubernetes.
    let nanos = quantity::nanos(text).ok().filter(|_| text.contains(|c: char| c.is_ascii_digit()));
    let nanos = nanos.ok_or("not a number of bytes such as 512Mi")?;
    if text.starts_with('-') {
        return Err("can not be negative value".to_owned());
    }
    // What is more is capped there, with a suffix such as Mi.
    let whole = u64::try_from(nanos / quantity::ONE).ok().filter(|total| *total < i64::MAX as u64);
    whole.ok_or_else(|| "more than 8Ei".to_owned())
}

/// Reads a duration that is not negative, with the grammar of Go's `time.ParseDuration`: "1m0s", "1.5h", "0".
///
/// # Errors
/// The reason.
pub fn duration(text: &str) -> Result<Duration, String> {
    let nanos = go_duration::parse(text).map_err(|why| match why {
        GoDurationError::Invalid => "not a duration such as 1m30s".to_owned(),
        GoDurationError::TooLong => "longer than 292 years".to_owned(),
        GoDurationError::MissingUnit => "missing unit (such as s, m or h)".to_owned(),
        GoDurationError::UnknownUnit(unit) => {
            format!("unknown unit {unit:?} (known are ns, us, ms, s, m, h)")
        }
    })?;
    u64::try_from(nanos).map(Duration::from_nanos).map_err(|_| "can not be negative value".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_go_reads_them() {
        let rows: &[(&str, Result<u64, &str>)] = &[
            ("0", Ok(0)),
            ("1m0s", Ok(60_000_000_000)),
            ("1h", Ok(3_600_000_000_000)),
            ("1.5h", Ok(5_400_000_000_000)),
            (".5s", Ok(500_000_000)),
            ("1.s", Ok(1_000_000_000)),
            ("+5s", Ok(5_000_000_000)),
            ("-0s", Ok(0)),
            ("1us", Ok(1_000)),
            ("1µs", Ok(1_000)),
            ("1h15m30.918s", Ok(4_530_918_000_000)),
            ("0.3333333333333333333h", Ok(1_200_000_000_000)),
            ("-1s", Err("can not be negative value")),
            ("", Err("not a duration such as 1m30s")),
            ("-", Err("not a duration such as 1m30s")),
            (".s", Err("not a duration such as 1m30s")),
            ("s", Err("not a duration such as 1m30s")),
            ("60", Err("missing unit (such as s, m or h)")),
            ("3d", Err("unknown unit \"d\" (known are ns, us, ms, s, m, h)")),
            ("1 s", Err("unknown unit \" s\" (known are ns, us, ms, s, m, h)")),
            ("3000000h", Err("longer than 292 years")),
            ("99999999999999999999h", Err("longer than 292 years")),
            ("2562047h47m16.854775808s", Err("longer than 292 years")),
        ];
        for (text, want) in rows {
            let got = duration(text).map(|d| d.as_nanos() as u64);
            assert_eq!(got, want.map_err(str::to_owned), "{text:?}");
        }
    }

    #[test]
    fn numbers_are_whole_and_bounded() {
        let rows: &[(&str, Result<u32, &str>)] = &[
            ("0", Ok(0)),
            ("+7", Ok(7)),
            ("65535", Ok(65535)),
            ("65536", Err("more than 65535")),
            ("99999999999999999999", Err("not a whole number")),
            ("-1", Err("can not be negative value")),
            ("-", Err("not a whole number")),
            ("", Err("not a whole number")),
            ("4.5", Err("not a whole number")),
            ("--1", Err("not a whole number")),
        ];
        for (text, want) in rows {
            assert_eq!(number(text, 65535), want.map_err(str::to_owned), "{text:?}");
        }
    }

    #[test]
    fn bytes_are_quantities() {
        let rows: &[(&str, Result<u64, &str>)] = &[
            ("0", Ok(0)),
            ("1073741824", Ok(1 << 30)),
            ("512Mi", Ok(512 << 20)),
            ("1.5Gi", Ok(3 << 29)),
            (".5k", Ok(500)),
            ("2.", Ok(2)),
            ("+1G", Ok(1_000_000_000)),
            ("7Ei", Ok(7 << 60)),
            ("8Ei", Err("more than 8Ei")),
            ("99999999999999999999", Err("more than 8Ei")),
            ("-1Gi", Err("can not be negative value")),
            ("", Err("not a number of bytes such as 512Mi")),
            (".", Err("not a number of bytes such as 512Mi")),
            ("1mi", Err("not a number of bytes such as 512Mi")),
            ("1 Gi", Err("not a number of bytes such as 512Mi")),
            ("1GiB", Err("not a number of bytes such as 512Mi")),
        ];
        for (text, want) in rows {
            assert_eq!(bytes(text), want.map_err(str::to_owned), "{text:?}");
        }
    }

    #[test]
    fn booleans_have_gos_spellings() {
        for text in ["1", "t", "T", "true", "TRUE", "True"] {
            assert_eq!(bool(text), Ok(true), "{text}");
        }
        for text in ["0", "f", "F", "false", "FALSE", "False"] {
            assert_eq!(bool(text), Ok(false), "{text}");
        }
        for text in ["", "yes", "on", "tRUE"] {
            assert!(bool(text).is_err(), "{text}");
        }
    }
}
