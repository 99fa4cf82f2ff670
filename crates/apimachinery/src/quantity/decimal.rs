//! Decimal numbers of any length, for the quantities that do not fit 64 bits.
//!
//! In: digits as written. Out: the same number doubled, rounded, capped, as text or as billionths. Never:
//! reads a suffix.

use super::{BINARY, DECIMAL, NANO, Nanos, QuantityFormat};

/// `digits` times ten to the `exponent`.
pub struct Decimal {
    pub is_negative: bool,
    /// ASCII, most significant first, without leading zeros; empty is zero.
    pub digits: Vec<u8>,
    pub exponent: i64,
}

impl Decimal {
    pub fn strip_leading_zeros(&mut self) {
        let zeros = self.digits.iter().take_while(|&&digit| digit == b'0').count();
        self.digits.drain(..zeros);
    }

    pub fn double(&mut self) {
        let mut carry = 0;
        for digit in self.digits.iter_mut().rev() {
            let twice = (*digit - b'0') * 2 + carry;
            (*digit, carry) = (b'0' + twice % 10, twice / 10);
        }
        if carry > 0 {
            self.digits.insert(0, b'0' + carry);
        }
    }

    /// Rounds away from zero to a multiple of ten to the `exponent`.
    pub fn round_up_to(&mut self, exponent: i64) {
        let cut = match usize::try_from(exponent.saturating_sub(self.exponent)) {
            Ok(cut @ 1..) if !self.is_zero() => cut,
            _ => return,
        };
        let lost = self.digits.split_off(self.digits.len().saturating_sub(cut));
        self.exponent = exponent;
        if lost.iter().any(|&digit| digit != b'0') {
            self.increment();
        }
    }

    fn increment(&mut self) {
        let nines = self.digits.iter().rev().take_while(|&&digit| digit == b'9').count();
        let at = self.digits.len() - nines;
        self.digits[at..].fill(b'0');
        match at.checked_sub(1) {
            Some(at) => self.digits[at] += 1,
            None => self.digits.insert(0, b'1'),
        }
    }

    /// Binary quantities end at the largest int64.
    pub fn cap(&mut self) {
        const MAX: &[u8] = b"9223372036854775807";
        // Where the decimal point stands, counted in digits from the left.
        let point = self.digits.len() as i64 + self.exponent;
        let max_point = MAX.len() as i64;
        if point > max_point || (point == max_point && self.digits.as_slice() > MAX) {
            (self.digits, self.exponent) = (MAX.to_vec(), 0);
        }
    }

    fn is_zero(&self) -> bool {
        self.digits.iter().all(|&digit| digit == b'0')
    }

    /// The value, capped at 128 bits. There is no part below the billionths.
    pub fn nanos(&self) -> Nanos {
        let appended =
            |value: i128, digit: u8| value.saturating_mul(10).saturating_add((digit - b'0').into());
        let value = self.digits.iter().fold(0i128, |value, &digit| appended(value, digit));
        let power = u32::try_from(self.exponent - NANO).unwrap_or(u32::MAX);
        let value = match 10i128.checked_pow(power) {
            _ if value == 0 => 0,
            Some(factor) => value.saturating_mul(factor),
            None => i128::MAX,
        };
        if self.is_negative { -value } else { value }
    }

    /// The canonical text.
    pub fn text(mut self, format: QuantityFormat) -> String {
        let zeros = self.digits.iter().rev().take_while(|&&digit| digit == b'0').count();
        if zeros == self.digits.len() {
            return "0".into();
        }
        let sign = if self.is_negative { "-" } else { "" };
        if format == QuantityFormat::BinarySi
            && let Some(value @ 1024..) = self.as_integer()
        {
            return format!("{sign}{}", binary(value));
        }
        self.digits.truncate(self.digits.len() - zeros);
        self.exponent += zeros as i64;
        let thousands = self.exponent.div_euclid(3);
        self.digits.extend((0..self.exponent.rem_euclid(3)).map(|_| b'0'));
        let digits = String::from_utf8_lossy(&self.digits);
        match (format, thousands) {
            (_, 0) => format!("{sign}{digits}"),
            (QuantityFormat::DecimalExponent, _) => format!("{sign}{digits}e{}", thousands * 3),
            _ => {
                let suffix = usize::try_from(thousands + 3).ok().and_then(|at| DECIMAL.get(at));
                // There is no suffix for more than E: upstream then writes none, and so the wrong number.
                format!("{sign}{digits}{}", suffix.unwrap_or(&""))
            }
        }
    }

    /// The number without its sign if it is whole and fits.
    fn as_integer(&self) -> Option<u64> {
        let fraction = usize::try_from(self.exponent.min(0).unsigned_abs()).ok()?;
        let (whole, fraction) = self.digits.split_at(self.digits.len().saturating_sub(fraction));
        if fraction.iter().any(|&digit| digit != b'0') {
            return None;
        }
        let appended = |value: u64, digit: u8| value.checked_mul(10)?.checked_add((digit - b'0').into());
        let value = whole.iter().try_fold(0u64, |value, &digit| appended(value, digit))?;
        value.checked_mul(10u64.checked_pow(u32::try_from(self.exponent.max(0)).ok()?)?)
    }
}

/// Writes a whole number with the largest binary suffix that divides it.
fn binary(mut value: u64) -> String {
    let mut suffix = 0;
    while value.is_multiple_of(1024) && suffix + 1 < BINARY.len() {
        value /= 1024;
        suffix += 1;
    }
    format!("{value}{}", BINARY[suffix])
}
