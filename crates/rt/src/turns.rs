//! Turns of tasks that kept their thread for too long, counted by the task's name.
//!
//! In: each turn of a task, its begin and its end. Out: how many used more CPU than others can be left
//! waiting for, and the most that one used. Never: changes what a task does, or reads the machine's clock in
//! a simulation.
//!
//! A turn costs two readings of a clock that takes no system call (54 to 76 ns both); one that takes one (550
//! ns), what the thread has used, is read once a millisecond and at the end of what looks long. What a turn
//! used is so known to a millisecond, and said to be no more than it was. A thread that had to wait for a
//! processor is not taken for one that works.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::blocking;

/// CPU that a turn may use before it counts as long.
pub const TURN_CPU_MAX: Duration = Duration::from_millis(10);

/// How old what is known of the thread's CPU may be when a turn begins.
const BASE_AGE_MAX: Duration = Duration::from_millis(1);

/// What is told of the long turns of the tasks with one name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongTurns {
    pub count: u64,
    /// CPU of the longest.
    pub longest: Duration,
}

/// A turn that has begun; `None` where time is not the machine's.
pub(crate) struct Turn(Option<Instant>);

#[derive(Clone, Copy)]
struct Base {
    at: Instant,
    cpu: Duration,
}

thread_local! {
    static BASE: Cell<Option<Base>> = const { Cell::new(None) };
}

// name -> its long turns; names are of the code, a few dozen. Locked for each long turn, and to be read.
static LONG: Mutex<BTreeMap<&'static str, LongTurns>> = Mutex::new(BTreeMap::new());

/// The long turns of all tasks of this process, by name.
pub fn long_turns() -> Vec<(&'static str, LongTurns)> {
    long().iter().map(|(task, turns)| (*task, *turns)).collect()
}

impl Turn {
    #[allow(
        clippy::disallowed_methods,
        reason = "what it is about is the machine's time, whatever a test's clock shows"
    )]
    pub fn begin() -> Turn {
        if blocking::as_tasks() {
            return Turn(None);
        }
        let now = Instant::now();
        if BASE.get().is_none_or(|base| now.duration_since(base.at) >= BASE_AGE_MAX) {
            BASE.set(Some(Base { at: now, cpu: thread_cpu() }));
        }
        Turn(Some(now))
    }

    pub fn end(self, task: &'static str) {
        let Some(began) = self.0 else { return };
        if began.elapsed() > TURN_CPU_MAX {
            look(task, began);
        }
    }
}

/// Whether it worked all that time.
#[cold]
fn look(task: &'static str, began: Instant) {
    let Some(base) = BASE.take() else { return };
    let before = began.saturating_duration_since(base.at);
    let used = thread_cpu().saturating_sub(base.cpu).saturating_sub(before);
    if used > TURN_CPU_MAX {
        let mut long = long();
        let turns = long.entry(task).or_default();
        turns.count += 1;
        turns.longest = turns.longest.max(used);
        drop(long);
        tracing::debug!(task, ms = used.as_millis() as u64, "a task kept its thread");
    }
}

/// CPU that this thread has used; `None` where time is not the machine's. It takes 0.5 us to read.
pub fn used_cpu() -> Option<Duration> {
    (!blocking::as_tasks()).then(thread_cpu)
}

/// CPU that this thread has used.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn long() -> MutexGuard<'static, BTreeMap<&'static str, LongTurns>> {
    LONG.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::{BlockingAsTasks, Tasks};

    fn work_for(span: Duration) {
        let began = thread_cpu();
        while thread_cpu() - began < span {}
    }

    fn of(task: &str) -> Option<LongTurns> {
        long_turns().into_iter().find_map(|(name, turns)| (name == task).then_some(turns))
    }

    #[tokio::test]
    async fn a_turn_that_keeps_its_thread_is_counted_and_so_is_the_longest() {
        let (tasks, name) = (Tasks::new(), "a test that keeps its thread");
        for longer in [2, 6, 3] {
            tasks.spawn_graceful(name, async move { work_for(TURN_CPU_MAX + longer * BASE_AGE_MAX) });
        }
        assert!(tasks.stop(Duration::from_secs(60)).await);
        let turns = of(name).expect("counted");
        assert_eq!(turns.count, 3);
        assert!(turns.longest >= TURN_CPU_MAX + 5 * BASE_AGE_MAX, "{turns:?}");
    }

    #[tokio::test]
    async fn many_short_turns_and_one_that_waits_are_not_counted() {
        let (tasks, name) = (Tasks::new(), "a test that gives way");
        tasks.spawn_graceful(name, async {
            for _ in 0..8 {
                work_for(TURN_CPU_MAX / 4);
                tokio::task::yield_now().await;
            }
            // Its thread waits for another one, which works.
            let (done, waits) = sync_channel(1);
            let other = std::thread::Builder::new().spawn(move || {
                work_for(2 * TURN_CPU_MAX);
                done.send(())
            });
            waits.recv().expect("it is done");
            other.expect("a thread").join().expect("no panic").expect("heard");
        });
        assert!(tasks.stop(Duration::from_secs(60)).await);
        assert_eq!(of(name), None);
    }

    #[tokio::test]
    async fn in_a_simulation_nothing_is_measured() {
        let _alone = BlockingAsTasks::on_this_thread();
        let (tasks, name) = (Tasks::new(), "a test in a simulation");
        tasks.spawn_graceful(name, async { work_for(2 * TURN_CPU_MAX) });
        assert!(tasks.stop(Duration::from_secs(60)).await);
        assert_eq!(of(name), None);
    }
}
