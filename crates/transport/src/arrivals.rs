//! Requests whose bodies are on their way.
//!
//! In: a body that somebody sends. Out: the same, and the word to give it up. They hold no seat, as a client
//! may send slowly or not at all; but what a request holds until then is not nothing, so there are so many at
//! most: of the user who has the most of them the one gives way that has been sent nothing for the longest.
//! Never: reads a body.
//!
//! Owner of the state: whoever holds the lock, for a few lines; when something came is written by who reads.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use forebay_rt::{Clock, Instant};
use http_body::{Body, Frame, SizeHint};

use crate::abort::Abort;

/// All bodies that are on their way. Cheap to clone.
#[derive(Clone)]
pub struct Arrivals(Arc<Inner>);

struct Inner {
    clock: Clock,
    began: Instant,
    max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    // number -> its body; <= max.
    bodies: HashMap<u64, Arc<Sent>>,
    // user -> how many of them are hers.
    users: HashMap<Arc<str>, usize>,
}

struct Sent {
    user: Arc<str>,
    came_ms: AtomicU64,
    abort: Abort,
}

/// A body that is on its way, until it is dropped.
pub struct Arrival {
    number: u64,
    body: Arc<Sent>,
    arrivals: Arrivals,
}

/// A body of which it is noted when something comes.
pub struct Noted<'a, B> {
    body: B,
    arrival: &'a Arrival,
}

impl Arrivals {
    pub fn new(clock: Clock, max: usize) -> Arrivals {
        let began = clock.now();
        Arrivals(Arc::new(Inner { clock, began, max, state: Mutex::default() }))
    }

    /// One more, of `user`.
    pub fn begin(&self, user: &str) -> Arrival {
        let now = self.ms();
        let mut state = self.state();
        let gives_way = if state.bodies.len() < self.0.max { None } else { state.give_way() };
        let user: Arc<str> = match state.users.get_key_value(user) {
            Some((user, _)) => user.clone(),
            None => user.into(),
        };
        *state.users.entry(user.clone()).or_default() += 1;
        state.next += 1;
        let number = state.next;
        let body = Arc::new(Sent { user, came_ms: AtomicU64::new(now), abort: Abort::default() });
        state.bodies.insert(number, body.clone());
        drop(state);
        gives_way.inspect(|body| body.abort.abort());
        Arrival { number, body, arrivals: self.clone() }
    }

    fn ms(&self) -> u64 {
        self.0.clock.now().duration_since(self.0.began).as_millis() as u64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn give_way(&mut self) -> Option<Arc<Sent>> {
        // Of several, whoever comes first by name: a run is to repeat itself.
        let order = |(user, count): &(&Arc<str>, &usize)| (**count, std::cmp::Reverse((*user).clone()));
        let most = self.users.iter().max_by_key(order)?.0.clone();
        let hers = self.bodies.iter().filter(|(_, body)| body.user == most);
        let (number, _) =
            hers.min_by_key(|(number, body)| (body.came_ms.load(Ordering::Relaxed), **number))?;
        let number = *number;
        self.remove(number)
    }

    fn remove(&mut self, number: u64) -> Option<Arc<Sent>> {
        let body = self.bodies.remove(&number)?;
        if let Some(count) = self.users.get_mut(&body.user) {
            *count -= 1;
            if *count == 0 {
                self.users.remove(&body.user);
            }
        }
        Some(body)
    }
}

impl Arrival {
    /// `body`, which is this one.
    pub fn note<B>(&self, body: B) -> Noted<'_, B> {
        Noted { body, arrival: self }
    }

    /// Ready when it is to be given up.
    pub fn gives_way(&self) -> impl Future<Output = ()> + Send {
        std::future::poll_fn(|cx| {
            self.body.abort.wakes(cx);
            if self.body.abort.is_aborted() { Poll::Ready(()) } else { Poll::Pending }
        })
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.arrivals.state().remove(self.number);
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Noted<'_, B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_ready() {
            self.arrival.body.came_ms.store(self.arrival.arrivals.ms(), Ordering::Relaxed);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use forebay_rt::Duration;
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    fn given_up(bodies: &[Arrival]) -> Vec<usize> {
        bodies.iter().enumerate().filter(|(_, one)| one.body.abort.is_aborted()).map(|(at, _)| at).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn of_who_has_the_most_the_one_gives_way_that_was_sent_nothing_for_the_longest() {
        let clock = Clock::system();
        let arrivals = Arrivals::new(clock.clone(), 5);
        let mut bodies = Vec::new();
        for user in ["few", "many", "many", "many", "few"] {
            bodies.push(arrivals.begin(user));
            clock.sleep(Duration::from_secs(1)).await;
        }
        let sent = bodies[1].note(Full::new(Bytes::from("x"))).collect().await;
        assert_eq!(sent.map(|body| body.to_bytes()), Ok::<_, Infallible>(Bytes::from("x")));
        bodies.push(arrivals.begin("another"));
        assert_eq!(given_up(&bodies), [2]);
        bodies.push(arrivals.begin("another"));
        assert_eq!(given_up(&bodies), [0, 2], "two, two and one");
        bodies[2].gives_way().await;
        assert_eq!(arrivals.state().bodies.len(), 5);
        drop(bodies);
        assert!(arrivals.state().bodies.is_empty() && arrivals.state().users.is_empty());
    }
}
