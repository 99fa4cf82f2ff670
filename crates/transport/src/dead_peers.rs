//! Clients that are gone and have not closed their connection: their machine is off, or the network between
//! is down.
//!
//! In: connections of HTTP/1.1, and what the kernel tells of them. Out: connections whose clients are gone
//! end. Never: looks at what a connection carries.
//!
//! HTTP/2 pings its clients by itself, and an idle connection is probed by the kernel (keepalive). What is
//! left is a connection that was being written to: the kernel would go on to send for a quarter of an hour.
//!
//! `TCP_USER_TIMEOUT` alone would not do. Linux applies it also to a client whose receive window is full,
//! although that client answers every probe: it would end watches that are only parked. So the option is set
//! while transmissions are not acknowledged, and taken back while the client's window is full. `TCP_INFO`
//! says which of the two it is. On other systems than Linux nothing is done.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use forebay_rt::Clock;

use crate::limits::{DEAD_PEER_PERIOD, DEAD_PEER_PROBES, DEAD_PEER_RETRANSMITS, DEAD_PEER_WAIT};
use crate::socket::{SendState, Socket};

/// The connections that are watched over. Cheap to clone.
#[derive(Clone)]
pub struct DeadPeers {
    clock: Clock,
    // One entry a connection; the entries of closed ones are dropped at the next look.
    sockets: Arc<Mutex<Vec<Weak<Socket>>>>,
}

/// How many connections are looked at before other tasks get their turn.
const SOCKETS_AT_ONCE: usize = 512;

impl DeadPeers {
    pub fn new(clock: Clock) -> DeadPeers {
        DeadPeers { clock, sockets: Arc::default() }
    }

    /// Watches over a connection until it is closed.
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

    /// Open connections to which something was written that may not be acknowledged yet.
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
    // Before the kernel is asked, so that what is written meanwhile is looked at next time.
    socket.acknowledged();
    // Without the state of the send queue nothing can be said of the client.
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
