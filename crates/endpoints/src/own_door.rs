//! The way by which this server asks itself, for a webhook that is behind it.
//!
//! In: streams in memory. Out: what comes over one is answered as asked by `system:apiserver`, who may
//! everything. Never: a way from outside of this process: there is nothing to show for it that could be
//! found, or sent elsewhere.
//!
//! Source: apiserver v0.36.3 `server/options/serving_with_loopback.go`.

use std::future::Future;
use std::sync::{Arc, OnceLock, Weak};

use forebay_apimachinery::Caller;
use forebay_apimachinery::caller::MASTERS;
use forebay_transport::serve_stream;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::handler::{Handler, OnConnection};

/// See the module's doc. It is open while the server serves.
#[derive(Default)]
pub struct OwnDoor(OnceLock<Weak<Handler>>);

impl OwnDoor {
    /// From now on it leads to `handler`, as long as that is there.
    pub(crate) fn open(&self, handler: &Arc<Handler>) {
        // It is opened once: by the server that it was made for.
        let _ = self.0.set(Arc::downgrade(handler));
    }

    /// Answers what comes over `stream`, until who asks is done; `None` where nobody serves.
    pub fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Option<impl Future<Output = ()> + Send + 'static> {
        let handler = self.0.get()?.upgrade()?;
        let (name, groups) = ("system:apiserver".to_owned(), vec![MASTERS.to_owned()]);
        let caller = Caller { name, groups, ..Caller::default() }.authenticated();
        let itself = OnConnection { own: Some(Arc::new(caller)), ..OnConnection::default() };
        Some(serve_stream(handler, Arc::new(itself), stream))
    }
}
