//! What a plain scalar means: null, boolean, number or text.
//!
//! Source: yaml.v2 `resolve.go`, which follows YAML 1.1: `yes`, `on` and `y` are true, `010` is eight.

/// A scalar's meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    /// `<<`: take over another mapping's members.
    Merge,
    Text,
}

/// What `text`, without quotes, means.
pub fn resolve(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        "<<" => return Scalar::Merge,
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Scalar::Text;
    }
    number(&text.replace('_', "")).unwrap_or(Scalar::Text)
}

fn number(plain: &str) -> Option<Scalar> {
    let (negative, digits) = match plain.as_bytes().first()? {
        b'-' => (true, &plain[1..]),
        b'+' => (false, &plain[1..]),
        _ => (false, plain),
    };
    integer(negative, digits)
        .or_else(|| is_float(digits).then(|| plain.parse().ok().map(Scalar::Float)).flatten())
}

/// Decimal, `0x`, `0b`, `0o`, or octal with a leading zero.
fn integer(negative: bool, digits: &str) -> Option<Scalar> {
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    if negative {
        return i64::from_str_radix(&format!("-{digits}"), radix).ok().map(Scalar::Int);
    }
    let number = u64::from_str_radix(digits, radix).ok()?;
    Some(i64::try_from(number).map_or(Scalar::Uint(number), Scalar::Int))
}

/// Digits with a point somewhere, and maybe an exponent.
fn is_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(place) => (&text[..place], Some(&text[place + 1..])),
        None => (text, None),
    };
    let exponent_is_fine = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    let mantissa_is_fine = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    mantissa_is_fine && exponent_is_fine
}

/// Whether yaml.v2 would take plain `text` for a point in time. It stays text when read, as JSON knows no
/// times; written, it is quoted.
///
/// Source: yaml.v2 `parseTimestamp`, by way of Go's `time.Parse`.
pub fn is_timestamp(text: &str) -> bool {
    date(text).is_some_and(|rest| match rest.as_bytes().first() {
        None => true,
        Some(b'T' | b't') => time_of_day(&rest[1..]).is_some_and(is_zone),
        Some(b' ') => time_of_day(rest.trim_start_matches(' ')).is_some_and(str::is_empty),
        Some(_) => false,
    })
}

/// What follows `2006-1-2`, if that is a day there was.
fn date(text: &str) -> Option<&str> {
    let (year, rest) = text.split_at_checked(4)?;
    let year: u32 = year.bytes().all(|byte| byte.is_ascii_digit()).then(|| year.parse().ok())??;
    let (month, rest) = short_number(rest.strip_prefix('-')?)?;
    let (day, rest) = short_number(rest.strip_prefix('-')?)?;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then_some(rest)
}

/// What follows `15:4:5` with or without a fraction of a second.
fn time_of_day(text: &str) -> Option<&str> {
    let (hour, rest) = short_number(text)?;
    let (minute, rest) = short_number(rest.strip_prefix(':')?)?;
    let (second, rest) = short_number(rest.strip_prefix(':')?)?;
    let fraction =
        rest.strip_prefix(['.', ',']).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let rest = fraction.map_or(rest, |digits| digits.trim_start_matches(|c: char| c.is_ascii_digit()));
    (hour < 24 && minute < 60 && second < 60).then_some(rest)
}

/// `Z` or `+07:00`; Go lets offsets of 24 hours and of 60 minutes pass.
fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        b"Z" => true,
        [b'+' | b'-', hours @ .., b':', tens, ones] if hours.len() == 2 => {
            let number = |tens: u8, ones: u8| {
                let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
                digits.then(|| (tens - b'0') * 10 + ones - b'0')
            };
            number(hours[0], hours[1]).is_some_and(|hours| hours <= 24)
                && number(*tens, *ones).is_some_and(|minutes| minutes <= 60)
        }
        _ => false,
    }
}

/// One or two digits in front.
fn short_number(text: &str) -> Option<(u32, &str)> {
    let len = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(len);
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_what_yaml_v2_takes_for_them() {
        for (text, want) in [
            ("2001-01-01", true),
            ("2001-1-1", true),
            ("2024-02-29", true),
            ("2023-02-29", false),
            ("1900-02-29", false),
            ("2000-02-29", true),
            ("2001-13-01", false),
            ("2001-04-31", false),
            ("2001-00-01", false),
            ("2001-01-00", false),
            ("2001-01-011", false),
            ("2001-01-01T00:00:00Z", true),
            ("2001-1-1T1:2:3Z", true),
            ("2001-01-01t00:00:00.5+07:00", true),
            ("2001-01-01T00:00:00,5Z", true),
            ("2001-01-01T00:00:00.1234567890123Z", true),
            ("2001-01-01T00:00:00.Z", false),
            ("2001-01-01T00:00:00z", false),
            ("2001-01-01T00:00:00", false),
            ("2001-01-01T24:00:00Z", false),
            ("2001-01-01T00:60:00Z", false),
            ("2001-01-01T00:00:60Z", false),
            ("2001-01-01T00:00:00+24:60", true),
            ("2001-01-01T00:00:00+25:00", false),
            ("2001-01-01T00:00:00+7:00", false),
            ("2001-01-01T00:00:00+0700", false),
            ("2001-01-01 00:00:00", true),
            ("2001-01-01   1:2:3.5", true),
            ("2001-01-01 00:00:00Z", false),
            ("2001-01-01 ", false),
            ("2001-01", false),
            ("201-01-01", false),
            ("20010-01-01", false),
            ("+2001-01-01", false),
            ("2001-01-01é", false),
            ("200é-01-01", false),
            ("", false),
        ] {
            assert_eq!(is_timestamp(text), want, "{text:?}");
        }
    }

    #[test]
    fn scalars_mean_what_they_mean_in_yaml_1_1() {
        for (text, want) in [
            ("", Scalar::Null),
            ("~", Scalar::Null),
            ("yes", Scalar::Bool(true)),
            ("Off", Scalar::Bool(false)),
            ("yEs", Scalar::Text),
            ("0", Scalar::Int(0)),
            ("-12", Scalar::Int(-12)),
            ("+1_000", Scalar::Int(1000)),
            ("010", Scalar::Int(8)),
            ("0x1F", Scalar::Int(31)),
            ("0b11", Scalar::Int(3)),
            ("-0b11", Scalar::Int(-3)),
            ("0o17", Scalar::Int(15)),
            ("09", Scalar::Float(9.0)),
            ("18446744073709551615", Scalar::Uint(u64::MAX)),
            ("18446744073709551616", Scalar::Float(18_446_744_073_709_551_616.0)),
            ("1.", Scalar::Float(1.0)),
            (".5", Scalar::Float(0.5)),
            ("-1e3", Scalar::Float(-1000.0)),
            (".inf", Scalar::Float(f64::INFINITY)),
            ("1:30", Scalar::Text),
            ("1.2.3", Scalar::Text),
            ("2001-01-01", Scalar::Text),
            ("1e", Scalar::Text),
            (".", Scalar::Text),
            ("-", Scalar::Text),
            ("0x", Scalar::Text),
            ("<<", Scalar::Merge),
            ("abc", Scalar::Text),
        ] {
            assert_eq!(resolve(text), want, "{text:?}");
        }
    }
}
