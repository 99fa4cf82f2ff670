//! Where work runs that costs CPU: what nobody waits for on one thread of this process, behind everything else; what somebody
//! waits for on a few, like everything else.
//!
//! The threads are started with the first work, and stay. In a simulation the work runs as a task of its runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::oneshot;

use crate::blocking;

type Work = Box<dyn FnOnce() + Send>;

/// What the scheduler of Linux takes off its part when others want to run: a tenth of an ordinary thread's is left.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Work that waits for its turn. Each who asks does so when it has the last, so that there is less than one for each watch
/// cache. What is beyond is not done.
const WAITING_MAX: usize = 1 << 12;

/// Threads for work that somebody waits for: more would keep more compressors, and everything else from two cores.
const PROMPT_THREADS: usize = 2;

/// The result of work that was asked for.
#[derive(Debug)]
pub struct Background<T>(oneshot::Receiver<T>);

impl<T> Background<T> {
    /// Waits for the result; `None` when the work has panicked or was not begun. Cancel-safe: what was received is handed out by the call that
    /// returns.
    pub async fn finished(&mut self) -> Option<T> {
        (&mut self.0).await.ok()
    }

    /// The result, if it is there.
    pub fn try_finished(&mut self) -> Result<Option<T>, NotYet> {
        match self.0.try_recv() {
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
    static QUEUE: OnceLock<Mutex<SyncSender<Work>>> = OnceLock::new();
    ask(&QUEUE, ("background", 1, give_way), work)
}

/// Runs `work`, which somebody waits for, at ordinary priority, once one of a few threads is free.
pub fn promptly<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Background<T> {
    static QUEUE: OnceLock<Mutex<SyncSender<Work>>> = OnceLock::new();
    ask(&QUEUE, ("promptly", PROMPT_THREADS, || ()), work)
}

/// - `threads`: their name, how many they are, and what each does first.
fn ask<T: Send + 'static>(
    queue: &'static OnceLock<Mutex<SyncSender<Work>>>,
    threads: (&str, usize, fn()),
    work: impl FnOnce() -> T + Send + 'static,
) -> Background<T> {
    let (send, receive) = oneshot::channel();
    let work = move || {
        // Who asked may be gone.
        let _gone = send.send(work()).is_err();
    };
    match blocking::as_tasks() {
        true => drop(tokio::task::spawn(async move { work() })),
        false => {
            let queue = queue.get_or_init(|| started(threads)).lock().unwrap_or_else(PoisonError::into_inner);
            // Dropped when too much is waiting, or no thread could be started; who asked sees that.
            let _dropped = queue.try_send(Box::new(work)).is_err();
        }
    }
    Background(receive)
}

fn started((name, threads, first): (&str, usize, fn())) -> Mutex<SyncSender<Work>> {
    let (send, receive) = sync_channel::<Work>(WAITING_MAX);
    let receive = Arc::new(Mutex::new(receive));
    for _ in 0..threads {
        let receive = receive.clone();
        let run = move || {
            first();
            while let Some(work) = next(&receive) {
                // A panic is reported by its hook; whoever asked sees that there is no result.
                drop(catch_unwind(AssertUnwindSafe(work)));
            }
        };
        if let Err(error) = std::thread::Builder::new().name(name.into()).spawn(run) {
            tracing::error!(%error, name, "there is no thread for work");
        }
    }
    Mutex::new(send)
}

/// The next work; whoever waits for it has the others wait.
fn next(receive: &Mutex<Receiver<Work>>) -> Option<Work> {
    receive.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// On Linux the priority is the calling thread's own.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "work in the background runs at ordinary priority");
    }
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

    #[tokio::test]
    async fn in_a_simulation_it_is_a_task() {
        let _alone = BlockingAsTasks::on_this_thread();
        let here = std::thread::current().id();
        let mut work = background(move || std::thread::current().id() == here);
        assert_eq!(work.try_finished(), Err(NotYet));
        assert_eq!(work.finished().await, Some(true));
    }
}
