//! IP addresses and networks, and what is true of them.

use std::fmt;
use std::net::IpAddr;

use forebay_apimachinery::go_address;
use forebay_apimachinery::json::go_quote;

use crate::error::Error;

/// A network: an address, which may have bits past the prefix, and the prefix's length.
#[derive(Clone, Debug, PartialEq)]
pub struct Cidr {
    pub addr: IpAddr,
    pub bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.bits)
    }
}

pub(crate) fn ip(text: &str) -> Result<IpAddr, Error> {
    let quoted = go_quote(text);
    let read = go_address::parse(text).map_err(|why| {
        Error::new(format!("IP Address {quoted} parse error during conversion from string: {why}"))
    })?;
    if read.has_zone {
        return Err(Error::new(format!("IP address {quoted} with zone value is not allowed")));
    }
    if is_mapped(&read.ip) {
        return Err(Error::new(format!("IPv4-mapped IPv6 address {quoted} is not allowed")));
    }
    Ok(read.ip)
}

fn is_mapped(it: &IpAddr) -> bool {
    matches!(it, IpAddr::V6(it) if it.to_ipv4_mapped().is_some())
}

/// A network, in the words of both who read one.
pub(crate) fn wrapped(text: &str) -> Result<Cidr, Error> {
    let prefix = "network address parse error during conversion from string: ";
    cidr(text).map_err(|why| Error::new(format!("{prefix}{why}")))
}

pub(crate) fn cidr(text: &str) -> Result<Cidr, Error> {
    let (addr, bits) = go_address::parse_prefix(text).map_err(|why| {
        Error::new(format!("network address parse error during conversion from string: {why}"))
    })?;
    if is_mapped(&addr) {
        return Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text))));
    }
    Ok(Cidr { addr, bits })
}

/// The address as a number, its first bit the highest of 128.
fn number(it: &IpAddr) -> u128 {
    match it {
        IpAddr::V4(it) => u128::from(it.to_bits()) << 96,
        IpAddr::V6(it) => it.to_bits(),
    }
}

fn prefix(it: &IpAddr, bits: u8) -> u128 {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
    number(it) & mask
}

pub(crate) fn masked(it: &Cidr) -> Cidr {
    let number = prefix(&it.addr, it.bits);
    let addr = match it.addr {
        IpAddr::V4(_) => IpAddr::V4(((number >> 96) as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    };
    Cidr { addr, bits: it.bits }
}

pub(crate) fn contains(net: &Cidr, addr: &IpAddr) -> bool {
    net.addr.is_ipv4() == addr.is_ipv4() && prefix(&net.addr, net.bits) == prefix(addr, net.bits)
}

pub(crate) fn is_link_local_multicast(it: &IpAddr) -> bool {
    match it {
        IpAddr::V4(it) => it.octets()[..3] == [224, 0, 0],
        IpAddr::V6(it) => it.segments()[0] & 0xff0f == 0xff02,
    }
}

pub(crate) fn is_link_local(it: &IpAddr) -> bool {
    match it {
        IpAddr::V4(it) => it.is_link_local(),
        IpAddr::V6(it) => it.segments()[0] & 0xffc0 == 0xfe80,
    }
}

pub(crate) fn is_global_unicast(it: &IpAddr) -> bool {
    let is_broadcast = matches!(it, IpAddr::V4(it) if it.is_broadcast());
    !(is_broadcast || it.is_unspecified() || it.is_loopback() || it.is_multicast() || is_link_local(it))
}
