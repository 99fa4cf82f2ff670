//! The canonical text of a `resource.Quantity`: `1024Mi` is `1Gi`, `1500m` stays, `0.5` is `500m`.
//!
//! In: quantity text as written. Out: the text kube-apiserver shows after it has decoded it. Never: a float, and no
//! number is expanded to more digits than it was written with (plus a bounded suffix).
//!
//! Source: apimachinery v0.36.3 `pkg/api/resource` (`ParseQuantity`, `CanonicalizeBytes`).

use crate::member::Member;

/// The smallest part that is kept; what is below is rounded away from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Every quantity.
    Nano,
    /// Quantities of a `ResourceList` (capacity, requests, quota), which defaulting rounds further.
    Milli,
}

/// Returns the canonical text, or `None` when `text` is not a quantity.
pub fn canonical(text: &str, precision: Precision) -> Option<String> {
    let text = text.trim();
    let parts = Parts::of(text)?;
    if parts.is_kept_as_written(precision) {
        return Some(text.to_owned());
    }
    let mut number = parts.number();
    number.round_up(-9);
    if parts.format == Format::Binary && number.integer_part().is_none_or(|value| value >= BINARY_MAX) {
        number = Number::from(BINARY_MAX);
    }
    if precision == Precision::Milli {
        number.round_up(-3);
    }
    let sign = if parts.is_negative && !number.is_zero() { "-" } else { "" };
    Some(format!("{sign}{}", number.text(parts.format)))
}

/// The canonical text of a member that holds a quantity, as it is when it holds something else; `None` when it is absent.
pub(crate) fn of(member: Member<'_>, precision: Precision) -> Option<String> {
    let text = member.scalar()?;
    Some(canonical(&text, precision).unwrap_or(text))
}

/// Quantities with a binary suffix stop here; the others do not.
const BINARY_MAX: u64 = i64::MAX as u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `12e6`
    Exponent,
    /// `12M`
    Decimal,
    /// `12Mi`
    Binary,
}

/// A quantity taken apart: sign, digits before and after the point, and what the suffix means.
struct Parts<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
    format: Format,
    /// Power of ten, or of two for [`Format::Binary`].
    exponent: i64,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (is_negative, rest) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let rest = rest.trim_start_matches('0');
        let (whole, rest) = split_digits(rest);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_digits(rest),
            None => ("", rest),
        };
        let whole = if whole.is_empty() { "0" } else { whole };
        let (format, exponent) = suffix_meaning(suffix)?;
        let parts = Self { is_negative, whole, fraction, format, exponent };
        // Go's fast path reads no digits at all as zero (`Ki`), the other one refuses that (`Ei`).
        let has_digits = text.as_bytes().iter().take(text.len() - suffix.len()).any(u8::is_ascii_digit);
        (has_digits || parts.is_fast()).then_some(parts)
    }

    fn digits(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }

    /// The power of ten of the last digit.
    fn scale(&self) -> i64 {
        let exponent = if self.format == Format::Binary { 0 } else { self.exponent };
        exponent.saturating_sub(self.fraction.len() as i64)
    }

    /// Whether Go keeps the number in an int64 with a scale; only then is the text as written ever kept.
    fn is_fast(&self) -> bool {
        let digits = self.digits() as i64;
        match self.format {
            Format::Binary => self.fraction.is_empty() && digits <= 14 - self.exponent * 3 / 10,
            Format::Exponent | Format::Decimal => digits <= 18 && self.scale() >= -9,
        }
    }

    /// Whether Go takes the text for canonical without looking closer, which lets `+1`, `001Gi` and `1.500` through.
    fn is_kept_as_written(&self, precision: Precision) -> bool {
        let shifted = || self.whole.bytes().chain(self.fraction.bytes());
        let is_canonical = match self.format {
            Format::Binary => self.whole.parse::<u64>().is_ok_and(|value| value % 8 != 0),
            Format::Exponent | Format::Decimal => {
                self.scale() % 3 == 0
                    && shifted().next() != Some(b'0')
                    && !(self.digits() >= 3 && shifted().rev().take(3).all(|digit| digit == b'0'))
            }
        };
        let is_rounded = precision == Precision::Milli && self.scale() < -3;
        self.is_fast() && is_canonical && !is_rounded
    }

    fn number(&self) -> Number {
        let digits = self.whole.bytes().chain(self.fraction.bytes()).map(|digit| digit - b'0').collect();
        let mut number = Number { digits, exponent: self.scale() };
        if self.format == Format::Binary {
            (0..self.exponent).for_each(|_| number.double());
        }
        number.strip();
        number
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

/// From ten to the -9 in steps of three.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// From two to the 10 in steps of ten.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

fn suffix_meaning(suffix: &str) -> Option<(Format, i64)> {
    if let Some(index) = DECIMAL.iter().position(|&known| known == suffix) {
        return Some((Format::Decimal, index as i64 * 3 - 9));
    }
    if let Some(index) = BINARY.iter().position(|&known| known == suffix) {
        return Some((Format::Binary, index as i64 * 10 + 10));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((Format::Exponent, exponent.into()))
}

/// A decimal number of any length, without sign: `digits` times ten to the `exponent`.
struct Number {
    /// Most significant first; no zeros at either end once stripped; empty is zero.
    digits: Vec<u8>,
    exponent: i64,
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        let mut number =
            Self { digits: value.to_string().bytes().map(|digit| digit - b'0').collect(), exponent: 0 };
        number.strip();
        number
    }
}

impl Number {
    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Moves factors of ten into the exponent.
    fn strip(&mut self) {
        let leading = self.digits.iter().position(|&digit| digit != 0).unwrap_or(self.digits.len());
        self.digits.drain(..leading);
        let trailing = self.digits.iter().rev().take_while(|&&digit| digit == 0).count();
        self.digits.truncate(self.digits.len() - trailing);
        self.exponent = if self.is_zero() { 0 } else { self.exponent.saturating_add(trailing as i64) };
    }

    fn double(&mut self) {
        let mut carry = 0;
        for digit in self.digits.iter_mut().rev() {
            let sum = *digit * 2 + carry;
            (*digit, carry) = (sum % 10, sum / 10);
        }
        if carry > 0 {
            self.digits.insert(0, carry);
        }
    }

    /// Rounds away from zero to a multiple of ten to the `scale`.
    fn round_up(&mut self, scale: i64) {
        if self.is_zero() || self.exponent >= scale {
            return;
        }
        let dropped = usize::try_from(scale - self.exponent).unwrap_or(usize::MAX).min(self.digits.len());
        self.digits.truncate(self.digits.len() - dropped);
        self.exponent = scale;
        match self.digits.iter().rposition(|&digit| digit != 9) {
            Some(index) => {
                self.digits[index] += 1;
                self.digits[index + 1..].fill(0);
            }
            None => {
                self.digits.fill(0);
                self.digits.insert(0, 1);
            }
        }
        self.strip();
    }

    /// The number without its fraction; `None` when it does not fit.
    fn integer_part(&self) -> Option<u64> {
        let digits = i64::try_from(self.digits.len()).ok()?;
        let kept = usize::try_from(digits.saturating_add(self.exponent.min(0)).max(0)).ok()?;
        let append = |value: u64, digit: u8| value.checked_mul(10)?.checked_add(digit.into());
        let value = self.digits[..kept].iter().try_fold(0, |value, &digit| append(value, digit))?;
        match value {
            0 => Some(0),
            value => value.checked_mul(10u64.checked_pow(self.exponent.max(0).try_into().ok()?)?),
        }
    }

    fn text(&self, format: Format) -> String {
        match (format, self.integer_part()) {
            _ if self.is_zero() => "0".to_owned(),
            (Format::Binary, Some(value @ 1024..)) if self.exponent >= 0 => binary_text(value),
            (Format::Binary | Format::Decimal, _) => {
                let (digits, exponent) = self.thousands();
                // Beyond E there is no suffix, and Go then leaves it out: 1000E reads 1.
                let suffix = usize::try_from(exponent / 3 + 3).ok().and_then(|index| DECIMAL.get(index));
                format!("{digits}{}", suffix.unwrap_or(&""))
            }
            (Format::Exponent, _) => match self.thousands() {
                (digits, 0) => digits,
                (digits, exponent) => format!("{digits}e{exponent}"),
            },
        }
    }

    /// Digits and an exponent that is a multiple of three.
    fn thousands(&self) -> (String, i64) {
        let zeros = self.exponent.rem_euclid(3);
        let mut digits: String = self.digits.iter().map(|&digit| char::from(b'0' + digit)).collect();
        digits.extend((0..zeros).map(|_| '0'));
        (digits, self.exponent - zeros)
    }
}

/// A number of at least 1024 with the largest binary suffix it divides by.
fn binary_text(mut value: u64) -> String {
    let mut suffix = 0;
    while value.is_multiple_of(1024) && suffix < BINARY.len() {
        value /= 1024;
        suffix += 1;
    }
    match suffix {
        0 => value.to_string(),
        suffix => format!("{value}{}", BINARY[suffix - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(precision: Precision, cases: &[(&str, &str)]) {
        for &(text, expected) in cases {
            assert_eq!(canonical(text, precision).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn suffixes_are_the_largest_that_lose_nothing() {
        check(
            Precision::Nano,
            &[
                ("0", "0"),
                ("0Gi", "0"),
                ("-0", "0"),
                ("1024Mi", "1Gi"),
                ("1536Mi", "1536Mi"),
                ("1.5Gi", "1536Mi"),
                ("2048Ki", "2Mi"),
                ("1023Ki", "1023Ki"),
                ("1000k", "1M"),
                ("0.5", "500m"),
                ("1500m", "1500m"),
                ("1000m", "1"),
                ("100n", "100n"),
                ("10000000", "10M"),
                ("12345678901234567890", "12345678901234567890"),
                ("1e3", "1e3"),
                ("1000e3", "1e6"),
                ("1E19", "10e18"),
                ("-1.5Gi", "-1536Mi"),
                ("-10m", "-10m"),
            ],
        );
    }

    #[test]
    fn fractions_of_a_binary_unit_read_as_decimals() {
        check(
            Precision::Nano,
            &[("0.5Ki", "512"), ("0.1Ki", "102400m"), ("1.0001Ki", "1024102400u"), ("0.0001Ki", "102400u")],
        );
    }

    #[test]
    fn what_is_below_the_precision_is_rounded_away_from_zero() {
        check(
            Precision::Nano,
            &[
                ("0.0000000001", "1n"),
                ("1.0000000001", "1000000001n"),
                ("-0.0000000001", "-1n"),
                ("1e-12", "1e-9"),
            ],
        );
        check(
            Precision::Milli,
            &[
                ("1n", "1m"),
                ("1000000001n", "1001m"),
                ("-1n", "-1m"),
                ("999999999n", "1"),
                ("10u", "1m"),
                ("5m", "5m"),
            ],
        );
    }

    #[test]
    fn limits_are_those_of_go() {
        check(
            Precision::Nano,
            &[
                ("8Ei", "9223372036854775807"),
                ("7Ei", "7Ei"),
                ("-16Ei", "-9223372036854775807"),
                ("9223372036854775807.5Ki", "9223372036854775807"),
                ("1000E", "1"),
                ("1e2147483647", "10e2147483646"),
            ],
        );
    }

    #[test]
    fn some_texts_are_kept_as_written() {
        check(
            Precision::Nano,
            &[
                ("+7", "+7"),
                ("001Gi", "001Gi"),
                ("1.500", "1.500"),
                ("1.000", "1"),
                ("+8Gi", "8Gi"),
                (" 1 ", "1"),
            ],
        );
        check(Precision::Milli, &[("1.500", "1.500"), ("1.500000", "1500m")]);
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in [
            "",
            "a",
            "1 Gi",
            "1gi",
            "1e",
            "1ee5",
            "1e5x",
            "1.2.3",
            "--1",
            "1e99999999999",
            "1Kii",
            "１",
            "Ei",
        ] {
            assert_eq!(canonical(text, Precision::Nano), None, "{text}");
        }
    }
}
