//! Addresses in fields: what they may be, and what kind they are of.
//!
//! In: text. Out: causes. Never: a packet.
//!
//! Source: apimachinery v0.36.3 `util/validation/ip.go`; kubernetes v1.36.3 `apis/core/validation`.

#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::field::{Causes, Path};
use super::format::sloppy_ip;

/// An address that may be in another form than the canonical one. Says which, when nothing is wrong with it.
pub fn legacy_ip(value: &str, at: &Path<'_>, causes: &mut Causes) -> Option<IpAddr> {
    let faults = legacy_ip_faults(value);
    let address = sloppy_ip(value).filter(|_| faults.is_empty());
    causes.faults(at, value, faults);
    address
}

/// An address in canonical form. Says which.
pub fn strict_ip(value: &str, at: &Path<'_>, causes: &mut Causes) -> Option<IpAddr> {
    let faults = strict_ip_faults(value);
    let address = sloppy_ip(value).filter(|_| faults.is_empty());
    causes.faults(at, value, faults);
    address
}

/// What is wrong with an address that must be in canonical form.
pub fn strict_ip_faults(value: &str) -> Vec<String> {
    let mut faults = legacy_ip_faults(value);
    let shown = sloppy_ip(value).map(|address| address.to_string());
    if let (true, Some(shown)) = (faults.is_empty(), shown.filter(|shown| shown != value)) {
        faults.push(format!("must be in canonical form (\"{shown}\")"));
    }
    faults
}

fn legacy_ip_faults(value: &str) -> Vec<String> {
    let Some(address) = sloppy_ip(value) else {
        return vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".into()];
    };
    let mut faults = Vec::new();
    if value.parse::<IpAddr>().is_err() {
        faults.push("must not have leading 0s".into());
    }
    if is_mapped(address) {
        faults.push("must not be an IPv4-mapped IPv6 address".into());
    }
    faults
}

/// An IPv4 address in IPv6's clothes.
fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
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

/// A range of addresses: those whose first bits are an address'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub address: IpAddr,
    pub bits: u8,
}

impl Range {
    /// A range as Go's sloppy parser reads it: leading zeros are let through, and bits beyond the prefix.
    pub fn sloppy(value: &str) -> Option<Range> {
        let (address, bits) = value.split_once('/')?;
        let address = sloppy_ip(address)?;
        let digits = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = digits.then(|| bits.parse::<u8>().ok()).flatten()?;
        (bits <= address_bits(address)).then_some(Range { address, bits })
    }

    /// Its first address.
    pub fn network(&self) -> IpAddr {
        let beyond = u32::from(address_bits(self.address) - self.bits);
        match self.address {
            IpAddr::V4(v4) => {
                Ipv4Addr::from(u32::from(v4) & u32::MAX.checked_shl(beyond).unwrap_or(0)).into()
            }
            IpAddr::V6(v6) => {
                Ipv6Addr::from(u128::from(v6) & u128::MAX.checked_shl(beyond).unwrap_or(0)).into()
            }
        }
    }

    /// Whether `address` is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && Range { address, bits: self.bits }.network() == self.network()
    }
}

impl fmt::Display for Range {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.network(), self.bits)
    }
}

fn address_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// A range that may be in another form than the canonical one. Says which, even when something is wrong with
/// its form.
pub fn legacy_cidr(value: &str, at: &Path<'_>, causes: &mut Causes) -> Option<Range> {
    let Some(range) = Range::sloppy(value) else {
        causes.invalid(at, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
        return None;
    };
    let (address, bits) = value.split_once('/').unwrap_or((value, ""));
    if address.parse::<IpAddr>().is_err() || (bits.len() > 1 && bits.starts_with('0')) {
        causes.invalid(at, value, "must not have leading 0s in IP or prefix length");
    } else if is_mapped(range.address) {
        causes.invalid(at, value, "must not have an IPv4-mapped IPv6 address");
    } else if range.address != range.network() {
        causes.invalid(at, value, "must not have bits set beyond the prefix length");
    }
    Some(range)
}

/// A range in canonical form.
pub fn strict_cidr(value: &str, at: &Path<'_>, causes: &mut Causes) {
    let before = causes.len();
    if let Some(range) = legacy_cidr(value, at, causes)
        && causes.len() == before
        && range.to_string() != value
    {
        causes.invalid(at, value, &format!("must be in canonical form (\"{range}\")"));
    }
}

/// What is said of an address that is not in canonical form, though it is let through.
pub fn ip_warning(value: &str, at: &Path<'_>) -> Option<String> {
    let address = value.parse::<Ipv6Addr>().ok().filter(|address| address.to_string() != value)?;
    Some(format!("{at}: IPv6 address {value:?} should be in RFC 5952 canonical format (\"{address}\")"))
}

/// What is said of a range that is not in canonical form, though it is let through.
pub fn cidr_warning(value: &str, at: &Path<'_>) -> Option<String> {
    let range = Range::sloppy(value).filter(|range| range.address.is_ipv6() && range.to_string() != value)?;
    Some(format!("{at}: IPv6 CIDR value {value:?} should be in RFC 5952 canonical format (\"{range}\")"))
}
