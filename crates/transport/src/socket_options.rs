//! The socket options that Linux has and socket2 does not know.
//!
//! In: a socket. Out: the option is set, or its value; or why not. Never: decides on a value.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::socket::sockopt::{GetStruct, SetUsize};
use nix::sys::socket::{GetSockOpt as _, SetSockOpt as _};

/// `TCP_RTO_MAX_MS`, as the kernel's headers have it.
const TCP_RTO_MAX_MS: libc::c_int = 44;

#[derive(Clone, Copy)]
struct RtoMax;

nix::setsockopt_impl!(RtoMax, libc::IPPROTO_TCP, TCP_RTO_MAX_MS, usize, SetUsize);

#[derive(Clone, Copy)]
struct Info;

nix::getsockopt_impl!(Info, libc::IPPROTO_TCP, libc::TCP_INFO, TcpInfo, GetStruct<TcpInfo>);

/// What the kernel tells of a connection: the beginning of `struct tcp_info`, as it has been since Linux 4.6.
/// A kernel that tells less is not one that this runs on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    _state: [u8; 2],
    /// How many times in a row the oldest segment was retransmitted.
    pub retransmits: u8,
    /// Probes in a row that were not answered.
    pub probes: u8,
    _options: [u8; 4],
    _intervals_and_sizes: [u32; 4],
    /// Segments that were sent and not acknowledged.
    pub unacked: u32,
    _counts_and_times: [u32; 19],
    _rates_and_totals: [u64; 4],
    _segments: [u32; 2],
    /// Bytes that were written and not sent yet.
    pub notsent_bytes: u32,
    _min_rtt: u32,
}

/// How far the kernel has come with the bytes that were written to a connection.
///
/// # Errors
/// As the kernel says.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    Info.get(socket).map_err(io::Error::from)
}

/// Sets the longest pause before the kernel retransmits, or probes a full receive window again.
///
/// # Errors
/// Kernels before 6.15 do not have it, and let the pauses grow to two minutes.
pub fn set_rto_max(socket: &impl AsFd, longest: Duration) -> io::Result<()> {
    RtoMax.set(socket, &(longest.as_millis() as usize)).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::sockopt::GetUsize;

    use super::*;

    nix::getsockopt_impl!(RtoMax, libc::IPPROTO_TCP, TCP_RTO_MAX_MS, usize, GetUsize);

    #[test]
    fn the_kernel_keeps_what_it_was_told_or_says_that_it_cannot() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let client =
            std::net::TcpStream::connect(listener.local_addr().expect("an address")).expect("a server");
        match set_rto_max(&client, Duration::from_secs(8)) {
            Ok(()) => assert_eq!(RtoMax.get(&client).expect("the option"), 8_000),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOPROTOOPT)),
        }
    }
}
