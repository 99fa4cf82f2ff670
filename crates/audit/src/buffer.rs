//! Events that wait to be kept while nobody waits for them.
//!
//! In: lines, as they come. Out: batches, when there are enough, or it is time, and not more often than a
//! rate. Never: holds up whoever brings a line: where there is no room it is lost, and counted.
//!
//! Owner of what waits: one task. At the end it hands out what is left.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/audit/buffered/buffered.go`.

use forebay_rt::{Clock, Duration, Instant, Shutdown};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::limits::{BATCH_BYTES_MAX, LOG_WRITE_BYTES, THROTTLE_PAUSE_MAX};
use crate::line::Line;
use crate::options::{BatchOptions, TruncateOptions};

/// Where lines are put.
#[derive(Clone)]
pub(crate) struct Buffer(Sender<Line>);

/// What is there of them, and when the next batch may go.
pub(crate) struct Batches {
    lines: Receiver<Line>,
    // What did not fit into the last batch.
    next: Option<Line>,
    size_max: usize,
    bytes_max: usize,
    wait_max: Duration,
    throttle: Option<Throttle>,
    clock: Clock,
}

/// So many a second, and so many at once.
struct Throttle {
    qps: f64,
    burst: f64,
    tokens: f64,
    at: Instant,
}

impl Buffer {
    pub fn new(options: &BatchOptions, truncate: &TruncateOptions, clock: Clock) -> (Buffer, Batches) {
        let (put, lines) = mpsc::channel(options.buffer);
        let at = clock.now();
        let throttle = options.throttle.map(|(qps, burst)| {
            let burst = f64::from(burst);
            Throttle { qps: f64::from(qps), burst, tokens: burst, at }
        });
        let bytes_max = if truncate.is_on { truncate.batch_bytes_max } else { BATCH_BYTES_MAX };
        let (size_max, wait_max) = (options.size_max, options.wait_max);
        (Buffer(put), Batches { lines, next: None, size_max, bytes_max, wait_max, throttle, clock })
    }

    /// Puts a line there.
    ///
    /// # Errors
    /// Why it is lost.
    pub fn put(&self, line: Line) -> Result<(), &'static str> {
        self.0.try_send(line).map_err(|error| match error {
            TrySendError::Full(_) => "audit buffer queue blocked",
            TrySendError::Closed(_) => "audit backend shut down",
        })
    }
}

impl Batches {
    /// The next batch, at its time; `None` once `stop` is raised and there is nothing left.
    pub async fn next(&mut self, stop: &Shutdown) -> Option<Vec<Line>> {
        let mut batch = Vec::new();
        while batch.is_empty() {
            if !self.gather(&mut batch, stop).await && batch.is_empty() {
                return None;
            }
        }
        // At the end nobody waits.
        if let Some(throttle) = self.throttle.as_mut().filter(|_| !stop.is_raised()) {
            tokio::select! {
                () = throttle.turn(&self.clock) => {}
                () = stop.raised() => {}
            }
        }
        Some(batch)
    }

    /// Adds what has come beside a batch: to a file all of it goes at once. Not where a rate says how much
    /// goes.
    pub fn take_beside(&mut self, batch: &mut Vec<Line>) {
        let mut bytes: usize = batch.iter().map(|line| line.bytes.len()).sum();
        while self.throttle.is_none() && bytes < LOG_WRITE_BYTES {
            let Some(line) = self.next.take().or_else(|| self.lines.try_recv().ok()) else { return };
            bytes += line.bytes.len();
            batch.push(line);
        }
    }

    /// Gathers lines until there are enough or it is time. False: none come any more.
    async fn gather(&mut self, batch: &mut Vec<Line>, stop: &Shutdown) -> bool {
        let is_at_once = self.wait_max.is_zero();
        let deadline = (self.size_max > 1 && !is_at_once).then(|| self.clock.now() + self.wait_max);
        let mut bytes = 0;
        while batch.len() < self.size_max {
            let line = match self.next.take() {
                Some(line) => line,
                None => {
                    let (clock, has_some) = (&self.clock, !batch.is_empty());
                    let late = async {
                        match deadline {
                            Some(deadline) => clock.sleep_until(deadline).await,
                            // What is there goes, without a wait for more.
                            None if is_at_once && has_some => {}
                            None => std::future::pending().await,
                        }
                    };
                    let come = tokio::select! {
                        biased;
                        come = self.lines.recv() => come,
                        () = stop.raised(), if !self.lines.is_closed() => {
                            self.lines.close();
                            continue;
                        }
                        () = late => return true,
                    };
                    let Some(line) = come else { return false };
                    line
                }
            };
            if !batch.is_empty() && bytes + line.bytes.len() > self.bytes_max {
                self.next = Some(line);
                return true;
            }
            bytes += line.bytes.len();
            batch.push(line);
        }
        true
    }
}

impl Throttle {
    /// So many seconds: a rate that is next to nothing makes more of them than a clock has.
    fn pause(seconds: f64) -> Duration {
        Duration::try_from_secs_f64(seconds).unwrap_or(THROTTLE_PAUSE_MAX).min(THROTTLE_PAUSE_MAX)
    }

    async fn turn(&mut self, clock: &Clock) {
        let now = clock.now();
        let gained = (now - self.at).as_secs_f64() * self.qps;
        (self.tokens, self.at) = ((self.tokens + gained).min(self.burst) - 1.0, now);
        if self.tokens < 0.0 {
            clock.sleep(Throttle::pause(-self.tokens / self.qps)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{AuditMode, NO_LIMIT, batch};

    fn line(text: &'static str) -> Line {
        Line { bytes: text.into(), held: None }
    }

    fn texts(batch: Option<Vec<Line>>) -> Vec<String> {
        let texts = batch.into_iter().flatten().map(|line| String::from_utf8_lossy(&line.bytes).into_owned());
        texts.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_goes_when_it_is_full_or_has_waited() {
        let clock = Clock::system();
        let (buffer, mut batches) = Buffer::new(&batch(AuditMode::Batch), &NO_LIMIT, clock.clone());
        let stop = Shutdown::default();
        for text in ["a", "b", "c"] {
            buffer.put(line(text)).expect("room");
        }
        let begun = clock.now();
        assert_eq!(texts(batches.next(&stop).await), ["a", "b"]);
        assert_eq!(clock.now(), begun);
        assert_eq!(texts(batches.next(&stop).await), ["c"]);
        assert_eq!(clock.now() - begun, Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_beyond_the_buffer_is_lost_and_what_is_left_goes_at_the_end() {
        let (buffer, mut batches) = Buffer::new(&batch(AuditMode::Batch), &NO_LIMIT, Clock::system());
        for text in ["a", "b", "c", "d"] {
            buffer.put(line(text)).expect("room");
        }
        assert_eq!(buffer.put(line("e")), Err("audit buffer queue blocked"));
        let stop = Shutdown::default();
        stop.raise();
        assert_eq!(texts(batches.next(&stop).await), ["a", "b"]);
        assert_eq!(texts(batches.next(&stop).await), ["c", "d"]);
        assert!(batches.next(&stop).await.is_none());
        assert_eq!(buffer.put(line("f")), Err("audit backend shut down"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_no_longer_than_is_said_but_for_one_event() {
        let truncate =
            crate::options::TruncateOptions { is_on: true, batch_bytes_max: 5, event_bytes_max: 5 };
        let (buffer, mut batches) = Buffer::new(&batch(AuditMode::Batch), &truncate, Clock::system());
        for text in ["aaaa", "bb", "cccccccc"] {
            buffer.put(line(text)).expect("room");
        }
        let stop = Shutdown::default();
        for want in ["aaaa", "bb", "cccccccc"] {
            assert_eq!(texts(batches.next(&stop).await), [want]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_come_beside_a_batch_goes_with_it_unless_there_is_a_rate() {
        for (throttle, want) in [(None, &["a", "b", "c"][..]), (Some((1.0, 1)), &["a"])] {
            let options = BatchOptions { size_max: 1, throttle, ..batch(AuditMode::Batch) };
            let (buffer, mut batches) = Buffer::new(&options, &NO_LIMIT, Clock::system());
            for text in ["a", "b", "c"] {
                buffer.put(line(text)).expect("room");
            }
            let mut first = batches.next(&Shutdown::default()).await.expect("a batch");
            batches.take_beside(&mut first);
            assert_eq!(texts(Some(first)), want);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn batches_go_at_a_rate() {
        let options = BatchOptions { size_max: 1, throttle: Some((2.0, 2)), ..batch(AuditMode::Batch) };
        let clock = Clock::system();
        let (buffer, mut batches) = Buffer::new(&options, &NO_LIMIT, clock.clone());
        let (stop, begun) = (Shutdown::default(), clock.now());
        for text in ["a", "b", "c", "d"] {
            buffer.put(line(text)).expect("room");
        }
        let mut at = Vec::new();
        for _ in 0..4 {
            batches.next(&stop).await.expect("a batch");
            at.push(((clock.now() - begun).as_millis() + 5) / 10 * 10);
        }
        assert_eq!(at, [0, 0, 500, 1000]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_wait_what_is_there_goes_and_nothing_is_done_until_more_comes() {
        let options = BatchOptions { size_max: 10, wait_max: Duration::ZERO, ..batch(AuditMode::Batch) };
        let clock = Clock::system();
        let (buffer, mut batches) = Buffer::new(&options, &NO_LIMIT, clock.clone());
        let stop = Shutdown::default();
        for text in ["a", "b"] {
            buffer.put(line(text)).expect("room");
        }
        assert_eq!(texts(batches.next(&stop).await), ["a", "b"]);
        let begun = clock.now();
        let late = async {
            clock.sleep(Duration::from_secs(60)).await;
            buffer.put(line("c")).expect("room");
        };
        // With a timer of its own it would have come back to nothing all the while.
        let (next, ()) = tokio::join!(batches.next(&stop), late);
        assert_eq!((texts(next), clock.now() - begun), (vec!["c".to_owned()], Duration::from_secs(60)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_of_next_to_nothing_is_a_long_wait_and_no_panic() {
        for qps in [1e-20, f32::MIN_POSITIVE] {
            let options = BatchOptions { size_max: 1, throttle: Some((qps, 1)), ..batch(AuditMode::Batch) };
            let clock = Clock::system();
            let (buffer, mut batches) = Buffer::new(&options, &NO_LIMIT, clock.clone());
            let (stop, begun) = (Shutdown::default(), clock.now());
            for text in ["a", "b"] {
                buffer.put(line(text)).expect("room");
            }
            assert_eq!(texts(batches.next(&stop).await), ["a"]);
            assert_eq!(texts(batches.next(&stop).await), ["b"]);
            assert_eq!(clock.now() - begun, THROTTLE_PAUSE_MAX);
        }
    }
}
