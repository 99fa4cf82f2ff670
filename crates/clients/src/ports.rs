//! Ports for servers that cannot be asked to take a free one and say which.
//!
//! In: the range from which the kernel takes ports for outgoing connections and for port 0. Out: ports below
//! it that nobody listens on. So nothing takes one before its server does, nor between a server's death and
//! its next start; only another process that counts through the same ports at the same moment could, and each
//! begins elsewhere. Never: the same port twice from one process.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};

use socket2::{Domain, Socket, Type};

/// Above the ports that have a meaning.
const LOWEST: u16 = 20_000;

/// Ports handed out or passed over so far.
static PASSED: AtomicU16 = AtomicU16::new(0);

/// Ports that nobody listens on.
///
/// # Errors
/// None can be bound.
pub fn free<const N: usize>() -> Result<[u16; N], String> {
    let ephemeral = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    // Processes that start one after another begin far from each other.
    let begin = std::process::id().wrapping_mul(617);
    let mut ports = [0; N];
    for port in &mut ports {
        *port = match below(&ephemeral) {
            Some(span) => next(begin, span, &PASSED)?,
            // Where the kernel keeps every port for itself, one of those is all that there is.
            None => port_of(&bound(0).map_err(|error| format!("no free port: {error}"))?),
        };
    }
    Ok(ports)
}

/// How many ports from [`LOWEST`] on the kernel leaves alone, if there are enough.
fn below(ephemeral: &str) -> Option<u16> {
    // Where the range is not told it is Linux's own.
    let lowest = ephemeral.split_whitespace().next().and_then(|low| low.parse().ok()).unwrap_or(32_768);
    u16::checked_sub(lowest, LOWEST).filter(|span| *span >= 1_000)
}

fn next(begin: u32, span: u16, passed: &AtomicU16) -> Result<u16, String> {
    for _ in 0..span {
        let step = u32::from(passed.fetch_add(1, Ordering::Relaxed));
        let port = LOWEST + (begin.wrapping_add(step) % u32::from(span)) as u16;
        if bound(port).is_ok() {
            return Ok(port);
        }
    }
    Err(format!("none of {span} ports from {LOWEST} on is free"))
}

/// A socket at `port`, or at the one that the kernel chooses for 0, if it can be listened on. It does not
/// listen itself: a process that another thread is starting holds every socket until its program begins, and
/// whoever takes the port meanwhile would be refused.
fn bound(port: u16) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    Ok(socket)
}

fn port_of(socket: &Socket) -> u16 {
    let address = socket.local_addr().ok().and_then(|address| address.as_socket());
    address.expect("a bound socket has an address").port()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn ports_differ_and_lie_below_those_that_the_kernel_hands_out() {
        let mut ports = free::<50>().expect("there are some").to_vec();
        let ephemeral = port_of(&bound(0).expect("a port"));
        assert!(ports.iter().all(|port| (LOWEST..ephemeral).contains(port)), "{ports:?} {ephemeral}");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 50);
    }

    #[test]
    fn a_port_that_is_taken_is_passed_over() {
        let [port] = free().expect("one");
        let held = TcpListener::bind(("127.0.0.1", port)).expect("it is free");
        let (begin, span) = (u32::from(port - LOWEST), u16::MAX - LOWEST);
        let after = next(begin, span, &AtomicU16::new(0)).expect("one");
        assert_ne!(after, port);
        drop(held);
        assert_eq!(next(begin, span, &AtomicU16::new(0)), Ok(port));
    }

    // Elsewhere two sockets may not be bound to one address.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_port_can_be_listened_on_while_what_looked_at_it_is_still_open() {
        let [port] = free().expect("one");
        let looked = bound(port).expect("it is free");
        let held = TcpListener::bind(("127.0.0.1", port)).expect("nobody listens");
        assert!(bound(port).is_err(), "somebody does");
        drop((looked, held));
    }

    #[test]
    fn the_range_says_how_many_there_are() {
        assert_eq!(below("32768\t60999\n"), Some(12_768));
        assert_eq!(below(""), Some(12_768));
        assert_eq!(below("1024 65535"), None);
        assert_eq!(below("20100 65535"), None);
    }
}
