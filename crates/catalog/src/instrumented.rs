//! The store as one resource asks it: how often, how long that takes, and how often in vain.
//!
//! In and out: [`Backend`]'s, untouched. What several resources ask together, a barrier, is nobody's and not
//! counted here. Of a state that is read whole each page is a request, and takes as long as the cache waits
//! for it.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, BoxFuture, Expect, Feed, FeedError, Op, Pages, Range, RangePage, ReadError, Sent, Size, Txn,
    TxnError, TxnResponse, Versioned,
};
use forebay_rt::{Clock, Instant};

use crate::histogram::{Bounds, Histogram};

/// Seconds. kube-apiserver's bounds for `etcd_request_duration_seconds`.
#[rustfmt::skip]
const SECONDS: Bounds = &[
    ("0.005", 0.005), ("0.025", 0.025), ("0.05", 0.05), ("0.1", 0.1), ("0.2", 0.2), ("0.4", 0.4), ("0.6", 0.6),
    ("0.8", 0.8), ("1", 1.0), ("1.25", 1.25), ("1.5", 1.5), ("2", 2.0), ("3", 3.0), ("4", 4.0), ("5", 5.0),
    ("6", 6.0), ("8", 8.0), ("10", 10.0), ("15", 15.0), ("20", 20.0), ("30", 30.0), ("45", 45.0), ("60", 60.0),
];

/// What a store is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Get,
    List,
    ListOnlyKeys,
    ListWithCount,
    Create,
    Update,
    Delete,
}

impl Operation {
    const ALL: [Operation; 7] = [
        Operation::Get,
        Operation::List,
        Operation::ListOnlyKeys,
        Operation::ListWithCount,
        Operation::Create,
        Operation::Update,
        Operation::Delete,
    ];

    /// As kube-apiserver labels it.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Get => "get",
            Operation::List => "list",
            Operation::ListOnlyKeys => "listOnlyKeys",
            Operation::ListWithCount => "listWithCount",
            Operation::Create => "create",
            Operation::Update => "update",
            Operation::Delete => "delete",
        }
    }
}

/// What became of the requests of one operation.
pub struct Series {
    /// Of all, those in vain included.
    pub seconds: Histogram,
    errors: AtomicU64,
}

impl Series {
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }
}

/// A backend that counts and times what one resource asks of the backend below.
pub struct Instrumented {
    below: Arc<dyn Backend>,
    clock: Clock,
    // Most resources are never asked for most of them.
    series: [OnceLock<Box<Series>>; Operation::ALL.len()],
}

impl Instrumented {
    pub fn new(below: Arc<dyn Backend>, clock: Clock) -> Instrumented {
        Instrumented { below, clock, series: Default::default() }
    }

    /// The store of all resources.
    pub fn all(&self) -> &dyn Backend {
        &*self.below
    }

    /// What was asked for so far.
    pub fn read(&self) -> impl Iterator<Item = (Operation, &Series)> {
        Operation::ALL
            .into_iter()
            .filter_map(|operation| Some((operation, &**self.series[operation as usize].get()?)))
    }

    async fn timed<T, E>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let mut request = Request { asked: self, operation, began: self.clock.now(), is_done: false };
        let done = work.await;
        request.is_done = done.is_ok();
        done
    }

    fn series(&self, operation: Operation) -> &Series {
        let make = || Box::new(Series { seconds: Histogram::new(SECONDS), errors: AtomicU64::new(0) });
        self.series[operation as usize].get_or_init(make)
    }
}

/// A request on its way. Counted when it is dropped: one that is given up was in vain.
struct Request<'a> {
    asked: &'a Instrumented,
    operation: Operation,
    began: Instant,
    is_done: bool,
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        let series = self.asked.series(self.operation);
        series.seconds.observe((self.asked.clock.now() - self.began).as_secs_f64());
        if !self.is_done {
            series.errors.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Backend for Instrumented {
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        let operation = match (&txn.op, txn.expect) {
            (Op::Delete, _) => Operation::Delete,
            (Op::Put { .. }, Expect::Absent) => Operation::Create,
            (Op::Put { .. }, Expect::At(_)) => Operation::Update,
        };
        Box::pin(self.timed(operation, self.below.commit(txn)))
    }

    fn get<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        Box::pin(self.timed(Operation::Get, self.below.get(key)))
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(self.timed(Operation::List, self.below.range(range)))
    }

    fn pages<'a>(&'a self, range: Range) -> Box<dyn Pages + 'a> {
        Box::new(AskedPages { asked: self, pages: self.below.pages(range) })
    }

    fn keys(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(self.timed(Operation::ListOnlyKeys, self.below.keys(range)))
    }

    fn count(&self, range: Range) -> BoxFuture<'_, Result<u64, ReadError>> {
        Box::pin(self.timed(Operation::ListWithCount, self.below.count(range)))
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        self.below.barrier()
    }

    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        self.below.oldest()
    }

    fn oldest_known(&self) -> Revision {
        self.below.oldest_known()
    }

    fn feed<'a>(&'a self, prefix: &'a str, after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        self.below.feed(prefix, after)
    }

    fn value_bytes_max(&self) -> usize {
        self.below.value_bytes_max()
    }

    fn may_be_stale(&self) -> bool {
        self.below.may_be_stale()
    }

    fn is_stale<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<bool, ReadError>> {
        self.below.is_stale(key)
    }

    fn hindered(&self) -> Option<String> {
        self.below.hindered()
    }

    fn rekeyed(&self, seen: u64) -> BoxFuture<'_, u64> {
        self.below.rekeyed(seen)
    }

    fn size(&self) -> Size {
        self.below.size()
    }

    fn sent(&self) -> Option<Sent> {
        self.below.sent()
    }
}

struct AskedPages<'a> {
    asked: &'a Instrumented,
    pages: Box<dyn Pages + 'a>,
}

impl Pages for AskedPages<'_> {
    fn next(&mut self, limit: usize) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        Box::pin(self.asked.timed(Operation::List, self.pages.next(limit)))
    }
}

#[cfg(test)]
mod tests {
    use forebay_backend::Layer;
    use forebay_embedded::{Engine, Options};
    use forebay_rt::Duration;

    use super::*;

    /// Each commit takes 30 ms; nothing can be read page by page.
    struct Slow {
        below: Arc<Engine>,
        clock: Clock,
    }

    impl Layer for Slow {
        fn below(&self) -> Arc<dyn Backend> {
            self.below.clone()
        }

        fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
            Box::pin(async move {
                self.clock.sleep(Duration::from_millis(30)).await;
                self.below.commit(txn).await
            })
        }

        fn range(&self, _: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
            let gone = || ReadError::Unanswered { cause: "it is gone".to_string() };
            Box::pin(async move { Err(gone()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_for_is_counted_with_its_time_and_what_failed() {
        let clock = Clock::system();
        let below = Engine::open_in_memory(Options::default()).expect("opened");
        let asked = Instrumented::new(Arc::new(Slow { below, clock: clock.clone() }), clock.clone());
        let key = Key::new("/registry/pods/default/web");
        let put = |expect| Txn { key: key.clone(), expect, op: Op::Put { value: "{}".into(), ttl: None } };
        let Ok(TxnResponse::Committed(at)) = asked.commit(put(Expect::Absent)).await else {
            panic!("not made")
        };
        // Too late, which is an answer.
        assert!(matches!(asked.commit(put(Expect::Absent)).await, Ok(TxnResponse::Conflict(Some(_)))));
        asked.commit(put(Expect::At(at))).await.expect("works");
        let given_up = clock.sleep(Duration::from_millis(10));
        tokio::select! {
            deleted = asked.commit(Txn { key: key.clone(), expect: Expect::At(at), op: Op::Delete }) => {
                panic!("it takes 30 ms: {deleted:?}")
            }
            () = given_up => {}
        }
        assert!(asked.get(&key).await.expect("works").is_some());
        let all = || Range { prefix: Key::new("/registry/pods/"), start_after: None, limit: 1, at: None };
        assert!(asked.pages(all()).next(1).await.is_err() && asked.count(all()).await.is_err());
        asked.barrier().await.expect("works");
        let read: Vec<_> = asked
            .read()
            .map(|(operation, series)| {
                let (_, sum) = series.seconds.read();
                (operation.name(), series.seconds.count(), series.errors(), sum)
            })
            .collect();
        assert_eq!(
            read,
            [
                ("get", 1, 0, 0.0),
                ("list", 1, 1, 0.0),
                ("listWithCount", 1, 1, 0.0),
                ("create", 2, 0, 0.06),
                ("update", 1, 0, 0.03),
                ("delete", 1, 1, 0.01)
            ]
        );
    }
}
