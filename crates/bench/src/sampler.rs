//! Reads the memory of a server's processes every 100 ms, from a thread of its own: clients that keep the
//! runtime busy do not delay it.
//!
//! In: process ids, and the phases as they begin. Out: a [`MemorySeries`]. The thread owns the readings until
//! it is joined, and ends when the [`Sampler`] is dropped. Never: a reading made up for one that failed.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::series::{MemorySeries, Phase, Sample};
use crate::server::Instance;
use crate::{Error, proc};

/// Between two readings.
pub const EVERY: Duration = Duration::from_millis(100);

/// A thread that reads. Starts in [`Phase::Load`].
#[derive(Debug)]
pub struct Sampler {
    phases: SyncSender<Phase>,
    thread: JoinHandle<Result<MemorySeries, Error>>,
}

impl Sampler {
    /// Starts reading the processes of `server`.
    pub fn start(server: &Instance) -> Result<Sampler, Error> {
        let processes = server.processes.iter().map(|process| (process.name, process.pid())).collect();
        Sampler::of(processes)
    }

    fn of(processes: Vec<(&'static str, u32)>) -> Result<Sampler, Error> {
        // Room for every phase there is: entering one never waits for the thread.
        let (phases, entered) = sync_channel(Phase::ALL.len());
        let thread = Builder::new()
            .name("sampler".into())
            .spawn(move || read_all(&processes, &entered))
            .map_err(|e| Error::Proc(format!("cannot start a thread: {e}")))?;
        Ok(Sampler { phases, thread })
    }

    /// From now on it is `phase`; a reading is taken at once, which ends the phase before and begins this
    /// one.
    pub fn enter(&self, phase: Phase) {
        // The thread is gone when a reading failed; [`Sampler::finish`] says why.
        let _ = self.phases.send(phase);
    }

    /// Takes a last reading and hands over all.
    ///
    /// # Errors
    /// [`Error::Proc`] when a process could not be read, which is so once it has ended.
    pub fn finish(self) -> Result<MemorySeries, Error> {
        drop(self.phases);
        self.thread.join().unwrap_or_else(|_| Err(Error::Proc("the sampler panicked".into())))
    }
}

fn read_all(processes: &[(&'static str, u32)], entered: &Receiver<Phase>) -> Result<MemorySeries, Error> {
    let start = Instant::now();
    let mut series =
        MemorySeries { processes: processes.iter().map(|(name, _)| *name).collect(), samples: Vec::new() };
    let read = |phase| -> Result<Sample, Error> {
        let at = start.elapsed();
        let resident = processes.iter().map(|(_, pid)| proc::resident(*pid)).collect::<Result<_, _>>()?;
        Ok(Sample { at, phase, resident })
    };
    let mut phase = Phase::Load;
    let mut due = start;
    loop {
        series.samples.push(read(phase)?);
        // What came late is not made up for by readings without a pause.
        due = (due + EVERY).max(Instant::now());
        match entered.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(next) => {
                let end = read(phase)?;
                series.samples.push(end.clone());
                series.samples.push(Sample { phase: next, ..end });
                phase = next;
            }
            Err(RecvTimeoutError::Disconnected) => {
                series.samples.push(read(phase)?);
                return Ok(series);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_a_reading_however_short_and_neighbours_share_one() {
        let sampler = Sampler::of(vec![("this", std::process::id())]).unwrap();
        for phase in [Phase::Quiet, Phase::Storm, Phase::After] {
            sampler.enter(phase);
        }
        let series = sampler.finish().unwrap();
        for pair in Phase::ALL.windows(2) {
            let (_, end) = series.span(pair[0]).unwrap();
            let (begin, _) = series.span(pair[1]).unwrap();
            assert_eq!(end, begin, "{pair:?}");
        }
        assert!(series.samples.is_sorted_by_key(|sample| (sample.at, sample.phase)));
        assert!(series.samples.iter().all(|sample| sample.total() > 1 << 20));
    }

    #[test]
    fn a_process_that_is_gone_is_an_error_and_not_a_zero() {
        let sampler = Sampler::of(vec![("gone", u32::MAX)]).unwrap();
        sampler.enter(Phase::Quiet);
        assert!(matches!(sampler.finish(), Err(Error::Proc(_))));
    }
}
