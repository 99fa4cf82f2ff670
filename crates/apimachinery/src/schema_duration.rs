//! Durations as the format `duration` of a schema takes them: as Go writes them, or in words.
//!
//! In: a text, such as `1h30m` or `2 weeks`. Out: nanoseconds, or upstream's words for what is wrong. Never:
//! refuses a text for what stands beside a duration in it.
//!
//! Source: kube-openapi `pkg/validation/strfmt/duration.go` at the commit that kube-apiserver v1.36.3 uses.

use crate::go_duration;
use crate::json::go_quote;

/// Nanoseconds of a unit, and what it is called; of the last name the beginning will do.
const UNITS: [(i64, &[&str]); 8] = [
    (1, &["ns", "nano"]),
    (1_000, &["us", "µs", "micro"]),
    (1_000_000, &["ms", "milli"]),
    (1_000_000_000, &["s", "sec"]),
    (60 * 1_000_000_000, &["m", "min"]),
    (3_600 * 1_000_000_000, &["h", "hr", "hour"]),
    (24 * 3_600 * 1_000_000_000, &["d", "day"]),
    (7 * 24 * 3_600 * 1_000_000_000, &["w", "wk", "week"]),
];

/// Reads a duration. What is too long goes around, as upstream's does.
///
/// # Errors
/// Upstream's text.
pub fn parse(text: &str) -> Result<i64, String> {
    if let Ok(nanos) = go_duration::parse(text) {
        return Ok(nanos);
    }
    let (mut nanos, mut is_understood, mut rest) = (0_i64, false, text);
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
        let Ok(count) = number.parse::<i64>() else {
            return Err(format!("strconv.Atoi: parsing {}: value out of range", go_quote(number)));
        };
        if let Some(each) = nanos_of(&unit.to_lowercase()) {
            (nanos, is_understood) = (nanos.wrapping_add(count.wrapping_mul(each)), true);
        }
        rest = after_unit;
    }
    if is_understood { Ok(nanos) } else { Err(format!("unable to parse {text} as duration")) }
}

fn nanos_of(unit: &str) -> Option<i64> {
    let is = |names: &[&str]| {
        // Few: the names of a unit.
        names.contains(&unit) || names.last().is_some_and(|last| unit.starts_with(last))
    };
    UNITS.iter().find(|(_, names)| is(names)).map(|(nanos, _)| *nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_in_gos_form_and_in_words() {
        let rows = [
            ("1h30m", Ok(5_400_000_000_000)),
            ("1d", Ok(86_400_000_000_000)),
            ("2 Weeks", Ok(1_209_600_000_000_000)),
            ("1 hour and 5 minutes", Ok(3_900_000_000_000)),
            ("3 µs", Ok(3_000)),
            ("", Err("unable to parse  as duration")),
            ("5 parsecs", Err("unable to parse 5 parsecs as duration")),
            (
                "99999999999999999999 s",
                Err("strconv.Atoi: parsing \"99999999999999999999\": value out of range"),
            ),
        ];
        for (text, want) in rows {
            assert_eq!(parse(text), want.map_err(str::to_owned), "{text}");
        }
    }
}
