//! Who acts: the clients, the store's writer and chaos, each a future, polled one at a time in an order that
//! a seed draws.
//!
//! In: futures and their wake-ups. Out: polls, one after another. Which of those that can go on goes on is
//! drawn, not the order in which they were woken: wake-ups of tokio's channels come in an order that no seed
//! repeats. The server's own tasks are tokio's, and run when nobody here can go on, and now and then in
//! between.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use forebay_rt::Random;

/// See the module's doc.
pub struct Actors {
    // number -> what is left of it
    actors: BTreeMap<usize, Pin<Box<dyn Future<Output = ()>>>>,
    ready: Arc<Ready>,
    random: Random,
}

#[derive(Default)]
struct Ready {
    // Who can go on.
    numbers: Mutex<BTreeSet<usize>>,
    parent: Mutex<Option<Waker>>,
}

struct Bell {
    number: usize,
    ready: Arc<Ready>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ready.numbers.lock().unwrap_or_else(PoisonError::into_inner).insert(self.number);
        let parent = self.ready.parent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        parent.iter().for_each(Waker::wake_by_ref);
    }
}

impl Actors {
    pub fn new(random: Random) -> Actors {
        Actors { actors: BTreeMap::new(), ready: Arc::default(), random }
    }

    pub fn add(&mut self, actor: impl Future<Output = ()> + 'static) {
        let number = self.actors.len();
        self.actors.insert(number, Box::pin(actor));
        self.ready.numbers.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
    }

    /// Runs until all have ended, or `after`, which is called after every poll, says that it is enough.
    pub async fn run(mut self, mut after: impl FnMut() -> ControlFlow<()>) {
        poll_fn(|cx| {
            *self.ready.parent.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
            while let Some(number) = self.draw() {
                self.poll(number);
                if after().is_break() || self.actors.is_empty() {
                    return Poll::Ready(());
                }
                if self.random.below(3) == 0 {
                    // The server's turn.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
            Poll::Pending
        })
        .await;
    }

    /// One of those that can go on.
    fn draw(&self) -> Option<usize> {
        let mut numbers = self.ready.numbers.lock().unwrap_or_else(PoisonError::into_inner);
        let nth = self.random.below(numbers.len() as u64) as usize;
        let number = numbers.iter().nth(nth).copied()?;
        numbers.remove(&number);
        Some(number)
    }

    fn poll(&mut self, number: usize) {
        let Some(actor) = self.actors.get_mut(&number) else { return };
        let waker = Waker::from(Arc::new(Bell { number, ready: self.ready.clone() }));
        if actor.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.actors.remove(&number);
        }
    }
}
