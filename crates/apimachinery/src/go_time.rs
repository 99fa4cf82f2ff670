//! Points in time as Go's `time.Parse` reads them.
//!
//! In: a layout and a text. Out: a time, or Go's words for what is wrong. Never: the name of a zone.

const DAY_SECONDS: i64 = 86_400;
const NANO_DIGITS: usize = 9;

/// What a text has to look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `2006-01-02T15:04:05Z07:00`; an hour of one digit passes, and so does a fraction.
    Rfc3339,
    /// `2006-01-02T15:04:05`, taken for UTC.
    Local,
    /// `2006-01-02`
    Date,
}

impl Layout {
    /// As Go has it.
    fn text(self) -> &'static str {
        match self {
            Layout::Rfc3339 => "2006-01-02T15:04:05Z07:00",
            Layout::Local => "2006-01-02T15:04:05",
            Layout::Date => "2006-01-02",
        }
    }
}

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Since 1970, in UTC.
    pub seconds: i64,
    pub nanos: u32,
    /// Of the zone that it is written in, in seconds east.
    pub offset: i64,
}

/// Reads a time.
///
/// # Errors
/// Go's text, for instance `parsing time "x" as "2006-01-02": cannot parse "x" as "2006"`.
pub fn parse(layout: Layout, text: &str) -> Result<Time, String> {
    let mut p = TimeParser { whole: text, rest: text, layout: layout.text() };
    let year = p.number("2006", 4, 4, i64::MAX, "year")?;
    p.literal("-")?;
    let month = p.number("01", 2, 2, 12, "month")?;
    p.literal("-")?;
    let day = p.number("02", 2, 2, i64::MAX, "day")?;
    let (mut clock, mut nanos, mut offset) = (0, 0, 0);
    if layout != Layout::Date {
        p.literal("T")?;
        let hour = p.number("15", 1, 2, 23, "hour")?;
        p.literal(":")?;
        let minute = p.number("04", 2, 2, 59, "minute")?;
        p.literal(":")?;
        let second = p.number("05", 2, 2, 59, "second")?;
        (clock, nanos) = (hour * 3600 + minute * 60 + second, p.fraction());
    }
    if layout == Layout::Rfc3339 {
        offset = p.offset()?;
    }
    if !p.rest.is_empty() {
        return Err(p.out_of(&format!("extra text: {}", quote(p.rest))));
    }
    if month < 1 {
        return Err(p.out_of("month out of range"));
    }
    if day < 1 || day > days_in(year, month) {
        return Err(p.out_of("day out of range"));
    }
    Ok(Time { seconds: days(year, month, day) * DAY_SECONDS + clock - offset, nanos, offset })
}

/// Days since 1970-01-01 of a date that exists.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Count from a March so that the leap day is the last of its year.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * m + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn digits(bytes: &[u8]) -> Option<i64> {
    bytes.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
}

struct TimeParser<'a> {
    whole: &'a str,
    rest: &'a str,
    layout: &'static str,
}

impl TimeParser<'_> {
    fn refuse<T>(&self, wanted: &str) -> Result<T, String> {
        let (whole, rest) = (quote(self.whole), quote(self.rest));
        Err(format!("parsing time {whole} as \"{}\": cannot parse {rest} as \"{wanted}\"", self.layout))
    }

    fn out_of(&self, what: &str) -> String {
        format!("parsing time {}: {what}", quote(self.whole))
    }

    fn literal(&mut self, wanted: &str) -> Result<(), String> {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => self.refuse(wanted),
        }
    }

    /// A number of `least` to `most` digits; only the month refuses zero at once, and that with the rest.
    fn number(
        &mut self,
        layout: &str,
        least: usize,
        most: usize,
        max: i64,
        what: &str,
    ) -> Result<i64, String> {
        let size = self.rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let Some(value) = digits(&self.rest.as_bytes()[..size]).filter(|_| size >= least) else {
            return self.refuse(layout);
        };
        self.rest = &self.rest[size..];
        match value > max || (what == "month" && value == 0) {
            true => Err(self.out_of(&format!("{what} out of range"))),
            false => Ok(value),
        }
    }

    /// Billionths, the digits after the ninth left out; 0 where no fraction stands.
    fn fraction(&mut self) -> u32 {
        let digits = self.rest.strip_prefix(['.', ',']).unwrap_or_default();
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return 0;
        }
        self.rest = &digits[count..];
        let kept = &digits[..count.min(NANO_DIGITS)];
        kept.bytes().fold(0, |nanos, b| nanos * 10 + u32::from(b - b'0'))
            * 10_u32.pow((NANO_DIGITS - kept.len()) as u32)
    }

    fn offset(&mut self) -> Result<i64, String> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let Some((offset, rest)) = self.rest.split_at_checked(6) else { return self.refuse("Z07:00") };
        let b = offset.as_bytes();
        let (Some(hours), Some(minutes), true) = (digits(&b[1..3]), digits(&b[4..]), b[3] == b':') else {
            return self.refuse("Z07:00");
        };
        let sign = match b[0] {
            b'+' => 1,
            b'-' => -1,
            _ => return self.refuse("Z07:00"),
        };
        if hours > 24 {
            return Err(self.out_of("time zone offset hour out of range"));
        }
        if minutes > 60 {
            return Err(self.out_of("time zone offset minute out of range"));
        }
        self.rest = rest;
        Ok(sign * (hours * 3600 + minutes * 60))
    }
}

/// Quotes as the errors of Go's `time` do: every byte that is not printable ASCII in hex.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for b in text.bytes() {
        match b {
            b'"' | b'\\' => out.extend(['\\', char::from(b)]),
            b' '..=b'~' => out.push(char::from(b)),
            _ => out.push_str(&format!("\\x{b:02x}")),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339_is_read_strictly() {
        let layout = "as \"2006-01-02T15:04:05Z07:00\": cannot parse";
        let rows = [
            ("1970-01-01T00:00:00Z", Ok(0)),
            ("2024-02-29T12:00:00Z", Ok(1_709_208_000)),
            ("2024-02-29T13:00:00.5+01:00", Ok(1_709_208_000)),
            ("0001-01-01T00:00:00Z", Ok(-62_135_596_800)),
            ("1969-12-31T23:59:59-00:00", Ok(-1)),
            ("1970-01-01T5:00:00Z", Ok(18_000)),
            ("2024-02-30T12:00:00Z", Err(": day out of range".to_owned())),
            ("2024-13-01T12:00:00Z", Err(": month out of range".to_owned())),
            ("2024-02-29T12:00:60Z", Err(": second out of range".to_owned())),
            ("2024-02-29T12:00:00Zx", Err(": extra text: \"x\"".to_owned())),
            ("2024-02-29t12:00:00Z", Err(format!(" {layout} \"t12:00:00Z\" as \"T\""))),
            ("2024-02-29T12:00:00z", Err(format!(" {layout} \"z\" as \"Z07:00\""))),
            ("2024-02-29T12:00:00.Z", Err(format!(" {layout} \".Z\" as \"Z07:00\""))),
            ("2024-02-29", Err(format!(" {layout} \"\" as \"T\""))),
            ("", Err(format!(" {layout} \"\" as \"2006\""))),
        ];
        for (text, want) in rows {
            let want = want.map_err(|rest| format!("parsing time {}{rest}", quote(text)));
            assert_eq!(parse(Layout::Rfc3339, text).map(|time| time.seconds), want, "{text}");
        }
        assert!(parse(Layout::Rfc3339, "2024-02-29T12:00:00+é1:00").is_err());
    }

    #[test]
    fn other_layouts_are_read_as_strictly() {
        let seconds = |layout, text| parse(layout, text).map(|time| time.seconds);
        assert_eq!(seconds(Layout::Date, "2024-02-29"), Ok(1_709_164_800));
        assert_eq!(seconds(Layout::Local, "2024-02-29T12:00:00"), Ok(1_709_208_000));
        let rows = [
            (Layout::Date, "x", " as \"2006-01-02\": cannot parse \"x\" as \"2006\""),
            (Layout::Date, "2024-02-30", ": day out of range"),
            (Layout::Date, "2024-02-29T", ": extra text: \"T\""),
            (Layout::Local, "2024-02-29T12:00:00Z", ": extra text: \"Z\""),
            (Layout::Local, "2024", " as \"2006-01-02T15:04:05\": cannot parse \"\" as \"-\""),
        ];
        for (layout, text, want) in rows {
            assert_eq!(seconds(layout, text), Err(format!("parsing time {}{want}", quote(text))));
        }
    }

    #[test]
    fn a_fraction_is_of_nine_digits_and_a_zone_is_kept() {
        let read = parse(Layout::Rfc3339, "1970-01-01T01:00:00.1234567899+01:00");
        assert_eq!(read, Ok(Time { seconds: 0, nanos: 123_456_789, offset: 3_600 }));
        assert_eq!(parse(Layout::Rfc3339, "1970-01-01T00:00:00,5Z").map(|time| time.nanos), Ok(500_000_000));
    }
}
