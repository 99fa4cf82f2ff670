//! Numbers with a point, as Go's `strconv` reads and writes them.
//!
//! In: a text, or a number. Out: the other. Never: a rounding that Go does otherwise.

/// Reads a number: decimal or hexadecimal, infinite or none, with underscores between its digits. `None` for
/// what is no number, and for one that is too large.
pub(super) fn read(text: &str) -> Option<f64> {
    let (sign, plain) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if ["inf", "infinity"].iter().any(|name| plain.eq_ignore_ascii_case(name)) {
        return Some(sign * f64::INFINITY);
    }
    if text.eq_ignore_ascii_case("nan") {
        return Some(f64::NAN);
    }
    if !plain.starts_with(|c: char| c == '.' || c.is_ascii_digit()) || !separates_digits(plain) {
        return None;
    }
    let digits = plain.replace('_', "");
    let found = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => hexadecimal(digits)?,
        None => digits.parse().ok()?,
    };
    found.is_finite().then_some(sign * found)
}

/// Whether underscores stand between digits only, or behind the prefix of a base.
fn separates_digits(text: &str) -> bool {
    let hex = text.starts_with("0x") || text.starts_with("0X");
    let is_digit = |c: char| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
    let mut prev = if hex { '0' } else { '^' };
    for c in text.chars().skip(if hex { 2 } else { 0 }) {
        let fits = match c {
            '_' => is_digit(prev),
            c => prev != '_' || is_digit(c),
        };
        if !fits {
            return false;
        }
        prev = c;
    }
    prev != '_'
}

/// `1.8p-1` of `0x1.8p-1`: the exponent is of two, and is needed.
fn hexadecimal(text: &str) -> Option<f64> {
    const EXPONENT_MAX: i64 = 10_000;
    let (digits, power) = text.split_once(['p', 'P'])?;
    let unsigned = power.strip_prefix(['+', '-']).unwrap_or(power);
    if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let power =
        unsigned.bytes().fold(0, |n, b| if n < EXPONENT_MAX { n * 10 + i64::from(b - b'0') } else { n });
    let mut exponent = if text.contains("p-") || text.contains("P-") { -power } else { power };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    let (mut mantissa, mut more) = (0u64, false);
    for (i, c) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(c.to_digit(16)?);
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if i < whole.len() { 0 } else { 4 };
        } else {
            more |= digit != 0;
            exponent += if i < whole.len() { 4 } else { 0 };
        }
    }
    Some(scaled(mantissa, more, exponent))
}

/// `mantissa` times two to the power of `exponent`, and a little more if `more`; to even if it is between
/// two.
fn scaled(mantissa: u64, more: bool, exponent: i64) -> f64 {
    let bits = 64 - i64::from(mantissa.leading_zeros());
    let leading = exponent + bits - 1;
    if bits == 0 || leading < -1075 {
        return 0.0;
    }
    if leading > 1024 {
        return f64::INFINITY;
    }
    // Bits that a number of this size has, below the least normal one fewer and fewer.
    let kept = (leading + 1075).clamp(0, 53);
    let gone = (bits - kept).max(0);
    let wide = u128::from(mantissa);
    let (least, half) = (wide >> gone, 1u128 << gone >> 1);
    let rest = wide & ((1u128 << gone) - 1);
    let up = gone > 0 && (rest > half || rest == half && (more || least & 1 == 1));
    let rounded = (least + u128::from(up)) as f64;
    // Two steps, as the least power of two is no normal number.
    let power = exponent + gone;
    let half = power / 2;
    rounded * 2f64.powi(half as i32) * 2f64.powi((power - half) as i32)
}

/// The shortest digits that are the same number, with an exponent below -4 and from 6 on: `%g`.
pub(super) fn text(it: f64) -> String {
    if it.is_nan() {
        return "NaN".into();
    }
    if it.is_infinite() {
        return if it > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    let scientific = format!("{it:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // Go's `%g` of as few digits as needed takes its precision for six.
    if (-4..6).contains(&exponent) {
        return it.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        let rows = [
            ("1e400", None),
            ("-1e400", None),
            ("0x1p99999", None),
            ("0x1p1024", None),
            ("0x1.fffffffffffff8p1023", None),
            ("0x1.fffffffffffff7p1023", Some(f64::MAX)),
            ("0x1p4", Some(16.0)),
            ("0x1p+4", Some(16.0)),
            ("-0X1.8P-1", Some(-0.75)),
            ("0x.8p1", Some(1.0)),
            ("0x1_0p1", Some(32.0)),
            ("0x_1p0", Some(1.0)),
            ("0x1.00000000000008p0", Some(1.0)),
            ("0x1.000000000000080000000001p0", Some(1.0 + f64::EPSILON)),
            ("0x1.00000000000018p0", Some(1.0 + 2.0 * f64::EPSILON)),
            ("0x123456789abcdef01p-4", Some(1.311_768_467_463_790_3e18)),
            ("0x1p-1074", Some(5e-324)),
            ("0x1p-1075", Some(0.0)),
            ("0x1.8p-1075", Some(5e-324)),
            ("0x1p-9999999999999", Some(0.0)),
            ("0x0p5", Some(0.0)),
            ("1_0", Some(10.0)),
            ("1__0", None),
            ("_10", None),
            ("10_", None),
            ("1_.5", None),
            ("0x10", None),
            ("0xp1", None),
            ("0x1p", None),
            ("0x1p+", None),
            ("1e", None),
            ("1p4", None),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("+nan", None),
            ("infin", None),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            (".", None),
            ("", None),
            ("+", None),
            (" 1", None),
            ("+-1", None),
            ("1e-400", Some(0.0)),
        ];
        for (text, want) in rows {
            assert_eq!(read(text), want, "{text}");
        }
        assert!(read("nan").is_some_and(f64::is_nan));
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let rows = [
            (100_000.0, "100000"),
            (123_456.7, "123456.7"),
            (1_000_000.0, "1e+06"),
            (12_345_678.9, "1.23456789e+07"),
            (-1e20, "-1e+20"),
            (1e100, "1e+100"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.0, "0"),
            (-0.0, "-0"),
        ];
        for (it, want) in rows {
            assert_eq!(text(it), want);
        }
    }
}
