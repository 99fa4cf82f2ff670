//! The connections to one server, and who gets a seat on them.
//!
//! In: requests. Out: answers. The [`Book`] says who sits where; here is its lock, who waits for a seat, in
//! order of arrival, and the tasks: one for each connection, one for each that is being opened. All end when
//! nobody holds the pool any more. Never: retries what the server may have done, reads an answer, waits with
//! the lock held.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use forebay_rt::{Alarm, Clock, CutOnDrop, Duration, Tasks};
use http::{Request, Response, header};
use kube::client::Body as RequestBody;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use crate::Error;
use crate::body::Body;
use crate::book::{Book, Flags, PoolStats, Protocol, Want};
use crate::dial::{Dialer, Offer, Stream};
use crate::http1::{self, Http1};
use crate::http2::{self, Http2, News};
use crate::limits::{RESENT_MAX, UPGRADES_MAX, WAITING_MAX};
use crate::options::PoolOptions;
use crate::unserved::Unserved;

/// The connections to one server. Cheap to clone; all clones are the same connections.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

/// What every seat and every handle to the pool shares.
pub(crate) struct Shared {
    me: Weak<Shared>,
    opener: Arc<Opener>,
    clock: Clock,
    tasks: Tasks,
    _cut: CutOnDrop,
    /// Where the tasks live: a seat may be given back from anywhere.
    runtime: Handle,
    upgrades: Arc<Semaphore>,
    // Locked for a few lines, never across a wait.
    desk: Mutex<Desk>,
}

/// How connections are made.
struct Opener {
    dialer: Dialer,
    options: PoolOptions,
    connect_max: Duration,
    clock: Clock,
}

#[derive(Default)]
struct Desk {
    book: Book<Carrier>,
    // Each oldest first; both together <= WAITING_MAX.
    ordinary: VecDeque<Waiting>,
    watches: VecDeque<Waiting>,
    /// How many requests have waited so far: the next one's number.
    came: u64,
}

struct Waiting {
    /// Its place in the order of arrival.
    number: u64,
    seat: oneshot::Sender<Result<Seat, Error>>,
}

/// The sending side of a connection, by protocol.
#[derive(Clone, Debug)]
enum Carrier {
    Http1(Http1),
    Http2(Http2),
}

/// A stream of a connection that may be used; it is free again when this is dropped.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    id: u64,
    want: Want,
    carrier: Carrier,
    /// The connection takes no other request after this one.
    spoils: bool,
}

/// A connection that was opened, and what runs it.
enum Opened {
    Http1(Http1, Box<http1::Driver>),
    Http2(Http2, Box<http2::Driver>, usize),
}

/// Counts a connection as being opened until this is dropped, whatever becomes of the task that opens it.
struct Opening {
    shared: Weak<Shared>,
    opened: Option<Result<Opened, Error>>,
}

impl Pool {
    /// Must be called within a runtime, in which the connections live.
    pub(crate) fn new(dialer: Dialer, options: PoolOptions, connect_max: Duration) -> Pool {
        let tasks = Tasks::new();
        let clock = options.clock.clone();
        let opener = Arc::new(Opener { dialer, options, connect_max, clock: clock.clone() });
        Pool(Arc::new_cyclic(|me| Shared {
            me: me.clone(),
            opener,
            clock,
            _cut: tasks.cut_on_drop(),
            tasks,
            runtime: Handle::current(),
            upgrades: Arc::new(Semaphore::new(UPGRADES_MAX)),
            desk: Mutex::default(),
        }))
    }

    /// What is asked for next goes over a new connection: those of before may be dead without anybody having
    /// noticed. They take no more requests, and end with their last answer. One that is younger than
    /// [`PoolOptions::renew_age_min`] is new.
    pub fn renew(&self) {
        let (age, now) = (self.0.opener.options.renew_age_min, self.0.clock.now());
        self.0.settle(|desk| desk.book.leave_older(age, now));
    }

    /// What there is now.
    pub fn stats(&self) -> PoolStats {
        self.0.settle(|desk| desk.book.stats())
    }

    /// Sends a request and waits for the head of its answer, for as long as whoever calls. Cancel-safe. The
    /// authority of its URL is what the server is called, wherever it was dialled.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send(&self, mut request: Request<RequestBody>) -> Result<Response<Body>, Error> {
        if request.headers().contains_key(header::UPGRADE) {
            return self.0.upgrade(request).await;
        }
        let want = want(&request);
        for resent in 0.. {
            let seat = self.0.seat(want).await?;
            match seat.send(request).await {
                Ok(answer) => return Ok(answer),
                Err(Unserved { again: Some(again), .. }) if resent < RESENT_MAX => request = again,
                Err(Unserved { error, .. }) => return Err(error),
            }
        }
        Err(Error::Gone)
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pool").field(&self.stats()).finish()
    }
}

impl Shared {
    /// A seat, once there is one. Cancel-safe: who waits no more gets none.
    async fn seat(&self, want: Want) -> Result<Seat, Error> {
        let (given, seat) = oneshot::channel();
        self.settle(|desk| desk.wait(want, given))?;
        seat.await.unwrap_or(Err(Error::Gone))
    }

    /// Changes what is so, and then gives out what seats there are, and opens what connections are missing.
    fn settle<R>(&self, change: impl FnOnce(&mut Desk) -> R) -> R {
        let (result, given_back, openings) = {
            let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
            let result = change(&mut desk);
            let (given_back, openings) = desk.serve(&self.me);
            (result, given_back, openings)
        };
        (0..openings).for_each(|_| self.open());
        // Seats whose requests went away meanwhile. Each settles the desk again as it is dropped.
        drop(given_back);
        result
    }

    fn open(&self) {
        let opening = Opening { shared: self.me.clone(), opened: None };
        let opener = self.opener.clone();
        self.spawn("opens a connection", async move {
            opening.ends_with(opener.open().await);
        });
    }

    fn opened(&self, opened: Result<Opened, Error>) {
        let now = self.clock.now();
        let flags = Flags::default();
        match opened {
            Ok(Opened::Http1(carrier, driver)) => {
                let id = self.settle(|desk| {
                    desk.book.end_opening();
                    desk.book.add(Carrier::Http1(carrier), Protocol::Http1, flags.clone(), now)
                });
                self.drive_http1(id, *driver, flags);
            }
            Ok(Opened::Http2(carrier, driver, streams)) => {
                let id = self.settle(|desk| {
                    desk.book.end_opening();
                    let id = desk.book.add(Carrier::Http2(carrier), Protocol::Http2, flags.clone(), now);
                    desk.book.allow(id, streams);
                    id
                });
                self.drive_http2(id, *driver, flags);
            }
            Err(error) => {
                let error = Arc::new(error);
                let waited = self.settle(|desk| {
                    desk.book.end_opening();
                    (std::mem::take(&mut desk.ordinary), std::mem::take(&mut desk.watches))
                });
                for waiting in waited.0.into_iter().chain(waited.1) {
                    // Fails for who no longer waits.
                    let _ = waiting.seat.send(Err(Error::NotConnected(error.clone())));
                }
            }
        }
    }

    fn drive_http2(&self, id: u64, driver: http2::Driver, flags: Flags) {
        let (shared, idle_max) = (self.me.clone(), self.opener.options.idle_max);
        let told = shared.clone();
        self.spawn("HTTP/2 connection to a server", async move {
            let tell = |news| {
                let Some(shared) = told.upgrade() else { return };
                let now = shared.clock.now();
                shared.settle(|desk| match news {
                    News::Allows(streams) => desk.book.allow(id, streams),
                    News::Leaves => desk.book.leave(id),
                    News::Silent => desk.book.leave_if_idle(id, idle_max, now),
                });
            };
            driver.run(flags, tell).await;
            remove(&shared, id);
        });
    }

    fn drive_http1(&self, id: u64, driver: http1::Driver, flags: Flags) {
        let (shared, idle_max, clock) = (self.me.clone(), self.opener.options.idle_max, self.clock.clone());
        self.spawn("HTTP/1.1 connection to a server", async move {
            let mut driver = std::pin::pin!(driver);
            let mut alarm = Alarm::default();
            loop {
                let look_at = clock.now() + idle_max;
                tokio::select! {
                    // Its request was told what went wrong.
                    _ended = &mut driver => break,
                    () = flags.cut.raised() => break,
                    () = alarm.rings(look_at) => {
                        let Some(shared) = shared.upgrade() else { break };
                        shared.settle(|desk| desk.book.leave_if_idle(id, idle_max, look_at));
                    }
                }
            }
            remove(&shared, id);
        });
    }

    /// An upgrade takes a connection of its own, of HTTP/1.1, and keeps it.
    async fn upgrade(&self, request: Request<RequestBody>) -> Result<Response<Body>, Error> {
        let leave = self.upgrades.clone().acquire_owned().await.map_err(|_| Error::Gone)?;
        let (io, _) = self.opener.dial(Offer::Http1).await?;
        let (carrier, driver) = http1::open(io).await?;
        self.spawn("upgraded connection to a server", async move {
            // Its request was told what went wrong.
            let _ = driver.with_upgrades().await;
            drop(leave);
        });
        let answer = carrier.send(request).await.map_err(|unserved| unserved.error)?;
        Ok(Body::http1(answer, None))
    }

    /// Starts a task where tasks live. Never with the lock held: where the runtime has ended, the work is
    /// dropped at once.
    fn spawn(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        let _home = self.runtime.enter();
        self.tasks.spawn(name, work);
    }
}

fn remove(shared: &Weak<Shared>, id: u64) {
    if let Some(shared) = shared.upgrade() {
        shared.settle(|desk| desk.book.remove(id));
    }
}

impl Desk {
    fn wait(&mut self, want: Want, seat: oneshot::Sender<Result<Seat, Error>>) -> Result<(), Error> {
        if self.waiting() >= WAITING_MAX {
            self.ordinary.retain(|it| !it.seat.is_closed());
            self.watches.retain(|it| !it.seat.is_closed());
        }
        if self.waiting() >= WAITING_MAX {
            return Err(Error::Full(WAITING_MAX));
        }
        self.came += 1;
        let number = self.came;
        self.queue(want).push_back(Waiting { number, seat });
        Ok(())
    }

    /// Gives seats to who waits, oldest first, and says how many connections to open for the others. An
    /// ordinary request does not wait behind a watch that finds no seat.
    fn serve(&mut self, shared: &Weak<Shared>) -> (Vec<Seat>, usize) {
        let (mut given_back, mut in_vain) = (Vec::new(), None);
        while let Some(want) = self.next(in_vain) {
            let Some(shared) = shared.upgrade() else { break };
            let Some((id, carrier)) = self.book.take(want) else {
                // What an ordinary request does not get, a watch does not get either.
                if want == Want::Ordinary {
                    break;
                }
                in_vain = Some(want);
                continue;
            };
            if let Some(waiting) = self.queue(want).pop_front() {
                let seat = Seat { shared, id, want, carrier, spoils: false };
                if let Err(Ok(seat)) = waiting.seat.send(Ok(seat)) {
                    given_back.push(seat);
                }
            }
        }
        // Watches are refused a connection before ordinary requests are.
        let (ordinary, all) = (self.ordinary.len(), self.waiting());
        let mut openings = 0;
        for (want, waiting, here) in
            [(Want::Ordinary, ordinary, ordinary > 0), (Want::Watch, all, all > ordinary)]
        {
            openings += if here { self.book.begin_opening(want, waiting) } else { 0 };
        }
        (given_back, openings)
    }

    /// What the oldest waiting request wants; requests for `in_vain`, which cannot be had now, are passed
    /// over.
    fn next(&mut self, in_vain: Option<Want>) -> Option<Want> {
        let oldest = [Want::Ordinary, Want::Watch].into_iter().filter(|it| in_vain != Some(*it));
        oldest
            .filter_map(|want| self.oldest(want).map(|number| (number, want)))
            .min_by_key(|it| it.0)
            .map(|it| it.1)
    }

    /// The number of the oldest who still waits.
    fn oldest(&mut self, want: Want) -> Option<u64> {
        let queue = self.queue(want);
        while queue.front().is_some_and(|it| it.seat.is_closed()) {
            queue.pop_front();
        }
        queue.front().map(|it| it.number)
    }

    fn queue(&mut self, want: Want) -> &mut VecDeque<Waiting> {
        match want {
            Want::Ordinary => &mut self.ordinary,
            Want::Watch => &mut self.watches,
        }
    }

    fn waiting(&self) -> usize {
        self.ordinary.len() + self.watches.len()
    }
}

impl Seat {
    /// Its answer was read to the end.
    pub fn is_clean(&mut self) {
        self.spoils = false;
    }

    async fn send(mut self, request: Request<RequestBody>) -> Result<Response<Body>, Unserved> {
        let (shared, id) = (self.shared.clone(), self.id);
        let sent = match self.carrier.clone() {
            Carrier::Http2(http2) => http2.send(request, self).await,
            Carrier::Http1(http1) => {
                // An answer that is not read to its end is in the way of the next.
                self.spoils = true;
                http1.send(request).await.map(|it| Body::http1(it, Some(self)))
            }
        };
        // A connection that did not take this request takes no other either, even if its task does not know
        // that yet.
        if let Err(Unserved { again: Some(_), error }) = &sent
            && !is_refused(error)
        {
            shared.settle(|desk| desk.book.leave(id));
        }
        sent
    }
}

/// Whether one stream alone was refused, and the connection goes on.
fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Head2(error) if error.is_reset())
}

impl Drop for Seat {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        self.shared.settle(|desk| {
            if self.spoils {
                desk.book.leave(self.id);
            }
            desk.book.release(self.id, self.want, now);
        });
    }
}

impl Opener {
    async fn open(&self) -> Result<Opened, Error> {
        let opens = async {
            let (io, protocol) = self.dialer.dial(Offer::Either).await?;
            Ok(match protocol {
                Protocol::Http1 => {
                    let (carrier, driver) = http1::open(io).await?;
                    Opened::Http1(carrier, Box::new(driver))
                }
                Protocol::Http2 => {
                    let (carrier, driver, streams) =
                        http2::open(io, self.options.pings(), &self.clock).await?;
                    Opened::Http2(carrier, Box::new(driver), streams)
                }
            })
        };
        self.in_time(opens).await
    }

    async fn dial(&self, offer: Offer) -> Result<(Box<dyn Stream>, Protocol), Error> {
        self.in_time(self.dialer.dial(offer)).await
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        tokio::select! {
            done = work => done,
            () = self.clock.sleep(self.connect_max) => Err(Error::ConnectTimedOut(self.connect_max)),
        }
    }
}

impl Opening {
    fn ends_with(mut self, opened: Result<Opened, Error>) {
        self.opened = Some(opened);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.opened(self.opened.take().unwrap_or(Err(Error::Gone)));
        }
    }
}

impl Default for Book<Carrier> {
    fn default() -> Book<Carrier> {
        Book::new()
    }
}

/// Whether a request lasts is read from its query.
fn want(request: &Request<RequestBody>) -> Want {
    let lasts = |it: &str| matches!(it, "watch=true" | "watch=1" | "follow=true" | "follow=1");
    match request.uri().query().unwrap_or_default().split('&').any(lasts) {
        true => Want::Watch,
        false => Want::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Poll, Waker};

    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::limits::CONNECT_MAX;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    /// Of a server that is never asked for: the runtime does not run meanwhile.
    fn pool(runtime: &Runtime) -> Pool {
        let config = kube::Config::new("http://127.0.0.1:1".parse().expect("a URL"));
        let options = PoolOptions::default();
        let dialer = Dialer::new(&config, CONNECT_MAX, options.clock.clone()).expect("it can be used");
        runtime.block_on(async { Pool::new(dialer, options, CONNECT_MAX) })
    }

    fn look<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut std::task::Context::from_waker(Waker::noop()))
    }

    #[test]
    fn who_asks_after_the_runtime_of_the_connections_ended_is_told_so() {
        let home = runtime();
        let pool = pool(&home);
        drop(home);
        let request = Request::new(RequestBody::empty());
        let sent = runtime().block_on(pool.send(request)).map(|_| ());
        assert!(matches!(&sent, Err(Error::NotConnected(why)) if matches!(**why, Error::Gone)), "{sent:?}");
    }

    #[test]
    fn who_comes_to_a_full_queue_is_refused_until_others_have_gone() {
        let home = runtime();
        let Pool(shared) = pool(&home);
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(shared.seat(Want::Watch))).collect();
        assert!(waiting.iter_mut().all(|it| look(it.as_mut()).is_pending()));
        let refused = look(pin!(shared.seat(Want::Ordinary))).map(|it| it.map(|_| ()));
        assert!(matches!(refused, Poll::Ready(Err(Error::Full(WAITING_MAX)))), "{refused:?}");
        waiting.truncate(WAITING_MAX - 1);
        assert!(look(pin!(shared.seat(Want::Ordinary))).is_pending());
    }

    #[test]
    fn what_lasts_is_told_by_its_query() {
        for (url, lasts) in [
            ("/api/v1/pods?watch=true&resourceVersion=1", Want::Watch),
            ("/api/v1/pods?limit=500&watch=1", Want::Watch),
            ("/api/v1/namespaces/a/pods/b/log?follow=true", Want::Watch),
            ("/api/v1/pods?watch=false", Want::Ordinary),
            ("/api/v1/pods", Want::Ordinary),
        ] {
            let request = Request::get(url).body(RequestBody::empty()).expect("a request");
            assert_eq!(want(&request), lasts, "{url}");
        }
    }
}
