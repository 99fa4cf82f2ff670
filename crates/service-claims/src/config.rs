//! What Services are given out of.
//!
//! In: the program's flags. Never: what is given already.

use std::time::Duration;

use crate::range::{AddressRange, PortRange};

/// What Services are given out of, and how long a claim may stand by itself.
#[derive(Clone, Debug)]
pub struct GivenOut {
    /// One range, or one of each family; the first family is the default.
    pub cluster_ip_ranges: Vec<AddressRange>,
    pub node_ports: PortRange,
    /// How old a claim must be that no Service has before it is given back. Zero where no other server writes
    /// to the store; else longer than a write takes, because another server may be between claim and Service.
    pub leak_grace: Duration,
}
