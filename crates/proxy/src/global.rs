//! Which addresses may be visited: not those of this machine itself, nor of its link.
//!
//! In: an address, or a name. Out: whether. Never: an address that a name had a moment later.
//!
//! Source: Go 1.26 `net.IP.IsGlobalUnicast`; kubernetes v1.36.3 `registry/core/node/strategy.go`.

use std::net::IpAddr;

use tokio::net::lookup_host;

/// Whether it is one that others can have. Private ones are.
pub fn is_global(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            !(v4.is_unspecified()
                || v4.is_loopback()
                || v4.is_multicast()
                || v4.is_link_local()
                || v4.is_broadcast())
        }
        IpAddr::V6(v6) => {
            !(v6.is_unspecified() || v6.is_loopback() || v6.is_multicast() || v6.is_unicast_link_local())
        }
    }
}

/// Whether all addresses of `host` are such.
///
/// # Errors
/// One is not, or there is none.
pub async fn only_global(host: &str) -> Result<(), String> {
    let addresses = lookup_host((host, 0)).await.map_err(|why| format!("lookup {host}: {why}"))?;
    let mut is_any = false;
    for address in addresses {
        is_any = true;
        if !is_global(address.ip()) {
            return Err("address not allowed".to_owned());
        }
    }
    is_any.then_some(()).ok_or_else(|| "no addresses for hostname".to_owned())
}
