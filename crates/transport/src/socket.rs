//! A connection's socket, which bounds what waits in it, notices a client that is gone, and knows how far a
//! client has read.
//!
//! In: an accepted socket. Out: [`SocketStream`], which TLS reads and writes; and [`Socket`], which tells
//! others how far the client has read. Never: knows what the bytes mean.
//!
//! Owner: `SocketStream` belongs to the connection's task. Others read single atomic values of [`Socket`],
//! and no two of them have to agree.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use forebay_rt::{Clock, Instant};
use futures_util::task::AtomicWaker;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop;

use crate::abort::Abort;
use crate::connections::Connection;
use crate::limits;
#[cfg(target_os = "linux")]
use crate::socket_options;

/// What TLS reads and writes.
pub struct SocketStream {
    socket: Arc<Socket>,
    // Bytes that may still be read until the handshake is over; `None` from then on.
    handshake_left: Option<usize>,
    // Bytes that were read and not yet charged to the connection.
    unpaid: usize,
    connection: Arc<Connection>,
}

/// The part of a socket that other tasks may look at.
pub struct Socket {
    tcp: TcpStream,
    peer: SocketAddr,
    clock: Clock,
    accepted_at: Instant,
    /// When the kernel last took something, in milliseconds since `began`.
    wrote_ms: AtomicU64,
    /// The client had acknowledged everything when [`Socket::acknowledged`] was last called, and nothing was
    /// written since.
    acknowledged: AtomicBool,
    /// TLS has sealed something that the kernel does not have yet.
    unsent: AtomicBool,
    /// The channel was given something that the kernel does not have yet.
    pending: AtomicBool,
    /// The task to wake once the kernel has it.
    waiting: AtomicWaker,
    /// The answer on this socket may wait for its reader for as long as the client likes.
    patient: AtomicBool,
    /// Breaks off the answer on this socket; the socket is closed by a reset then, not by an orderly end.
    abort: Abort,
}

/// What the kernel does with the bytes that were written to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendState {
    /// Nothing: all that was written was acknowledged.
    Nothing,
    Sending,
    /// It retransmits what was not acknowledged; this many times so far.
    Retransmitting(u8),
    /// The client's receive window is full, and the kernel probes it; this many probes in a row were not
    /// answered.
    Probing(u8),
}

#[cfg(target_os = "linux")]
impl SendState {
    fn of(info: &socket_options::TcpInfo) -> SendState {
        match (info.unacked, info.notsent_bytes) {
            (0, 0) => SendState::Nothing,
            (0, _) => SendState::Probing(info.probes),
            _ if info.retransmits > 0 => SendState::Retransmitting(info.retransmits),
            _ => SendState::Sending,
        }
    }
}

impl SocketStream {
    /// Takes an accepted socket and sets its options.
    ///
    /// # Errors
    /// The client is gone already.
    pub fn new(tcp: TcpStream, clock: Clock) -> io::Result<SocketStream> {
        let peer = tcp.peer_addr()?;
        set_options(&tcp, peer.ip().to_canonical().is_loopback());
        let socket = Arc::new(Socket {
            tcp,
            peer,
            accepted_at: clock.now(),
            clock,
            wrote_ms: AtomicU64::new(0),
            acknowledged: AtomicBool::new(true),
            unsent: AtomicBool::new(false),
            pending: AtomicBool::new(false),
            waiting: AtomicWaker::new(),
            patient: AtomicBool::new(false),
            abort: Abort::default(),
        });
        let handshake_left = Some(limits::HANDSHAKE_BYTES_MAX);
        Ok(SocketStream { socket, handshake_left, unpaid: 0, connection: Arc::default() })
    }

    /// The socket of a connection that is counted among the open ones.
    pub fn at(self, connection: Arc<Connection>) -> SocketStream {
        SocketStream { connection, ..self }
    }

    /// Something was written that the kernel does not have yet.
    pub fn lags(&self) {
        self.connection.holds_much();
    }

    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// The TLS handshake is over: from now on it does not limit how much the client may send.
    pub fn is_secure(&mut self) {
        self.handshake_left = None;
    }

    /// Charges bytes that were read to the task's budget of tokio, so that other tasks have their turn after
    /// some of them.
    fn poll_pay(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.unpaid >= limits::READ_UNIT_BYTES {
            ready!(pin!(coop::consume_budget()).poll(cx));
            self.unpaid -= limits::READ_UNIT_BYTES;
        }
        Poll::Ready(())
    }
}

/// Sets options that the connection also works without: an error is only noted.
///
/// - `is_near`: the client is on this machine.
fn set_options(tcp: &TcpStream, is_near: bool) {
    let socket = SockRef::from(tcp);
    // A small answer or event is sent at once, and does not wait for the acknowledgement of an earlier one.
    note("TCP_NODELAY", socket.set_tcp_nodelay(true));
    let keepalive = TcpKeepalive::new()
        .with_time(limits::KEEPALIVE_IDLE)
        .with_interval(limits::KEEPALIVE_INTERVAL)
        .with_retries(limits::KEEPALIVE_RETRIES);
    note("keepalive", socket.set_tcp_keepalive(&keepalive));
    #[cfg(target_os = "linux")]
    {
        note("TCP_NOTSENT_LOWAT", socket.set_tcp_notsent_lowat(limits::UNSENT_BYTES));
        if is_near {
            // Within one machine there is no congestion: the machine's congestion control would only cost
            // time.
            note("TCP_CONGESTION", socket.set_tcp_congestion(b"reno"));
        }
        note("TCP_RTO_MAX_MS", socket_options::set_rto_max(tcp, limits::ASK_PAUSE_MAX));
    }
}

fn note(option: &str, set: io::Result<()>) {
    if let Err(error) = set {
        tracing::debug!(%error, option, "a socket option could not be set");
    }
}

impl Socket {
    /// The client's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The address that the client came to, if the kernel knows it still.
    pub fn local_address(&self) -> Option<IpAddr> {
        self.tcp.local_addr().ok().map(|address| address.ip())
    }

    /// When the kernel last took something for the client.
    pub fn wrote_at(&self) -> Instant {
        self.accepted_at + Duration::from_millis(self.wrote_ms.load(Ordering::Relaxed))
    }

    /// Whether something was written that may not be acknowledged yet.
    pub fn is_unacknowledged(&self) -> bool {
        !self.acknowledged.load(Ordering::Relaxed)
    }

    /// What the kernel does with what was written.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn send_state(&self) -> io::Result<SendState> {
        #[cfg(target_os = "linux")]
        return socket_options::tcp_info(&self.tcp).map(|info| SendState::of(&info));
        #[cfg(not(target_os = "linux"))]
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Notes that the client has acknowledged everything.
    pub fn acknowledged(&self) {
        self.acknowledged.store(true, Ordering::Relaxed);
    }

    /// Notes that not everything is acknowledged after all.
    pub fn unacknowledged(&self) {
        self.acknowledged.store(false, Ordering::Relaxed);
    }

    /// Notes that TLS has sealed something that is to be written.
    pub fn sealed(&self) {
        self.unsent.store(true, Ordering::Relaxed);
    }

    /// Whether the kernel has everything that was sealed.
    pub fn is_sent(&self) -> bool {
        !self.unsent.load(Ordering::Relaxed)
    }

    /// Sets whether the answer on this socket may wait for its reader for as long as the client likes.
    pub fn set_patient(&self, patient: bool) {
        self.patient.store(patient, Ordering::Relaxed);
    }

    /// What [`Socket::set_patient`] has set.
    pub fn is_patient(&self) -> bool {
        self.patient.load(Ordering::Relaxed)
    }

    /// Notes that the channel was given something that has to reach the kernel.
    pub fn expect(&self) {
        self.pending.store(true, Ordering::Release);
    }

    /// Whether the kernel has everything that was [expected](Socket::expect).
    pub fn is_flushed(&self) -> bool {
        !self.pending.load(Ordering::Acquire)
    }

    /// Ready once the kernel has everything that was [expected](Socket::expect).
    pub fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_flushed() {
            return Poll::Ready(());
        }
        self.waiting.register(cx.waker());
        // Once more: it may have been flushed before the waker was registered.
        if self.is_flushed() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Ready when there is something to read, or the client has closed its side.
    pub fn poll_heard(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.tcp.poll_read_ready(cx)
    }

    /// Sets how many bytes the kernel buffers for the client at most. What it has already stays.
    pub fn set_send_buffer(&self, bytes: usize) {
        note("SO_SNDBUF", SockRef::from(&self.tcp).set_send_buffer_size(bytes));
    }

    /// Sets how long the kernel waits for a client that acknowledges nothing; `None` is the kernel's own
    /// choice.
    pub fn set_patience(&self, span: Option<Duration>) {
        #[cfg(target_os = "linux")]
        note("TCP_USER_TIMEOUT", SockRef::from(&self.tcp).set_tcp_user_timeout(span));
        #[cfg(not(target_os = "linux"))]
        let _ = span;
    }

    /// What breaks off the answer on this socket, which ends by a reset then.
    pub fn on_abort(&self) -> &Abort {
        &self.abort
    }

    fn flushed(&self) {
        self.unsent.store(false, Ordering::Relaxed);
        if !self.is_flushed() {
            self.pending.store(false, Ordering::Release);
            self.waiting.wake();
        }
    }

    fn wrote(&self) {
        let span = self.clock.now().duration_since(self.accepted_at);
        self.wrote_ms.store(span.as_millis() as u64, Ordering::Relaxed);
        self.acknowledged.store(false, Ordering::Relaxed);
    }

    fn poll_write(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.tcp.poll_write_ready(cx))?;
            match write(&self.tcp) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(written) => {
                    self.wrote();
                    return Poll::Ready(Ok(written));
                }
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.abort.is_aborted() {
            // What the client did not take is of no use to it, and its stream is not to look whole.
            note("SO_LINGER", SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO)));
        }
    }
}

impl AsyncRead for SocketStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_pay(cx));
        if self.handshake_left == Some(0) {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a handshake that is too long",
            )));
        }
        loop {
            ready!(self.socket.tcp.poll_read_ready(cx))?;
            let room = buf.initialize_unfilled();
            let most = room.len().min(self.handshake_left.unwrap_or(usize::MAX));
            match self.socket.tcp.try_read(&mut room[..most]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(read) => {
                    buf.advance(read);
                    self.unpaid += read;
                    self.connection.received(read);
                    self.handshake_left = self.handshake_left.map(|left| left - read);
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for SocketStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, |tcp| tcp.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match bufs {
            // Most of the time an event is one record, and one buffer costs the kernel less than a list of
            // them.
            [one] => self.socket.poll_write(cx, |tcp| tcp.try_write(one)),
            _ => self.socket.poll_write(cx, |tcp| tcp.try_write_vectored(bufs)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Whoever flushes has written everything before, so the kernel has all of it once this is done.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&self.socket.tcp).shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (SocketStream, TcpStream) {
        pair_on("127.0.0.1:0").await
    }

    async fn pair_on(address: impl tokio::net::ToSocketAddrs) -> (SocketStream, TcpStream) {
        let listener = TcpListener::bind(address).await.expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a server");
        let (served, _) = listener.accept().await.expect("a client");
        (SocketStream::new(served, Clock::system()).expect("open"), client)
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_socket_asks_for_signs_of_life_and_keeps_little() {
        let (wire, _client) = pair().await;
        let socket = SockRef::from(&wire.socket().tcp);
        assert!(socket.keepalive().expect("SO_KEEPALIVE") && socket.tcp_nodelay().expect("TCP_NODELAY"));
        let (time, interval) = (socket.tcp_keepalive_time(), socket.tcp_keepalive_interval());
        let asked = time.expect("a time")
            + interval.expect("an interval") * socket.tcp_keepalive_retries().expect("N");
        assert!(asked <= Duration::from_secs(45), "{asked:?}");
        assert_eq!(socket.tcp_notsent_lowat().expect("TCP_NOTSENT_LOWAT"), limits::UNSENT_BYTES);
        wire.socket().set_send_buffer(limits::WATCH_SEND_BYTES);
        assert!(socket.send_buffer_size().expect("SO_SNDBUF") <= 32 << 10);
        // Unless it is known that nothing is acknowledged, the kernel may take its time: it counts parked
        // readers, too.
        assert_eq!(socket.tcp_user_timeout().expect("TCP_USER_TIMEOUT"), None);
        wire.socket().set_patience(Some(limits::DEAD_PEER_WAIT));
        assert_eq!(socket.tcp_user_timeout().expect("TCP_USER_TIMEOUT"), Some(limits::DEAD_PEER_WAIT));
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn only_who_is_on_this_machine_is_not_paced() {
        let congestion = |tcp: &TcpStream| SockRef::from(tcp).tcp_congestion().expect("TCP_CONGESTION");
        let (wire, client) = pair_on("127.0.0.1:0").await;
        assert!(congestion(&wire.socket().tcp).starts_with(b"reno"));
        // As it is for whoever asks for nothing.
        let usual = congestion(&client);
        let asked = std::net::UdpSocket::bind("0.0.0.0:0").expect("a port");
        // Nothing is sent; it says which of its addresses the machine would use. One without a network has
        // none.
        if asked.connect("192.0.2.1:9").is_ok() {
            let own = asked.local_addr().expect("an address").ip();
            let (wire, _client) = pair_on((own, 0)).await;
            assert_eq!(congestion(&wire.socket().tcp), usual);
        }
    }

    /// However little of it each read asks for, and whatever becomes of it.
    #[tokio::test]
    async fn who_reads_what_is_there_gives_way_after_some_of_it() {
        const TURN_BYTES: usize = 128 * limits::READ_UNIT_BYTES;
        let (mut wire, mut client) = pair().await;
        wire.is_secure();
        let all = 8 * TURN_BYTES;
        let says = tokio::spawn(async move { client.write_all(&vec![b'x'; all]).await });
        let mut turns = Vec::new();
        let reads = tokio::spawn(std::future::poll_fn(move |cx| {
            let mut turn = 0;
            loop {
                let mut piece = [0; 700];
                let mut piece = ReadBuf::new(&mut piece);
                let read = Pin::new(&mut wire).poll_read(cx, &mut piece)?;
                turn += piece.filled().len();
                if read.is_pending() || piece.filled().is_empty() {
                    turns.push(turn);
                    let is_over = turns.iter().sum::<usize>() == all;
                    return if is_over {
                        Poll::Ready(Ok::<_, io::Error>(turns.clone()))
                    } else {
                        Poll::Pending
                    };
                }
            }
        }));
        let turns = reads.await.expect("no panic").expect("read");
        assert!(turns.iter().all(|turn| *turn <= TURN_BYTES + 700), "{turns:?}");
        says.await.expect("no panic").expect("said");
    }

    #[tokio::test]
    async fn what_was_given_is_flushed_when_the_kernel_has_it() {
        let (mut wire, mut client) = pair().await;
        let socket = wire.socket().clone();
        let is_flushed = || std::future::poll_fn(|cx| Poll::Ready(socket.poll_flushed(cx).is_ready()));
        assert!(is_flushed().await && !socket.is_unacknowledged());
        socket.expect();
        assert!(!is_flushed().await);
        wire.write_all(b"event").await.expect("written");
        assert!(!is_flushed().await && socket.is_unacknowledged());
        wire.flush().await.expect("flushed");
        assert!(is_flushed().await);
        let mut read = [0; 5];
        client.read_exact(&mut read).await.expect("read");
        assert_eq!(&read, b"event");
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn the_kernel_says_what_it_does_with_what_was_written() {
        let (wire, client) = pair().await;
        let socket = wire.socket();
        assert_eq!(socket.send_state().expect("told"), SendState::Nothing);
        let is_blocked = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        while socket.send_state().expect("told") != SendState::Probing(0) {
            let written = socket.tcp.try_write(&[0; 64 << 10]);
            assert!(written.as_ref().map_or_else(is_blocked, |bytes| *bytes > 0), "{written:?}");
            tokio::task::yield_now().await;
        }
        let mut read = vec![0; 64 << 10];
        while socket.send_state().expect("told") != SendState::Nothing {
            let read = client.try_read(&mut read);
            assert!(read.as_ref().map_or_else(is_blocked, |bytes| *bytes > 0), "{read:?}");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_reset_is_not_an_end() {
        for reset in [false, true] {
            let (mut wire, mut client) = pair().await;
            wire.write_all(b"half").await.expect("written");
            if reset {
                wire.socket().on_abort().abort();
            }
            drop(wire);
            let mut read = Vec::new();
            assert_eq!(client.read_to_end(&mut read).await.is_err(), reset);
        }
    }
}
