//! The log: lines on their way to a file, or to standard output.
//!
//! In: lines. Out: for each, once it is there or lost, which; everything is written in the order in which it
//! came, and many at once where many wait. Never: writes on a thread that answers requests, or waits for
//! one.
//!
//! Owner of what is written to: the thread that writes, while there is one; else the queue. One is asked for
//! when the first line comes, and leaves when there is none.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use forebay_room::Held;
use forebay_rt::Clock;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::counts::{AuditCounts, AuditPlugin};
use crate::limits::{LOG_QUEUE_BYTES_MAX, LOG_WRITE_BYTES};
use crate::line::Line;
use crate::log_file::LogFile;

/// See the module's doc. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Log(Arc<Inner>);

struct Inner {
    queue: Mutex<Queue>,
    counts: Arc<AuditCounts>,
    clock: Clock,
}

/// Where lines go.
pub(crate) enum Sink {
    File(Box<LogFile>),
    StandardOutput,
}

#[derive(Default)]
struct Queue {
    // oldest first; <= LOG_QUEUE_BYTES_MAX
    lines: VecDeque<Queued>,
    bytes: usize,
    /// With the thread that writes, while there is one.
    sink: Option<Sink>,
}

struct Queued {
    bytes: Bytes,
    _held: Option<Held>,
    kept: Option<oneshot::Sender<bool>>,
}

impl Log {
    pub fn new(sink: Sink, counts: Arc<AuditCounts>, clock: Clock) -> Log {
        let queue = Mutex::new(Queue { sink: Some(sink), ..Queue::default() });
        Log(Arc::new(Inner { queue, counts, clock }))
    }

    /// Takes a line. Nobody is told what became of it, which those behind it tell as well: they are written
    /// later.
    pub fn put(&self, line: Line) {
        self.queue(line, None);
    }

    /// Takes a line, and tells whether it is there.
    pub fn put_and_tell(&self, line: Line) -> oneshot::Receiver<bool> {
        let (tell, told) = oneshot::channel();
        self.queue(line, Some(tell));
        told
    }

    /// Waits until everything that came before is written, or lost. Cancel-safe.
    pub async fn written(&self) {
        let nothing = Line { bytes: Bytes::new(), held: None };
        let _written = self.put_and_tell(nothing).await;
    }

    fn queue(&self, Line { bytes, held }: Line, kept: Option<oneshot::Sender<bool>>) {
        let mut queue = self.0.queue();
        if queue.bytes + bytes.len() > LOG_QUEUE_BYTES_MAX {
            drop(queue);
            self.0.counts.settled(AuditPlugin::Log, 1);
            return self.0.counts.lost(AuditPlugin::Log, 1, "too much waits for the file", &self.0.clock);
        }
        queue.bytes += bytes.len();
        queue.lines.push_back(Queued { bytes, _held: held, kept });
        let Some(mut sink) = queue.sink.take() else { return };
        drop(queue);
        let inner = self.0.clone();
        let write = move || {
            while let Some(next) = inner.write_some(sink) {
                sink = next;
            }
        };
        match Handle::try_current() {
            // It ends by itself.
            Ok(_) => drop(forebay_rt::blocking(write)),
            // The server is gone, and nobody waits any more.
            Err(_) => write(),
        }
    }
}

impl Inner {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what waits; gives the sink back to whoever calls, or to the queue when there is nothing.
    fn write_some(&self, mut sink: Sink) -> Option<Sink> {
        let mut queue = self.queue();
        let (mut some, mut bytes) = (Vec::new(), 0);
        while bytes < LOG_WRITE_BYTES
            && let Some(line) = queue.lines.pop_front()
        {
            bytes += line.bytes.len();
            some.push(line);
        }
        if some.is_empty() {
            queue.sink = Some(sink);
            return None;
        }
        queue.bytes -= bytes;
        drop(queue);
        // What only asks when it is its turn.
        let lines: Vec<Bytes> =
            some.iter().map(|line| line.bytes.clone()).filter(|line| !line.is_empty()).collect();
        let (kept, why) = sink.write(&lines);
        self.counts.settled(AuditPlugin::Log, lines.len());
        let lost = kept.iter().filter(|kept| !**kept).count();
        if lost > 0 {
            let why = why.map_or_else(String::new, |why| why.to_string());
            self.counts.lost(AuditPlugin::Log, lost, &why, &self.clock);
        }
        let mut kept = kept.into_iter();
        for line in some {
            let is_kept = line.bytes.is_empty() || kept.next().unwrap_or(false);
            if let Some(tell) = line.kept {
                // Whoever asked may be gone.
                let _gone = tell.send(is_kept);
            }
        }
        Some(sink)
    }
}

impl Sink {
    fn write(&mut self, lines: &[Bytes]) -> (Vec<bool>, Option<io::Error>) {
        match self {
            Sink::File(file) => file.write(lines),
            Sink::StandardOutput => {
                let mut all = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
                for line in lines {
                    all.extend_from_slice(line);
                    all.push(b'\n');
                }
                let mut out = io::stdout().lock();
                let done = out.write_all(&all).and_then(|()| out.flush());
                (vec![done.is_ok(); lines.len()], done.err())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use forebay_scratch::Scratch;

    use super::*;
    use crate::options::json_lines;

    fn log(path: PathBuf) -> Log {
        let (clock, _) = Clock::manual(1);
        let file = LogFile::ensure(&json_lines(path), clock.clone()).expect("made");
        Log::new(Sink::File(Box::new(file)), Arc::default(), clock)
    }

    fn line(text: String) -> Line {
        Line { bytes: text.into(), held: None }
    }

    #[tokio::test]
    async fn lines_are_written_in_order_and_whoever_waits_hears_of_it() {
        let scratch = Scratch::new();
        let path = scratch.path().join("audit.log");
        let log = log(path.clone());
        for at in 0..100 {
            log.put(line(format!("line {at}")));
        }
        assert_eq!(log.put_and_tell(line("last".into())).await, Ok(true));
        let text = fs::read_to_string(&path).expect("read");
        let want: Vec<String> = (0..100).map(|at| format!("line {at}")).chain(["last".into()]).collect();
        assert_eq!(text.lines().collect::<Vec<_>>(), want);
        // Nothing is written for who only waits.
        log.written().await;
        assert_eq!(fs::read_to_string(&path).expect("read"), text);
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_counted_and_told_of() {
        let scratch = Scratch::new();
        let path = scratch.path().join("audit.log");
        let log = log(path.clone());
        let huge = line("x".repeat(2 << 20));
        assert_eq!(log.put_and_tell(huge).await, Ok(false));
        let full = line("x".repeat(LOG_QUEUE_BYTES_MAX + 1));
        assert!(log.put_and_tell(full).await.is_err());
        let errors: Vec<(AuditPlugin, u64)> = log.0.counts.errors().filter(|(_, count)| *count > 0).collect();
        assert_eq!(errors, [(AuditPlugin::Log, 2)]);
        assert_eq!(log.put_and_tell(line("goes on".into())).await, Ok(true));
        assert_eq!(fs::read_to_string(&path).expect("read"), "goes on\n");
    }
}
