//! URLs as Go's `net/url` reads them.
//!
//! In: a text. Out: its parts, or Go's error text. Never: resolves or normalizes.

use crate::go_address;
use crate::json::go_quote;

/// The parts of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    pub scheme: String,
    /// With its port, decoded.
    pub host: String,
    pub user: Option<String>,
    /// As it is written. Empty in `mailto:a@b`, where it is opaque.
    pub path: String,
    pub query: String,
    pub fragment: String,
}

impl Url {
    /// Parses a URL with an optional fragment.
    ///
    /// # Errors
    /// Go's text, for instance `parse ":": missing protocol scheme`.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let failed = |what: &str, cause: String| format!("parse {}: {cause}", go_quote(what));
        let mut url = parse(rest, false).map_err(|cause| failed(rest, cause))?;
        unescape(fragment, Part::Other).map_err(|cause| failed(text, cause))?;
        url.fragment = fragment.to_owned();
        Ok(url)
    }

    /// Parses an absolute URI or an absolute path.
    ///
    /// # Errors
    /// Go's text.
    pub fn parse_request(text: &str) -> Result<Url, String> {
        parse(text, true).map_err(|cause| format!("parse {}: {cause}", go_quote(text)))
    }

    /// The host's name and its port, which is empty if there is none.
    pub fn host_and_port(&self) -> (&str, &str) {
        let (name, port) = match self.host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, port),
            _ => (&*self.host, ""),
        };
        (name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name), port)
    }

    /// The path as it is written, if everything in it that has to be is escaped; escaped anew otherwise.
    pub fn escaped_path(&self) -> String {
        let is_escaped = |b: u8| is_plain_in_path(b) || b"!'()*[]%".contains(&b);
        if self.path.bytes().all(is_escaped) {
            return self.path.clone();
        }
        let mut out = String::with_capacity(self.path.len());
        for byte in unescape(&self.path, Part::Other).unwrap_or_default().bytes() {
            match is_plain_in_path(byte) {
                true => out.push(char::from(byte)),
                false => out.push_str(&format!("%{byte:02X}")),
            }
        }
        out
    }
}

fn is_plain_in_path(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b)
}

fn parse(text: &str, via_request: bool) -> Result<Url, String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && via_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = text.to_owned();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_lowercase();
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.query = query.to_owned();
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(url);
        }
        if via_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = !scheme.is_empty() || (!via_request && !rest.starts_with("///"));
    if let Some(authority) = rest.strip_prefix("//").filter(|_| has_authority) {
        let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
        rest = path;
        (url.user, url.host) = parse_authority(&url.scheme, authority)?;
    }
    unescape(rest, Part::Other)?;
    url.path = rest.to_owned();
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..i], &text[i + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(scheme: &str, authority: &str) -> Result<(Option<String>, String), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let host = parse_host(scheme, host)?;
    if let Some(user) = user {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(plain) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        unescape(user, Part::Other)?;
    }
    Ok((user.map(str::to_owned), host))
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => return parse_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // More than one colon is tolerated for schemes that are not HTTP.
    let colon = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
    if let Some(at) = colon {
        check_port(&host[at..])?;
    }
    unescape(host, Part::Host)
}

/// `[::1]:80`.
fn parse_literal(host: &str) -> Result<String, String> {
    let Some(close) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
    check_port(&host[close + 1..])?;
    let address = unescape(&host[1..close], Part::Host)?;
    match go_address::parse(&address) {
        Ok(found) if found.ip.is_ipv6() => Ok(format!("[{address}]{}", &host[close + 1..])),
        Ok(_) => Err("invalid IP-literal".to_owned()),
        Err(why) => Err(format!("invalid host: {why}")),
    }
}

fn check_port(port: &str) -> Result<(), String> {
    let valid =
        port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    match valid {
        true => Ok(()),
        false => Err(format!("invalid port {} after host", go_quote(port))),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Host,
    Other,
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while let Some(&b) = bytes.get(i) {
        if b != b'%' {
            if part == Part::Host && b.is_ascii() && !is_host_byte(b) {
                let c = char::from(b).to_string();
                return Err(format!("invalid character {} in host name", go_quote(&c)));
            }
            out.push(b);
            i += 1;
            continue;
        }
        let hex = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16));
        let whole = String::from_utf8_lossy(&bytes[i..bytes.len().min(i + 3)]);
        match (hex(i + 1), hex(i + 2)) {
            (Some(high), Some(low)) if part == Part::Other || high >= 8 || whole == "%25" => {
                out.push((high * 16 + low) as u8);
            }
            _ => return Err(format!("invalid URL escape {}", go_quote(&whole))),
        }
        i += 3;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn is_host_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_taken_apart() {
        let url = Url::parse("HTTPS://me:pw@example.com:80/a/b?c=d#e").expect("a URL");
        assert_eq!((url.scheme.as_str(), url.host.as_str()), ("https", "example.com:80"));
        assert_eq!(
            (url.user.as_deref(), url.query.as_str(), url.fragment.as_str()),
            (Some("me:pw"), "c=d", "e")
        );
        assert_eq!(Url::parse("a/b").map(|url| url.host), Ok(String::new()));
        assert_eq!(
            Url::parse("https://[fe80::1%25en0]/").map(|url| url.host),
            Ok("[fe80::1%en0]".to_owned())
        );
    }

    #[test]
    fn refusals_are_gos() {
        let rows = [
            (":a", "parse \":a\": missing protocol scheme"),
            ("https://a b", "parse \"https://a b\": invalid character \" \" in host name"),
            ("https://a:x", "parse \"https://a:x\": invalid port \":x\" after host"),
            ("https://a/%zz", "parse \"https://a/%zz\": invalid URL escape \"%zz\""),
            ("a:b/c", ""),
            ("1:2", "parse \"1:2\": first path segment in URL cannot contain colon"),
        ];
        for (text, want) in rows {
            assert_eq!(Url::parse(text).err().unwrap_or_default(), want, "{text}");
        }
    }

    #[test]
    fn a_host_has_a_name_and_perhaps_a_port() {
        let rows = [
            ("http://a.b:80/", ("a.b", "80")),
            ("http://a.b", ("a.b", "")),
            ("http://a.b:", ("a.b", "")),
            ("http://[::1]:80", ("::1", "80")),
            ("http://[::1]", ("::1", "")),
        ];
        for (text, want) in rows {
            let url = Url::parse(text).expect(text);
            assert_eq!(url.host_and_port(), want, "{text}");
        }
    }

    #[test]
    fn a_path_is_escaped_where_it_has_to_be() {
        let rows =
            [("/a%20b(c)", "/a%20b(c)"), ("/a b", "/a%20b"), ("/a%2fb c(d)", "/a/b%20c%28d%29"), ("", "")];
        for (path, want) in rows {
            let url = Url::parse(&format!("http://a{path}?b c")).expect(path);
            assert_eq!(url.escaped_path(), want, "{path}");
        }
    }
}
