//! Pages of a state that are read before they are asked for: etcd has always one to make, while those before
//! it are decoded and taken in. Who reads it has two cores to fill, and etcd makes one page at a time.
//!
//! In: where to begin. Out: pages as etcd has them, in order; their end comes early where one could not be
//! read. Held: at most [`limits::AHEAD_PAGES`] each, of a few walks. Owner: the walk; dropped, it asks for no
//! more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_backend::Range;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::limits;
use crate::messages::RangeResponse;
use crate::walk::Reader;

/// See the module's doc.
pub(crate) struct Ahead {
    pages: mpsc::Receiver<RangeResponse>,
    // Keys of the pages that are asked for from now on.
    limit: Arc<AtomicUsize>,
    _seat: OwnedSemaphorePermit,
}

impl Ahead {
    /// Begins to read `rest`.
    ///
    /// # Errors
    /// The reader, where as many walks as may have pages ahead.
    pub(crate) fn begin(reader: Box<Reader>, rest: &Range) -> Result<Ahead, Box<Reader>> {
        let shared = reader.shared().clone();
        let Ok(seat) = shared.ahead.clone().try_acquire_owned() else { return Err(reader) };
        let (send, pages) = mpsc::channel(limits::AHEAD_PAGES);
        let limit = Arc::new(AtomicUsize::new(rest.limit));
        shared.spawn("etcd pages ahead", read(reader, rest.clone(), limit.clone(), send));
        Ok(Ahead { pages, limit, _seat: seat })
    }

    /// The next page; nothing once one could not be read.
    ///
    /// - `limit`: keys that it was to have, and those that are not yet asked for.
    pub(crate) async fn next(&mut self, limit: usize) -> Option<RangeResponse> {
        self.limit.store(limit, Ordering::Relaxed);
        self.pages.recv().await
    }
}

/// Reads pages until there are no more, one fails, or nobody wants them.
async fn read(
    mut reader: Box<Reader>,
    mut rest: Range,
    limit: Arc<AtomicUsize>,
    pages: mpsc::Sender<RangeResponse>,
) {
    // One is asked for when there is room for it.
    while let Ok(room) = pages.reserve().await {
        rest.limit = limit.load(Ordering::Relaxed);
        let page = tokio::select! {
            biased;
            () = pages.closed() => return,
            page = reader.once(&rest) => page,
        };
        let Some(page) = page else { return };
        let more = page.more;
        page.pass(&mut rest, reader.shared());
        room.send(page);
        if !more {
            return;
        }
    }
}
