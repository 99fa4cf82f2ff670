//! A plain TCP balancer: connections in turn to the servers that are there, bytes as they come.
//!
//! In: ports, and which of them are ready: who balances asks `/readyz` too. Out: a port. It has a thread of
//! its own, so that what it carries does not delay who measures; dropping it ends that. Never: a byte that is
//! looked at; a connection that is moved.

use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::net::{TcpListener, TcpStream};

use crate::Error;
use crate::aside::Aside;

/// Read ahead for each direction of a connection.
const PIECE_BYTES: usize = 64 << 10;

/// A server behind it.
#[derive(Debug)]
pub struct Backend {
    pub port: u16,
    /// Whether it gets new connections.
    pub is_ready: AtomicBool,
    /// That are open.
    pub connections: AtomicUsize,
}

#[derive(Debug)]
pub struct Balancer {
    pub port: u16,
    pub backends: Arc<Vec<Backend>>,
    _thread: Aside,
}

impl Balancer {
    /// Listens. No server is ready yet.
    pub fn start(ports: &[u16]) -> Result<Balancer, Error> {
        let failed = |e: std::io::Error| Error::Connection(format!("balancer: {e}"));
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let backend = |port: &u16| Backend {
            port: *port,
            is_ready: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        };
        let backends = Arc::new(ports.iter().map(backend).collect::<Vec<_>>());
        let thread = Aside::start("balancer", accept(listener, backends.clone()))?;
        Ok(Balancer { port, backends, _thread: thread })
    }
}

async fn accept(listener: StdListener, backends: Arc<Vec<Backend>>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let mut turn = 0;
    loop {
        // Where there is no descriptor left for it, the next one is waited for.
        let Ok((client, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        turn += 1;
        tokio::spawn(carry(client, backends.clone(), turn));
    }
}

/// Carries a connection to the next server that takes it; closes it where none does.
async fn carry(mut client: TcpStream, backends: Arc<Vec<Backend>>, turn: usize) {
    for step in 0..backends.len() {
        let backend = &backends[(turn + step) % backends.len()];
        if !backend.is_ready.load(Ordering::Relaxed) {
            continue;
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, backend.port));
        let Ok(mut server) = TcpStream::connect(address).await else { continue };
        backend.connections.fetch_add(1, Ordering::Relaxed);
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        // However it ends, both ends are closed.
        let _ = tokio::io::copy_bidirectional_with_sizes(&mut client, &mut server, PIECE_BYTES, PIECE_BYTES)
            .await;
        backend.connections.fetch_sub(1, Ordering::Relaxed);
        return;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream as StdStream;
    use std::thread::Builder;

    use super::*;

    /// A server that says its letter to each who comes.
    fn server(letter: u8) -> u16 {
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let _serving = Builder::new().spawn(move || {
            for client in listener.incoming().flatten() {
                let _ = (&client).write_all(&[letter]);
            }
        });
        port
    }

    fn said(balancer: &Balancer) -> String {
        let mut text = String::new();
        let mut client = StdStream::connect(("127.0.0.1", balancer.port)).unwrap();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn connections_go_in_turn_to_those_that_are_ready() {
        let balancer = Balancer::start(&[server(b'a'), server(b'b'), server(b'c')]).unwrap();
        assert_eq!(said(&balancer), "");
        for backend in &balancer.backends[..2] {
            backend.is_ready.store(true, Ordering::Relaxed);
        }
        let mut all = [said(&balancer), said(&balancer), said(&balancer)];
        all.sort();
        assert!(all == ["a", "a", "b"] || all == ["a", "b", "b"], "{all:?}");
    }
}
