//! Where a request comes from: what proxies say of it, and who is at the other end of the connection.
//!
//! In: two headers and an address. Out: addresses, in order. Never: believes any but the last.
//!
//! Source: apimachinery v0.36.3 `pkg/util/net/http.go`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// See the module's doc.
///
/// - `forwarded`: `X-Forwarded-For`, the first of them.
/// - `real`: `X-Real-Ip`, the first of them.
pub fn source_ips(forwarded: Option<&str>, real: Option<&str>, remote: Option<IpAddr>) -> Vec<IpAddr> {
    let forwarded = forwarded.unwrap_or_default();
    let mut all: Vec<IpAddr> = forwarded.split(',').filter_map(|part| parsed(part.trim())).collect();
    if let Some(real) = real.and_then(parsed)
        // Once: of one header.
        && !all.contains(&real)
    {
        all.push(real);
    }
    if let Some(remote) = remote.map(|remote| remote.to_canonical())
        && all.last() != Some(&remote)
    {
        all.push(remote);
    }
    all
}

/// An address as Go's sloppy reader has it: the numbers of version 4 may begin with zeros.
fn parsed(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(|address| IpAddr::V6(address).to_canonical());
    }
    let mut parts = text.split('.').map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let digits = part.trim_start_matches('0');
        is_number.then(|| if digits.is_empty() { Ok(0) } else { digits.parse::<u8>() })?.ok()
    });
    let mut part = || parts.next().flatten();
    let address = Ipv4Addr::new(part()?, part()?, part()?, part()?);
    parts.next().is_none().then_some(IpAddr::V4(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proxies_say_comes_first_and_who_is_connected_last_each_once_in_a_row() {
        let remote: IpAddr = "10.0.0.9".parse().expect("an address");
        for (forwarded, real, want) in [
            (None, None, "10.0.0.9"),
            (Some("1.2.3.4, 5.6.7.8"), None, "1.2.3.4 5.6.7.8 10.0.0.9"),
            (Some("1.2.3.4"), Some("1.2.3.4"), "1.2.3.4 10.0.0.9"),
            (Some("1.2.3.4,x,,1.2.3"), Some("9.9.9.9"), "1.2.3.4 9.9.9.9 10.0.0.9"),
            (Some("1.2.3.4"), Some("10.0.0.9"), "1.2.3.4 10.0.0.9"),
            (Some("10.0.0.9, 1.1.1.1"), None, "10.0.0.9 1.1.1.1 10.0.0.9"),
            (Some("::ffff:1.2.3.4, FE80::1, fe80::1%eth0"), Some(" 1.1.1.1"), "1.2.3.4 fe80::1 10.0.0.9"),
            (
                Some("010.001.0.00256, 1.2.3.256, 1.2.3.4.5, +1.2.3.4"),
                Some("010.001.000.1"),
                "10.1.0.1 10.0.0.9",
            ),
        ] {
            let all: Vec<String> =
                source_ips(forwarded, real, Some(remote)).iter().map(IpAddr::to_string).collect();
            assert_eq!(all.join(" "), want, "{forwarded:?} {real:?}");
        }
        assert!(source_ips(Some("x"), None, None).is_empty());
    }
}
