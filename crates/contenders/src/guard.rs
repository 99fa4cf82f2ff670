//! Reads the memory of processes that come and go, every 100 ms, and ends those beyond a bound that nothing
//! else holds them to.
//!
//! In: process ids, as they are started. Out: for each place what is resident now and was at most. The thread
//! ends when the [`Guard`] is dropped. Never: a figure of a process that is not ours.

use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::{Error, proc};

const EVERY: Duration = Duration::from_millis(100);

/// A process that is watched, and its memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// Who runs there now.
    pub pid: Option<u32>,
    /// Where it is ended, if that is for the guard to do.
    pub ends_at: Option<u64>,
    /// Bytes.
    pub now: u64,
    /// What who runs there had when it was looked at last, also once it is gone.
    pub seen: u64,
    /// At most, since [`Guard::begin`].
    pub peak: u64,
    /// What there was then.
    pub at_begin: u64,
    /// At most, ever.
    pub most: u64,
}

/// See the module's doc.
#[derive(Debug)]
pub struct Guard {
    places: Arc<Mutex<Vec<Place>>>,
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    /// Watches so many places, of which nobody is at any yet.
    pub fn new(places: usize) -> Result<Guard, Error> {
        let places = Arc::new(Mutex::new(vec![Place::default(); places]));
        let (stop, stopped) = sync_channel(1);
        let seen = places.clone();
        let look = move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                for place in seen.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
                    place.look();
                }
            }
        };
        let thread = Builder::new()
            .name("guard".into())
            .spawn(look)
            .map_err(|e| Error::Proc(format!("cannot start a thread: {e}")))?;
        Ok(Guard { places, stop: Some(stop), thread: Some(thread) })
    }

    /// From now on it is `pid` that is watched at `place`; nobody with `None`.
    pub fn set(&self, place: usize, pid: Option<u32>, ends_at: Option<u64>) {
        self.with(|places| places[place] = Place { pid, ends_at, seen: 0, ..places[place] });
    }

    /// Begins the peaks anew.
    pub fn begin(&self) {
        self.with(|places| {
            for place in places {
                place.look();
                (place.at_begin, place.peak) = (place.now, place.now);
            }
        });
    }

    pub fn places(&self) -> Vec<Place> {
        self.with(|places| places.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Vec<Place>) -> T) -> T {
        act(&mut self.places.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Place {
    fn look(&mut self) {
        // Who is ended between two looks has had what was seen last.
        let bytes = self.pid.and_then(|pid| proc::resident(pid).ok());
        (self.now, self.seen) = (bytes.unwrap_or(0), bytes.unwrap_or(self.seen));
        (self.peak, self.most) = (self.peak.max(self.now), self.most.max(self.now));
        if let (Some(pid), Some(bound)) = (self.pid, self.ends_at)
            && self.now > bound
        {
            let _ = Command::new("sh").args(["-c", "kill -KILL \"$0\"", &pid.to_string()]).status();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_has_is_read_and_its_peak_begins_anew() {
        let guard = Guard::new(2).unwrap();
        guard.set(0, Some(std::process::id()), None);
        guard.begin();
        let places = guard.places();
        assert!(places[0].now > 1 << 20 && places[0].at_begin == places[0].now, "{places:?}");
        assert_eq!((places[1].now, places[1].most), (0, 0));
        guard.set(0, None, None);
        guard.begin();
        let places = guard.places();
        assert!((places[0].now, places[0].peak) == (0, 0) && places[0].most > 1 << 20, "{places:?}");
    }
}
