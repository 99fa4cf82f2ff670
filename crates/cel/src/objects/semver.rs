//! Semantic versions.

use std::cmp::Ordering;

use forebay_apimachinery::json::go_quote;

use crate::error::Error;

/// A version by semver 2.0.0.
#[derive(Clone, Debug)]
pub struct Semver {
    pub(crate) numbers: [u64; 3],
    pre: Vec<Part>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Number(u64),
    Word(String),
}

impl PartialEq for Semver {
    fn eq(&self, other: &Semver) -> bool {
        self.order(other).is_eq()
    }
}

impl Semver {
    pub(crate) fn order(&self, other: &Semver) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => {
                let pairs = self.pre.iter().zip(&other.pre).map(|(one, two)| one.order(two));
                let first = pairs.into_iter().find(|order| order.is_ne());
                first.unwrap_or_else(|| self.pre.len().cmp(&other.pre.len()))
            }
        })
    }
}

impl Part {
    fn order(&self, other: &Part) -> Ordering {
        match (self, other) {
            (Part::Number(one), Part::Number(two)) => one.cmp(two),
            (Part::Number(_), Part::Word(_)) => Ordering::Less,
            (Part::Word(_), Part::Number(_)) => Ordering::Greater,
            (Part::Word(one), Part::Word(two)) => one.cmp(two),
        }
    }
}

/// Without a `v`, without leading zeros, and with all three numbers.
pub(crate) fn normalized(text: &str) -> Result<String, Error> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err(Error::new("short version cannot contain PreRelease/Build meta data"));
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}

fn without_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let bare = part.trim_start_matches('0');
    if bare.starts_with(|c: char| c.is_ascii_digit()) { bare.to_owned() } else { format!("0{bare}") }
}

/// Reads a version.
pub(crate) fn read(text: &str) -> Result<Semver, Error> {
    if text.is_empty() {
        return Err(Error::new("Version string empty"));
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let [major, minor, rest] = parts[..] else {
        return Err(Error::new("No Major.Minor.Patch elements found"));
    };
    let mut numbers = [numeric(major, "Major")?, numeric(minor, "Minor")?, 0];
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (rest, None),
    };
    let (patch, pre) = match rest.split_once('-') {
        Some((patch, pre)) => (patch, Some(pre)),
        None => (rest, None),
    };
    numbers[2] = numeric(patch, "Patch")?;
    let mut parts = Vec::new();
    for part in pre.iter().flat_map(|pre| pre.split('.')) {
        parts.push(pre_part(part)?);
    }
    for part in build.iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err(Error::new("Build meta data is empty"));
        }
        if !part.bytes().all(is_word) {
            return Err(Error::new(format!(
                "Invalid character(s) found in build meta data {}",
                go_quote(part)
            )));
        }
    }
    Ok(Semver { numbers, pre: parts, text: text.to_owned() })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn numeric(text: &str, which: &str) -> Result<u64, Error> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        let lower = which.to_lowercase();
        return Err(Error::new(format!("Invalid character(s) found in {lower} number {}", go_quote(text))));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(Error::new(format!("{which} number must not contain leading zeroes {}", go_quote(text))));
    }
    let quoted = go_quote(text);
    text.parse().map_err(|_| {
        let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
        Error::new(format!("strconv.ParseUint: parsing {quoted}: {why}"))
    })
}

fn pre_part(part: &str) -> Result<Part, Error> {
    if part.is_empty() {
        return Err(Error::new("Prerelease is empty"));
    }
    if part.bytes().all(|b| b.is_ascii_digit()) {
        if part.len() > 1 && part.starts_with('0') {
            return Err(Error::new(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                go_quote(part)
            )));
        }
        return part.parse().map(Part::Number).map_err(|_| Error::new("Prerelease is out of range"));
    }
    if !part.bytes().all(is_word) {
        return Err(Error::new(format!("Invalid character(s) found in prerelease {}", go_quote(part))));
    }
    Ok(Part::Word(part.to_owned()))
}
