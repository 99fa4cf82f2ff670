//! Addresses in fields: what they may be, and what kind they are of.
//!
//! In: text. Out: causes. Never: a packet.
//!
//! Source: apimachinery v0.36.3 `util/validation/ip.go`; kubernetes v1.36.3 `apis/core/validation`.

use std::net::IpAddr;

use super::field::{Causes, Path};
use super::format::sloppy_ip;

/// An address where older servers took what is no longer strictly one. Says whether it is.
pub fn legacy_ip(value: &str, at: &Path<'_>, causes: &mut Causes) -> Option<IpAddr> {
    let address = sloppy_ip(value);
    if address.is_none() {
        causes.invalid(at, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
    address
}

/// An address in canonical form. Says which.
pub fn strict_ip(value: &str, at: &Path<'_>, causes: &mut Causes) -> Option<IpAddr> {
    let address = legacy_ip(value, at, causes)?;
    let before = causes.len();
    if value.parse::<IpAddr>().is_err() {
        causes.invalid(at, value, "must not have leading 0s");
    }
    if let IpAddr::V6(v6) = address
        && v6.to_ipv4_mapped().is_some()
    {
        causes.invalid(at, value, "must not be an IPv4-mapped IPv6 address");
    }
    if causes.len() > before {
        return None;
    }
    if address.to_string() != value {
        causes.invalid(at, value, &format!("must be in canonical form (\"{address}\")"));
        return None;
    }
    Some(address)
}

/// An address that traffic can be sent to.
pub fn endpoint_ip(value: &str, at: &Path<'_>, causes: &mut Causes) {
    let Some(address) = sloppy_ip(value) else {
        return causes.invalid(at, value, "must be a valid IP address");
    };
    if address.is_unspecified() {
        causes.invalid(at, value, &format!("may not be unspecified ({value})"));
    }
    if address.is_loopback() {
        causes.invalid(at, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (local, local_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    if local {
        causes.invalid(at, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if local_multicast {
        causes.invalid(at, value, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// A range of addresses where older servers took what is no longer strictly one.
pub fn legacy_cidr(value: &str, at: &Path<'_>, causes: &mut Causes) {
    let parsed = value.split_once('/').and_then(|(address, bits)| Some((sloppy_ip(address)?, bits)));
    let fits = parsed.is_some_and(|(address, bits)| {
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let digits = !bits.is_empty() && bits.len() <= 3 && bits.bytes().all(|byte| byte.is_ascii_digit());
        digits && bits.parse::<u16>().is_ok_and(|bits| bits <= bits_max)
    });
    if !fits {
        causes.invalid(at, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(check: impl Fn(&mut Causes)) -> Vec<String> {
        let mut causes = Causes::default();
        check(&mut causes);
        causes.into_vec().into_iter().map(|cause| cause.message).collect()
    }

    #[test]
    fn ranges_need_an_address_and_its_bits() {
        for (text, fits) in [
            ("10.0.0.0/8", true),
            ("::/0", true),
            ("10.0.0.0", false),
            ("10.0.0.0/33", false),
            ("a/8", false),
            ("10.0.0.0/+8", false),
        ] {
            let at = Path::root("x");
            assert_eq!(messages(|causes| legacy_cidr(text, &at, causes)).is_empty(), fits, "{text}");
        }
    }

    #[test]
    fn some_addresses_are_no_endpoints() {
        let at = Path::root("x");
        for (text, count) in [
            ("10.1.2.3", 0),
            ("127.0.0.1", 1),
            ("0.0.0.0", 1),
            ("169.254.1.1", 1),
            ("224.0.0.9", 1),
            ("fe80::1", 1),
            ("ff02::1", 1),
        ] {
            assert_eq!(messages(|causes| endpoint_ip(text, &at, causes)).len(), count, "{text}");
        }
        assert_eq!(
            messages(|causes| {
                strict_ip("2001:DB8::1", &at, causes);
            }),
            [r#"Invalid value: "2001:DB8::1": must be in canonical form ("2001:db8::1")"#]
        );
    }
}
