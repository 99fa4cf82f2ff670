//! A TCP relay between a client and a server that we break on purpose: it holds, delays, cuts and refuses.
//!
//! In: the port of the server, and what is to go wrong from now on. Out: a port to use in its stead, and how
//! many connections came. Owner of two threads a connection; dropping it ends them. Never: a byte that is
//! changed, or passed on out of order: what a network does to TCP is that bytes come late, or the connection
//! breaks in the middle of anything.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::ports;

/// Bytes passed on at a time.
const PIECE_BYTES: usize = 16 << 10;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trouble {
    #[default]
    None,
    /// Bytes wait, and new connections hear nothing: a partition that tells nobody.
    Hold,
    /// Each piece waits so long, from the first to the second.
    Delay(Duration, Duration),
    /// Each connection is cut once it has carried so many bytes one way: in the middle of a message.
    CutAfter(u64),
    /// Each connection is held once it has carried so many bytes one way: whoever needs more than that stands
    /// still, at any speed.
    HoldAfter(u64),
    /// Those there are have been cut, and no new one is let in.
    Refuse,
    /// As [`Trouble::Hold`], for the connections of the member of etcd with this id alone: it says who it is.
    HoldFrom(u64),
}

/// See the module's doc.
#[derive(Debug)]
pub struct Relay {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    // Where a connection goes, in turn; to the next one if nobody listens there.
    targets: Vec<u16>,
    state: Mutex<State>,
    changed: Condvar,
    opened: AtomicU64,
    sent_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    trouble: Trouble,
    // Counts the cuts: a connection from before is over.
    cuts: u64,
    closed: bool,
    // Both ends of each connection.
    connections: Vec<[TcpStream; 2]>,
    // For delays that differ from piece to piece, the same in each run.
    pieces: u64,
}

impl Relay {
    /// Listens, and passes on to `target` on this machine.
    ///
    /// # Errors
    /// No port.
    pub fn start(target: u16) -> Result<Relay, String> {
        Relay::between(vec![target])
    }

    /// Listens, and spreads connections over `targets` on this machine, as a plain balancer does.
    ///
    /// # Errors
    /// No port.
    pub fn between(targets: Vec<u16>) -> Result<Relay, String> {
        let [port] = ports::free()?;
        let listener = TcpListener::bind(("127.0.0.1", port))
            .map_err(|why| format!("the relay cannot listen: {why}"))?;
        let shared = Arc::new(Shared {
            targets,
            state: Mutex::default(),
            changed: Condvar::new(),
            opened: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
        });
        let accepting = shared.clone();
        thread::spawn(move || accepting.accept(&listener));
        Ok(Relay { port, shared })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connections that were let in so far.
    pub fn opened(&self) -> u64 {
        self.shared.opened.load(Ordering::Relaxed)
    }

    /// Bytes that clients sent so far, as far as they were taken.
    pub fn sent_bytes(&self) -> u64 {
        self.shared.sent_bytes.load(Ordering::Relaxed)
    }

    /// What goes wrong from now on, instead of what did.
    pub fn set(&self, trouble: Trouble) {
        self.shared.with(|state| {
            state.trouble = trouble;
            // At once: what was held must not slip through before its connection is cut.
            if trouble == Trouble::Refuse {
                state.cut();
            }
        });
    }

    /// Breaks every connection there is.
    pub fn cut(&self) {
        self.shared.with(State::cut);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.with(|state| {
            state.closed = true;
            state.cut();
        });
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn cut(&mut self) {
        self.cuts += 1;
        for connection in self.connections.drain(..) {
            // One that is closed already needs no end.
            let _ = connection.map(|end| end.shutdown(Shutdown::Both));
        }
    }
}

impl Shared {
    fn with(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn accept(self: Arc<Shared>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.state.lock().unwrap_or_else(PoisonError::into_inner).closed {
                return;
            }
            if let Ok(client) = client {
                let shared = self.clone();
                thread::spawn(move || shared.carry(client));
            }
        }
    }

    /// One connection, from its first byte to its end.
    fn carry(self: Arc<Shared>, client: TcpStream) {
        let cuts = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.trouble == Trouble::Refuse {
                return;
            }
            state.cuts
        };
        let peer = Arc::new(AtomicU64::new(0));
        if !self.let_pass(cuts, 0, &peer) {
            return;
        }
        let turn = self.opened.fetch_add(1, Ordering::Relaxed) as usize;
        let mut targets =
            self.targets.iter().cycle().skip(turn % self.targets.len()).take(self.targets.len());
        let connected = targets.find_map(|port| TcpStream::connect(("127.0.0.1", *port)).ok());
        let Some(server) = connected else { return };
        let ends = [&client, &server].map(TcpStream::try_clone);
        let [Ok(client_end), Ok(server_end)] = ends else { return };
        let _ = client.set_nodelay(true);
        let _ = server.set_nodelay(true);
        let ends = [client_end, server_end];
        let copies = ends.each_ref().map(TcpStream::try_clone);
        let [Ok(to_client), Ok(from_server)] = copies else { return };
        let mut is_over = false;
        self.with(|state| match state.cuts == cuts {
            true => state.connections.push(ends),
            false => is_over = true,
        });
        if is_over {
            return;
        }
        let (back, of) = (self.clone(), peer.clone());
        thread::spawn(move || back.pass(from_server, to_client, cuts, &of, None));
        self.pass(client, server, cuts, &peer, Some(&self.sent_bytes));
    }

    /// Passes bytes on, one way, until either end is closed.
    ///
    /// - `peer`: the member of etcd that the connection is of, once it has said so.
    /// - `count`: where what clients send is counted.
    fn pass(
        &self,
        mut from: TcpStream,
        mut to: TcpStream,
        cuts: u64,
        peer: &AtomicU64,
        count: Option<&AtomicU64>,
    ) {
        let (mut piece, mut carried) = (vec![0; PIECE_BYTES], 0);
        while let Ok(bytes @ 1..) = from.read(&mut piece) {
            carried += bytes as u64;
            if let Some(count) = count {
                count.fetch_add(bytes as u64, Ordering::Relaxed);
                if let Some(id) = member_of(&piece[..bytes]) {
                    peer.store(id, Ordering::Relaxed);
                }
            }
            if !self.let_pass(cuts, carried, peer) || to.write_all(&piece[..bytes]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    /// Waits as long as the trouble asks for. Whether the connection goes on.
    fn let_pass(&self, cuts: u64, carried: u64, peer: &AtomicU64) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.pieces += 1;
        let (came, number) = (Instant::now(), state.pieces);
        loop {
            if state.closed || state.cuts != cuts {
                return false;
            }
            let wait = match state.trouble {
                Trouble::HoldFrom(held) if peer.load(Ordering::Relaxed) == held => Duration::MAX,
                Trouble::None | Trouble::Refuse | Trouble::HoldFrom(_) => return true,
                Trouble::CutAfter(bytes) => return carried < bytes,
                Trouble::HoldAfter(bytes) if carried < bytes => return true,
                Trouble::Hold | Trouble::HoldAfter(_) => Duration::MAX,
                Trouble::Delay(least, most) => {
                    // A step that meets every ten-thousandth before any again.
                    let part = (number.wrapping_mul(7_919) % 10_000) as u32;
                    let due = least + most.saturating_sub(least) * part / 10_000;
                    match due.saturating_sub(came.elapsed()) {
                        Duration::ZERO => return true,
                        left => left,
                    }
                }
            };
            let wait = wait.min(Duration::from_secs(3600));
            let woken = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            state = woken.0;
        }
    }
}

/// The member that a request between members of etcd comes from.
fn member_of(piece: &[u8]) -> Option<u64> {
    let head = b"\r\nX-Server-From: ";
    let begin = piece.windows(head.len()).position(|window| window == head)? + head.len();
    let id = piece[begin..].split(|byte| *byte == b'\r').next()?;
    u64::from_str_radix(std::str::from_utf8(id).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_members_connections_are_held_and_no_others() {
        let relay = Relay::start(echo()).expect("starts");
        let request = |id: &str| format!("GET /raft HTTP/1.1\r\nX-Server-From: {id}\r\n\r\n");
        let (mut held, mut free) = (connect(&relay), connect(&relay));
        echoed(&mut held, &request("8e9e05c52164694d")).expect("passed on");
        echoed(&mut free, &request("1")).expect("passed on");
        relay.set(Trouble::HoldFrom(0x8e9e_05c5_2164_694d));
        held.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
        assert!(echoed(&mut held, "one").is_err(), "held");
        assert_eq!(echoed(&mut free, "two").expect("passed on"), "two");
        relay.set(Trouble::None);
        let mut back = [0; 3];
        held.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        held.read_exact(&mut back).expect("passed on");
        assert_eq!(&back, b"one");
    }

    /// A server that sends back what it gets.
    fn echo() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut back = client.try_clone().expect("cloned");
                    std::io::copy(&mut &client, &mut back)
                });
            }
        });
        port
    }

    fn connect(relay: &Relay) -> TcpStream {
        let client = TcpStream::connect(("127.0.0.1", relay.port())).expect("listens");
        client.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        client
    }

    fn echoed(client: &mut TcpStream, text: &str) -> std::io::Result<String> {
        client.write_all(text.as_bytes())?;
        let mut back = vec![0; text.len()];
        client.read_exact(&mut back)?;
        Ok(String::from_utf8_lossy(&back).into_owned())
    }

    #[test]
    fn what_is_held_comes_once_it_is_let_go_and_what_is_cut_is_gone() {
        let relay = Relay::start(echo()).expect("starts");
        let mut client = connect(&relay);
        assert_eq!(echoed(&mut client, "one").expect("passed on"), "one");
        relay.set(Trouble::Hold);
        client.write_all(b"two").expect("taken");
        client.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
        assert!(client.read(&mut [0; 8]).is_err(), "held");
        client.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        relay.set(Trouble::None);
        let mut back = [0; 3];
        client.read_exact(&mut back).expect("passed on");
        assert_eq!(&back, b"two");
        relay.cut();
        assert!(echoed(&mut client, "three").is_err());
        assert_eq!(echoed(&mut connect(&relay), "four").expect("a new one"), "four");
        relay.set(Trouble::Refuse);
        assert!(echoed(&mut connect(&relay), "five").is_err());
        assert_eq!(relay.opened(), 2);
        assert_eq!(relay.sent_bytes(), "onetwofour".len() as u64);
    }

    #[test]
    fn what_is_held_is_not_let_through_by_a_refusal() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let relay = Relay::start(listener.local_addr().expect("bound").port()).expect("starts");
        for round in 0..50 {
            relay.set(Trouble::None);
            let mut client = connect(&relay);
            client.write_all(b"a").expect("taken");
            let (mut server, _) = listener.accept().expect("comes");
            server.read_exact(&mut [0]).expect("passed on");
            relay.set(Trouble::Hold);
            client.write_all(b"b").expect("taken");
            while relay.sent_bytes() < (round + 1) * 2 {
                thread::yield_now();
            }
            relay.set(Trouble::Refuse);
            let mut late = Vec::new();
            let _ = server.read_to_end(&mut late);
            assert_eq!(late, b"", "round {round}");
        }
    }

    #[test]
    fn a_balancer_goes_round_and_past_those_that_are_not_there() {
        let [nobody] = ports::free().expect("a port");
        let relay = Relay::between(vec![nobody, echo(), echo()]).expect("starts");
        for number in 0..6 {
            assert_eq!(echoed(&mut connect(&relay), "here").expect("somebody listens"), "here", "{number}");
        }
        assert_eq!(relay.opened(), 6);
    }

    #[test]
    fn delays_are_kept_and_a_connection_is_cut_in_the_middle() {
        let relay = Relay::start(echo()).expect("starts");
        let mut client = connect(&relay);
        relay.set(Trouble::Delay(Duration::from_millis(20), Duration::from_millis(40)));
        let begun = Instant::now();
        assert_eq!(echoed(&mut client, "late").expect("passed on"), "late");
        assert!(begun.elapsed() >= Duration::from_millis(40), "there and back");
        relay.set(Trouble::HoldAfter(20));
        client.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
        assert_eq!(echoed(&mut client, "some more").expect("passed on"), "some more");
        assert!(echoed(&mut client, "too much").is_err(), "held");
        relay.set(Trouble::None);
        client.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        client.read_exact(&mut [0; 8]).expect("passed on");
        relay.set(Trouble::CutAfter(10));
        assert!(echoed(&mut client, "more than ten bytes").is_err());
        assert_eq!(echoed(&mut connect(&relay), "few").expect("a new one"), "few");
    }
}
