//! Quantities as `resource.Quantity` reads and writes them, quirks included.
//!
//! In: text such as `0.5`, `1e3`, `1536Mi`. Out: the canonical text (`500m`, `1e3`, `1536Mi`).
//! Never: arithmetic between quantities.

use std::borrow::Cow;

/// The text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    DecimalSi,
    DecimalExponent,
    BinarySi,
}

/// Text cut into its parts.
struct Parts<'a> {
    positive: bool,
    /// Sign, digits and point as written.
    value: &'a str,
    /// Digits before the point without leading zeros, at least `0`.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// Powers beyond this are not worth telling apart: Go keeps decimal digits in an int64 up to here.
const FAST_DIGITS: i64 = 18;
const NANO: i64 = -9;

/// Returns the quantity as the API server writes it.
///
/// # Errors
/// If the text is no quantity.
pub fn canonical_quantity(text: &str) -> Result<Cow<'_, str>, QuantityError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    if text == "0" {
        return Ok(Cow::Borrowed(text));
    }
    let parts = split(text)?;
    let (exponent, format) = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
    if let Some(fast) = fast(text, &parts, exponent, format) {
        return Ok(fast);
    }
    slow(&parts, exponent, format).map(Cow::Owned)
}

fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let bytes = text.as_bytes();
    let digits_from = |at: usize| at + bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let signed = matches!(bytes[0], b'-' | b'+');
    let positive = bytes[0] != b'-';
    let mut at = usize::from(signed);
    at += bytes[at..].iter().take_while(|&&b| b == b'0').count();
    if at == bytes.len() {
        return Ok(Parts { positive, value: "0", whole: "0", fraction: "", suffix: "" });
    }
    let end = digits_from(at);
    let whole = if end == at { "0" } else { &text[at..end] };
    at = end;
    let mut fraction = "";
    if bytes.get(at) == Some(&b'.') {
        let end = digits_from(at + 1);
        fraction = &text[at + 1..end];
        at = end;
    }
    let value = &text[..at];
    let suffix = &text[at..];
    let letters = suffix.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
    let rest = suffix[letters..].strip_prefix(['-', '+']).unwrap_or(&suffix[letters..]);
    if !rest.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    Ok(Parts { positive, value, whole, fraction, suffix })
}

/// The exponent of 10 (decimal formats) or of 2 (binary) that a suffix stands for.
fn interpret(suffix: &str) -> Option<(i32, Format)> {
    Some(match suffix {
        "n" => (-9, Format::DecimalSi),
        "u" => (-6, Format::DecimalSi),
        "m" => (-3, Format::DecimalSi),
        "" => (0, Format::DecimalSi),
        "k" => (3, Format::DecimalSi),
        "M" => (6, Format::DecimalSi),
        "G" => (9, Format::DecimalSi),
        "T" => (12, Format::DecimalSi),
        "P" => (15, Format::DecimalSi),
        "E" => (18, Format::DecimalSi),
        "Ki" => (10, Format::BinarySi),
        "Mi" => (20, Format::BinarySi),
        "Gi" => (30, Format::BinarySi),
        "Ti" => (40, Format::BinarySi),
        "Pi" => (50, Format::BinarySi),
        "Ei" => (60, Format::BinarySi),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (exponent as i32, Format::DecimalExponent) // Go cuts it to 32 bits, too
        }
    })
}

/// The path of numbers that fit 64 bits; `None` when they may not.
fn fast<'a>(text: &'a str, parts: &Parts<'_>, exponent: i32, format: Format) -> Option<Cow<'a, str>> {
    let (whole, fraction) = (parts.whole.len() as i64, parts.fraction.len() as i64);
    let mut scale = 0;
    let mut mantissa = 1;
    let precision = match format {
        Format::BinarySi if fraction == 0 => {
            mantissa = 1i64 << exponent;
            15 - whole - i64::from(exponent) * 3 / 10 - 1
        }
        Format::BinarySi => -1,
        _ => {
            scale = i64::from(exponent);
            FAST_DIGITS - whole - fraction
        }
    };
    scale -= fraction;
    if precision < 0 || scale < NANO {
        return None;
    }
    let mut digits = [parts.whole, parts.fraction].concat();
    let value: i64 = digits.parse().ok()?;
    let result = value.checked_mul(mantissa)?;
    // What looks canonical is kept as it was written, by tests that are not quite those of being canonical.
    let keep = match format {
        Format::BinarySi => exponent % 10 == 0 && value & 7 != 0,
        _ => scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'),
    };
    if keep {
        return Some(Cow::Borrowed(text));
    }
    let result = if parts.positive { result } else { -result };
    if result == 0 {
        return Some(Cow::Borrowed("0"));
    }
    let decimal = format != Format::BinarySi || (-1024 < result && result < 1024);
    if !decimal {
        return Some(Cow::Owned(binary(i128::from(result))));
    }
    digits.clear();
    digits.push_str(&result.unsigned_abs().to_string());
    let number = Decimal { negative: result < 0, digits, exponent: scale };
    let format = if format == Format::BinarySi { Format::DecimalSi } else { format };
    Some(Cow::Owned(number.canonical(format)))
}

/// A decimal number of any length: `digits` times ten to the `exponent`.
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

fn slow(parts: &Parts<'_>, exponent: i32, mut format: Format) -> Result<String, QuantityError> {
    let digits: String = parts.value.chars().filter(char::is_ascii_digit).collect();
    if digits.is_empty() {
        return Err(QuantityError::Numeric);
    }
    let digits = digits.trim_start_matches('0').to_owned();
    if digits.is_empty() {
        return Ok("0".into());
    }
    let mut number = Decimal { negative: !parts.positive, digits, exponent: -(parts.fraction.len() as i64) };
    if format == Format::BinarySi {
        for _ in 0..exponent {
            number.double();
        }
    } else {
        number.exponent += i64::from(exponent);
    }
    number.round_up_to(NANO);
    if format == Format::BinarySi {
        number.cap();
        if number.below_one() {
            format = Format::DecimalSi;
        }
    }
    if format == Format::BinarySi
        && let Some(int) = number.as_integer()
        && !(-1024 < int && int < 1024)
    {
        return Ok(binary(int));
    }
    let format = if format == Format::BinarySi { Format::DecimalSi } else { format };
    Ok(number.canonical(format))
}

/// Writes a whole number of at least 1024 with the largest binary suffix that divides it.
fn binary(mut value: i128) -> String {
    const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut thousands = 0;
    while value % 1024 == 0 && thousands + 1 < SUFFIXES.len() {
        value /= 1024;
        thousands += 1;
    }
    format!("{value}{}", SUFFIXES[thousands])
}

impl Decimal {
    fn double(&mut self) {
        let mut carry = 0;
        let mut doubled: Vec<u8> = Vec::with_capacity(self.digits.len() + 1);
        for digit in self.digits.bytes().rev() {
            let twice = (digit - b'0') * 2 + carry;
            doubled.push(b'0' + twice % 10);
            carry = twice / 10;
        }
        if carry > 0 {
            doubled.push(b'0' + carry);
        }
        self.digits = doubled.into_iter().rev().map(char::from).collect();
    }

    /// Cuts digits below ten to the `exponent`, away from zero.
    fn round_up_to(&mut self, exponent: i64) {
        let Ok(cut) = usize::try_from(exponent.saturating_sub(self.exponent)) else { return };
        if cut == 0 {
            return;
        }
        let keep = self.digits.len().saturating_sub(cut);
        let lost = self.digits.split_off(keep);
        self.exponent = exponent;
        if lost.bytes().any(|digit| digit != b'0') {
            self.increment();
        } else if self.digits.is_empty() {
            self.digits.push('0');
        }
    }

    fn increment(&mut self) {
        let mut digits = std::mem::take(&mut self.digits).into_bytes();
        let nines = digits.iter().rev().take_while(|&&digit| digit == b'9').count();
        let at = digits.len() - nines;
        digits[at..].fill(b'0');
        match at.checked_sub(1) {
            Some(at) => digits[at] += 1,
            None => digits.insert(0, b'1'),
        }
        self.digits = digits.into_iter().map(char::from).collect();
    }

    /// Where the decimal point stands, counted in digits from the left.
    fn point(&self) -> i64 {
        self.digits.len() as i64 + self.exponent
    }

    /// Binary quantities end at the largest int64.
    fn cap(&mut self) {
        const MAX: &str = "9223372036854775807";
        let (point, max_point) = (self.point(), MAX.len() as i64);
        if point > max_point || (point == max_point && self.digits.as_str() > MAX) {
            (self.digits, self.exponent) = (MAX.into(), 0);
        }
    }

    fn below_one(&self) -> bool {
        self.point() <= 0
    }

    /// The value if it is whole; only called when it is capped.
    fn as_integer(&self) -> Option<i128> {
        let (whole, fraction) = if self.exponent < 0 {
            self.digits.split_at(usize::try_from(self.point()).ok()?)
        } else {
            (self.digits.as_str(), "")
        };
        if fraction.bytes().any(|digit| digit != b'0') {
            return None;
        }
        let value: i128 = whole.parse().ok()?;
        let value = value.checked_mul(10i128.checked_pow(u32::try_from(self.exponent.max(0)).ok()?)?)?;
        Some(if self.negative { -value } else { value })
    }

    /// Writes with an exponent that is a multiple of three.
    fn canonical(mut self, format: Format) -> String {
        let zeros = self.digits.bytes().rev().take_while(|&digit| digit == b'0').count();
        if zeros == self.digits.len() {
            return "0".into();
        }
        self.digits.truncate(self.digits.len() - zeros);
        self.exponent += zeros as i64;
        while self.exponent % 3 != 0 {
            self.digits.push('0');
            self.exponent -= 1;
        }
        let suffix = match (format, self.exponent) {
            (_, 0) => String::new(),
            (Format::DecimalExponent, exponent) => format!("e{exponent}"),
            (_, -9) => "n".into(),
            (_, -6) => "u".into(),
            (_, -3) => "m".into(),
            (_, 3) => "k".into(),
            (_, 6) => "M".into(),
            (_, 9) => "G".into(),
            (_, 12) => "T".into(),
            (_, 15) => "P".into(),
            (_, 18) => "E".into(),
            // There is no suffix for more: upstream then writes none, and so the wrong number.
            _ => String::new(),
        };
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}{suffix}", self.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_become_canonical() {
        let check = |text: &str, want: &str| {
            let got = canonical_quantity(text).map_err(|error| error.to_string());
            assert_eq!(got.as_deref(), Ok(want), "{text}");
        };
        check("0", "0");
        check("00", "0");
        check("1", "1");
        check("0.5", "500m");
        check(".5", "500m");
        check("1.5", "1500m");
        check("1000m", "1");
        check("1500m", "1500m");
        check("1024Mi", "1Gi");
        check("1536Mi", "1536Mi");
        check("1.5Gi", "1536Mi");
        check("0.1Gi", "107374182400m");
        check("0.5Ki", "512");
        check("100Ki", "100Ki");
        check("1000Ki", "1000Ki");
        check("1e3", "1e3");
        check("1000", "1k");
        check("1e4", "10e3");
        check("12e-3", "12e-3");
        check("1E", "1E");
        check("9Ei", "9223372036854775807");
        check("0.0000000001", "1n");
        check("-0.0000000001", "-1n");
        check("1.0000000001", "1000000001n");
        check(" 5 ", "5");
        check("-5Ki", "-5Ki");
    }

    #[test]
    fn quirks_of_upstream_are_kept() {
        let check = |text: &str, want: &str| {
            let got = canonical_quantity(text).map_err(|error| error.to_string());
            assert_eq!(got.as_deref(), Ok(want), "{text}");
        };
        check("+1", "+1");
        check("01", "01");
        check("1.500", "1.500");
        check("1000E", "1");
        check("m", "0");
        check(".", "0");
        check("1e4294967296", "1e4294967296");
    }

    #[test]
    fn bad_quantities_say_what_is_wrong() {
        let check = |text: &str, want: QuantityError| {
            assert_eq!(canonical_quantity(text), Err(want), "{text}");
        };
        check("", QuantityError::Format);
        check("abc", QuantityError::Format);
        check("1.2.3", QuantityError::Format);
        check("1 Gi", QuantityError::Format);
        check("1m5", QuantityError::Suffix);
        check("1Kim", QuantityError::Suffix);
        check("1e", QuantityError::Suffix);
    }
}
