//! What is wrong with a text that must have a certain form: DNS labels, keys, ports, environment names,
//! addresses.
//!
//! In: text. Out: faults in kube-apiserver's words, none when it is fine. Never: names the field.
//!
//! Source: apimachinery v0.36.3 `util/validation`, `api/validate/content`. Label keys and values, which count in bytes
//! where everything here counts in characters (both mean bytes), are in `apimachinery::selector`.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
const PORT_NAME_MAX: usize = 15;

/// A label in DNS, RFC 1123.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut faults = longer_than(value, LABEL_MAX);
    if !is_dns1123_label(value) {
        faults.push(if is_dns1123_subdomain(value) {
            "must not contain dots".to_string()
        } else {
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
             and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_string()
        });
    }
    faults
}

/// A label in DNS, RFC 1035: it begins with a letter.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut faults = longer_than(value, LABEL_MAX);
    if !is_dns1123_label(value) || value.starts_with(|c: char| c.is_ascii_digit()) {
        faults.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_string(),
        );
    }
    faults
}

/// A subdomain in DNS, RFC 1123.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut faults = longer_than(value, SUBDOMAIN_MAX);
    if !is_dns1123_subdomain(value) {
        faults.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_string(),
        );
    }
    faults
}

/// All names in a domain: `*.example.com`.
pub fn wildcard_subdomain(value: &str) -> Vec<String> {
    let mut faults = longer_than(value, SUBDOMAIN_MAX);
    if !value.strip_prefix("*.").is_some_and(is_dns1123_subdomain) {
        faults.push(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist \
             of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
             '*.example.com', regex used for validation is \
             '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_string(),
        );
    }
    faults
}

/// A name in a search list, where a label may begin with an underscore.
pub fn search_path(value: &str) -> Vec<String> {
    let mut faults = longer_than(value, SUBDOMAIN_MAX);
    let label = |label: &str| {
        let body = label.strip_prefix('_').unwrap_or(label);
        let edge =
            |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let inner =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        let bytes = body.as_bytes();
        edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(|byte| inner(*byte))
    };
    if !value.split('.').all(label) {
        faults.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                .to_string(),
        );
    }
    faults
}

/// A segment of a URL path; what precedes a generated ending may be `.` or `..`.
pub fn path_segment(value: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(value, "." | "..") {
        return vec![format!("may not be '{value}'")];
    }
    ['/', '%'].iter().filter(|c| value.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// The name of a port.
pub fn port_name(value: &str) -> Vec<String> {
    let mut faults = longer_than(value, PORT_NAME_MAX);
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if value.is_empty() || !value.bytes().all(allowed) {
        faults.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !value.bytes().any(|byte| byte.is_ascii_lowercase()) {
        faults.push("must contain at least one letter (a-z)".into());
    }
    if value.contains("--") {
        faults.push("must not contain consecutive hyphens".into());
    }
    if value.starts_with('-') || value.ends_with('-') {
        faults.push("must not begin or end with a hyphen".into());
    }
    faults
}

/// The number of a port.
pub fn port_number(port: i64) -> Option<&'static str> {
    (!(1..=65535).contains(&port)).then_some("must be between 1 and 65535, inclusive")
}

/// A user or group id.
pub fn user_id(id: i64) -> Option<&'static str> {
    (!(0..=i64::from(i32::MAX)).contains(&id)).then_some("must be between 0 and 2147483647, inclusive")
}

/// The key of a ConfigMap or a Secret.
pub fn config_key(value: &str) -> Vec<String> {
    let mut faults = longer_than(value, SUBDOMAIN_MAX);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if value.is_empty() || !value.bytes().all(allowed) {
        faults.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .into(),
        );
    }
    match value {
        "." => faults.push("must not be '.'".into()),
        ".." => faults.push("must not be '..'".into()),
        _ if value.starts_with("..") => faults.push("must not start with '..'".into()),
        _ => {}
    }
    faults
}

/// The name of an environment variable, as relaxed in 1.30.
pub fn env_name(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.is_empty() {
        faults.push("environment variable name must be non-empty".to_string());
    }
    if !value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=') {
        faults.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='".into(),
        );
    }
    faults
}

/// The name of an HTTP header.
pub fn header_name(value: &str) -> Option<&'static str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (value.is_empty() || !value.bytes().all(allowed)).then_some(
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for \
         validation is '[-A-Za-z0-9]+')",
    )
}

/// A name in C.
pub fn c_identifier(value: &str) -> Option<&'static str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = value.bytes().next().is_some_and(|byte| allowed(byte) && !byte.is_ascii_digit());
    (!begins || !value.bytes().all(allowed)).then_some(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric \
         characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
         '[A-Za-z_][A-Za-z0-9_]*')",
    )
}

/// `12%`.
pub fn percent(value: &str) -> Option<&'static str> {
    let number = value.strip_suffix('%').unwrap_or("");
    (number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit())).then_some(
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
         for validation is '[0-9]+%')",
    )
}

/// An address as Go's sloppy parser reads it: leading zeros in IPv4 are let through.
pub fn sloppy_ip(value: &str) -> Option<IpAddr> {
    if value.contains(':') {
        return value.parse::<Ipv6Addr>().ok().map(IpAddr::V6).filter(|_| !value.contains('%'));
    }
    let mut octets = [0u8; 4];
    let mut parts = value.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *octet = part.parse::<u16>().ok().and_then(|number| u8::try_from(number).ok())?;
    }
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

pub fn is_dns1123_label(value: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match value.as_bytes() {
        [] => false,
        [first, .., last] if !edge(*first) || !edge(*last) => false,
        bytes => bytes.iter().all(|byte| edge(*byte) || *byte == b'-') && bytes != b"-",
    }
}

fn is_dns1123_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns1123_label)
}

fn longer_than(value: &str, max: usize) -> Vec<String> {
    if value.len() > max { vec![format!("must be no more than {max} characters")] } else { Vec::new() }
}
