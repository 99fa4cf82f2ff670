//! Texts that match a pattern.
//!
//! In: a regular expression, randomness. Out: a text that matches it, mostly: anchors within it are left out.
//! Never: a text that grows beyond some repetitions.

use forebay_rt::Random;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Repetitions beyond the least that are needed.
const MORE_MAX: u32 = 3;

pub(super) fn matching(pattern: &str, random: &Random) -> Option<String> {
    let parsed = regex_syntax::parse(pattern).ok()?;
    let mut text = Vec::new();
    write(&parsed, random, &mut text);
    String::from_utf8(text).ok()
}

fn write(hir: &Hir, random: &Random, text: &mut Vec<u8>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.extend_from_slice(&literal.0),
        HirKind::Class(class) => write_one(class, random, text),
        HirKind::Repetition(repeated) => {
            let more = repeated.max.map_or(MORE_MAX, |max| (max - repeated.min).min(MORE_MAX));
            let count = u64::from(repeated.min) + random.below(u64::from(more) + 1);
            (0..count).for_each(|_| write(&repeated.sub, random, text));
        }
        HirKind::Capture(capture) => write(&capture.sub, random, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, random, text)),
        HirKind::Alternation(parts) => {
            write(&parts[random.below(parts.len() as u64) as usize], random, text);
        }
    }
}

/// A character of `class`: a letter or digit if it has one.
fn write_one(class: &Class, random: &Random, text: &mut Vec<u8>) {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
        Class::Bytes(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
    };
    let has = |c: &char| ranges.iter().any(|(from, to)| (*from..=*to).contains(&u32::from(*c)));
    let plain: Vec<char> = ('a'..='z').chain('0'..='9').chain('A'..='Z').filter(has).collect();
    let first = || ranges.first().and_then(|(from, _)| char::from_u32(*from));
    let chosen = match plain.len() as u64 {
        0 => first(),
        count => Some(plain[random.below(count) as usize]),
    };
    if let Some(chosen) = chosen {
        text.extend_from_slice(chosen.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_matches() {
        let random = Random::seeded(1);
        for pattern in ["^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "^(a|bc){2,4}\\.[^/]+$", "^$", "^\\d{3}[.]x?$"] {
            let matcher = regex_syntax::parse(pattern).expect("a pattern");
            assert!(matcher.properties().is_utf8());
            let text = matching(pattern, &random).expect("a text");
            let is_match = match pattern {
                "^$" => text.is_empty(),
                "^\\d{3}[.]x?$" => text.as_bytes()[..3].iter().all(u8::is_ascii_digit) && text.len() <= 5,
                _ => !text.is_empty(),
            };
            assert!(is_match, "{pattern}: {text}");
        }
    }
}
