//! How much a server grows, and what CPU it takes, while something is done to it: read every 10 ms by a
//! thread of its own, and the kernel's own mark of the most there was.
//!
//! In: processes. Out: [`Grown`]. Never: an error when a process dies: what it was at last is what there is.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use forebay_contenders::server::Instance;
use forebay_contenders::{Error, proc};

const EVERY: Duration = Duration::from_millis(10);

/// A thread that reads until it is dropped or finished.
#[derive(Debug)]
pub struct Growth {
    stop: SyncSender<()>,
    thread: JoinHandle<Grown>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Grown {
    /// Bytes that were resident before.
    pub before: u64,
    /// The most that there were.
    pub peak: u64,
    pub cpu: Duration,
}

impl Growth {
    pub fn start(server: &Instance) -> Result<Growth, Error> {
        let pids: Vec<u32> = server.processes.iter().map(|process| process.pid()).collect();
        // Where the kernel's mark cannot be set back the readings have to do.
        let is_marked = pids.iter().all(|pid| proc::forget_peak(*pid));
        let before = resident(server)?;
        let cpu = cpu(&pids).ok_or_else(|| Error::Proc("no CPU time".into()))?;
        let (stop, stopped) = sync_channel::<()>(1);
        let thread = Builder::new()
            .name("growth".into())
            .spawn(move || {
                let mut grown = Grown { before, peak: before, cpu: Duration::ZERO };
                loop {
                    let is_over = !matches!(stopped.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
                    let read = if is_marked { proc::resident_peak } else { proc::resident };
                    let now: Option<u64> = pids.iter().map(|pid| read(*pid).ok()).sum();
                    grown.peak = grown.peak.max(now.unwrap_or(0));
                    if let Some(now) = self::cpu(&pids) {
                        grown.cpu = now.saturating_sub(cpu);
                    }
                    if is_over {
                        return grown;
                    }
                }
            })
            .map_err(|e| Error::Proc(format!("cannot start a thread: {e}")))?;
        Ok(Growth { stop, thread })
    }

    pub fn finish(self) -> Result<Grown, Error> {
        drop(self.stop);
        self.thread.join().map_err(|_| Error::Proc("the thread that reads memory panicked".into()))
    }
}

/// Bytes that all processes of `server` hold now.
pub fn resident(server: &Instance) -> Result<u64, Error> {
    server.processes.iter().map(|process| proc::resident(process.pid())).sum()
}

fn cpu(pids: &[u32]) -> Option<Duration> {
    pids.iter().map(|pid| proc::cpu(*pid).ok()).sum()
}

impl Grown {
    pub fn bytes(&self) -> u64 {
        self.peak.saturating_sub(self.before)
    }
}
