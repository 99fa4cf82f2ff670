//! Clients that are gone without a word: their machine is off, or the network between is.
//!
//! In: connections of HTTP/1.1, and what the kernel says of them. Out: those that are gone, ended. HTTP/2 asks its
//! clients by itself; an idle connection is asked by the kernel (keepalive). What is left is one that was being written
//! to, which the kernel would go on with for a quarter of an hour.
//!
//! `TCP_USER_TIMEOUT` alone would not do: Linux counts it, too, while a client has no room, however often that answers
//! that it has none, and so would end watches that are only parked. So it is set where transmissions are not
//! acknowledged, and taken back where it is room that is missing. Which it is says `TCP_INFO`. Elsewhere than on Linux
//! nothing is done.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use forebay_rt::Clock;

use crate::limits::{DEAD_PEER_PERIOD, DEAD_PEER_PROBES, DEAD_PEER_RETRANSMITS, DEAD_PEER_WAIT};
use crate::socket::{SendState, Socket};

/// The connections that are listened to. Cheap to clone.
#[derive(Clone)]
pub struct DeadPeers {
    clock: Clock,
    // One entry a connection; those of closed ones go at the next look.
    sockets: Arc<Mutex<Vec<Weak<Socket>>>>,
}

/// Connections that are looked at before other tasks get their turn.
const SOCKETS_AT_ONCE: usize = 512;

impl DeadPeers {
    pub fn new(clock: Clock) -> DeadPeers {
        DeadPeers { clock, sockets: Arc::default() }
    }

    /// Listens to a connection until it is closed.
    pub fn watch_over(&self, socket: &Arc<Socket>) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(socket));
    }

    /// Ends connections whose client is gone, for ever.
    pub async fn end_them(self) {
        loop {
            self.clock.sleep(DEAD_PEER_PERIOD).await;
            for some in self.written().chunks(SOCKETS_AT_ONCE) {
                some.iter().for_each(|socket| judge(socket));
                tokio::task::yield_now().await;
            }
        }
    }

    /// Open connections with something of which it is not known that it was acknowledged.
    fn written(&self) -> Vec<Arc<Socket>> {
        let mut written = Vec::new();
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).retain(|socket| {
            let Some(socket) = socket.upgrade() else { return false };
            if socket.is_unacknowledged() {
                written.push(socket);
            }
            true
        });
        written
    }
}

fn judge(socket: &Socket) {
    // Before it is asked, so that what is written meanwhile is looked at next time.
    socket.acknowledged();
    // Without the state of its send queue, nothing can be said of a peer.
    let Ok(state) = socket.send_state() else { return };
    if state != SendState::Nothing {
        socket.unacknowledged();
    }
    match state {
        SendState::Nothing => socket.set_patience(None),
        SendState::Retransmitting(times) if times >= DEAD_PEER_RETRANSMITS => {
            socket.set_patience(Some(DEAD_PEER_WAIT));
        }
        SendState::Probing(unanswered) if unanswered >= DEAD_PEER_PROBES => {
            tracing::info!(client = %socket.peer(), "a client that read nothing is gone");
            socket.on_abort().abort();
        }
        SendState::Probing(_) => socket.set_patience(None),
        SendState::Sending | SendState::Retransmitting(_) => {}
    }
}
