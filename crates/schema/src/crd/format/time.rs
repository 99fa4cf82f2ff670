//! Formats of times: dates, date-times, durations; and the strict RFC 3339 that object metadata uses.

use forebay_apimachinery::go_duration;

const DAY_SECONDS: i64 = 86_400;

/// `2006-01-02`.
pub(super) fn is_date(text: &str) -> bool {
    let b = text.as_bytes();
    if b.len() != 10 || b[4] != b'-' || b[7] != b'-' {
        return false;
    }
    match (digits(&b[..4]), digits(&b[5..7]), digits(&b[8..])) {
        (Some(year), Some(month @ 1..=12), Some(day)) => (1..=days_in(year, month)).contains(&day),
        _ => false,
    }
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

/// The lenient RFC 3339 of the `date-time` format: the offset and the fraction are not judged further.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let fraction = match rest.strip_suffix('z') {
        Some(fraction) => Some(fraction),
        None => rest.len().checked_sub(6).and_then(|at| rest.split_at_checked(at)).and_then(
            |(fraction, offset)| {
                let b = offset.as_bytes();
                let is_offset = matches!(b[0], b'+' | b'-')
                    && b[3] == b':'
                    && digits(&[b[1], b[2], b[4], b[5]]).is_some();
                is_offset.then_some(fraction)
            },
        ),
    };
    let fraction_ok = fraction.is_some_and(|fraction| {
        let mut chars = fraction.chars();
        match chars.next() {
            None => true,
            Some(mark) => mark != '\n' && !chars.as_str().is_empty() && chars.all(|c| c.is_ascii_digit()),
        }
    });
    fraction_ok && is_clock(clock.as_bytes())
}

/// `15:04:05`.
fn is_clock(b: &[u8]) -> bool {
    let two = |at: usize, max: i64| digits(&b[at..at + 2]).is_some_and(|n| n <= max);
    b[2] == b':' && b[5] == b':' && two(0, 23) && two(3, 59) && two(6, 59)
}

/// Parses RFC 3339 as Go's `time.Parse` does (an hour of one digit passes); returns seconds since 1970.
///
/// # Errors
/// Go's text, for instance `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
pub(crate) fn parse_rfc3339(text: &str) -> Result<i64, String> {
    let mut p = TimeParser { whole: text, rest: text };
    let year = p.number("2006", 4, 4, i64::MAX, "year")?;
    p.literal("-")?;
    let month = p.number("01", 2, 2, 12, "month")?;
    p.literal("-")?;
    let day = p.number("02", 2, 2, i64::MAX, "day")?;
    p.literal("T")?;
    let hour = p.number("15", 1, 2, 23, "hour")?;
    p.literal(":")?;
    let minute = p.number("04", 2, 2, 59, "minute")?;
    p.literal(":")?;
    let second = p.number("05", 2, 2, 59, "second")?;
    p.fraction();
    let offset = p.offset()?;
    if !p.rest.is_empty() {
        return Err(p.out_of(&format!("extra text: {}", quote(p.rest))));
    }
    if month < 1 {
        return Err(p.out_of("month out of range"));
    }
    if day < 1 || day > days_in(year, month) {
        return Err(p.out_of("day out of range"));
    }
    Ok(days(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second - offset)
}

/// Prints seconds since 1970 as `2006-01-02T15:04:05Z`.
pub(crate) fn print_rfc3339(seconds: i64) -> String {
    let (days, clock) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
    let z = days + 719_468;
    let (era, of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * m + 2) / 5 + 1, if m < 10 { m + 3 } else { m - 9 });
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

struct TimeParser<'a> {
    whole: &'a str,
    rest: &'a str,
}

impl TimeParser<'_> {
    fn refuse<T>(&self, wanted: &str) -> Result<T, String> {
        let (whole, rest) = (quote(self.whole), quote(self.rest));
        Err(format!(
            "parsing time {whole} as \"2006-01-02T15:04:05Z07:00\": cannot parse {rest} as \"{wanted}\""
        ))
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

    fn fraction(&mut self) {
        if let Some(fraction) =
            self.rest.strip_prefix(['.', ',']).filter(|f| f.starts_with(|c: char| c.is_ascii_digit()))
        {
            self.rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        }
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

pub(super) fn is_duration(text: &str) -> bool {
    go_duration::parse(text).is_ok() || is_word_duration(text)
}

/// `22 ns`, `3 weeks`: numbers with a unit, anywhere in the text, at least one of them understood.
fn is_word_duration(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let is_unit = |unit: &str| {
        UNITS
            .iter()
            // Few: the names of units.
            .any(|names| names.contains(&unit) || names.last().is_some_and(|last| unit.starts_with(last)))
    };
    let mut understood = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        let spaced = after.trim_start_matches(['\t', '\n', '\x0c', '\r', ' ']);
        let end = spaced.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ')).unwrap_or(spaced.len());
        let (unit, after_unit) = spaced.split_at(end);
        if unit.is_empty() {
            rest = after;
            continue;
        }
        if number.parse::<i64>().is_err() {
            return false;
        }
        understood |= is_unit(&unit.to_lowercase());
        rest = after_unit;
    }
    understood
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
            assert_eq!(parse_rfc3339(text), want, "{text}");
        }
        assert!(parse_rfc3339("2024-02-29T12:00:00+é1:00").is_err());
    }

    #[test]
    fn times_print_as_they_are_read() {
        for text in
            ["1970-01-01T00:00:00Z", "2024-02-29T23:59:59Z", "0001-01-01T00:00:00Z", "1999-12-31T00:00:01Z"]
        {
            assert_eq!(parse_rfc3339(text).map(print_rfc3339).as_deref(), Ok(text));
        }
    }
}
