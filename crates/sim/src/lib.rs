//! A whole server in one thread and one seed: the real engine on a simulated disk, the real caches, verbs and
//! bodies, on a clock that goes as fast as nobody waits; clients that write, list, watch, dawdle and vanish;
//! and faults. What every client is told is held against a model that replays the store's history.
//!
//! In: a seed. Out: what happened, or the first thing that was wrong. The same seed gives the same run.

mod actors;
mod chaos;
mod client;
mod follower;
mod history;
mod life;
mod network;
mod prober;
mod reader;
mod resources;
mod seen;
mod store;
mod trace;
mod watcher;
mod world;
mod writer;
#[cfg(test)]
mod zipped;

use std::cell::RefCell;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use forebay_rt::{BlockingAsTasks, Random};

pub use seen::Seen;

use actors::Actors;
use follower::Follower;
use resources::Selection;
use world::World;

/// Seeds from 0 on that every run of CI runs.
pub const CI_SEEDS: u64 = 120;

const WRITERS: u64 = 3;
const WRITES: usize = 50;
const WATCHERS: usize = 8;
const READERS: usize = 2;
/// Polls of actors in one run: a hundred times what one takes. A run that needs more has gone wrong.
const POLLS_MAX: u64 = 2_000_000;

/// What happened in a run in which nothing was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    pub seen: Seen,
    /// The same for the same seed.
    pub trace_hash: u64,
    pub trace_lines: u64,
    /// Simulated time.
    pub ms: u64,
}

/// The first thing that was wrong in a run.
#[derive(Clone, Debug)]
pub struct Failure {
    pub seed: u64,
    pub what: String,
    /// The last lines of the trace.
    pub trace: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { seed, what, trace } = self;
        write!(f, "seed {seed}: {what}\nagain: cargo xtask sim --from {seed} --seeds 1 --print\n{trace}")
    }
}

/// Runs one seed.
///
/// - `print`: whether the trace goes to stderr.
///
/// # Errors
/// The first thing that was wrong.
pub fn run(seed: u64, print: bool) -> Result<Passed, Failure> {
    let _alone = BlockingAsTasks::on_this_thread();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let failed = |what: String, trace: String| Failure { seed, what, trace };
    let runtime = runtime.map_err(|error| failed(format!("no runtime: {error}"), String::new()))?;
    let _in = runtime.enter();
    let world = Rc::new(World::new(seed, print));
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| runtime.block_on(live(&world)))) {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
        world.fail("panic", format_args!("{said}"));
    }
    let (trace_hash, trace_lines) = world.traced();
    match world.failure() {
        Some(what) => Err(failed(what, world.trace_end())),
        None => {
            let seen = world.seen.borrow().clone();
            Ok(Passed { seen, trace_hash, trace_lines, ms: world.now_ms() })
        }
    }
}

async fn live(world: &Rc<World>) {
    let mut actors = Actors::new(world.fork());
    let draw: Random = world.fork();
    let followers: Vec<_> =
        (0..WATCHERS).map(|_| Rc::new(RefCell::new(Follower::new(Selection::draw(&draw))))).collect();
    world.writing.set(WRITERS);
    actors.add(chaos::run_store(world.clone()));
    actors.add(chaos::direct(world.clone(), followers.clone()));
    for number in 0..WRITERS {
        actors.add(writer::write(world.clone(), format!("writer {number}"), WRITES));
    }
    for number in 0..READERS {
        actors.add(reader::read(world.clone(), format!("reader {number}")));
    }
    actors.add(prober::probe(world.clone(), "prober".to_string()));
    for (number, follower) in followers.into_iter().enumerate() {
        actors.add(watcher::follow(world.clone(), format!("watcher {number}"), follower));
    }
    let crash = world.fork();
    actors
        .run(|| {
            world.polls.set(world.polls.get() + 1);
            if world.crash_at.get().is_some_and(|at| world.polls.get() >= at) {
                world.crash_at.set(None);
                world.crash(chaos::draw_crash(&crash));
            }
            if world.polls.get() > POLLS_MAX {
                world.fail("run", format_args!("it does not end"));
            }
            if world.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .await;
}
