//! What Services are given out of, and where this server is to be found.
//!
//! In: the program's flags. Never: what is given already.

use std::net::IpAddr;
use std::time::Duration;

use super::range::{AddressRange, PortRange};

/// What Services are given, and where this server is to be found.
#[derive(Clone, Debug)]
pub struct ServicesConfig {
    /// `--service-cluster-ip-range`: one range, or one of each family; the first family is the default.
    pub cluster_ip_ranges: Vec<AddressRange>,
    /// `--service-node-port-range`.
    pub node_ports: PortRange,
    /// Where the `kubernetes` Service leads to; without it there is none.
    pub endpoint: Option<(IpAddr, u16)>,
    /// How old a claim must be that no Service has before it is given back. Zero where no other server writes
    /// to the store; else longer than a write takes, because another server may be between claim and Service.
    pub leak_grace: Duration,
}

impl Default for ServicesConfig {
    fn default() -> ServicesConfig {
        let range = AddressRange::new(IpAddr::from([10, 0, 0, 0]), 24);
        ServicesConfig {
            cluster_ip_ranges: range.into_iter().collect(),
            node_ports: PortRange::DEFAULT,
            endpoint: None,
            leak_grace: Duration::ZERO,
        }
    }
}
