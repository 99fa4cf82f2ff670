//! RFC 3339 times as Go's `time.Parse` reads them and `metav1.Time` and `metav1.MicroTime` write them.
//!
//! In: text. Out: canonical text in UTC, or an error in Go's words. Never: a clock.

use std::borrow::Cow;

/// Go's `time.ParseError`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TimeError(String);

const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Returns the time in UTC with seconds; `None` for Go's zero time, which is written as `null`.
///
/// # Errors
/// If the text is not RFC 3339.
pub fn canonical_time(text: &str) -> Result<Option<Cow<'_, str>>, TimeError> {
    let time = parse(text, SECONDS, false)?;
    if time.is_zero() {
        return Ok(None);
    }
    if text.len() == 20 && text.ends_with('Z') {
        return Ok(Some(Cow::Borrowed(text)));
    }
    Ok(Some(Cow::Owned(time.date_time() + "Z")))
}

/// Returns the time in UTC with microseconds; `None` for Go's zero time.
///
/// # Errors
/// If the text is not RFC 3339 with exactly six digits of a second.
pub fn canonical_micro_time(text: &str) -> Result<Option<Cow<'_, str>>, TimeError> {
    let time = parse(text, MICROS, true)?;
    if time.is_zero() {
        return Ok(None);
    }
    if text.len() == 27 && text.ends_with('Z') && text.as_bytes()[19] == b'.' {
        return Ok(Some(Cow::Borrowed(text)));
    }
    Ok(Some(Cow::Owned(format!("{}.{:06}Z", time.date_time(), time.nanos / 1000))))
}

/// Seconds since 1970 in UTC and nanoseconds.
struct Time {
    seconds: i64,
    nanos: u32,
}

impl Time {
    /// Go's zero time: 0001-01-01T00:00:00Z.
    fn is_zero(&self) -> bool {
        self.seconds == days_from_civil(1, 1, 1) * 86_400 && self.nanos == 0
    }

    fn date_time(&self) -> String {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(86_400));
        let second = self.seconds.rem_euclid(86_400);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let sign = if year < 0 { "-" } else { "" };
        let year = year.unsigned_abs();
        format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }
}

/// What remains of the text, and the whole of it for messages.
struct Reader<'a> {
    text: &'a str,
    rest: &'a [u8],
    layout: &'static str,
}

/// Reads one element after the other, as `time.Parse` does for this layout.
fn parse(text: &str, layout: &'static str, micros: bool) -> Result<Time, TimeError> {
    let mut r = Reader { text, rest: text.as_bytes(), layout };
    let year = r.year()?;
    r.literal(b'-')?;
    let month = r.number("01", true)?;
    if !(1..=12).contains(&month) {
        return Err(r.out_of_range("month"));
    }
    r.literal(b'-')?;
    let day = r.number("02", true)?;
    r.literal(b'T')?;
    let hour = r.number("15", false)?;
    if hour >= 24 {
        return Err(r.out_of_range("hour"));
    }
    r.literal(b':')?;
    let minute = r.number("04", true)?;
    if minute >= 60 {
        return Err(r.out_of_range("minute"));
    }
    r.literal(b':')?;
    let second = r.number("05", true)?;
    if second >= 60 {
        return Err(r.out_of_range("second"));
    }
    let nanos = if micros { r.micros()? } else { r.fraction() };
    let offset = r.zone()?;
    if !r.rest.is_empty() {
        return Err(r.extra());
    }
    if day < 1 || day > days_in(year, month) {
        return Err(r.out_of_range("day"));
    }
    let days = days_from_civil(year, month, day);
    Ok(Time { seconds: days * 86_400 + hour * 3600 + minute * 60 + second - offset, nanos })
}

impl Reader<'_> {
    fn year(&mut self) -> Result<i64, TimeError> {
        match self.rest.get(..4) {
            Some(digits) if digits.iter().all(u8::is_ascii_digit) => {
                let year = digits.iter().fold(0, |year, digit| year * 10 + i64::from(digit - b'0'));
                self.rest = &self.rest[4..];
                Ok(year)
            }
            _ => Err(self.cannot_parse("2006", self.rest)),
        }
    }

    fn literal(&mut self, byte: u8) -> Result<(), TimeError> {
        match self.rest.split_first() {
            Some((&first, rest)) if first == byte => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(self.cannot_parse(char::from(byte).encode_utf8(&mut [0; 4]), self.rest)),
        }
    }

    /// Two digits, or one when `fixed` is false.
    fn number(&mut self, element: &str, fixed: bool) -> Result<i64, TimeError> {
        let digit = |at: usize| self.rest.get(at).filter(|b| b.is_ascii_digit()).map(|b| i64::from(b - b'0'));
        match (digit(0), digit(1)) {
            (Some(tens), Some(ones)) => {
                self.rest = &self.rest[2..];
                Ok(tens * 10 + ones)
            }
            (Some(ones), None) if !fixed => {
                self.rest = &self.rest[1..];
                Ok(ones)
            }
            _ => Err(self.cannot_parse(element, self.rest)),
        }
    }

    /// A fraction that the layout does not ask for is read and mostly forgotten.
    fn fraction(&mut self) -> u32 {
        let starts = matches!(self.rest, [b'.' | b',', digit, ..] if digit.is_ascii_digit());
        if !starts {
            return 0;
        }
        let len = self.rest[1..].iter().take_while(|b| b.is_ascii_digit()).count();
        let digits = &self.rest[1..=len];
        self.rest = &self.rest[1 + len..];
        (0..9).fold(0, |nanos, at| nanos * 10 + u32::from(digits.get(at).map_or(0, |b| b - b'0')))
    }

    fn micros(&mut self) -> Result<u32, TimeError> {
        match self.rest.get(..7) {
            Some([b'.' | b',', digits @ ..]) if digits.iter().all(u8::is_ascii_digit) => {
                let micros = digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
                self.rest = &self.rest[7..];
                Ok(micros * 1000)
            }
            _ => Err(self.cannot_parse(".000000", self.rest)),
        }
    }

    fn zone(&mut self) -> Result<i64, TimeError> {
        if let Some((b'Z', rest)) = self.rest.split_first() {
            self.rest = rest;
            return Ok(0);
        }
        let hold = self.rest;
        let &[sign, h1, h2, b':', m1, m2, ref rest @ ..] = hold else {
            return Err(self.cannot_parse("Z07:00", hold));
        };
        self.rest = rest;
        let two = |a: u8, b: u8| {
            (a.is_ascii_digit() && b.is_ascii_digit()).then(|| i64::from(a - b'0') * 10 + i64::from(b - b'0'))
        };
        let (hours, minutes) = (two(h1, h2), two(m1, m2));
        if hours.is_some_and(|hours| hours > 24) {
            return Err(self.out_of_range("time zone offset hour"));
        }
        if hours.is_some() && minutes.is_some_and(|minutes| minutes > 60) {
            return Err(self.out_of_range("time zone offset minute"));
        }
        match (sign, hours, minutes) {
            (b'+', Some(hours), Some(minutes)) => Ok(hours * 3600 + minutes * 60),
            (b'-', Some(hours), Some(minutes)) => Ok(-(hours * 3600 + minutes * 60)),
            _ => Err(self.cannot_parse("Z07:00", hold)),
        }
    }

    fn cannot_parse(&self, element: &str, rest: &[u8]) -> TimeError {
        TimeError(format!(
            "parsing time {} as {}: cannot parse {} as {}",
            quote(self.text.as_bytes()),
            quote(self.layout.as_bytes()),
            quote(rest),
            quote(element.as_bytes())
        ))
    }

    fn out_of_range(&self, what: &str) -> TimeError {
        TimeError(format!("parsing time {}: {what} out of range", quote(self.text.as_bytes())))
    }

    fn extra(&self) -> TimeError {
        let text = quote(self.text.as_bytes());
        TimeError(format!("parsing time {text}: extra text: {}", quote(self.rest)))
    }
}

/// Quotes as package time does: bytes that are not printable ASCII as `\x..`.
fn quote(text: &[u8]) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=0x7f => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar, counted in eras of 400 years from March on.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_utc_seconds() {
        let check = |text: &str, want: &str| {
            let got = match canonical_time(text) {
                Ok(Some(text)) => text.into_owned(),
                Ok(None) => "null".into(),
                Err(error) => error.to_string(),
            };
            assert_eq!(got, want, "{text}");
        };
        check("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z");
        check("2024-03-01T00:30:00+01:00", "2024-02-29T23:30:00Z");
        check("2023-12-31T23:30:00-01:45", "2024-01-01T01:15:00Z");
        check("2024-01-01T00:00:00.999999999Z", "2024-01-01T00:00:00Z");
        check("2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00Z");
        check("2024-01-01T3:04:05Z", "2024-01-01T03:04:05Z");
        check("2024-01-01T3:04:05.1Z", "2024-01-01T03:04:05Z");
        check("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z");
        check("0001-01-01T00:00:00Z", "null");
        check("0001-01-01T01:00:00+01:00", "null");
        check("0001-01-01T00:00:00.1Z", "0001-01-01T00:00:00Z");
        check("9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z");
        let as_seconds = |value: &str, rest: &str, element: &str| {
            format!(r#"parsing time "{value}" as "{SECONDS}": cannot parse "{rest}" as "{element}""#)
        };
        check("", &as_seconds("", "", "2006"));
        check("yesterday", &as_seconds("yesterday", "yesterday", "2006"));
        check("2024-1-01T00:00:00Z", &as_seconds("2024-1-01T00:00:00Z", "1-01T00:00:00Z", "01"));
        check("2024-01-01 00:00:00Z", &as_seconds("2024-01-01 00:00:00Z", " 00:00:00Z", "T"));
        check("2024-01-01T00:00:00", &as_seconds("2024-01-01T00:00:00", "", "Z07:00"));
        check("2024-01-01T00:00:00+0100", &as_seconds("2024-01-01T00:00:00+0100", "+0100", "Z07:00"));
        check("2024-13-01T00:00:00Z", r#"parsing time "2024-13-01T00:00:00Z": month out of range"#);
        check("2023-02-29T00:00:00Z", r#"parsing time "2023-02-29T00:00:00Z": day out of range"#);
        check("2024-01-01T24:00:00Z", r#"parsing time "2024-01-01T24:00:00Z": hour out of range"#);
        check("2024-01-01T00:00:60Z", r#"parsing time "2024-01-01T00:00:60Z": second out of range"#);
        check("2024-01-01T00:00:00Zx", r#"parsing time "2024-01-01T00:00:00Zx": extra text: "x""#);
        check(
            "2024-01-01T00:00:00+25:00",
            r#"parsing time "2024-01-01T00:00:00+25:00": time zone offset hour out of range"#,
        );
    }

    #[test]
    fn micro_times_need_six_digits() {
        let check = |text: &str, want: &str| {
            let got = match canonical_micro_time(text) {
                Ok(Some(text)) => text.into_owned(),
                Ok(None) => "null".into(),
                Err(error) => error.to_string(),
            };
            assert_eq!(got, want, "{text}");
        };
        check("2024-01-01T00:00:00.000001Z", "2024-01-01T00:00:00.000001Z");
        check("2024-01-01T00:00:00.123456+01:00", "2023-12-31T23:00:00.123456Z");
        check("2024-01-01T0:00:00.123456Z", "2024-01-01T00:00:00.123456Z");
        check("0001-01-01T00:00:00.000000Z", "null");
        let error = |value: &str, rest: &str, element: &str| {
            format!(r#"parsing time "{value}" as "{MICROS}": cannot parse "{rest}" as "{element}""#)
        };
        check("2024-01-01T00:00:00Z", &error("2024-01-01T00:00:00Z", "Z", ".000000"));
        check("2024-01-01T00:00:00.1234567Z", &error("2024-01-01T00:00:00.1234567Z", "7Z", "Z07:00"));
        check("2024-01-01T00:00:00.12345Z", &error("2024-01-01T00:00:00.12345Z", ".12345Z", ".000000"));
    }

    #[test]
    fn days_count_there_and_back() {
        for days in (-800_000..3_000_000).step_by(97) {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
            assert!((1..=days_in(year, month)).contains(&day));
        }
    }
}
