//! A range of IP addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// `10.0.0.0/24`: an address and how many of its leading bits the range shares. Bits behind them are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

impl Cidr {
    pub fn network(&self) -> IpAddr {
        self.network
    }

    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// The first address behind the network's own: that of the `kubernetes` Service.
    pub fn first_address(&self) -> IpAddr {
        match self.network {
            IpAddr::V4(network) => Ipv4Addr::from_bits(network.to_bits().saturating_add(1)).into(),
            IpAddr::V6(network) => Ipv6Addr::from_bits(network.to_bits().saturating_add(1)).into(),
        }
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.network.is_ipv4() && masked(address, self.prefix) == self.network
    }

    /// Bits that tell addresses of the range apart.
    pub fn host_bits(&self) -> u8 {
        bits(self.network) - self.prefix
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("invalid CIDR address: {text}");
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let digits = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
        let prefix: u8 = prefix.parse().map_err(|_| invalid())?;
        if !digits || prefix > bits(address) {
            return Err(invalid());
        }
        Ok(Self { network: masked(address, prefix), prefix })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_masked_and_counted() {
        let rows: &[(&str, &str, &str, u8)] = &[
            ("10.0.0.0/24", "10.0.0.0/24", "10.0.0.1", 8),
            ("10.96.3.7/12", "10.96.0.0/12", "10.96.0.1", 20),
            ("0.0.0.0/0", "0.0.0.0/0", "0.0.0.1", 32),
            ("255.255.255.255/32", "255.255.255.255/32", "255.255.255.255", 0),
            ("fd00::5/108", "fd00::/108", "fd00::1", 20),
            ("::/0", "::/0", "::1", 128),
        ];
        for (text, shown, first, host_bits) in rows {
            let cidr: Cidr = text.parse().expect(text);
            assert_eq!(
                (cidr.to_string().as_str(), cidr.first_address().to_string().as_str(), cidr.host_bits()),
                (*shown, *first, *host_bits),
                "{text}"
            );
        }
        for text in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "10.0.0.0/-1",
            "10.0.0.0/+1",
            "10.0.0/8",
            "fd00::/129",
            "x/8",
            "/",
        ] {
            assert_eq!(text.parse::<Cidr>(), Err(format!("invalid CIDR address: {text}")));
        }
    }

    #[test]
    fn a_range_contains_its_own_family_only() {
        let cidr: Cidr = "10.0.0.0/24".parse().expect("a CIDR");
        assert!(cidr.contains(IpAddr::from([10, 0, 0, 255])));
        assert!(!cidr.contains(IpAddr::from([10, 0, 1, 0])));
        assert!(!cidr.contains(IpAddr::from([0u16; 8])));
    }
}
