//! What the configuration asks about the machine: its name and its main address.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::{env, fs};

/// Facts about the machine, apart so that decisions about them can be tested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    pub name: Option<String>,
    /// The address that packets to the outside would come from.
    pub main_address: Option<IpAddr>,
}

impl Host {
    /// Asks this machine. Sends nothing.
    pub fn this() -> Self {
        Self { name: name(), main_address: main_address() }
    }
}

fn name() -> Option<String> {
    let from_kernel = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = from_kernel
        .or_else(|| fs::read_to_string("/etc/hostname").ok())
        .or_else(|| env::var("HOSTNAME").ok())?;
    let name = name.trim().to_ascii_lowercase();
    (!name.is_empty()).then_some(name)
}

/// Connecting a datagram socket chooses a route and an address; no packet leaves.
fn main_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_unspecified()).then_some(address)
}
