//! Where work runs that costs CPU: what nobody waits for on one thread of this process, behind everything
//! else; what somebody waits for on a few, like everything else; what a client waits for and takes long on a
//! few that let the short go first.
//!
//! The threads are started with the first work, and stay. In a simulation the work runs as a task of its
//! runtime.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::blocking;

type Work = Box<dyn FnOnce() + Send>;

/// Where work waits for its turn; empty once it was begun, or nobody wants its result.
type Slot = Arc<Mutex<Option<Work>>>;

/// What the scheduler of Linux takes off a thread's part when others want to run: a tenth of an ordinary
/// one's is left to work in the background, a third to work apart.
const BACKGROUND_NICENESS: i32 = 10;
pub(crate) const APART_NICENESS: i32 = 5;

/// Work that waits for its turn. A watch cache asks when it has the last, so that there is less than one for
/// each; of work for clients there is one for each answer. What is beyond is not done; what somebody waits
/// for, by who asks.
const WAITING_MAX: usize = 1 << 12;

/// Threads for work that somebody waits for: more would keep more compressors, and everything else from two
/// cores.
const PROMPT_THREADS: usize = 2;
pub(crate) const APART_THREADS: usize = 2;

/// The result of work that was asked for. Who drops it wants it no more: work that was not begun is not, and
/// what it holds goes at once.
#[derive(Debug)]
pub struct Background<T> {
    result: oneshot::Receiver<T>,
    _work: Waiting,
}

/// Work that is taken out of its slot when this goes.
struct Waiting(Slot);

/// The result; `None` when the work has panicked or was not begun.
impl<T> Future for Background<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.result).poll(cx).map(Result::ok)
    }
}

impl<T> Background<T> {
    /// Waits for the result, as the future does. Cancel-safe: what was received is handed out by the call
    /// that returns.
    pub async fn finished(&mut self) -> Option<T> {
        self.await
    }

    /// The result, if it is there.
    pub fn try_finished(&mut self) -> Result<Option<T>, NotYet> {
        match self.result.try_recv() {
            Ok(result) => Ok(Some(result)),
            Err(oneshot::error::TryRecvError::Empty) => Err(NotYet),
            Err(oneshot::error::TryRecvError::Closed) => Ok(None),
        }
    }
}

/// The work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotYet;

/// Runs `work` after what was asked for before.
pub fn background<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Background<T> {
    static QUEUE: OnceLock<Mutex<SyncSender<Slot>>> = OnceLock::new();
    ask(&QUEUE, Threads { name: "background", count: 1, niceness: BACKGROUND_NICENESS }, |_beyond| (), work)
}

/// Runs `work`, which somebody waits for, at ordinary priority, once one of a few threads is free; at once
/// where too much is waiting for that.
pub fn promptly<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Background<T> {
    static QUEUE: OnceLock<Mutex<SyncSender<Slot>>> = OnceLock::new();
    ask(&QUEUE, Threads { name: "promptly", count: PROMPT_THREADS, niceness: 0 }, begin, work)
}

/// Runs `work`, which a client waits for and takes long, after what was asked for before, while what is short
/// goes first; at once where too much is waiting for that.
pub fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Background<T> {
    static QUEUE: OnceLock<Mutex<SyncSender<Slot>>> = OnceLock::new();
    ask(&QUEUE, Threads { name: "apart", count: APART_THREADS, niceness: APART_NICENESS }, begin, work)
}

#[derive(Clone, Copy)]
struct Threads {
    name: &'static str,
    count: usize,
    niceness: i32,
}

/// - `beyond`: what is done with work for which there is no place, or no thread.
fn ask<T: Send + 'static>(
    queue: &'static OnceLock<Mutex<SyncSender<Slot>>>,
    threads: Threads,
    beyond: fn(&Slot),
    work: impl FnOnce() -> T + Send + 'static,
) -> Background<T> {
    let (send, result) = oneshot::channel();
    let work = move || {
        // The task that asked may be gone.
        let _gone = send.send(work()).is_err();
    };
    let slot: Slot = Arc::new(Mutex::new(Some(Box::new(work))));
    let waiting = Waiting(slot.clone());
    match blocking::as_tasks() {
        true => drop(tokio::task::spawn(async move { begin(&slot) })),
        false => {
            let queue = queue.get_or_init(|| started(threads)).lock().unwrap_or_else(PoisonError::into_inner);
            let sent = queue.try_send(slot);
            drop(queue);
            if let Err(TrySendError::Full(slot) | TrySendError::Disconnected(slot)) = sent {
                beyond(&slot);
                drop(take(&slot));
            }
        }
    }
    Background { result, _work: waiting }
}

fn take(slot: &Slot) -> Option<Work> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Does what is still wanted. A panic is reported by its hook; whoever asked sees that there is no result.
fn begin(slot: &Slot) {
    if let Some(work) = take(slot) {
        drop(catch_unwind(AssertUnwindSafe(work)));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(take(&self.0));
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

fn started(threads: Threads) -> Mutex<SyncSender<Slot>> {
    let Threads { name, count, niceness } = threads;
    let (send, receive) = sync_channel::<Slot>(WAITING_MAX);
    let receive = Arc::new(Mutex::new(receive));
    for _ in 0..count {
        let receive = receive.clone();
        let run = move || {
            give_way(niceness);
            while let Some(slot) = next(&receive) {
                begin(&slot);
            }
        };
        if let Err(error) = std::thread::Builder::new().name(name.into()).spawn(run) {
            tracing::error!(%error, name, "there is no thread for work");
        }
    }
    Mutex::new(send)
}

/// The next work; whoever waits for it has the others wait.
fn next(receive: &Mutex<Receiver<Slot>>) -> Option<Slot> {
    receive.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// On Linux the priority is the calling thread's own.
pub(crate) fn give_way(niceness: i32) {
    #[cfg(target_os = "linux")]
    {
        let own = rustix::process::getpriority_process(None).unwrap_or(0);
        if own < niceness
            && let Err(error) = rustix::process::setpriority_process(None, niceness)
        {
            tracing::debug!(%error, niceness, "a thread for work runs at ordinary priority");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ordinary = niceness;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockingAsTasks;

    #[tokio::test]
    async fn work_is_done_in_turn_and_a_panic_ends_only_itself() {
        let mut first = background(|| std::thread::current().name().map(String::from));
        let mut second = background(|| -> u32 { panic!("as it should") });
        let mut third = background(|| 3);
        assert_eq!(third.finished().await, Some(3));
        assert_eq!(second.try_finished(), Ok(None));
        assert_eq!(first.try_finished(), Ok(Some(Some("background".to_string()))));
    }

    #[tokio::test]
    async fn prompt_work_is_done_beside_other_prompt_work() {
        let (meet, met) = sync_channel(1);
        // The first waits for the second.
        let mut first = promptly(move || met.recv().is_ok());
        let mut second = promptly(move || meet.send(()).is_ok());
        assert_eq!((second.finished().await, first.finished().await), (Some(true), Some(true)));
        assert_eq!(promptly(|| -> u32 { panic!("as it should") }).finished().await, None);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn work_that_takes_long_lets_the_short_go_first() {
        let niceness = || rustix::process::getpriority_process(None).expect("a number");
        let own = niceness();
        assert_eq!(promptly(niceness).finished().await, Some(own));
        assert_eq!(apart(niceness).finished().await, Some(own.max(APART_NICENESS)));
    }

    #[tokio::test]
    async fn what_nobody_wants_any_more_is_let_go_of_before_its_turn() {
        let (begin, begun) = sync_channel::<()>(0);
        let mut first = background(move || begun.recv().is_ok());
        let (held, holds) = (Arc::new(()), |held: &Arc<()>| Arc::strong_count(held) > 1);
        let behind = held.clone();
        let second = background(move || drop(behind));
        assert!(holds(&held));
        drop(second);
        assert!(!holds(&held));
        begin.send(()).expect("it waits");
        assert_eq!(first.finished().await, Some(true));
        assert_eq!(background(|| 3).finished().await, Some(3), "the next is done");
    }

    #[test]
    fn work_for_which_there_is_no_place_is_done_by_who_asks_for_it_promptly() {
        let place = |beyond| {
            // Nobody takes anything out of it.
            let (send, receive) = sync_channel(0);
            let queue: &'static OnceLock<Mutex<SyncSender<Slot>>> = Box::leak(Box::default());
            queue.set(Mutex::new(send)).expect("empty");
            let mut asked = ask(queue, Threads { name: "none", count: 0, niceness: 0 }, beyond, || {
                std::thread::current().id()
            });
            drop(receive);
            asked.try_finished()
        };
        assert_eq!(place(begin), Ok(Some(std::thread::current().id())));
        assert_eq!(place(|_slot| ()), Ok(None));
    }

    #[tokio::test]
    async fn in_a_simulation_it_is_a_task() {
        let _alone = BlockingAsTasks::on_this_thread();
        let here = std::thread::current().id();
        let mut work = background(move || std::thread::current().id() == here);
        assert_eq!(work.try_finished(), Err(NotYet));
        assert_eq!(work.finished().await, Some(true));
    }
}
