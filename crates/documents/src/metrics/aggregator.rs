//! `aggregator_unavailable_apiservice*`: which APIServices have nobody behind them, and how often one lost
//! whoever was.
//!
//! In: what is found out of each. Out: families, in upstream's names. Never: more series than APIServices,
//! which whoever follows them limits.
//!
//! Source: kube-aggregator v0.36.3 `controllers/status/metrics`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::text::Text;

/// Series of APIServices that were lost, at most: names are as many as somebody has ever used. More are
/// counted under `other`.
const LOST_MAX: usize = 1_024;

/// What is known of them.
#[derive(Default)]
pub struct Availability(Mutex<Known>);

#[derive(Default)]
struct Known {
    is_available: BTreeMap<String, bool>,
    // By name and reason; <= LOST_MAX and one.
    lost: BTreeMap<(String, String), u64>,
}

impl Availability {
    pub fn set(&self, name: &str, is_available: bool) {
        let mut known = self.known();
        match known.is_available.get_mut(name) {
            Some(before) => *before = is_available,
            None => drop(known.is_available.insert(name.to_owned(), is_available)),
        }
    }

    pub fn forget(&self, name: &str) {
        self.known().is_available.remove(name);
    }

    /// It was there, and is not any more.
    pub fn lost(&self, name: &str, reason: &str) {
        let mut known = self.known();
        let key = (name.to_owned(), reason.to_owned());
        let has_room = known.lost.len() < LOST_MAX || known.lost.contains_key(&key);
        let key = if has_room { key } else { ("other".to_owned(), "other".to_owned()) };
        *known.lost.entry(key).or_default() += 1;
    }

    /// Appends both families.
    pub fn write(&self, text: &mut Text) {
        let known = self.known();
        let name = "aggregator_unavailable_apiservice";
        text.family(name, "gauge", "Whether an APIService has nobody behind it, by its name.");
        for (of, is_available) in &known.is_available {
            text.value(name, &[("name", of)], u64::from(!is_available));
        }
        let name = "aggregator_unavailable_apiservice_total";
        text.family(
            name,
            "counter",
            "How often an APIService lost whoever was behind it, by name and reason.",
        );
        for ((of, reason), count) in &known.lost {
            text.value(name, &[("name", of), ("reason", reason)], count);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn what_is_not_there_is_told_until_nobody_speaks_of_it() {
        let availability = Availability::default();
        availability.set("v1.a.io", true);
        availability.set("v1.b.io", false);
        availability.lost("v1.b.io", "ServiceNotFound");
        availability.set("v1.a.io", false);
        availability.set("v1.c.io", true);
        availability.forget("v1.b.io");
        let mut text = Text::default();
        availability.write(&mut text);
        let text = text.finish();
        let series: HashSet<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let want = [
            "aggregator_unavailable_apiservice{name=\"v1.a.io\"} 1",
            "aggregator_unavailable_apiservice{name=\"v1.c.io\"} 0",
            "aggregator_unavailable_apiservice_total{name=\"v1.b.io\",reason=\"ServiceNotFound\"} 1",
        ];
        assert_eq!(series, HashSet::from(want));
    }
}
