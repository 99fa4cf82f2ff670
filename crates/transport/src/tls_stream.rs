//! A connection after its TLS handshake: what is written is sealed at once, and goes to the socket many
//! records at a time.
//!
//! In: plain bytes, from HTTP. Out: records. Never: keeps more than
//! [`TLS_BUFFER_BYTES`](crate::limits::TLS_BUFFER_BYTES) of records; a faster writer waits.
//!
//! hyper's HTTP/2 flushes after every frame of 16 KiB, and each flush would be a system call. So its flushes
//! do nothing, and the connection's task flushes through [`Flusher`] once it has nothing more to write.
//!
//! Owner: the connection's task. HTTP/2 has the stream in two handles; both are used by that task, so nobody
//! ever waits for the lock between them.

use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use rustls::ServerConnection;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server;

use crate::limits::{AHEAD_BYTES_MAX, TLS_GATHER_BYTES};
use crate::sending::SendMeter;
use crate::socket::{Socket, SocketStream};

/// Is called with the client's certificates before something is read from the client.
pub trait BeforeRead: Send + Sync {
    fn look(&self, certificates: Option<&[CertificateDer<'_>]>);
}

/// What HTTP/1.1 reads and writes. Boxed, because it is moved from one future into the next.
pub struct TlsConnection {
    session: Box<Session>,
    // Bytes that were read ahead, and are returned by the next reads. At most AHEAD_BYTES_MAX and one read.
    ahead: BytesMut,
    // More was read ahead than may be kept: nothing is read any more.
    is_deaf: bool,
}

/// What HTTP/2 reads and writes: its flushes do nothing.
pub struct BufferedTls(Arc<Mutex<Session>>);

/// How much was read from a [`BufferedTls`].
pub struct BytesRead(Arc<Mutex<Session>>);

/// What flushes a [`BufferedTls`].
pub struct Flusher(Arc<Mutex<Session>>);

struct Session {
    tls: server::TlsStream<SocketStream>,
    // Is called before a read with the client's certificates, which only the TLS session has.
    before_read: Option<Box<dyn BeforeRead>>,
    // Plain bytes that were sealed since the socket last had everything.
    gathered: usize,
    // Plain bytes that were read so far.
    heard: usize,
    meter: SendMeter,
}

impl TlsConnection {
    pub fn new(tls: server::TlsStream<SocketStream>) -> TlsConnection {
        TlsConnection { session: Box::new(Session::new(tls)), ahead: BytesMut::new(), is_deaf: false }
    }

    /// Has somebody look at what was shown before something is read.
    pub fn looked_at(mut self, before_read: Box<dyn BeforeRead>) -> TlsConnection {
        self.session.before_read = Some(before_read);
        self
    }

    /// The socket, which knows whether everything [was sent](Socket::is_sent).
    pub fn socket(&self) -> &Arc<Socket> {
        self.session.tls.get_ref().0.socket()
    }

    /// Asks for its memory, which is about to be needed.
    pub fn prefetch(&self) {
        forebay_rt::prefetch(&*self.session);
        forebay_rt::prefetch(&**self.socket());
    }

    /// Puts back bytes that hyper has read and not used: the next read returns them first. Where they are
    /// more than [`AHEAD_BYTES_MAX`] none are kept, and for the next reader it is as if the client had closed
    /// its side.
    pub fn unread(&mut self, bytes: &[u8]) {
        self.is_deaf = bytes.len() > AHEAD_BYTES_MAX;
        if !self.is_deaf {
            self.ahead.extend_from_slice(bytes);
        }
    }

    /// Writes as much of `bufs` as there is room for.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.session.poll_write(cx, bufs)
    }

    /// Ready when the kernel has what was written.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.poll_flush(cx)
    }

    /// Ready when the client has closed its side. What it sends until then is kept for the next reader, up to
    /// [`AHEAD_BYTES_MAX`]. Once there is more nothing is read any more, and a client that is gone is noticed
    /// when something is written to it.
    pub fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tls = &mut self.session.tls;
        while !self.is_deaf && self.ahead.len() < AHEAD_BYTES_MAX {
            ready!(tls.get_ref().0.socket().poll_heard(cx))?;
            let mut read = [0; 1_024];
            let mut read = ReadBuf::new(&mut read);
            ready!(Pin::new(&mut *tls).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.ahead.extend_from_slice(read.filled());
        }
        Poll::Pending
    }
}

impl BufferedTls {
    pub fn new(tls: server::TlsStream<SocketStream>) -> BufferedTls {
        BufferedTls(Arc::new(Mutex::new(Session::new(tls))))
    }

    /// Has somebody look at what was shown before something is read.
    pub fn looked_at(self, before_read: Box<dyn BeforeRead>) -> BufferedTls {
        lock(&self.0).before_read = Some(before_read);
        self
    }

    /// A handle that tells how much was read, for a task that does not read.
    pub fn bytes_read(&self) -> BytesRead {
        BytesRead(self.0.clone())
    }

    /// The handle that flushes this stream.
    pub fn flusher(&self) -> Flusher {
        Flusher(self.0.clone())
    }
}

impl BytesRead {
    /// Plain bytes that were read so far.
    pub fn bytes(&self) -> usize {
        lock(&self.0).heard
    }
}

impl Flusher {
    /// Ready when the kernel has everything, or the connection is broken.
    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).poll_flush(cx)
    }
}

fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    fn new(tls: server::TlsStream<SocketStream>) -> Session {
        Session { tls, before_read: None, gathered: 0, heard: 0, meter: SendMeter::default() }
    }

    /// Seals `bufs`, as much of them as there is room for, and writes once enough has come together.
    fn poll_write(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let began = self.meter.begin(bufs.iter().map(|buf| buf.len()).sum());
        let written = self.seal(cx, bufs);
        let bytes = if let Poll::Ready(Ok(bytes)) = &written { *bytes } else { 0 };
        self.meter.end(began, bytes);
        written
    }

    fn seal(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if bufs.iter().all(|buf| buf.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        self.tls.get_ref().0.socket().sealed();
        loop {
            let sealed = self.tls.get_mut().1.writer().write_vectored(bufs)?;
            self.gathered += sealed;
            if sealed > 0 && self.gathered < TLS_GATHER_BYTES {
                return Poll::Ready(Ok(sealed));
            }
            let sent = self.send(cx)?;
            if sealed > 0 {
                return Poll::Ready(Ok(sealed));
            }
            ready!(sent);
        }
    }

    /// Writes one batch of records; ready when that was possible.
    fn send(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        let (wire, session) = self.tls.get_mut();
        let sent = send(wire, session, cx)?;
        if !session.wants_write() {
            self.gathered = 0;
        }
        Ok(sent)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let began = self.meter.begin(0);
        let flushed = self.send_all(cx);
        self.meter.end(began, 0);
        flushed
    }

    fn send_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.tls.get_ref().1.wants_write() {
            if self.send(cx)?.is_pending() {
                self.tls.get_ref().0.lags();
                return Poll::Pending;
            }
        }
        Pin::new(self.tls.get_mut().0).poll_flush(cx)
    }

    fn look_again(&self) {
        if let Some(before_read) = &self.before_read {
            before_read.look(self.tls.get_ref().1.peer_certificates());
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.look_again();
        let before = buf.filled().len();
        let read = Pin::new(&mut self.tls).poll_read(cx, buf);
        self.heard += buf.filled().len() - before;
        read
    }
}

fn send(
    wire: &mut SocketStream,
    session: &mut ServerConnection,
    cx: &mut Context<'_>,
) -> io::Result<Poll<()>> {
    match session.write_tls(&mut SyncWriter { wire, cx }) {
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        Ok(_) => Ok(Poll::Ready(())),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Poll::Pending),
        Err(error) => Err(error),
    }
}

/// The socket as rustls wants it.
struct SyncWriter<'a, 'b> {
    wire: &'a mut SocketStream,
    cx: &'a mut Context<'b>,
}

impl Write for SyncWriter<'_, '_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        match Pin::new(&mut *self.wire).poll_write_vectored(self.cx, bufs) {
            Poll::Ready(written) => written,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            self.session.look_again();
            let first = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead.split_to(first));
            return Poll::Ready(Ok(()));
        }
        if self.is_deaf {
            return Poll::Ready(Ok(()));
        }
        self.session.poll_read(cx, buf)
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.session.poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.session.poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.session.tls).poll_shutdown(cx)
    }
}

impl AsyncRead for BufferedTls {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for BufferedTls {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        lock(&self.0).poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        lock(&self.0).poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Left to [`Flusher`].
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut lock(&self.0).tls).poll_shutdown(cx)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use forebay_rt::Clock;
    use rustls::crypto::ring;
    use rustls::version::TLS13;
    use rustls::{ClientConfig, RootCertStore};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::{TlsAcceptor, TlsConnector, client};

    use super::*;
    use crate::limits::TLS_BUFFER_BYTES;
    use crate::server_tls::{Http2, ServerTls, for_client};

    /// A handshake that is over: the server's end, and a client's that would like `suites` best first.
    pub async fn pair(
        suites: &[rustls::CipherSuite],
    ) -> (server::TlsStream<SocketStream>, client::TlsStream<TcpStream>) {
        let key = rcgen::KeyPair::generate().expect("a key");
        let own = rcgen::CertificateParams::new(vec!["127.0.0.1".into()]).expect("parameters");
        let own = own.self_signed(&key).expect("a certificate");
        let shown = (own.pem(), key.serialize_pem());
        let serving = ServerTls::new(
            ring::default_provider(),
            rustls::ALL_VERSIONS,
            Http2::Enabled,
            (shown.0.as_str(), shown.1.as_str()),
            None,
        )
        .expect("valid");
        let mut roots = RootCertStore::empty();
        roots.add(own.der().clone()).expect("a root");
        let mut provider = ring::default_provider();
        if !suites.is_empty() {
            provider.cipher_suites.retain(|suite| suites.contains(&suite.suite()));
            provider
                .cipher_suites
                .sort_by_key(|suite| suites.iter().position(|known| *known == suite.suite()));
        }
        let client = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&TLS13])
            .expect("spoken")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let connect = async {
            let tcp = TcpStream::connect(address).await.expect("a server");
            let name = address.ip().into();
            TlsConnector::from(Arc::new(client)).connect(name, tcp).await.expect("a handshake")
        };
        let accept = async {
            let (tcp, _) = listener.accept().await.expect("a client");
            let wire = SocketStream::new(tcp, Clock::system()).expect("open");
            let known: Vec<_> = if suites.is_empty() { Vec::new() } else { suites.to_vec() };
            let acceptor = TlsAcceptor::from(for_client(&serving.current(), &known));
            let limit = |session: &mut ServerConnection| session.set_buffer_limit(Some(TLS_BUFFER_BYTES));
            let mut tls = acceptor.accept_with(wire, limit).await.expect("a handshake");
            tls.get_mut().0.is_secure();
            tls
        };
        tokio::join!(accept, connect)
    }
}

#[cfg(test)]
mod tests {
    use rustls::CipherSuite::{
        TLS13_AES_128_GCM_SHA256 as SHORT, TLS13_AES_256_GCM_SHA384 as LONG,
        TLS13_CHACHA20_POLY1305_SHA256 as CHACHA,
    };
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn what_is_gathered_goes_when_the_flusher_is_asked() {
        let (served, mut client) = testing::pair(&[]).await;
        let mut secure = BufferedTls::new(served);
        let flusher = secure.flusher();
        for frame in [b"one ", b"two ", b"six "] {
            secure.write_all(frame).await.expect("room");
            secure.flush().await.expect("nothing is done");
        }
        assert!(lock(&flusher.0).tls.get_ref().1.wants_write(), "it is kept");
        std::future::poll_fn(|cx| flusher.poll_flush(cx)).await.expect("flushed");
        let mut read = [0; 12];
        client.read_exact(&mut read).await.expect("read");
        assert_eq!(&read, b"one two six ");
    }

    #[tokio::test]
    async fn a_writer_that_is_not_read_waits_and_loses_nothing() {
        let (served, mut client) = testing::pair(&[]).await;
        let mut secure = BufferedTls::new(served);
        let text: Vec<u8> = (0..8u32 << 20).map(|n| (n / 7) as u8).collect();
        let mut written = 0;
        // Until nothing fits any more.
        while let Some(more) = std::future::poll_fn(|cx| {
            let room = Pin::new(&mut secure).poll_write(cx, &text[written..]);
            Poll::Ready(match room {
                Poll::Ready(taken) => Some(taken.expect("open")),
                Poll::Pending => None,
            })
        })
        .await
        {
            written += more;
            assert!(written < text.len(), "it would take anything");
        }
        let write = async {
            secure.write_all(&text[written..]).await.expect("open");
            secure.shutdown().await.expect("an end");
        };
        let mut read = Vec::new();
        let (_, all) = tokio::join!(write, client.read_to_end(&mut read));
        all.expect("a clean end");
        assert!(read == text);
    }

    #[tokio::test]
    async fn little_is_kept_of_what_a_client_says_behind_its_watch() {
        let (served, mut client) = testing::pair(&[]).await;
        let mut secure = TlsConnection::new(served);
        let said: Vec<u8> = (0..64u32 << 10).map(|n| (n / 7) as u8).collect();
        let say = async {
            client.write_all(&said).await.expect("open");
            client.flush().await.expect("open");
        };
        let hear = async {
            std::future::poll_fn(|cx| {
                assert!(secure.poll_gone(cx).is_pending());
                if secure.ahead.len() < AHEAD_BYTES_MAX { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            assert!(secure.ahead.len() < AHEAD_BYTES_MAX + 1_024, "{}", secure.ahead.len());
            let mut read = vec![0; said.len()];
            secure.read_exact(&mut read).await.expect("the rest");
            assert!(read == said, "nothing is lost");
        };
        tokio::join!(say, hear);
    }

    #[tokio::test]
    async fn who_said_too_much_before_its_watch_is_not_heard_any_more() {
        let (served, mut client) = testing::pair(&[]).await;
        let mut secure = TlsConnection::new(served);
        secure.unread(&[b'x'; AHEAD_BYTES_MAX + 1]);
        drop(client.shutdown().await);
        // It is there for as long as its watch can be written to.
        assert!(std::future::poll_fn(|cx| Poll::Ready(secure.poll_gone(cx))).await.is_pending());
        let mut read = Vec::new();
        secure.read_to_end(&mut read).await.expect("an end");
        assert!(read.is_empty() && secure.ahead.capacity() == 0);
    }

    #[tokio::test]
    async fn aes_with_the_short_key_is_spoken_unless_the_client_has_no_aes() {
        for (suites, want) in [
            (&[LONG, SHORT, CHACHA][..], SHORT),
            (&[SHORT, CHACHA], SHORT),
            (&[LONG, CHACHA], LONG),
            (&[CHACHA, SHORT, LONG], CHACHA),
        ] {
            let (served, _client) = testing::pair(suites).await;
            let spoken = served.get_ref().1.negotiated_cipher_suite().map(|suite| suite.suite());
            assert_eq!(spoken, Some(want), "{suites:?}");
        }
    }
}
