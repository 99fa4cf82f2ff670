//! The APIServices whose versions other servers serve, and when each is looked at next.
//!
//! In: what they say, what was found out. Out: who is to be looked at, and who is to be asked what it serves;
//! routes and extensions. Never: asks anybody, reads a clock.
//!
//! Owner: the task that follows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_documents::discovery::Extension;
use forebay_proxy::ProxyRoute;
use forebay_proxy::limits::ROUTES_MAX;
use forebay_rt::{Duration, Instant};

use crate::limits::{DOCUMENTS_EVERY, DOCUMENTS_RETRY, LOOK_EVERY, RESOURCES_ALL_BYTES_MAX, RETRY};
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
    documents: Documents,
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Due(Instant),
    Looked,
    /// It has changed while it was looked at.
    LookedAgain,
}

/// When it is asked what it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Documents {
    /// Once it is there.
    Later,
    Due(Instant),
    Asked,
}

/// One that is to be looked at.
pub struct Task {
    pub name: String,
    pub uid: String,
    pub registered: Registered,
    pub route: Arc<ProxyRoute>,
}

/// One that is to be asked what it serves.
pub struct Question {
    pub name: String,
    pub path: String,
    pub route: Arc<ProxyRoute>,
    /// What is told of it until then.
    pub told: Extension,
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
        let (place, documents) = (Place::Due(now), Documents::Later);
        self.0
            .insert(name, Registration { registered, uid, route, extension, place, failures: 0, documents });
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
        Some(Task {
            name: name.clone(),
            uid: entry.uid.clone(),
            registered: entry.registered.clone(),
            route: entry.route.clone(),
        })
    }

    /// Takes what was found out of one, unless it is another by now. Whether something else is told of it.
    ///
    /// - `is_there`: it answers; `is_well`: and that is written.
    pub fn looked(
        &mut self,
        (name, route): (&str, &Arc<ProxyRoute>),
        (is_there, is_well): (bool, bool),
        now: Instant,
    ) -> bool {
        let Some(entry) = self.entry(name, route) else { return false };
        entry.failures = if is_well { 0 } else { entry.failures.saturating_add(1) };
        let wait = if is_well { LOOK_EVERY } else { retry(entry.failures) };
        let is_again = entry.place == Place::LookedAgain;
        entry.place = Place::Due(if is_again { now + RETRY.0 } else { now + wait });
        match (is_there, entry.documents) {
            (true, Documents::Later) => {
                entry.documents = Documents::Due(now);
                false
            }
            (true, Documents::Due(_) | Documents::Asked) => false,
            (false, _) => {
                entry.documents = Documents::Later;
                entry.is_stale()
            }
        }
    }

    /// When the next is to be asked what it serves.
    pub fn next_question_due(&self) -> Option<Instant> {
        let due = self.0.values().filter_map(|entry| match entry.documents {
            Documents::Due(at) => Some(at),
            Documents::Later | Documents::Asked => None,
        });
        due.min()
    }

    /// The one to ask now, if there is one; it is out until [`Registrations::answered`].
    pub fn next_question(&mut self, now: Instant) -> Option<Question> {
        let due = self.0.iter_mut().filter_map(|(name, entry)| match entry.documents {
            Documents::Due(at) if at <= now => Some((at, name, entry)),
            _ => None,
        });
        let (_, name, entry) = due.min_by_key(|(at, ..)| *at)?;
        entry.documents = Documents::Asked;
        let (name, path, route) = (name.clone(), entry.registered.path(), entry.route.clone());
        Some(Question { name, path, route, told: entry.extension.clone() })
    }

    /// Takes what one says it serves, unless it is another by now, or is not there any more. Whether
    /// something else is told of it.
    ///
    /// - `extension`: `None` where that is not known. Beyond what all of them may take it is as if it were
    ///   not.
    pub fn answered(
        &mut self,
        (name, route): (&str, &Arc<ProxyRoute>),
        extension: Option<Extension>,
        now: Instant,
    ) -> bool {
        let of_all: usize = self.0.values().map(|entry| entry.extension.told_bytes).sum();
        let Some(entry) = self.entry(name, route) else { return false };
        if entry.documents != Documents::Asked {
            return false;
        }
        let beside = of_all - entry.extension.told_bytes;
        let fits = |extension: &Extension| {
            let fits = beside + extension.told_bytes <= RESOURCES_ALL_BYTES_MAX;
            if !fits {
                tracing::warn!(name, bytes = extension.told_bytes, "there is no room to tell what it serves");
            }
            fits
        };
        let Some(extension) = extension.filter(fits) else {
            entry.documents = Documents::Due(now + DOCUMENTS_RETRY);
            return entry.is_stale();
        };
        entry.documents = Documents::Due(now + DOCUMENTS_EVERY);
        let is_other = extension != entry.extension;
        entry.extension = extension;
        is_other
    }

    fn entry(&mut self, name: &str, route: &Arc<ProxyRoute>) -> Option<&mut Registration> {
        self.0.get_mut(name).filter(|entry| Arc::ptr_eq(&entry.route, route))
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

impl Registration {
    /// What it serves is not known any more. Whether it was.
    fn is_stale(&mut self) -> bool {
        let stale = Extension {
            resources: Default::default(),
            told_bytes: 0,
            is_stale: true,
            openapi_url: None,
            openapi_v2: None,
            ..self.extension.clone()
        };
        let was_known = stale != self.extension;
        self.extension = stale;
        was_known
    }
}

/// Before one is looked at again, or its condition is written again, after so many failures.
pub fn retry(failures: u32) -> Duration {
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
            known.looked((&task.name, &route), (false, false), now);
            waits.push(known.next_due().expect("again") - now);
            now = known.next_due().expect("again");
        }
        assert!(waits.windows(2).all(|pair| pair[1] >= pair[0]), "{waits:?}");
        assert_eq!((waits[0], waits[11]), (RETRY.0, RETRY.1));
        known.next(now).expect("due");
        known.looked(("v1.a.io", &route), (false, false), now);
        known.service_changed("ns", "other", now);
        assert!(known.next(now).is_none());
        known.service_changed("ns", "svc", now);
        assert!(known.next(now).is_some());
    }

    fn told(question: &Question, told_bytes: usize) -> Option<Extension> {
        Some(Extension { is_stale: false, told_bytes, ..question.told.clone() })
    }

    #[test]
    fn what_one_serves_is_asked_once_it_is_there_and_told_when_it_is_other() {
        let (mut known, now) = (Registrations::default(), Clock::system().now());
        let route = put(&mut known, "v1", now);
        assert!(known.next_question(now).is_none(), "it may not be there");
        let task = known.next(now).expect("due");
        let of = (&*task.name, &route);
        assert!(!known.looked(of, (true, true), now), "nothing is known yet");
        assert_eq!(known.next_due(), Some(now + LOOK_EVERY));
        let question = known.next_question(now).expect("it is there");
        assert!(known.next_question(now).is_none(), "one at a time");
        // However long it takes to say, it is looked at, and that it is there stays so.
        let later = now + LOOK_EVERY;
        known.next(later).expect("due");
        assert!(!known.looked(of, (true, true), later));
        assert!(known.answered(of, told(&question, 5), later));
        assert_eq!(known.next_question_due(), Some(later + DOCUMENTS_EVERY));
        let later = later + DOCUMENTS_EVERY;
        let question = known.next_question(later).expect("again");
        assert!(!known.answered(of, told(&question, 5), later), "the same");
    }

    #[test]
    fn what_one_serves_is_not_known_where_it_does_not_say_or_is_not_there() {
        let (mut known, now) = (Registrations::default(), Clock::system().now());
        let route = put(&mut known, "v1", now);
        let of = ("v1.a.io", &route);
        let is_stale = |known: &Registrations| known.told().1[0].is_stale;
        known.next(now).expect("due");
        known.looked(of, (true, true), now);
        let question = known.next_question(now).expect("it is there");
        assert!(known.answered(of, told(&question, 5), now) && !is_stale(&known));
        let later = now + DOCUMENTS_EVERY;
        let question = known.next_question(later).expect("again");
        assert!(known.answered(of, None, later) && is_stale(&known));
        assert_eq!(known.next_question_due(), Some(later + DOCUMENTS_RETRY));
        let later = later + DOCUMENTS_RETRY;
        known.next_question(later).expect("again");
        assert!(known.answered(of, told(&question, 5), later) && !is_stale(&known));
        // It goes while it is asked.
        let later = later + DOCUMENTS_EVERY;
        let question = known.next_question(later).expect("again");
        assert!(known.looked(of, (false, true), later) && is_stale(&known));
        assert!(!known.answered(of, told(&question, 5), later) && is_stale(&known));
        assert_eq!(known.next_question_due(), None);
    }

    #[test]
    fn what_all_of_them_serve_is_told_as_far_as_there_is_room() {
        let (mut known, now) = (Registrations::default(), Clock::system().now());
        let half = RESOURCES_ALL_BYTES_MAX / 2;
        let mut fits = Vec::new();
        for (version, bytes) in [("v1", half), ("v2", half + 1), ("v3", half)] {
            let route = put(&mut known, version, now);
            let task = known.next(now).expect("due");
            known.looked((&task.name, &route), (true, true), now);
            let question = known.next_question(now).expect("it is there");
            known.answered((&task.name, &route), told(&question, bytes), now);
            fits.push(known.told().1.iter().filter(|extension| !extension.is_stale).count());
        }
        assert_eq!(fits, [1, 1, 2]);
    }

    #[test]
    fn what_was_found_out_of_one_that_is_another_now_is_nothing() {
        let (mut known, now) = (Registrations::default(), Clock::system().now());
        let before = put(&mut known, "v1", now);
        let task = known.next(now).expect("due");
        known.looked((&task.name, &before), (true, true), now);
        let question = known.next_question(now).expect("it is there");
        put(&mut known, "v1", now);
        assert!(!known.answered((&task.name, &before), told(&question, 5), now));
        assert!(!known.looked((&task.name, &before), (false, true), now));
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
