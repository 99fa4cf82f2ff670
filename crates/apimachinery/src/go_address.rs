//! IP addresses and networks, read as strictly as Go's `net/netip` reads them.
//!
//! In: a text. Out: an address, or Go's words for what is wrong. Never: an address with leading zeros, as
//! Go's older functions take.

use std::net::IpAddr;

use crate::json::go_quote;

/// An address as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub ip: IpAddr,
    /// Whether a zone stands behind it: `fe80::1%eth0`.
    pub has_zone: bool,
}

/// Reads an address.
///
/// # Errors
/// Go's text, for instance `ParseAddr("a"): unable to parse IP`.
pub fn parse(text: &str) -> Result<Address, String> {
    let (plain, has_zone) = match text.split_once('%') {
        Some((plain, zone)) if plain.contains(':') && !zone.is_empty() => (plain, true),
        _ => (text, false),
    };
    match plain.parse() {
        Ok(ip) => Ok(Address { ip, has_zone }),
        Err(_) => Err(failed(text)),
    }
}

/// Reads an address and how many of its bits are a network's. No zone may stand in it.
///
/// # Errors
/// Go's text, for instance `netip.ParsePrefix("::1"): no '/'`.
pub fn parse_prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong = |why: &str| format!("netip.ParsePrefix({}): {why}", go_quote(text));
    let (addr, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'"))?;
    let ip: IpAddr = addr.parse().map_err(|_| wrong(&failed(addr)))?;
    let is_number = !bits.is_empty()
        && bits.bytes().all(|b| b.is_ascii_digit())
        && (bits.len() == 1 || !bits.starts_with('0'));
    let length: Option<u8> = bits.parse().ok().filter(|_| is_number);
    let length = length.ok_or_else(|| wrong(&format!("bad bits after slash: {}", go_quote(bits))))?;
    if length > width(&ip) {
        return Err(wrong("prefix length out of range"));
    }
    Ok((ip, length))
}

/// Bits of an address.
fn width(ip: &IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn failed(text: &str) -> String {
    format!("ParseAddr({}): {}", go_quote(text), why_not(text))
}

/// What Go says first of a text that is no address, and from where on.
fn why_not(text: &str) -> String {
    match text.find(['.', ':', '%']).map(|at| &text[at..=at]) {
        Some(".") => why_not_v4(text),
        Some(":") => why_not_v6(text),
        Some("%") => "missing IPv6 address".to_owned(),
        _ => "unable to parse IP".to_owned(),
    }
}

fn why_not_v4(text: &str) -> String {
    let fields: Vec<&str> = text.split('.').collect();
    let mut from = 0;
    for field in &fields {
        if let Some(odd) = field.find(|c: char| !c.is_ascii_digit()) {
            return format!("unexpected character (at {})", go_quote(&text[from + odd..]));
        }
        if field.is_empty() {
            return format!("IPv4 field must have at least one digit (at {})", go_quote(&text[from..]));
        }
        if field.len() > 1 && field.starts_with('0') {
            return "IPv4 field has octet with leading zero".to_owned();
        }
        if field.parse::<u8>().is_err() {
            return "IPv4 field has value >255".to_owned();
        }
        from += field.len() + 1;
    }
    if fields.len() < 4 { "IPv4 address too short" } else { "IPv4 address too long" }.to_owned()
}

fn why_not_v6(text: &str) -> String {
    let at = |why: &str, rest: &str| format!("{why} (at {})", go_quote(rest));
    let mut rest = text.split('%').next().unwrap_or(text);
    if rest.len() < text.len() && text.ends_with('%') {
        return "zone must be a non-empty string".to_owned();
    }
    let mut has_ellipsis = false;
    if let Some(after) = rest.strip_prefix("::") {
        (rest, has_ellipsis) = (after, true);
    }
    for field in 0..8 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        match digits {
            0 => return at("each colon-separated field must have at least one digit", rest),
            5.. => return at("each group must have 4 or less digits", rest),
            _ => {}
        }
        if rest[digits..].starts_with('.') {
            return match field {
                _ if !has_ellipsis && field != 6 => {
                    at("embedded IPv4 address must replace the final 2 fields of the address", rest)
                }
                7 => at("too many hex fields to fit an embedded IPv4 at the end of the address", rest),
                _ => why_not_v4(rest),
            };
        }
        rest = &rest[digits..];
        let Some(after) = rest.strip_prefix(':') else {
            return match rest.is_empty() {
                true if has_ellipsis => "the :: must expand to at least one field of zeros".to_owned(),
                true => "address string too short".to_owned(),
                false => at("unexpected character, want colon", rest),
            };
        };
        if after.is_empty() {
            return at("colon must be followed by more characters", rest);
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if has_ellipsis {
                return at("multiple :: in address", rest);
            }
            (rest, has_ellipsis) = (after, true);
        }
    }
    at("trailing garbage after address", rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_an_address_is_said_in_gos_words() {
        let rows = [
            ("a", "unable to parse IP"),
            ("%eth0", "missing IPv6 address"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.4.5", "IPv4 address too long"),
            ("1.2.3.04", "IPv4 field has octet with leading zero"),
            ("1.2.3.256", "IPv4 field has value >255"),
            ("1..3.4", "IPv4 field must have at least one digit (at \".3.4\")"),
            ("::1%", "zone must be a non-empty string"),
            ("1:2", "address string too short"),
            ("1::2::3", "multiple :: in address (at \":3\")"),
        ];
        for (text, want) in rows {
            let want = format!("ParseAddr({}): {want}", go_quote(text));
            assert_eq!(parse(text), Err(want), "{text}");
        }
    }

    #[test]
    fn a_zone_belongs_to_an_address_and_to_no_network() {
        assert_eq!(parse("fe80::1%eth0").map(|found| found.has_zone), Ok(true));
        assert_eq!(parse("fe80::1").map(|found| found.has_zone), Ok(false));
        assert!(parse_prefix("fe80::1%eth0/64").is_err());
        assert_eq!(parse_prefix("fe80::1/64").map(|(_, bits)| bits), Ok(64));
        let wrong = "netip.ParsePrefix(\"1.2.3.4/33\"): prefix length out of range";
        assert_eq!(parse_prefix("1.2.3.4/33"), Err(wrong.to_owned()));
    }
}
