//! Who waits to be counted in quotas, by namespace.
//!
//! In: writes. Out: those of one namespace that are counted next; whoever goes away leaves no place behind.
//! Never: counts.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_apimachinery::{Lease, Status};
use forebay_quota::{Charge, Charged, QuotaRefusal};
use tokio::sync::oneshot;

use crate::limits::CHARGED_TOGETHER_MAX;

/// Who waits to be counted.
#[derive(Default)]
pub(crate) struct Quotas(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    // Namespaces that a task works on -> number of the place -> who comes next, in order; as many as there
    // are requests under way.
    waiting: HashMap<String, BTreeMap<u64, Waiting>>,
    /// The number of the next place: no two have the same, for a namespace may be worked on more than once.
    next: u64,
}

pub(crate) struct Waiting {
    pub(crate) request: Charge,
    pub(crate) is_dry_run: bool,
    /// Told what was put down, in this round and before, and whether it may.
    pub(crate) answer: oneshot::Sender<(Charged, Result<(), Refused>)>,
    /// What `request` takes is charged to it: it is not over while that is held, even if its client has gone.
    pub(crate) _lease: Lease,
}

/// Given up when it is dropped, if nobody took who waits there.
pub(crate) struct Place<'q> {
    quotas: &'q Quotas,
    namespace: &'q str,
    number: u64,
}

/// Why a write is not counted.
#[derive(Clone, Debug)]
pub(crate) enum Refused {
    ByQuota(QuotaRefusal),
    With(Status),
}

impl Quotas {
    /// Has it counted next. Whether nobody works on the namespace yet: who asks begins to.
    pub(crate) fn join<'q>(&'q self, namespace: &'q str, one: Waiting) -> (Place<'q>, bool) {
        let mut lines = self.lines();
        let number = lines.next;
        lines.next += 1;
        let is_first = match lines.waiting.get_mut(namespace) {
            Some(next) => {
                next.insert(number, one);
                false
            }
            None => {
                lines.waiting.insert(namespace.to_string(), BTreeMap::from([(number, one)]));
                true
            }
        };
        (Place { quotas: self, namespace, number }, is_first)
    }

    /// Those who come next; none, and nobody works on the namespace any more, when there are none.
    pub(crate) fn next(&self, namespace: &str) -> Vec<Waiting> {
        let mut lines = self.lines();
        let Some(next) = lines.waiting.get_mut(namespace).filter(|next| !next.is_empty()) else {
            lines.waiting.remove(namespace);
            return Vec::new();
        };
        let first = std::iter::from_fn(|| next.pop_first());
        first.take(CHARGED_TOGETHER_MAX).map(|(_, one)| one).collect()
    }

    /// Lets go of who waits.
    pub(crate) fn leave(&self, namespace: &str) {
        let _line = self.lines().waiting.remove(namespace);
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.quotas.lines();
        let gone = lines.waiting.get_mut(self.namespace).and_then(|line| line.remove(&self.number));
        // What it holds goes back elsewhere.
        drop(lines);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use forebay_quota::{DeviceClasses, Evaluator, QuotaSubject, ToCover, Unsaid};

    use super::*;

    fn waiting() -> Waiting {
        let request = Charge {
            evaluator: Evaluator::Pods,
            is_status: false,
            new: QuotaSubject::default(),
            old: None,
            unsaid: Unsaid::default(),
            classes: DeviceClasses::default(),
            to_cover: ToCover::default(),
            charged: Charged::default(),
        };
        let (answer, _answered) = oneshot::channel();
        Waiting { request, is_dry_run: false, answer, _lease: Lease::of_server() }
    }

    fn held(quotas: &Quotas) -> Vec<(String, usize)> {
        let lines = quotas.lines();
        let mut held: Vec<(String, usize)> =
            lines.waiting.iter().map(|(namespace, line)| (namespace.clone(), line.len())).collect();
        held.sort();
        held
    }

    #[test]
    fn who_goes_away_leaves_no_place_behind() {
        let quotas = Quotas::default();
        let of = |counts: &[(&str, usize)]| {
            Vec::from_iter(counts.iter().map(|(name, count)| (name.to_string(), *count)))
        };
        let (first, begins) = quotas.join("a", waiting());
        let (second, begins_too) = quotas.join("a", waiting());
        let (third, begins_in_b) = quotas.join("b", waiting());
        assert_eq!((begins, begins_too, begins_in_b), (true, false, true));
        drop(second);
        assert_eq!(held(&quotas), of(&[("a", 1), ("b", 1)]));
        assert_eq!(quotas.next("a").len(), 1);
        assert!(quotas.next("a").is_empty(), "it is over");
        let (_later, begins_again) = quotas.join("a", waiting());
        assert!(begins_again);
        drop(first);
        assert_eq!(held(&quotas), of(&[("a", 1), ("b", 1)]), "a place that was taken is nobody else's");
        drop(third);
        assert_eq!(held(&quotas), of(&[("a", 1), ("b", 0)]), "its task finds nobody, and ends");
        assert!(quotas.next("b").is_empty());
        assert_eq!(held(&quotas), of(&[("a", 1)]));
    }

    #[test]
    fn they_are_counted_in_order_and_so_many_at_a_time() {
        let quotas = Quotas::default();
        let places: Vec<Place<'_>> =
            (0..CHARGED_TOGETHER_MAX + 2).map(|_| quotas.join("a", waiting()).0).collect();
        assert_eq!(quotas.next("a").len(), CHARGED_TOGETHER_MAX);
        assert_eq!(quotas.next("a").len(), 2);
        assert!(quotas.next("a").is_empty());
        drop(places);
    }
}
