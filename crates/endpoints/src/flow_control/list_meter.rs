//! What a list takes, from its plan to its last byte: CPU time of whichever threads work on it.
//!
//! In: what is done for it. Out: the same; and to what was [learned](super::learned), what it came to. Never:
//! of a list that another had a part in, or that ended early: what it took says nothing of the next one.
//!
//! All that is done before its pieces is measured; of these the first [`FIRST`], then one in eight. What it
//! takes to seal and to send a byte, connections [measure](forebay_transport::picos_to_send_byte). Not
//! measured are the request's head and the way from thread to thread.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use forebay_pieces::{ListReader, ListSource};
use forebay_transport::{BodySource, RunOn, picos_to_send_byte};

use super::learned::{Learned, ListPrice, ListSubject};
use super::price::REQUEST;
use crate::limits::LEARNED_TIME_MIN;

/// Measures one list. Nothing of one that is too short to tell, by default. Cheap to clone.
#[derive(Clone, Default)]
pub struct ListMeter(Option<Arc<Measured>>);

struct Measured {
    learned: Learned,
    subject: ListSubject,
    price: ListPrice,
    // Before its pieces, in nanoseconds.
    cpu: AtomicU64,
}

/// What a list's answer is read from.
pub trait ListPieces: BodySource {
    /// Whether all that came was made for this reader.
    fn has_all_made(&self) -> bool;
}

/// What is read of a list's answer, measured.
pub struct MeteredPieces<S> {
    inner: S,
    meter: ListMeter,
    first: Pieces,
    later: Pieces,
    bytes: usize,
}

/// So many pieces; of how many it was measured what they took.
#[derive(Clone, Copy, Debug, Default)]
struct Pieces {
    all: u32,
    measured: u32,
    cpu: Duration,
}

impl ListMeter {
    pub fn new(learned: &Learned, subject: ListSubject, price: ListPrice) -> ListMeter {
        let measured = || Measured { learned: learned.clone(), subject, price, cpu: AtomicU64::new(0) };
        ListMeter((price.cpu >= LEARNED_TIME_MIN).then(|| Arc::new(measured())))
    }

    /// The thread's CPU time, where there is something to be measured.
    fn now(&self) -> Option<Duration> {
        self.0.as_ref().and_then(|_| forebay_rt::used_cpu())
    }

    /// It was worked on here since then.
    ///
    /// - `began`: the thread's CPU time by then.
    pub fn since(&self, began: Option<Duration>) {
        let took = began.and_then(|began| Some(self.now()?.saturating_sub(began)));
        if let (Some(measured), Some(took)) = (&self.0, took) {
            measured.cpu.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// What `work` gives, which is done for it. What waits takes nothing.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| {
            let began = self.now();
            let polled = work.as_mut().poll(cx);
            self.since(began);
            polled
        })
        .await
    }

    /// What `work` gives, which is done for it [`during`](ListMeter::during) what is measured, or on another
    /// thread.
    pub fn apart<T>(&self, run_on: RunOn, work: impl FnOnce() -> T) -> T {
        let began = if run_on == RunOn::Thread { self.now() } else { None };
        let made = work();
        self.since(began);
        made
    }

    /// It is over, with so many bytes, after `rest` beside what was measured.
    pub fn came_to(&self, rest: Duration, bytes: usize) {
        let Some(Measured { learned, subject, price, cpu }) = self.0.as_deref() else { return };
        let cpu = Duration::from_nanos(cpu.load(Ordering::Relaxed)) + rest;
        // In a simulation nothing is.
        if !cpu.is_zero() {
            let sending = Duration::from_nanos((bytes as u64).saturating_mul(picos_to_send_byte()) / 1_000);
            learned.note(subject, *price, REQUEST + cpu + sending, bytes);
        }
    }
}

impl<S: ListPieces> MeteredPieces<S> {
    pub fn new(inner: S, meter: ListMeter) -> MeteredPieces<S> {
        MeteredPieces { inner, meter, first: Pieces::default(), later: Pieces::default(), bytes: 0 }
    }

    fn over(&mut self) {
        let meter = std::mem::take(&mut self.meter);
        if self.inner.has_all_made() {
            meter.came_to(self.first.cpu() + self.later.cpu(), self.bytes);
        }
    }
}

impl Pieces {
    /// What makes a piece.
    fn next<T>(&mut self, is_measured: bool, make: impl FnOnce() -> T) -> T {
        let began = if is_measured { forebay_rt::used_cpu() } else { None };
        let made = make();
        if let Some(took) = began.and_then(|began| Some(forebay_rt::used_cpu()?.saturating_sub(began))) {
            self.measured += 1;
            self.cpu += took;
        }
        self.all += 1;
        made
    }

    /// What all of them took, as those did that were measured.
    fn cpu(&self) -> Duration {
        self.cpu.mul_f64(f64::from(self.all) / f64::from(self.measured.max(1)))
    }
}

/// So many pieces, 16 MiB of most lists, are all measured. In gzip from blocks that is every piece: a few of
/// them, of what has no block yet, take as long as all others together, and one in eight would miss them.
const FIRST: u32 = 256;

/// One in eight, spread so that nothing that comes again after so many pieces, such as that a block is
/// inflated, is in step with it.
fn is_measured(piece: u32) -> bool {
    piece.wrapping_mul(0x9e37_79b9) >> 29 == 0
}

impl<S: ListPieces> BodySource for MeteredPieces<S> {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        let piece = self.piece();
        out.extend_from_slice(piece.as_deref().unwrap_or_default());
        piece.is_some()
    }

    fn piece(&mut self) -> Option<Bytes> {
        let (inner, is_first) = (&mut self.inner, self.first.all < FIRST);
        let is_metered = self.meter.0.is_some();
        let piece = match is_first {
            true => self.first.next(is_metered, || inner.piece()),
            false => self.later.next(is_metered && is_measured(self.later.all), || inner.piece()),
        };
        match &piece {
            Some(piece) => self.bytes += piece.len(),
            None => self.over(),
        }
        piece
    }

    fn made(&mut self) -> Option<Bytes> {
        let made = self.inner.made();
        self.bytes += made.as_ref().map_or(0, Bytes::len);
        made
    }
}

impl ListPieces for ListReader {
    fn has_all_made(&self) -> bool {
        ListReader::has_all_made(self)
    }
}

impl ListPieces for Box<dyn ListSource> {
    fn has_all_made(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::GroupVersionResource;
    use forebay_reads::{FoundBy, Making, Rendering};
    use futures_util::FutureExt as _;

    use super::*;

    const PRICE: ListPrice = ListPrice { cpu: Duration::from_millis(10), bytes: 100 };
    const PIECE: Duration = Duration::from_micros(200);

    fn work() {
        let began = forebay_rt::used_cpu().expect("no simulation");
        while forebay_rt::used_cpu().expect("no simulation") - began < PIECE {}
    }

    /// So many pieces that take some time to make; and whether they are all made for their reader.
    struct Work(u32, bool);

    impl BodySource for Work {
        fn fill(&mut self, out: &mut Vec<u8>) -> bool {
            let Some(left) = self.0.checked_sub(1) else { return false };
            self.0 = left;
            work();
            out.push(b'a');
            true
        }
    }

    impl ListPieces for Work {
        fn has_all_made(&self) -> bool {
            self.1
        }
    }

    fn subject() -> ListSubject {
        let resource = GroupVersionResource::new("", "v1", "pods");
        PRICE.subject(resource, Rendering { making: Making::Row, gzip_bytes_min: None }, FoundBy::Whole)
    }

    /// How many times of its price such a list is foreseen to take.
    fn learned(learned: &Learned) -> f64 {
        learned.foreseen(&subject(), PRICE).made.as_secs_f64() / PRICE.cpu.as_secs_f64()
    }

    #[test]
    fn a_list_is_measured_by_its_first_pieces_and_some_of_those_that_follow() {
        let (all, price) = (Learned::default(), ListPrice { cpu: 4 * PRICE.cpu, ..PRICE });
        let mut pieces = MeteredPieces::new(Work(400, true), ListMeter::new(&all, subject(), price));
        let mut made = 0;
        while pieces.piece().is_some() {
            made += 1;
        }
        // 400 pieces of 200 us each, or a little more, where 40 ms were foreseen.
        assert!(made == 400 && (2.0..4.0).contains(&learned(&all)), "{}", learned(&all));
        let Pieces { all: later, measured, .. } = pieces.later;
        assert!(later == 401 - FIRST && (13..25).contains(&measured), "{measured} of {later}");
    }

    #[test]
    fn nothing_is_learned_from_a_list_that_another_had_a_part_in_or_that_ended_early() {
        for (has_all_made, reads) in [(false, 100), (true, 50)] {
            let all = Learned::default();
            let meter = ListMeter::new(&all, subject(), PRICE);
            let mut pieces = MeteredPieces::new(Work(80, has_all_made), meter);
            (0..reads).for_each(|_| drop(pieces.piece()));
            drop(pieces);
            assert_eq!(learned(&all), 1.0, "{has_all_made}");
        }
    }

    #[test]
    fn what_is_done_before_its_pieces_counts_once_wherever_it_is_done() {
        let (all, before) = (Learned::default(), forebay_rt::used_cpu());
        let meter = ListMeter::new(&all, subject(), PRICE);
        let apart = meter.clone();
        meter.since(before);
        let during = meter.during(async {
            (0..10).for_each(|_| work());
            // Done here: it is measured already.
            meter.apart(RunOn::Task, || (0..30).for_each(|_| work()));
        });
        during.now_or_never().expect("it waits for nothing");
        std::thread::scope(|threads| {
            threads.spawn(|| apart.apart(RunOn::Thread, || (0..60).for_each(|_| work())));
        });
        meter.came_to(Duration::ZERO, 1);
        // 20 ms, where 10 were foreseen.
        assert!((2.0..2.5).contains(&learned(&all)), "{}", learned(&all));
    }

    #[test]
    fn pieces_that_come_again_and_again_are_measured_as_often_as_others() {
        for period in 2..=12 {
            for turn in 0..period {
                let turns = (0..12_000).filter(|piece| piece % period == turn);
                let measured = turns.clone().filter(|piece| is_measured(*piece)).count();
                let expected = turns.count() / 8;
                assert!(measured.abs_diff(expected) <= 1 + expected / 5, "{measured} of {period}: {turn}");
            }
        }
        assert!((0..20).any(is_measured));
    }
}
