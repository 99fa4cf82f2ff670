//! Clients that are gone without a word: their machine is off, or the network between is.
//!
//! In: connections of HTTP/1.1, and what the kernel says of them. Out: those that are gone, ended. HTTP/2 asks its
//! clients by itself; an idle connection is asked by the kernel (keepalive). What is left is one that was being written
//! to, which the kernel would go on with for a quarter of an hour.
//!
//! `TCP_USER_TIMEOUT` alone would not do: Linux counts it, too, while a client has no room, however often that answers
//! that it has none, and so would end watches that are only parked. So it is set where transmissions are not
//! acknowledged, and taken back where it is room that is missing. Which it is stands in `/proc/net/tcp`. Elsewhere than
//! on Linux nothing is done.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_rt::Clock;

use crate::limits::{SILENCE_PERIOD, SILENCE_PROBES, SILENCE_RETRANSMITS, SILENCE_WAIT};
use crate::line::{Line, WeakLine};

/// The connections that are listened to. Cheap to clone.
#[derive(Clone)]
pub struct Silence {
    clock: Clock,
    // One entry a connection; those of closed ones go at the next look.
    lines: Arc<Mutex<Vec<WeakLine>>>,
}

/// What the kernel does with a connection.
#[derive(Debug, PartialEq, Eq)]
enum Doing {
    /// All that was sent was acknowledged.
    Nothing,
    Sending,
    /// Sends again what was not acknowledged, for this many times so far.
    Retransmitting(u32),
    /// Asks a client that has no room whether it has; this many questions were not answered.
    Probing(u32),
}

/// Lines of the kernel's table between which other tasks get their turn.
const LINES_AT_ONCE: usize = 512;

impl Silence {
    pub fn new(clock: Clock) -> Silence {
        Silence { clock, lines: Arc::default() }
    }

    /// Listens to a connection until it is closed.
    pub fn listen_to(&self, line: &Line) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.downgrade());
    }

    /// Ends connections whose client is gone, for ever.
    pub async fn look(self) {
        loop {
            self.clock.sleep(SILENCE_PERIOD).await;
            let written = self.written();
            if written.is_empty() {
                continue;
            }
            for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
                look_into(table, &written).await;
            }
        }
    }

    /// Open connections with something of which it is not known that it was acknowledged, by their place in the table.
    fn written(&self) -> HashMap<String, Line> {
        let mut written = HashMap::new();
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).retain(|line| {
            let Some(line) = line.upgrade() else { return false };
            let socket = line.socket().filter(|socket| socket.is_unacknowledged());
            if let Some((peer, local)) = socket.map(|socket| socket.ends()) {
                written.insert(format!("{} {}", shown(local), shown(peer)), line);
            }
            true
        });
        written
    }
}

async fn look_into(table: &str, written: &HashMap<String, Line>) {
    // Where there is none, there is nothing to be told.
    let Ok(file) = File::open(table) else { return };
    let mut lines = BufReader::new(file).lines().enumerate();
    while let Some((number, Ok(text))) = lines.next() {
        if let Some((ends, doing)) = parse(&text)
            && let Some(line) = written.get(ends)
        {
            judge(line, &doing);
        }
        if number % LINES_AT_ONCE == LINES_AT_ONCE - 1 {
            tokio::task::yield_now().await;
        }
    }
}

fn judge(line: &Line, doing: &Doing) {
    let Some(socket) = line.socket() else { return };
    match doing {
        Doing::Nothing => {
            socket.set_patience(None);
            socket.acknowledged();
        }
        Doing::Retransmitting(times) if *times >= SILENCE_RETRANSMITS => {
            socket.set_patience(Some(SILENCE_WAIT));
        }
        Doing::Probing(unanswered) if *unanswered >= SILENCE_PROBES => {
            tracing::info!(client = %socket.ends().0, "a client that read nothing is gone");
            line.cut();
        }
        Doing::Probing(_) => socket.set_patience(None),
        Doing::Sending | Doing::Retransmitting(_) => {}
    }
}

/// A row of the table: the two ends as they stand there, and what the kernel does.
fn parse(row: &str) -> Option<(&str, Doing)> {
    let (_, row) = row.split_once(": ")?;
    let mut fields = row.split_ascii_whitespace();
    let (local, peer) = (fields.next()?, fields.next()?);
    let ends = row.get(..local.len() + 1 + peer.len())?;
    let _state = fields.next()?;
    let queued = fields.next()?.split(':').next()?;
    let timer = fields.next()?.split(':').next()?;
    let retransmits = u32::from_str_radix(fields.next()?, 16).ok()?;
    let _uid = fields.next()?;
    let unanswered = fields.next()?.parse().ok()?;
    let doing = match timer {
        _ if queued.bytes().all(|digit| digit == b'0') => Doing::Nothing,
        "01" => Doing::Retransmitting(retransmits),
        "04" => Doing::Probing(unanswered),
        _ => Doing::Sending,
    };
    Some((ends, doing))
}

/// As the kernel's table shows it: words of 32 bits in the machine's order, in hexadecimal.
fn shown(address: SocketAddr) -> String {
    let word = |bytes: &[u8]| {
        bytes.try_into().map_or(String::new(), |bytes| format!("{:08X}", u32::from_ne_bytes(bytes)))
    };
    let ip: String = match address.ip() {
        IpAddr::V4(ip) => word(&ip.octets()),
        IpAddr::V6(ip) => ip.octets().chunks(4).map(word).collect(),
    };
    format!("{ip}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_kernel_are_read() {
        let ends = "0100007F:192B 0100007F:D3F2";
        for (rest, want) in [
            ("01 00000000:00000000 02:000005B0 00000000     0        0 21 2", Doing::Nothing),
            ("01 00000E00:00000000 01:00000014 00000004     0        0 21 2", Doing::Retransmitting(4)),
            ("01 00000E00:00000000 04:00000014 00000000     0        3 21 2", Doing::Probing(3)),
            ("01 00000E00:00000000 00:00000014 00000000     0        0 21 2", Doing::Sending),
        ] {
            let row = format!("   7: {ends} {rest} 0000000034a20bb1 20 4 30 10 -1");
            assert_eq!(parse(&row), Some((ends, want)));
        }
        for row in ["", "  sl  local_address rem_address   st tx_queue", "1: a", "1: a b c d e f g h i"] {
            assert_eq!(parse(row), None, "{row}");
        }
    }

    #[test]
    #[cfg(all(target_os = "linux", target_endian = "little"))]
    fn ends_are_found_in_the_kernels_table() {
        for (address, want) in [
            ("127.0.0.1:6443", "0100007F:192B"),
            ("[::1]:443", "00000000000000000000000001000000:01BB"),
            ("[::ffff:127.0.0.1]:80", "0000000000000000FFFF00000100007F:0050"),
        ] {
            assert_eq!(shown(address.parse().expect("an address")), want);
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let local = shown(listener.local_addr().expect("an address"));
        let table = std::fs::read_to_string("/proc/net/tcp").expect("the table");
        let rows = table.lines().filter_map(parse);
        assert!(rows.into_iter().any(|(ends, _)| ends.starts_with(&local)), "{local}: {table}");
    }
}
