//! The ranges that Services are given addresses and node ports from, and the order in which those are tried.
//!
//! In: `10.0.0.0/24`, `30000-32767`. Out: what is in the range, and candidates: the upper part of the range
//! first, from a random place on, so that the lower part stays free for those who ask for a certain one.
//! Never: knows what is taken.
//!
//! Source: kubernetes v1.36.3 `registry/core/service/{ipallocator,portallocator}`, apimachinery `util/net/port_range.go`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use forebay_rt::Random;

/// A range of cluster IPs. Its network address is none of them, nor is the broadcast address of an IPv4
/// range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    network: IpAddr,
    prefix: u8,
}

/// A range of node ports; empty when `size` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    base: u16,
    size: u32,
}

/// Lower parts that are not handed out while the upper one has something left: a sixteenth of the addresses,
/// a thirty-second of the ports, within bounds. Too small a range has none.
const ADDRESSES_KEPT: Kept = Kept { step: 16, min: 16, max: 256 };
const PORTS_KEPT: Kept = Kept { step: 32, min: 16, max: 128 };

struct Kept {
    step: u64,
    min: u64,
    max: u64,
}

impl Kept {
    fn of(&self, size: u64) -> u64 {
        if size <= self.min { 0 } else { (size / self.step).clamp(self.min, self.max) }
    }
}

/// `0..size` in the order in which they are tried: `kept..size` from a random one on, then `0..kept`
/// likewise.
fn candidates(size: u64, kept: u64, random: &Random) -> impl Iterator<Item = u64> + use<> {
    let turned = |from: u64, to: u64| {
        let start = from + random.below(to - from);
        (start..to).chain(from..start)
    };
    turned(kept.min(size), size).chain(turned(0, kept.min(size)))
}

impl AddressRange {
    /// `network`'s first `prefix` bits; `None` when it has fewer.
    pub fn new(network: IpAddr, prefix: u8) -> Option<AddressRange> {
        let (bits, width) = bits_of(network);
        let host = width.checked_sub(prefix)?;
        let masked = if host == 128 { 0 } else { bits >> host << host };
        Some(AddressRange { network: address_of(masked, network.is_ipv6()), prefix })
    }

    pub fn is_ipv6(&self) -> bool {
        self.network.is_ipv6()
    }

    pub fn network(&self) -> IpAddr {
        self.network
    }

    /// The one behind the network's address: that of the `kubernetes` Service.
    pub fn first(&self) -> IpAddr {
        self.at(0)
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let ((low, _), (bits, _)) = (bits_of(self.network), bits_of(address));
        let same_family = address.is_ipv6() == self.is_ipv6();
        same_family
            && bits.checked_sub(low).is_some_and(|offset| (1..=u128::from(self.len())).contains(&offset))
    }

    /// Whether every address of `other`'s block is in this one's.
    pub fn covers(&self, other: &AddressRange) -> bool {
        let block = AddressRange::new(other.network, self.prefix);
        other.is_ipv6() == self.is_ipv6() && other.prefix >= self.prefix && block == Some(*self)
    }

    /// Addresses in the order in which they are tried.
    pub fn candidates(self, random: &Random) -> impl Iterator<Item = IpAddr> + use<> {
        let block = self.len().saturating_add(if self.is_ipv6() { 1 } else { 2 });
        let kept = ADDRESSES_KEPT.of(block).min(self.len());
        candidates(self.len(), kept, random).map(move |index| self.at(index))
    }

    /// How many there are, as far as 64 bits count.
    fn len(&self) -> u64 {
        let host = bits_of(self.network).1 - self.prefix;
        let block = 1u128.checked_shl(u32::from(host)).unwrap_or(u128::MAX);
        let unusable = if self.is_ipv6() { 1 } else { 2 };
        u64::try_from(block.saturating_sub(unusable)).unwrap_or(u64::MAX)
    }

    fn at(&self, index: u64) -> IpAddr {
        let low = bits_of(self.network).0;
        address_of(low.saturating_add(1 + u128::from(index)), self.is_ipv6())
    }
}

fn bits_of(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

fn address_of(bits: u128, ipv6: bool) -> IpAddr {
    if ipv6 { Ipv6Addr::from_bits(bits).into() } else { Ipv4Addr::from_bits(bits as u32).into() }
}

impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<AddressRange, String> {
        let invalid = || format!("invalid CIDR address: {text}");
        let (network, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let (network, prefix) = (network.parse().ok(), prefix.parse().ok());
        network
            .zip(prefix)
            .and_then(|(network, prefix)| AddressRange::new(network, prefix))
            .ok_or_else(invalid)
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.network, self.prefix)
    }
}

impl PortRange {
    /// `--service-node-port-range` when it is not given.
    pub const DEFAULT: PortRange = PortRange { base: 30_000, size: 2_768 };

    pub fn contains(&self, port: i64) -> bool {
        let base = i64::from(self.base);
        (base..base + i64::from(self.size)).contains(&port)
    }

    /// Ports in the order in which they are tried.
    pub fn candidates(self, random: &Random) -> impl Iterator<Item = u16> + use<> {
        let size = u64::from(self.size);
        // The range ends at 65535 at the latest.
        candidates(size, PORTS_KEPT.of(size), random).map(move |index| self.base + index as u16)
    }
}

impl FromStr for PortRange {
    type Err = String;

    /// `30000-32767`, `30000+2767` or one port; nothing is no range at all.
    fn from_str(text: &str) -> Result<PortRange, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(PortRange { base: 0, size: 0 });
        }
        let invalid = || format!("unable to parse port range: {text}");
        let number = |part: &str| part.trim().parse::<u32>().map_err(|_| invalid());
        let (low, high) = match (text.split_once('-'), text.split_once('+')) {
            (Some((low, high)), None) => (number(low)?, number(high)?),
            (None, Some((low, more))) => {
                let low = number(low)?;
                (low, low.saturating_add(number(more)?))
            }
            (None, None) => (number(text)?, number(text)?),
            (Some(_), Some(_)) => return Err(invalid()),
        };
        match u16::try_from(high) {
            _ if high < low => Err(format!("end port cannot be less than start port: {text}")),
            Err(_) => Err(format!("the port range cannot be greater than 65535: {text}")),
            Ok(_) => Ok(PortRange { base: low as u16, size: high - low + 1 }),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            0 => Ok(()),
            size => write!(out, "{}-{}", self.base, u32::from(self.base) + size - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn range(text: &str) -> AddressRange {
        text.parse().unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn a_range_knows_its_addresses() {
        let rows = [
            ("10.0.0.0/24", "10.0.0.0/24", "10.0.0.1", 254),
            ("10.96.3.7/12", "10.96.0.0/12", "10.96.0.1", (1 << 20) - 2),
            ("10.0.0.0/29", "10.0.0.0/29", "10.0.0.1", 6),
            ("10.0.0.0/31", "10.0.0.0/31", "10.0.0.1", 0),
            ("fd00::5/108", "fd00::/108", "fd00::1", (1 << 20) - 1),
            ("fd00::/64", "fd00::/64", "fd00::1", u64::MAX),
            ("::/0", "::/0", "::1", u64::MAX),
        ];
        for (text, shown, first, len) in rows {
            let range = range(text);
            assert_eq!(
                (range.to_string(), range.first().to_string(), range.len()),
                (shown.into(), first.into(), len)
            );
        }
        for text in ["", "10.0.0.0", "10.0.0.0/33", "fd00::/129", "x/8", "/"] {
            assert_eq!(text.parse::<AddressRange>(), Err(format!("invalid CIDR address: {text}")));
        }
    }

    #[test]
    fn network_and_broadcast_addresses_are_not_in_the_range() {
        let rows = [
            ("10.0.0.0/29", "10.0.0.0", false),
            ("10.0.0.0/29", "10.0.0.1", true),
            ("10.0.0.0/29", "10.0.0.6", true),
            ("10.0.0.0/29", "10.0.0.7", false),
            ("10.0.0.0/29", "10.0.0.8", false),
            ("10.0.0.0/29", "9.255.255.255", false),
            ("10.0.0.0/29", "::a00:1", false),
            ("fd00::/112", "fd00::", false),
            ("fd00::/112", "fd00::ffff", true),
            ("fd00::/112", "fd00::1:0", false),
        ];
        for (cidr, address, inside) in rows {
            assert_eq!(
                range(cidr).contains(address.parse().expect("an address")),
                inside,
                "{cidr} {address}"
            );
        }
    }

    #[test]
    fn one_range_covers_another() {
        let rows = [
            ("10.0.0.0/16", "10.0.4.0/24", true),
            ("10.0.4.0/24", "10.0.0.0/16", false),
            ("10.0.4.0/24", "10.0.4.0/24", true),
            ("10.0.4.0/24", "10.0.5.0/24", false),
            ("::/0", "10.0.0.0/8", false),
        ];
        for (a, b, covers) in rows {
            assert_eq!(range(a).covers(&range(b)), covers, "{a} {b}");
        }
    }

    #[test]
    fn every_address_is_tried_once_and_the_lower_part_last() {
        let random = Random::seeded(3);
        for (cidr, kept) in
            [("10.0.0.0/24", 16), ("10.0.0.0/20", 256), ("10.0.0.0/29", 0), ("fd00::/120", 16)]
        {
            let range = range(cidr);
            let tried: Vec<IpAddr> = range.candidates(&random).collect();
            assert_eq!(tried.len() as u64, range.len(), "{cidr}");
            assert_eq!(tried.iter().collect::<BTreeSet<_>>().len(), tried.len(), "{cidr}");
            assert!(tried.iter().all(|address| range.contains(*address)), "{cidr}");
            let lower: BTreeSet<IpAddr> = (0..kept).map(|index| range.at(index)).collect();
            let last = &tried[tried.len() - kept as usize..];
            assert_eq!(last.iter().copied().collect::<BTreeSet<_>>(), lower, "{cidr}");
        }
    }

    #[test]
    fn port_ranges_are_read_as_upstream_reads_them() {
        let rows = [
            ("30000-32767", Ok("30000-32767")),
            (" 30000-30000 ", Ok("30000-30000")),
            ("30000+10", Ok("30000-30010")),
            ("80", Ok("80-80")),
            ("", Ok("")),
            ("5-4", Err("end port cannot be less than start port: 5-4")),
            ("65535-65536", Err("the port range cannot be greater than 65535: 65535-65536")),
            ("65535+1", Err("the port range cannot be greater than 65535: 65535+1")),
            ("a-b", Err("unable to parse port range: a-b")),
            ("1-2+3", Err("unable to parse port range: 1-2+3")),
        ];
        for (text, expected) in rows {
            let read = text.parse::<PortRange>().map(|range| range.to_string());
            assert_eq!(read, expected.map(String::from).map_err(String::from), "{text}");
        }
        assert_eq!("30000-32767".parse(), Ok(PortRange::DEFAULT));
    }

    #[test]
    fn every_port_is_tried_once_and_the_lower_part_last() {
        let random = Random::seeded(3);
        for (text, kept) in [("30000-32767", 86), ("1-16", 0), ("1-17", 16), ("0-65535", 128)] {
            let range: PortRange = text.parse().expect(text);
            let tried: Vec<u16> = range.candidates(&random).collect();
            assert_eq!(tried.iter().collect::<BTreeSet<_>>().len() as u32, range.size, "{text}");
            assert_eq!(tried.len() as u32, range.size, "{text}");
            assert!(tried.iter().all(|port| range.contains(i64::from(*port))), "{text}");
            assert!(
                tried[..tried.len() - kept].iter().all(|port| *port >= range.base + kept as u16),
                "{text}"
            );
        }
    }
}
