//! Quantities as `resource.Quantity` reads, writes and compares them, quirks included.
//!
//! In: text such as `0.5`, `1e3`, `1536Mi`. Out: the canonical text (`500m`, `1e3`, `1536Mi`), or the value
//! in billionths to compare and add up. Never: a float; a number that is expanded to more digits than it was
//! written with, but for a bounded suffix.
//!
//! Source: apimachinery v0.36.3 `pkg/api/resource` (`ParseQuantity`, `CanonicalizeBytes`, `RoundUp`).

mod decimal;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

use decimal::Decimal;

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

/// The smallest part that is kept; what is below is rounded away from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Every quantity.
    Nano,
    /// Quantities of a `ResourceList` (capacity, requests, quota), which defaulting rounds further.
    Milli,
}

impl Precision {
    /// The power of ten that is kept.
    fn scale(self) -> i64 {
        match self {
            Precision::Nano => NANO,
            Precision::Milli => -3,
        }
    }
}

/// Billionths: the smallest step a quantity knows.
pub type Nanos = i128;

/// One, in [`Nanos`].
pub const ONE: Nanos = 1_000_000_000;

const NANO: i64 = -9;

/// Returns the quantity as the API server writes it, white space around it left off.
///
/// # Errors
/// If the text is no quantity.
pub fn canonical(text: &str, precision: Precision) -> Result<Cow<'_, str>, QuantityError> {
    let text = text.trim();
    let Parsed { amount, format, is_canonical } = parse(text)?;
    let is_rounded = amount.scale() < precision.scale();
    if is_canonical && !is_rounded {
        return Ok(Cow::Borrowed(text));
    }
    let mut number = amount.into_decimal();
    number.round_up_to(precision.scale());
    Ok(Cow::Owned(number.text(format)))
}

/// The text of a quantity rounded away from zero to thousandths; `None` when it has no finer part, or is
/// none.
pub fn rounded_to_milli(text: &str) -> Option<String> {
    let Parsed { amount, format, .. } = parse(text).ok()?;
    if amount.scale() >= Precision::Milli.scale() {
        return None;
    }
    let mut number = amount.into_decimal();
    number.round_up_to(Precision::Milli.scale());
    Some(number.text(format))
}

/// The value of a quantity, capped where Go would need numbers of more than 128 bits.
///
/// # Errors
/// If the text is no quantity.
pub fn nanos(text: &str) -> Result<Nanos, QuantityError> {
    Ok(match parse(text)?.amount {
        Amount::Small { value, scale } => {
            let power = u32::try_from(scale - NANO).unwrap_or(0);
            let factor = 10i128.checked_pow(power).unwrap_or(i128::MAX);
            i128::from(value).saturating_mul(factor).max(-i128::MAX)
        }
        Amount::Large(number) => number.nanos(),
    })
}

/// A quantity's value and how it is written: what has less than one of anything is never written in powers
/// of 1024.
///
/// # Errors
/// If the text is no quantity.
pub fn read(text: &str) -> Result<(Nanos, QuantityFormat), QuantityError> {
    let (nanos, format) = (nanos(text)?, parse(text)?.format);
    let is_small = format == QuantityFormat::BinarySi && (1..ONE).contains(&nanos);
    Ok((nanos, if is_small { QuantityFormat::DecimalSi } else { format }))
}

/// The canonical text of `nanos`, written as `format` says.
pub fn written(nanos: Nanos, format: QuantityFormat) -> String {
    let digits = nanos.unsigned_abs().to_string().into_bytes();
    Decimal { is_negative: nanos < 0, digits, exponent: NANO }.text(format)
}

/// The value of a member that is a quantity; 0 when it is none.
pub fn of(value: &Value) -> Nanos {
    match value {
        Value::String(text) => nanos(text).unwrap_or(0),
        Value::Number(number) => number.as_i64().map_or(0, |whole| i128::from(whole) * ONE),
        _ => 0,
    }
}

/// Whether the quantity is a whole number.
pub fn is_whole(nanos: Nanos) -> bool {
    nanos % ONE == 0
}

/// A sum as a quantity, in the form of `like`, its first addend: powers of 1024 stay powers of 1024.
pub fn shown(nanos: Nanos, like: &str) -> String {
    let (number, step, suffixes) = if like.ends_with('i') && is_whole(nanos) {
        (nanos / ONE, 1024, &BINARY[..])
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

/// How a quantity is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuantityFormat {
    /// `12M`
    DecimalSi,
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
}

/// From ten to the -9 in steps of three.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// From one in steps of 1024.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

struct Parsed {
    amount: Amount,
    format: QuantityFormat,
    /// Go takes the text for canonical, by tests that are not quite those of being canonical: `+1`, `001Gi`
    /// and `1.500` are let through.
    is_canonical: bool,
}

/// A number as Go keeps it.
enum Amount {
    /// `value` times ten to the `scale`, which is -9 at least.
    Small {
        value: i64,
        scale: i64,
    },
    Large(Decimal),
}

impl Amount {
    fn scale(&self) -> i64 {
        match self {
            Amount::Small { scale, .. } => *scale,
            Amount::Large(number) => number.exponent,
        }
    }

    fn into_decimal(self) -> Decimal {
        match self {
            Amount::Small { value, scale } => Decimal {
                is_negative: value < 0,
                digits: value.unsigned_abs().to_string().into_bytes(),
                exponent: scale,
            },
            Amount::Large(number) => number,
        }
    }
}

fn parse(text: &str) -> Result<Parsed, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    if text == "0" {
        let amount = Amount::Small { value: 0, scale: 0 };
        return Ok(Parsed { amount, format: QuantityFormat::DecimalSi, is_canonical: true });
    }
    let parts = Parts::of(text)?;
    let (exponent, format) = suffix_meaning(parts.suffix).ok_or(QuantityError::Suffix)?;
    match parts.small(exponent, format) {
        Some(small) => Ok(small),
        None => parts.large(exponent, format),
    }
}

/// A quantity taken apart.
struct Parts<'a> {
    is_negative: bool,
    /// Sign, digits and point as written.
    value: &'a str,
    /// Digits before the point without leading zeros, at least `0`.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// Decimal digits that Go keeps in an int64.
const SMALL_DIGITS_MAX: i64 = 18;

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, QuantityError> {
        let bytes = text.as_bytes();
        let digits_from = |at: usize| at + bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let is_negative = bytes[0] == b'-';
        let mut at = usize::from(matches!(bytes[0], b'-' | b'+'));
        at += bytes[at..].iter().take_while(|&&b| b == b'0').count();
        if at == bytes.len() {
            return Ok(Self { is_negative, value: "0", whole: "0", fraction: "", suffix: "" });
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
        let (value, suffix) = text.split_at(at);
        let letters = suffix.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
        let rest = suffix[letters..].strip_prefix(['-', '+']).unwrap_or(&suffix[letters..]);
        if !rest.bytes().all(|b| b.is_ascii_digit()) {
            return Err(QuantityError::Format);
        }
        Ok(Self { is_negative, value, whole, fraction, suffix })
    }

    /// The number if it surely fits 64 bits.
    fn small(&self, exponent: i32, format: QuantityFormat) -> Option<Parsed> {
        let digits = (self.whole.len() + self.fraction.len()) as i64;
        let (mantissa, scale, room) = match format {
            QuantityFormat::BinarySi if self.fraction.is_empty() => {
                (1i64 << exponent, 0, 14 - digits - i64::from(exponent) * 3 / 10)
            }
            QuantityFormat::BinarySi => return None,
            // Go has 32 bits for this, and lets it wrap.
            _ => (1, exponent.wrapping_sub(self.fraction.len() as i32).into(), SMALL_DIGITS_MAX - digits),
        };
        if room < 0 || scale < NANO {
            return None;
        }
        let digits = || self.whole.bytes().chain(self.fraction.bytes());
        let written = digits().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        let value = written.checked_mul(mantissa)?;
        let is_canonical = match format {
            QuantityFormat::BinarySi => written & 7 != 0,
            _ => scale % 3 == 0 && written % 1000 != 0 && digits().next() != Some(b'0'),
        };
        let value = if self.is_negative { -value } else { value };
        Some(Parsed { amount: Amount::Small { value, scale }, format, is_canonical })
    }

    /// The number of any length, rounded to billionths and, with a binary suffix, capped.
    fn large(&self, exponent: i32, format: QuantityFormat) -> Result<Parsed, QuantityError> {
        let digits: Vec<u8> = self.value.bytes().filter(u8::is_ascii_digit).collect();
        if digits.is_empty() {
            return Err(QuantityError::Numeric);
        }
        let mut number =
            Decimal { is_negative: self.is_negative, digits, exponent: -(self.fraction.len() as i64) };
        number.strip_leading_zeros();
        match format {
            QuantityFormat::BinarySi => (0..exponent).for_each(|_| number.double()),
            _ => number.exponent += i64::from(exponent),
        }
        number.round_up_to(NANO);
        if format == QuantityFormat::BinarySi {
            number.cap();
        }
        Ok(Parsed { amount: Amount::Large(number), format, is_canonical: false })
    }
}

/// The exponent of 10 (decimal formats) or of 2 (binary) that a suffix stands for.
fn suffix_meaning(suffix: &str) -> Option<(i32, QuantityFormat)> {
    Some(match suffix {
        "n" => (-9, QuantityFormat::DecimalSi),
        "u" => (-6, QuantityFormat::DecimalSi),
        "m" => (-3, QuantityFormat::DecimalSi),
        "" => (0, QuantityFormat::DecimalSi),
        "k" => (3, QuantityFormat::DecimalSi),
        "M" => (6, QuantityFormat::DecimalSi),
        "G" => (9, QuantityFormat::DecimalSi),
        "T" => (12, QuantityFormat::DecimalSi),
        "P" => (15, QuantityFormat::DecimalSi),
        "E" => (18, QuantityFormat::DecimalSi),
        "Ki" => (10, QuantityFormat::BinarySi),
        "Mi" => (20, QuantityFormat::BinarySi),
        "Gi" => (30, QuantityFormat::BinarySi),
        "Ti" => (40, QuantityFormat::BinarySi),
        "Pi" => (50, QuantityFormat::BinarySi),
        "Ei" => (60, QuantityFormat::BinarySi),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (exponent as i32, QuantityFormat::DecimalExponent) // Go cuts it to 32 bits, too
        }
    })
}
