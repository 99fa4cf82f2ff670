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

#[cfg(test)]
mod tests {
    use super::*;

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
