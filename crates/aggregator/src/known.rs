//! The APIServices whose versions other servers serve, and when each is looked at next.
//!
//! In: what they say, what was found out. Out: who is to be looked at; routes and extensions. Never: asks
//! anybody, reads a clock.
//!
//! Owner: the task that follows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_documents::discovery::Extension;
use forebay_proxy::ProxyRoute;
use forebay_proxy::limits::ROUTES_MAX;
use forebay_rt::{Duration, Instant};

use crate::limits::{DOCUMENTS_EVERY, LOOK_EVERY, RETRY};
use crate::registered::Registered;

/// All of them.
#[derive(Default)]
pub struct Registrations(BTreeMap<String, Registration>);

/// One of them.
pub struct Registration {
    pub registered: Registered,
    pub uid: String,
    pub route: Arc<ProxyRoute>,
    extension: Extension,
    place: Place,
    failures: u32,
    // When it was last asked what it serves, and said so.
    asked: Option<Instant>,
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Due(Instant),
    Looked,
    /// It has changed while it was looked at.
    LookedAgain,
}

/// What is to be done for one.
pub struct Task {
    pub name: String,
    pub uid: String,
    pub registered: Registered,
    pub route: Arc<ProxyRoute>,
    /// What is told of it once it has been asked what it serves, if it is to be asked.
    pub wanted: Option<Extension>,
}

impl Registrations {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One that is there, if it says the same as it did.
    pub fn same(&self, name: &str, uid: &str, registered: &Registered) -> Option<&Registration> {
        self.0.get(name).filter(|entry| entry.uid == uid && entry.registered == *registered)
    }

    /// One that is new, or says something else now.
    pub fn put(
        &mut self,
        name: String,
        uid: String,
        registered: Registered,
        route: Arc<ProxyRoute>,
        now: Instant,
    ) {
        let extension = Extension {
            group: registered.group.clone(),
            version: registered.version.clone(),
            group_priority: registered.group_priority,
            version_priority: registered.version_priority,
            is_stale: true,
            ..Extension::default()
        };
        let place = Place::Due(now);
        self.0.insert(
            name,
            Registration { registered, uid, route, extension, place, failures: 0, asked: None },
        );
    }

    /// Whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// Something about a service has changed: who is behind it is looked at now.
    pub fn service_changed(&mut self, namespace: &str, name: &str, now: Instant) {
        for entry in self.0.values_mut() {
            let service = &entry.registered.service;
            if (&*service.namespace, &*service.name) == (namespace, name) {
                entry.place = match entry.place {
                    Place::Due(_) => Place::Due(now),
                    Place::Looked | Place::LookedAgain => Place::LookedAgain,
                };
            }
        }
    }

    /// When the next is to be looked at.
    pub fn next_due(&self) -> Option<Instant> {
        let due = self.0.values().filter_map(|entry| match entry.place {
            Place::Due(at) => Some(at),
            Place::Looked | Place::LookedAgain => None,
        });
        due.min()
    }

    /// The one to look at now, if there is one; it is out until [`Registrations::looked`].
    pub fn next(&mut self, now: Instant) -> Option<Task> {
        let due = self.0.iter_mut().filter_map(|(name, entry)| match entry.place {
            Place::Due(at) if at <= now => Some((at, name, entry)),
            _ => None,
        });
        let (_, name, entry) = due.min_by_key(|(at, ..)| *at)?;
        entry.place = Place::Looked;
        let is_asked = entry.asked.is_none_or(|at| now >= at + DOCUMENTS_EVERY);
        Some(Task {
            name: name.clone(),
            uid: entry.uid.clone(),
            registered: entry.registered.clone(),
            route: entry.route.clone(),
            wanted: is_asked.then(|| entry.extension.clone()),
        })
    }

    /// Takes what was found out of one, unless it is another by now. Whether something else is told of it.
    ///
    /// - `is_well`: it is there, and what was found out is written.
    pub fn looked(
        &mut self,
        (name, route): (&str, &Arc<ProxyRoute>),
        extension: Option<Extension>,
        is_well: bool,
        now: Instant,
    ) -> bool {
        let Some(entry) = self.0.get_mut(name).filter(|entry| Arc::ptr_eq(&entry.route, route)) else {
            return false;
        };
        let is_asked = extension.as_ref().is_some_and(|extension| !extension.is_stale);
        entry.asked = if is_asked { Some(now) } else { entry.asked.filter(|_| is_well) };
        entry.failures = if is_well { 0 } else { entry.failures.saturating_add(1) };
        let wait = match is_well {
            true if entry.asked.is_some() => LOOK_EVERY,
            true => RETRY.1 / 4,
            false => retry(entry.failures),
        };
        let is_again = entry.place == Place::LookedAgain;
        entry.place = Place::Due(if is_again { now + RETRY.0 } else { now + wait });
        let told = extension.filter(|extension| *extension != entry.extension);
        told.map(|extension| entry.extension = extension).is_some()
    }

    /// What is told of them, ordered by group and version; no more than there may be.
    pub fn told(&self) -> (Vec<Arc<ProxyRoute>>, Vec<Extension>) {
        let mut all: Vec<&Registration> = self.0.values().collect();
        let key = |entry: &Registration| (entry.registered.group.clone(), entry.registered.version.clone());
        all.sort_by_cached_key(|entry| key(entry));
        all.truncate(ROUTES_MAX);
        all.into_iter().map(|entry| (entry.route.clone(), entry.extension.clone())).unzip()
    }
}

fn retry(failures: u32) -> Duration {
    RETRY.0.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(RETRY.1)
}

#[cfg(test)]
mod tests {
    use forebay_proxy::{Locator, ServiceReference, Trust};
    use forebay_rt::Clock;

    use super::*;

    struct Nowhere;

    impl Locator for Nowhere {
        fn address(&self, _: &ServiceReference) -> Result<Box<str>, String> {
            Err("nowhere".to_owned())
        }

        fn others(&self, _: &ServiceReference) -> Vec<Box<str>> {
            Vec::new()
        }
    }

    fn registered(version: &str) -> Registered {
        Registered {
            group: "a.io".into(),
            version: version.into(),
            group_priority: 1,
            version_priority: 1,
            service: ServiceReference { namespace: "ns".into(), name: "svc".into(), port: 443 },
            trust: Trust::Anybody,
        }
    }

    fn route(of: &Registered) -> Arc<ProxyRoute> {
        let backend = Err("none".to_owned());
        let names = (&*of.group, &*of.version);
        Arc::new(ProxyRoute::new(names, of.service.clone(), backend, Arc::new(Nowhere), Arc::default()))
    }

    fn put(known: &mut Registrations, version: &str, now: Instant) -> Arc<ProxyRoute> {
        let (registered, name) = (registered(version), format!("{version}.a.io"));
        let route = route(&registered);
        known.put(name, "uid".to_owned(), registered, route.clone(), now);
        route
    }

    #[test]
    fn one_that_is_not_there_is_looked_at_later_each_time_and_at_once_when_its_service_changes() {
        let (mut known, mut now) = (Registrations::default(), Clock::system().now());
        let route = put(&mut known, "v1", now);
        let mut waits = Vec::new();
        for _ in 0..12 {
            let task = known.next(now).expect("due");
            assert!(known.next(now).is_none(), "one at a time");
            known.looked((&task.name, &route), None, false, now);
            waits.push(known.next_due().expect("again") - now);
            now = known.next_due().expect("again");
        }
        assert!(waits.windows(2).all(|pair| pair[1] >= pair[0]), "{waits:?}");
        assert_eq!((waits[0], waits[11]), (RETRY.0, RETRY.1));
        known.next(now).expect("due");
        known.looked(("v1.a.io", &route), None, false, now);
        known.service_changed("ns", "other", now);
        assert!(known.next(now).is_none());
        known.service_changed("ns", "svc", now);
        assert!(known.next(now).is_some());
    }

    #[test]
    fn what_one_serves_is_asked_once_in_a_while_and_told_when_it_is_other() {
        let (mut known, now) = (Registrations::default(), Clock::system().now());
        let route = put(&mut known, "v1", now);
        let task = known.next(now).expect("due");
        let wanted = task.wanted.expect("never asked");
        let told = Extension { is_stale: false, ..wanted };
        assert!(known.looked((&task.name, &route), Some(told.clone()), true, now));
        let later = now + LOOK_EVERY;
        assert!(known.next(later).expect("due").wanted.is_none());
        assert!(!known.looked((&task.name, &route), None, true, later));
        let later = now + DOCUMENTS_EVERY;
        assert!(known.next(later).expect("due").wanted.is_some());
        assert!(!known.looked((&task.name, &route), Some(told), true, later), "the same");
    }

    #[test]
    fn what_was_found_out_of_one_that_is_another_now_is_nothing() {
        let (mut known, now) = (Registrations::default(), Clock::system().now());
        let before = put(&mut known, "v1", now);
        let task = known.next(now).expect("due");
        put(&mut known, "v1", now);
        let told = Extension { is_stale: false, ..task.wanted.expect("never asked") };
        assert!(!known.looked((&task.name, &before), Some(told), true, now));
        assert!(known.next(now).is_some(), "it is looked at itself");
    }

    #[test]
    fn they_are_told_by_group_and_version() {
        let (mut known, now) = (Registrations::default(), Clock::system().now());
        for version in ["v2", "v1", "v10"] {
            put(&mut known, version, now);
        }
        let (routes, extensions) = known.told();
        let versions: Vec<&str> = routes.iter().map(|route| &*route.version).collect();
        assert_eq!((versions, extensions.len()), (vec!["v1", "v10", "v2"], 3));
        assert!(known.remove("v1.a.io") && !known.remove("v1.a.io"));
    }
}
