//! Formats of network names: host names, IP addresses, CIDRs, MAC addresses.

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use regex::Regex;

/// Whether the text is an IP address with a dot in it; leading zeros are tolerated, as stored objects have
/// them.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.') && is_ip_sloppy(text)
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_ip(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let max = match (is_ipv4_sloppy(address), is_ipv6_sloppy(address)) {
        (true, _) => 32,
        (_, true) => 128,
        _ => return false,
    };
    number(bits, 10).is_some_and(|(n, rest)| rest.is_empty() && n <= max)
}

fn is_ip_sloppy(text: &str) -> bool {
    match text.find(['.', ':']) {
        Some(at) if text.as_bytes()[at] == b'.' => is_ipv4_sloppy(text),
        Some(_) => is_ipv6_sloppy(text),
        None => false,
    }
}

fn is_ipv4_sloppy(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    parts.len() == 4
        && parts.iter().all(|p| number(p, 10).is_some_and(|(n, rest)| rest.is_empty() && n <= 0xFF))
}

fn is_ipv6_sloppy(text: &str) -> bool {
    let mut rest = text;
    let mut gap = false;
    let mut groups = 0;
    if let Some(after) = rest.strip_prefix("::") {
        if after.is_empty() {
            return true;
        }
        (gap, rest) = (true, after);
    }
    while groups < 8 {
        let Some((_, after)) = number(rest, 16).filter(|(n, _)| *n <= 0xFFFF) else { return false };
        if after.starts_with('.') {
            let fits = if gap { groups <= 6 } else { groups == 6 };
            if !fits || !is_ipv4_sloppy(rest) {
                return false;
            }
            (groups, rest) = (groups + 2, "");
            break;
        }
        groups += 1;
        rest = after;
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':').filter(|after| !after.is_empty()) else { return false };
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if gap {
                return false;
            }
            (gap, rest) = (true, after);
            if rest.is_empty() {
                break;
            }
        }
    }
    rest.is_empty() && (groups == 8) != gap
}

/// The number at the start of the text and what follows; none when there is no digit or the number is absurd.
fn number(text: &str, radix: u32) -> Option<(u32, &str)> {
    let mut value = 0u32;
    let mut used = 0;
    for c in text.chars() {
        let Some(digit) = c.to_digit(radix) else { break };
        value = value * radix + digit;
        used += 1;
        if value >= 0xFF_FFFF {
            return None;
        }
    }
    (used > 0).then(|| (value, &text[used..]))
}

pub(super) fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 12 {
        return false;
    }
    let (separator, size) = match (bytes[2], bytes[4]) {
        (sep @ (b':' | b'-'), _) => (Some(char::from(sep)), 2),
        (_, b'.') => (Some('.'), 4),
        _ => (None, text.len()),
    };
    let groups: Vec<&str> = match separator {
        Some(separator) => text.split(separator).collect(),
        None => vec![text],
    };
    let digits: usize = groups.iter().map(|group| group.len()).sum();
    matches!(digits, 12 | 16 | 40)
        && groups.iter().all(|group| group.len() == size && group.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// RFC 1034 with the widenings that Kubernetes makes: a leading digit, letters and symbols of any script.
pub(super) fn is_hostname(text: &str) -> bool {
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && (is_single_label(text) || is_qualified(text))
}

/// One character, then at most one dash and 62 more.
fn is_single_label(text: &str) -> bool {
    let mut chars = text.chars();
    if !chars.next().is_some_and(is_host_char) {
        return false;
    }
    let rest = chars.as_str();
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    rest.chars().count() <= 62 && rest.chars().all(is_host_char)
}

/// Labels and dots, then a top-level domain of at least two letters.
fn is_qualified(text: &str) -> bool {
    let Some((labels, top)) = text.rsplit_once('.') else { return false };
    (2..=63).contains(&top.chars().count()) && top.chars().all(is_letter) && labels.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(is_host_char);
    edge(label.chars().next())
        && edge(label.chars().next_back())
        && label.chars().count() <= 63
        && label.chars().all(|c| c == '-' || is_host_char(c))
}

/// Go's `\p{L}`.
fn is_letter(c: char) -> bool {
    static LETTER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\p{L}$").expect("a constant pattern compiles"));
    if c.is_ascii() { c.is_ascii_alphabetic() } else { LETTER.is_match(c.encode_utf8(&mut [0; 4])) }
}

/// Go's `[a-zA-Z0-9\p{S}\p{L}]`.
fn is_host_char(c: char) -> bool {
    static SYMBOL: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^\p{S}$").expect("a constant pattern compiles"));
    c.is_ascii_digit() || is_letter(c) || SYMBOL.is_match(c.encode_utf8(&mut [0; 4]))
}
