//! A whole state: its first page by Range, and the rest in one RangeStream from members that have it.
//!
//! In: a range. Out: its pages, in order, of one revision. A stream that breaks off, that is not to be had,
//! or that has told less than it says, costs nothing but a page that is asked for by Range from where the
//! last one ended. For a few walks at a time the next pages are on their way whatever is done with this one
//! (`ahead.rs`). Held at most: the page that is decoded, those, one message, and what a stream's window lets
//! etcd send ahead; streams are few, who finds none free asks for pages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_backend::{BoxFuture, Pages, Range, RangePage, ReadError};
use tokio::sync::OwnedSemaphorePermit;

use crate::ahead::Ahead;
use crate::cluster::Generation;
use crate::error::RequestError;
use crate::grpc::Receiver;
use crate::limits;
use crate::messages::{self, RangeResponse, path};
use crate::pool::{Connection, Use};
use crate::range;
use crate::shared::Shared;
use crate::stretch::Stretch;

/// See the module's doc.
pub(crate) struct Walk {
    shared: Arc<Shared>,
    rest: Range,
    from: From,
    // All of it is of one cluster.
    generation: Generation,
}

/// Where the pages after what was handed out come from.
enum From {
    Reader(Box<Reader>),
    Ahead(Ahead),
}

/// Asks for one page after the other.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    generation: Generation,
    stream: Option<Stream>,
    stretch: Stretch,
}

/// An open RangeStream.
struct Stream {
    connection: Arc<Connection>,
    receiver: Receiver,
    // Keys that it has told.
    told: u64,
    // Keys that there are, which it says at its end.
    count: Option<u64>,
    // What it was asked under.
    generation: Generation,
    _seat: OwnedSemaphorePermit,
}

impl Walk {
    pub(crate) fn new(shared: Arc<Shared>, range: Range) -> Walk {
        let generation = shared.cluster.begin_state(range.prefix.as_str());
        let from = From::Reader(Reader::anew(shared.clone(), generation));
        Walk { shared, rest: range, from, generation }
    }

    async fn page(&mut self, limit: usize) -> Result<RangePage, ReadError> {
        self.rest.limit = limit;
        // Put back with `rest` only: a page that is given up half-way is asked for again.
        let anew = From::Reader(Reader::anew(self.shared.clone(), self.generation));
        let mut from = std::mem::replace(&mut self.from, anew);
        let response = loop {
            match &mut from {
                From::Reader(reader) => break reader.response(&self.rest).await?,
                From::Ahead(ahead) => match ahead.next(limit).await {
                    Some(response) => break response,
                    // It failed. It is asked for again, and who asks is told.
                    None => from = From::Reader(Reader::anew(self.shared.clone(), self.generation)),
                },
            }
        };
        if self.shared.cluster.generation() != self.generation {
            return Err(ReadError::Unanswered { cause: RequestError::Replaced.to_string() });
        }
        let mut rest = self.rest.clone();
        response.pass(&mut rest, &self.shared);
        // Behind the first page, which is small, it is not known yet how many keys make one.
        if response.more && self.rest.start_after.is_some() {
            from = match from {
                From::Reader(reader) => Ahead::begin(reader, &rest).map_or_else(From::Reader, From::Ahead),
                ahead @ From::Ahead(_) => ahead,
            };
        }
        let page = self.shared.decoded(rest.at, response).await?;
        (self.rest, self.from) = (rest, from);
        Ok(page)
    }
}

impl RangeResponse {
    /// What is left of `rest` behind it.
    pub(crate) fn pass(&self, rest: &mut Range, shared: &Shared) {
        let last = self.kvs.iter().rev().find_map(|kv| shared.key(&kv.key));
        rest.pass_to(self.revision(rest.at), last);
    }
}

impl Reader {
    fn anew(shared: Arc<Shared>, generation: Generation) -> Box<Reader> {
        Box::new(Reader { shared, generation, stream: None, stretch: Stretch::default() })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The first page of `rest`, as etcd has it.
    async fn response(&mut self, rest: &Range) -> Result<RangeResponse, ReadError> {
        // What is small is told whole by one Range.
        if rest.start_after.is_some()
            && rest.at.is_some()
            && let Some(response) = self.streamed(rest).await
        {
            return Ok(response);
        }
        // A connection that was lost meanwhile is no reason to begin anew.
        let passes = |error: &ReadError| matches!(error, ReadError::Unanswered { .. });
        self.shared.again(limits::WALK_TRIES_MAX, passes, || self.shared.response(rest, &self.stretch)).await
    }

    /// The same, asked for once.
    pub(crate) async fn once(&mut self, rest: &Range) -> Option<RangeResponse> {
        match self.streamed(rest).await {
            Some(response) => Some(response),
            None => self.shared.asked(rest, &self.stretch).await.ok(),
        }
    }

    /// The first page of `rest` out of the stream; `None` where it has to be asked for.
    async fn streamed(&mut self, rest: &Range) -> Option<RangeResponse> {
        let mut running = match self.stream.take() {
            Some(running) => running,
            None => self.open(rest).await?,
        };
        match running.gather(&self.shared, rest.limit).await {
            Ok(response) => {
                self.stream = response.more.then_some(running);
                Some(response)
            }
            Err(fault) => {
                tracing::debug!(prefix = %rest.prefix, %fault, "a stream of a range is asked for in pages");
                running.connection.note(&fault);
                self.shared.pool.blame(&running.connection, &fault);
                None
            }
        }
    }

    /// Asks for all that is left; `None` when the member has no streams, or too many are open.
    async fn open(&self, rest: &Range) -> Option<Stream> {
        let seat = self.shared.streams.clone().try_acquire_owned().ok()?;
        let connection = self.shared.pool.connection(Use::Pages).await.ok()?;
        if !connection.has_range_stream() {
            return None;
        }
        let bounds = range::bounds(rest);
        let message = messages::range(&range::request(&bounds, rest));
        self.shared.counters.requests.fetch_add(1, Ordering::Relaxed);
        self.shared.counters.range_streams.fetch_add(1, Ordering::Relaxed);
        let opened = tokio::select! {
            opened = connection.channel.download(path::RANGE_STREAM, &message) => opened,
            () = self.shared.clock.sleep(limits::READ_WAIT) => Err(late()),
        };
        match opened {
            Ok(receiver) => {
                let generation = self.generation;
                Some(Stream { connection, receiver, told: 0, count: None, generation, _seat: seat })
            }
            Err(fault) => {
                connection.note(&fault);
                self.shared.pool.blame(&connection, &fault);
                None
            }
        }
    }
}

impl Stream {
    /// Messages that make a page.
    async fn gather(&mut self, shared: &Shared, limit: usize) -> Result<RangeResponse, RequestError> {
        let (mut page, mut bytes) = (RangeResponse { more: true, ..RangeResponse::default() }, 0);
        while page.kvs.len() < limit && bytes < limits::PAGE_BYTES {
            let message = tokio::select! {
                message = self.receiver.next() => message?,
                () = shared.clock.sleep(limits::PAGE_WAIT) => return Err(late()),
            };
            let Some(message) = message else {
                self.check()?;
                page.more = false;
                break;
            };
            let part = messages::read_range_stream(message)?;
            if part.header.revision > 0 {
                shared.cluster.note(part.header, self.generation)?;
                self.count = Some(part.count);
            }
            self.told += part.kvs.len() as u64;
            // Without the others, so that a page that has more has a key to go on from.
            for kv in part.kvs.into_iter().filter(range::is_ours) {
                bytes += kv.cost();
                page.kvs.push(kv);
            }
        }
        Ok(page)
    }

    /// Whether all of it was told.
    fn check(&self) -> Result<(), RequestError> {
        match self.count {
            Some(count) if count == self.told => Ok(()),
            count => {
                Err(RequestError::Lost { text: format!("a stream told {} keys of {count:?}", self.told) })
            }
        }
    }
}

impl Pages for Walk {
    fn next(&mut self, limit: usize) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(self.page(limit))
    }
}

fn late() -> RequestError {
    RequestError::Timeout { text: "a stream of a range keeps quiet".to_string() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_apimachinery::{Key, Revision};
    use forebay_backend::{Backend, Expect, Op, Txn, TxnResponse};
    use forebay_clients::etcd::{Cluster, Security, Series};
    use forebay_clients::needs;
    use forebay_rt::{Clock, Tasks};

    use super::*;
    use crate::{Etcd, StorageConfig, TlsFiles, Verbatim};

    const KEYS: usize = 700;

    fn open(cluster: &Cluster) -> Arc<Etcd> {
        let endpoints = cluster.endpoints().iter().map(|url| url.parse().expect("a URL")).collect();
        let (clock, tasks, tls) = (Clock::system(), Tasks::new(), TlsFiles::default());
        let (codec, prefix) = (Arc::new(Verbatim), "/a".to_string());
        let options = StorageConfig { endpoints, tls, codec, prefix, compact_every: None, clock, tasks };
        Etcd::open(options).expect("valid")
    }

    async fn put(store: &Etcd, name: &str, bytes: usize, expect: Expect) -> Revision {
        let op = Op::Put { value: vec![b'x'; bytes].into(), ttl: None };
        match store.commit(Txn { key: Key::new(name), expect, op }).await.expect("works") {
            TxnResponse::Committed(revision) => revision,
            conflict => panic!("{conflict:?}"),
        }
    }

    /// Keys, revisions and lengths of all pages.
    async fn walked(store: &Etcd, at: Revision, mut between: impl FnMut(usize)) -> Vec<(String, u64, usize)> {
        let mut pages =
            store.pages(Range { prefix: Key::new("/a/"), start_after: None, limit: 1, at: Some(at) });
        let mut all = Vec::new();
        for number in 0.. {
            let page = pages.next(16).await.expect("kept");
            assert_eq!(page.revision, at);
            let bytes: usize = page.items.iter().map(|(_, found)| found.value.len()).sum();
            assert!(bytes <= 2 * limits::PAGE_BYTES, "a page of {bytes} bytes");
            let shown = |(key, found): (Key, forebay_backend::Versioned)| {
                (key.to_string(), found.revision.get(), found.value.len())
            };
            all.extend(page.items.into_iter().map(shown));
            if !page.more {
                break;
            }
            between(number);
        }
        all
    }

    async fn is_told_whole(series: Series) {
        let mut cluster = Cluster::start_of(series, 1, Security::Plain).expect("starts");
        let store = open(&cluster);
        store.reach(Duration::from_secs(30)).await.expect("answers");
        let mut expected = Vec::new();
        for number in 0..KEYS {
            // Some are large, so that pages are full before they have many keys.
            let (name, bytes) = (format!("/a/{number:04}"), if number % 70 == 69 { 1 << 20 } else { number });
            expected.push((name.clone(), put(&store, &name, bytes, Expect::Absent).await.get(), bytes));
        }
        // More than two pages of them, one behind the other.
        for number in b'A'..b'A' + 40 {
            let put = messages::put(&[b"/a/0300\xff".as_slice(), &[number]].concat(), b"x");
            let done = store.shared().ask(Use::Keys, path::PUT, &put, limits::COMMIT_WAIT).await;
            done.expect("etcd takes keys that are no text");
        }
        let at = store.barrier().await.expect("current");
        put(&store, "/a/0500", 1, Expect::At(Revision::from_log(expected[500].1))).await;
        let streams = || store.counters().range_streams.load(Ordering::Relaxed);
        let has_streams = u64::from(series == Series::V3_7);
        assert_eq!(walked(&store, at, |_| ()).await, expected);
        assert_eq!(streams(), has_streams, "one for all of it, where there are any");
        // While the member is killed and comes back.
        let broken = walked(&store, at, |number| {
            if number == 3 {
                cluster.kill(0).expect("killed");
                cluster.restart(0).expect("back");
            }
        });
        assert_eq!(broken.await, expected);
        // A member that says that it has them and has not: it is asked once.
        let before = streams();
        store.shared().pool.connection(Use::Pages).await.expect("connected").claim_range_stream();
        assert_eq!(walked(&store, at, |_| ()).await, expected);
        assert_eq!(walked(&store, at, |_| ()).await, expected);
        assert_eq!(streams() - before, 1 + has_streams);
        // When none is free, pages do as well.
        let all = store.shared().streams.acquire_many(limits::RANGE_STREAMS_MAX as u32).await.expect("open");
        let before = streams();
        assert_eq!(walked(&store, at, |_| ()).await, expected);
        assert_eq!(streams(), before);
        drop(all);
        // Behind all but the first a page is read ahead, unless as many are as may be.
        let seats = || store.shared().ahead.available_permits();
        let one_is_held = |number| assert_eq!(seats(), limits::AHEAD_MAX - usize::from(number > 0));
        assert_eq!(walked(&store, at, one_is_held).await, expected);
        let all = store.shared().ahead.acquire_many(limits::AHEAD_MAX as u32).await.expect("open");
        assert_eq!(walked(&store, at, |_| assert_eq!(seats(), 0)).await, expected);
        drop(all);
        assert_eq!(
            given_up(&store, at).await,
            expected.iter().map(|(key, ..)| key.clone()).collect::<Vec<_>>()
        );
        assert_eq!(seats(), limits::AHEAD_MAX);
        if has_streams == 0 {
            by_pages(&cluster, &store, at, &expected).await;
        }
    }

    /// Each page is asked for once; what failed while it was read ahead is told when it is wanted.
    async fn by_pages(cluster: &Cluster, store: &Etcd, at: Revision, expected: &[(String, u64, usize)]) {
        let requests = || store.counters().requests.load(Ordering::Relaxed);
        let (before, mut pages) = (requests(), 1);
        walked(store, at, |_| pages += 1).await;
        // What the store asks for itself meanwhile, and ranges that ended too soon.
        let more = 4 + pages / 4;
        assert!(requests() - before <= pages + more, "{} for {pages} pages", requests() - before);
        let mut walk =
            store.pages(Range { prefix: Key::new("/a/"), start_after: None, limit: 1, at: Some(at) });
        let mut rest = expected.iter();
        for number in 0.. {
            if number == 2 {
                cluster.compact(at.get() + 1).expect("compacted");
            }
            match walk.next(16).await {
                Ok(page) => page.items.iter().for_each(|(key, _)| {
                    assert_eq!(Some(key.as_str()), rest.next().map(|(key, ..)| key.as_str()));
                }),
                Err(error) => {
                    assert!(matches!(error, ReadError::Compacted { .. }), "{error:?}");
                    assert!(
                        (2..=2 + limits::AHEAD_PAGES).contains(&number),
                        "those that were read before: {number}"
                    );
                    break;
                }
            }
        }
    }

    /// Keys of all pages, each of which is asked for once in vain.
    async fn given_up(store: &Etcd, at: Revision) -> Vec<String> {
        let mut pages =
            store.pages(Range { prefix: Key::new("/a/"), start_after: None, limit: 1, at: Some(at) });
        let mut keys = Vec::new();
        loop {
            let at_once = tokio::select! {
                biased;
                page = pages.next(16) => Some(page),
                () = std::future::ready(()) => None,
            };
            let page = match at_once {
                Some(page) => page,
                None => pages.next(16).await,
            };
            let page = page.expect("kept");
            keys.extend(page.items.iter().map(|(key, _)| key.to_string()));
            if !page.more {
                return keys;
            }
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_state_is_told_whole_by_streams_and_by_pages() {
        if needs::built_peers().is_none() {
            return;
        }
        let running = [Series::V3_6, Series::V3_7].map(|series| tokio::spawn(is_told_whole(series)));
        for run in running {
            run.await.expect("no panic");
        }
    }
}
