//! What an answer is written to: a connection of HTTP/1.1, or a stream of an HTTP/2 one.
//!
//! In: nothing but the task that writes. Out: whether what was written is gone, and a way to break off, from wherever
//! it is found out that nobody reads on. hyper asks a body for more only when there is room, so a body that nobody
//! reads cannot end itself.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use forebay_rt::{Instant, Shutdown};

use crate::wire::Socket;

tokio::task_local! {
    static LINE: Line;
}

/// Where an answer goes. Cheap to clone.
#[derive(Clone, Default)]
pub struct Line(Arc<Inner>);

/// A [`Line`] that may be gone.
pub struct WeakLine(Weak<Inner>);

#[derive(Default)]
struct Inner {
    cut: Shutdown,
    // Of HTTP/1.1, where it carries one answer at a time.
    socket: Option<Arc<Socket>>,
    // What goes on once HTTP is over.
    session: Mutex<Option<Session>>,
    only_sends: AtomicBool,
}

/// What a connection is used for once it was upgraded.
pub type Session = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Line {
    /// A connection that carries one answer after another.
    pub fn connection(socket: Arc<Socket>) -> Line {
        Line(Arc::new(Inner { socket: Some(socket), ..Inner::default() }))
    }

    /// One of several streams of a connection.
    pub fn stream() -> Line {
        Line::default()
    }

    /// The one that this task writes to; where there is none, one that leads nowhere.
    pub fn current() -> Line {
        LINE.try_with(Line::clone).unwrap_or_default()
    }

    /// Does `work`, which finds this as [`Line::current`]; `None` when it was cut meanwhile.
    pub async fn carry<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let work = LINE.scope(self.clone(), work);
        tokio::select! {
            biased;
            () = self.0.cut.raised() => None,
            done = work => Some(done),
        }
    }

    /// Breaks off: the client sees a reset, never an end that looks whole.
    pub fn cut(&self) {
        if let Some(socket) = &self.0.socket {
            socket.reset();
        }
        self.0.cut.raise();
    }

    /// From now on all there is to do is to make pieces of a body, at little cost, as they are sent.
    pub fn send_only(&self) {
        self.0.only_sends.store(true, Ordering::Relaxed);
    }

    /// Whether that is all.
    pub fn only_sends(&self) -> bool {
        self.0.only_sends.load(Ordering::Relaxed)
    }

    /// A piece of an answer was handed on.
    pub fn gave(&self) {
        if let Some(socket) = &self.0.socket {
            socket.expect();
        }
    }

    /// Ready when the kernel has what was handed on. HTTP/2 does not ask for more before its stream has room.
    pub fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.socket.as_ref().map_or(Poll::Ready(()), |socket| socket.poll_flushed(cx))
    }

    /// When the client's side last took something, where that can be told.
    pub fn wrote_at(&self) -> Option<Instant> {
        self.0.socket.as_ref().map(|socket| socket.wrote_at())
    }

    /// The socket, where it carries one answer at a time.
    pub fn socket(&self) -> Option<&Socket> {
        self.0.socket.as_deref()
    }

    /// Goes on with `session` when HTTP is over. Only a connection that carries one answer at a time can.
    pub fn upgrade(&self, session: Session) {
        *self.session_slot() = Some(session);
    }

    /// Keeps `held` until the session is over.
    pub fn hold(&self, held: impl Send + 'static) {
        if let Some(session) = self.session() {
            self.upgrade(Box::pin(async move {
                session.await;
                drop(held);
            }));
        }
    }

    /// What to go on with, if anything.
    pub fn session(&self) -> Option<Session> {
        self.session_slot().take()
    }

    fn session_slot(&self) -> MutexGuard<'_, Option<Session>> {
        self.0.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reference that keeps nothing alive.
    pub fn downgrade(&self) -> WeakLine {
        WeakLine(Arc::downgrade(&self.0))
    }
}

impl WeakLine {
    /// The line, if it is still there.
    pub fn upgrade(&self) -> Option<Line> {
        self.0.upgrade().map(Line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_is_cut_ends_with_nothing() {
        let line = Line::stream();
        assert_eq!(line.carry(async { 1 }).await, Some(1));
        let found = line.carry(async { Line::current().cut() }).await;
        assert!(found.is_some());
        assert_eq!(line.carry(std::future::pending::<()>()).await, None);
    }

    #[tokio::test]
    async fn outside_of_a_connection_there_is_a_line_that_leads_nowhere() {
        let line = Line::current();
        line.gave();
        assert!(std::future::poll_fn(|cx| Poll::Ready(line.poll_flushed(cx))).await.is_ready());
        assert!(line.wrote_at().is_none());
    }
}
