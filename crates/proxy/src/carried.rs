//! An answer on its way back: a body a piece at a time, perhaps with its links mended, or a connection of
//! another protocol.
//!
//! In: what hyper reads, when it is asked for. Out: the same. Never: more than a buffer of it at once.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_authorities::{CutIn, go_answer_words};
use http::response::Parts;
use http_body::Body as _;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::backend::Upstream;
use crate::dial::Sender;
use crate::error::ProxyError;
use crate::html::HtmlLinks;
use crate::limits::HTML_BYTES;
use crate::links::Links;
use crate::turns::Turn;

/// What a server answered.
pub enum ProxiedAnswer {
    Carried(Parts, Carried),
    /// The client is to ask again at another path: this server says so, and nobody else was asked.
    Moved(String),
    /// There is nothing to answer, and nobody was asked.
    Nothing,
    /// From here on both sides speak the protocol that they agreed on.
    Upgraded(Parts, Upgraded),
}

/// A body on its way. Dropped before its end, its connection is closed.
pub struct Carried {
    body: Incoming,
    // Kept for the next request once the body has ended.
    sender: Option<Sender>,
    _turn: Turn,
    backend: Upstream,
    mended: Option<Box<Mended>>,
}

/// HTML whose links are mended as it passes.
struct Mended {
    html: HtmlLinks,
    // What was read and not looked at yet: a piece of the connection's buffer.
    unread: Bytes,
}

/// A connection that was upgraded.
pub struct Upgraded {
    io: TokioIo<hyper::upgrade::Upgraded>,
    _turn: Turn,
    // Its connection's task ends with it.
    _backend: Upstream,
}

impl Carried {
    pub(crate) fn new(body: Incoming, sender: Sender, turn: Turn, backend: Upstream) -> Carried {
        Carried { body, sender: Some(sender), _turn: turn, backend, mended: None }
    }

    /// From now on its links lead back here.
    pub(crate) fn mend(&mut self, links: Links) {
        self.mended = Some(Box::new(Mended { html: HtmlLinks::new(links), unread: Bytes::new() }));
    }

    /// The next piece; `None` at the end. Trailers are left out.
    ///
    /// # Errors
    /// [`ProxyError::Broken`]: the body has broken off.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ProxyError>> {
        loop {
            if let Some(data) = self.mended.as_mut().and_then(|mended| mended.next()) {
                return Poll::Ready(Ok(Some(data)));
            }
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    match &mut self.mended {
                        Some(mended) => mended.unread = data,
                        None => return Poll::Ready(Ok(Some(data))),
                    }
                }
                Some(Err(why)) => {
                    self.sender = None;
                    return Poll::Ready(Err(ProxyError::Broken(go_answer_words(&why, CutIn::Body))));
                }
                None => {
                    if let Some(sender) = self.sender.take() {
                        self.backend.keep(sender);
                    }
                    let rest = self.mended.take().and_then(|mut mended| mended.rest());
                    return Poll::Ready(Ok(rest));
                }
            }
        }
    }

    /// All of it, if that is no more than `max` bytes. Cancel-safe: its connection is closed.
    ///
    /// # Errors
    /// [`ProxyError::Broken`], also for a body that is longer.
    pub async fn whole(mut self, max: usize) -> Result<Bytes, ProxyError> {
        let mut whole = Vec::new();
        while let Some(piece) = std::future::poll_fn(|cx| self.poll_data(cx)).await? {
            if whole.len() + piece.len() > max {
                return Err(ProxyError::Broken(format!("the answer is longer than {max} bytes")));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.into())
    }
}

impl Mended {
    /// What becomes of the next part of what was read; `None` once all of it was looked at.
    fn next(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.is_empty() && !self.unread.is_empty() {
            let part = self.unread.split_to(self.unread.len().min(HTML_BYTES));
            self.html.pass(&part, &mut out);
        }
        (!out.is_empty()).then(|| out.into())
    }

    /// What is left at the end.
    fn rest(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        self.html.finish(&mut out);
        (!out.is_empty()).then(|| out.into())
    }
}

impl Upgraded {
    pub(crate) fn new(io: TokioIo<hyper::upgrade::Upgraded>, turn: Turn, backend: Upstream) -> Upgraded {
        Upgraded { io, _turn: turn, _backend: backend }
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
