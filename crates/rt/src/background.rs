//! Where work runs that nobody waits for, but that costs CPU: one thread of this process, behind everything else.
//!
//! The thread is started with the first work, at a low priority, and stays. In a simulation the work runs as a task of its
//! runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use tokio::sync::oneshot;

use crate::blocking;

type Work = Box<dyn FnOnce() + Send>;

/// What the scheduler of Linux takes off its part when others want to run: a tenth of an ordinary thread's is left.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Work that waits for its turn. Each who asks does so when it has the last, so that there is less than one for each watch
/// cache. What is beyond is not done.
const WAITING_MAX: usize = 1 << 12;

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
    let (send, receive) = oneshot::channel();
    let work = move || {
        // Who asked may be gone.
        let _gone = send.send(work()).is_err();
    };
    match blocking::as_tasks() {
        true => drop(tokio::task::spawn(async move { work() })),
        false => {
            let queue = queue().lock().unwrap_or_else(PoisonError::into_inner);
            // Dropped when too much is waiting, or the thread could not be started; who asked sees that.
            let _dropped = queue.try_send(Box::new(work)).is_err();
        }
    }
    Background(receive)
}

fn queue() -> &'static Mutex<SyncSender<Work>> {
    static QUEUE: OnceLock<Mutex<SyncSender<Work>>> = OnceLock::new();
    QUEUE.get_or_init(|| {
        let (send, receive) = sync_channel::<Work>(WAITING_MAX);
        let run = move || {
            give_way();
            // A panic is reported by its hook; whoever asked sees that there is no result.
            receive.into_iter().for_each(|work| drop(catch_unwind(AssertUnwindSafe(work))));
        };
        if let Err(error) = std::thread::Builder::new().name("background".into()).spawn(run) {
            tracing::error!(%error, "there is no thread for work in the background");
        }
        Mutex::new(send)
    })
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
    async fn in_a_simulation_it_is_a_task() {
        let _alone = BlockingAsTasks::on_this_thread();
        let here = std::thread::current().id();
        let mut work = background(move || std::thread::current().id() == here);
        assert_eq!(work.try_finished(), Err(NotYet));
        assert_eq!(work.finished().await, Some(true));
    }
}
