//! Comparing and adding up quantities.
//!
//! In: quantities in canonical text, as the codec leaves them. Out: their value in billionths, capped where Go would need
//! big numbers. Never: writes a quantity in another form than it came.

use serde_json::Value;

/// Billionths: the smallest step a quantity knows.
pub type Nanos = i128;

const NANO: i128 = 1_000_000_000;

/// The value of a quantity; `None` when it is none.
pub fn parse(text: &str) -> Option<Nanos> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, suffix) = rest.split_at(digits);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let mut mantissa: i128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        mantissa = mantissa.saturating_mul(10).saturating_add(i128::from(digit - b'0'));
    }
    let scale = -i32::try_from(fraction.len()).ok()?;
    let nanos = match suffix {
        "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => {
            let power = "KMGTPE".find(&suffix[..1])? as u32 + 1;
            at_scale(mantissa.saturating_mul(1 << (10 * power)), scale)
        }
        _ => at_scale(mantissa, scale.checked_add(exponent(suffix)?)?),
    };
    Some(if negative { -nanos } else { nanos })
}

/// The power of ten that a decimal suffix stands for.
fn exponent(suffix: &str) -> Option<i32> {
    Some(match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => suffix.strip_prefix(['e', 'E'])?.parse().ok()?,
    })
}

/// `mantissa` times ten to the power of `scale`, in billionths, rounded up.
fn at_scale(mantissa: i128, scale: i32) -> Nanos {
    let power = scale.saturating_add(9);
    match 10i128.checked_pow(power.unsigned_abs()) {
        Some(factor) if power >= 0 => mantissa.saturating_mul(factor),
        Some(factor) => mantissa.div_euclid(factor) + i128::from(mantissa.rem_euclid(factor) != 0),
        None if power >= 0 && mantissa != 0 => i128::MAX,
        None => i128::from(mantissa > 0),
    }
}

/// The value of a member that is a quantity; 0 when it is none.
pub fn of(value: &Value) -> Nanos {
    match value {
        Value::String(text) => parse(text).unwrap_or(0),
        Value::Number(number) => number.as_i64().map_or(0, |whole| i128::from(whole) * NANO),
        _ => 0,
    }
}

/// The quantity rounded up to thousandths, when it is finer.
pub fn rounded_to_milli(text: &str) -> Option<String> {
    if !text.ends_with(['n', 'u']) {
        return None;
    }
    let nanos = parse(text)?;
    let milli = nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) != 0);
    Some(if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") })
}

/// A sum as a quantity, in the form of `like`, its first addend: powers of 1024 stay powers of 1024.
pub fn shown(nanos: Nanos, like: &str) -> String {
    const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    let (number, step, suffixes) = if like.ends_with('i') && is_whole(nanos) {
        (nanos / NANO, 1024, &BINARY[..])
    } else {
        (nanos, 1000, &DECIMAL[..])
    };
    if number == 0 {
        return "0".into();
    }
    let (mut number, mut at) = (number, 0);
    while at + 1 < suffixes.len() && number % step == 0 {
        number /= step;
        at += 1;
    }
    format!("{number}{}", suffixes[at])
}

/// Whether the quantity is a whole number.
pub fn is_whole(nanos: Nanos) -> bool {
    nanos % NANO == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_in_every_form() {
        for (text, nanos) in [
            ("0", 0),
            ("1", NANO),
            ("500m", NANO / 2),
            ("1n", 1),
            ("-2", -2 * NANO),
            ("1.5", 1_500_000_000),
            ("1Ki", 1024 * NANO),
            ("1.5Gi", 1536 * 1024 * 1024 * NANO),
            ("1e3", 1000 * NANO),
            ("12E", 12_000_000_000_000_000_000 * NANO),
            ("1e-12", 1),
            ("1e99", i128::MAX),
        ] {
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
        for bad in ["", "x", ".", "1x", "1.2.3", "-"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sums_are_shown_in_the_form_of_their_first_addend() {
        for (nanos, like, text) in [
            (3 * NANO / 2, "1", "1500m"),
            (2000 * NANO, "1", "2k"),
            (2048 * NANO, "1Ki", "2Ki"),
            (1000 * NANO, "1Ki", "1000"),
            (2048 * NANO, "1k", "2048"),
            (0, "1Gi", "0"),
            (1, "1Gi", "1n"),
        ] {
            assert_eq!(shown(nanos, like), text, "{nanos} {like}");
        }
    }

    #[test]
    fn what_is_finer_than_a_thousandth_is_rounded_up() {
        for (text, rounded) in
            [("1n", Some("1m")), ("1500u", Some("2m")), ("999001u", Some("1")), ("1m", None)]
        {
            assert_eq!(rounded_to_milli(text).as_deref(), rounded, "{text}");
        }
    }
}
