//! What lists took, beside what was foreseen: by resource, and by how they are answered.
//!
//! In: the CPU time of each piece of a list's answer, as far as it is measured. Out: how many times what was
//! foreseen such a list takes here. Never: less than a fourth or more than four times of it, whatever was
//! measured.
//!
//! Prices are of one machine and of objects that are alike. Another machine is slower, and other objects have
//! more in their metadata: what was foreseen of 20,000 pods of 8 KB by their metadata was two fifths of what
//! they took.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use forebay_apimachinery::GroupVersionResource;
use forebay_pieces::{ListSource, OfList};
use forebay_reads::{Rendering, SeenObjects};
use forebay_transport::{BodySource, picos_to_send_byte};

use crate::limits::{LEARNED_FACTOR_MAX, LEARNED_MAX, LEARNED_TIME_MIN};

/// What was learned. Cheap to clone.
#[derive(Clone, Default)]
pub struct Learned(Arc<Mutex<BTreeMap<ListSubject, f64>>>);

/// What takes alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListSubject {
    pub resource: GroupVersionResource,
    pub rendering: Rendering,
    /// Nothing of what it looks at is left out.
    pub is_whole: bool,
}

/// Measures one list: every piece at first, then one in so many. A clone goes on from where this one is.
#[derive(Clone, Default)]
pub struct ListMeter {
    of: Option<(Learned, ListSubject, Duration)>,
    pieces: u32,
    measured: u32,
    cpu: Duration,
    bytes: usize,
}

/// What is made of a list, measured.
#[derive(Clone)]
pub struct Measured<S> {
    pub inner: S,
    pub meter: ListMeter,
}

impl Learned {
    /// What such a list takes here, of which `cpu` is foreseen.
    pub fn corrected(&self, subject: &ListSubject, cpu: Duration) -> Duration {
        cpu.mul_f64(self.all().get(subject).copied().unwrap_or(1.0))
    }

    /// What such a list takes will be learned from this one.
    ///
    /// - `cpu`: what is foreseen, by the same prices as ever.
    pub fn meter(&self, subject: ListSubject, cpu: Duration) -> ListMeter {
        ListMeter { of: Some((self.clone(), subject, cpu)), ..ListMeter::default() }
    }

    /// The first is taken for what all are; each that follows moves it by a fourth of the way.
    fn note(&self, subject: &ListSubject, factor: f64) {
        let factor = factor.clamp(1.0 / LEARNED_FACTOR_MAX, LEARNED_FACTOR_MAX);
        let mut all = self.all();
        if let Some(known) = all.get_mut(subject) {
            *known += (factor - *known) / 4.0;
        } else if all.len() < LEARNED_MAX {
            all.insert(subject.clone(), factor);
        }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<ListSubject, f64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListMeter {
    /// What makes a piece of so many bytes.
    pub fn piece<T>(&mut self, make: impl FnOnce() -> (T, usize)) -> T {
        const ALL: u32 = 4;
        const ONE_IN: u32 = 8;
        let is_measured = self.of.is_some() && (self.pieces < ALL || self.pieces.is_multiple_of(ONE_IN));
        let began = if is_measured { forebay_rt::used_cpu() } else { None };
        let (made, bytes) = make();
        if let Some(took) = began.and_then(|began| Some(forebay_rt::used_cpu()?.saturating_sub(began))) {
            self.measured += 1;
            self.cpu += took;
        }
        self.pieces += 1;
        self.bytes += bytes;
        made
    }

    /// It was the last one.
    pub fn finish(&self) {
        let Some((learned, subject, foreseen)) = self.of.as_ref().filter(|_| self.measured > 0) else {
            return;
        };
        let sending = Duration::from_nanos((self.bytes as u64).saturating_mul(picos_to_send_byte()) / 1_000);
        let took = self.cpu.mul_f64(f64::from(self.pieces) / f64::from(self.measured)) + sending;
        if *foreseen >= LEARNED_TIME_MIN {
            learned.note(subject, took.as_secs_f64() / foreseen.as_secs_f64());
        }
    }
}

impl<S: BodySource> BodySource for Measured<S> {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        let (inner, before) = (&mut self.inner, out.len());
        let more = self.meter.piece(|| {
            let more = inner.fill(out);
            (more, out.len() - before)
        });
        if !more {
            self.meter.finish();
        }
        more
    }

    fn piece(&mut self) -> Option<Bytes> {
        let inner = &mut self.inner;
        let piece = self.meter.piece(|| {
            let piece = inner.piece();
            let bytes = piece.as_ref().map_or(0, Bytes::len);
            (piece, bytes)
        });
        if piece.is_none() {
            self.meter.finish();
        }
        piece
    }
}

impl<S: OfList> OfList for Measured<S> {
    fn seen(&self) -> SeenObjects {
        self.inner.seen()
    }

    fn held_bytes(&self) -> usize {
        self.inner.held_bytes()
    }
}

/// `source`, measured by `meter`.
pub fn measured(source: impl ListSource + Clone + 'static, meter: ListMeter) -> Box<dyn ListSource> {
    Box::new(Measured { inner: source, meter })
}

#[cfg(test)]
mod tests {
    use forebay_reads::Making;

    use super::*;

    fn subject(making: Making) -> ListSubject {
        let resource = GroupVersionResource::new("", "v1", "pods");
        ListSubject { resource, rendering: Rendering { making, gzip_bytes_min: None }, is_whole: true }
    }

    #[test]
    fn what_such_lists_took_is_foreseen_of_the_next_one_and_of_no_other() {
        let (learned, ms) = (Learned::default(), Duration::from_millis);
        let (rows, stored) = (subject(Making::Row), subject(Making::Stored));
        assert_eq!(learned.corrected(&rows, ms(10)), ms(10));
        learned.note(&rows, 2.0);
        assert_eq!((learned.corrected(&rows, ms(10)), learned.corrected(&stored, ms(10))), (ms(20), ms(10)));
        for _ in 0..20 {
            learned.note(&rows, 3.0);
        }
        let now = learned.corrected(&rows, ms(10)).as_secs_f64();
        assert!((0.0299..0.0301).contains(&now), "{now}");
        learned.note(&stored, 1e6);
        assert_eq!(learned.corrected(&stored, ms(1)), ms(1).mul_f64(LEARNED_FACTOR_MAX));
    }

    #[test]
    fn so_many_are_kept_and_no_more() {
        let learned = Learned::default();
        for number in 0..LEARNED_MAX + 10 {
            let resource = GroupVersionResource::new("", "v1", &format!("r{number}"));
            learned.note(&ListSubject { resource, ..subject(Making::Row) }, 2.0);
        }
        assert_eq!(learned.all().len(), LEARNED_MAX);
    }

    #[test]
    fn a_list_is_measured_by_some_of_its_pieces_whoever_goes_on_with_it() {
        let learned = Learned::default();
        let work = || {
            let began = forebay_rt::used_cpu().expect("no simulation");
            while forebay_rt::used_cpu().expect("no simulation") - began < Duration::from_micros(200) {}
            ((), 0)
        };
        let mut meter = learned.meter(subject(Making::Row), Duration::from_millis(2));
        (0..10).for_each(|_| meter.piece(work));
        let mut other = meter.clone();
        (0..10).for_each(|_| other.piece(work));
        other.finish();
        // 20 pieces of 200 us each, or a little more, where 2 ms were foreseen.
        let factor = learned.all()[&subject(Making::Row)];
        assert!((2.0..LEARNED_FACTOR_MAX).contains(&factor), "{factor}");
    }
}
