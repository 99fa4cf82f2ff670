//! Which cluster answers, by the id that every answer of etcd begins with.
//!
//! An etcd that is restored from a backup may be another cluster, and revisions of one say nothing of the
//! other. It may also keep its id, and is then known by a revision that is below one that was told before: as
//! good as another cluster. In: the header of each answer, and the [`Generation`] that it was asked under.
//! Out: a [`RequestError`] for an answer of another cluster than was asked; for each prefix that is read,
//! once, the end of its feed. Never: takes one cluster for another and back without a pause, to which
//! endpoints of two clusters would lead.
//!
//! Owner of what is known: whoever notes an answer, under the channel's lock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_apimachinery::Revision;
use forebay_backend::FeedError;
use forebay_rt::{Clock, Duration, Instant};
use tokio::sync::watch;

use crate::error::RequestError;
use crate::limits;
use crate::messages::Header;

/// See the module's doc.
pub(crate) struct Cluster {
    clock: Clock,
    known: watch::Sender<Known>,
    // The highest revision that an answer told, of whichever cluster.
    highest: AtomicU64,
    // The highest revision that answers told which were asked for under this generation.
    told: Mutex<(Generation, u64)>,
    // Prefix -> the generation of what its reader has; at most PREFIXES_MAX.
    readers: Mutex<HashMap<Box<str>, Generation>>,
}

/// How many clusters there were before the one that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(u64);

/// What was known when something was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) generation: Generation,
    // The highest revision that its cluster had told: what is current is not below it.
    told: u64,
}

impl Asked {
    /// The highest revision that the cluster had told.
    pub(crate) fn told(self) -> u64 {
        self.told
    }
}

/// The cluster that answers.
#[derive(Debug, Clone, Copy)]
struct Known {
    // 0 before the first answer.
    id: u64,
    generation: Generation,
    // The revision that it was at when it took the place of another.
    begun_at: u64,
    // The highest revision that those before it had told.
    lost_upto: u64,
    // Until when no other one takes its place, and how long that is.
    held: Option<(Instant, Duration)>,
}

/// Whose an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Of the cluster that was asked.
    Asked,
    /// Of the one that has taken its place.
    Successor,
    /// Of one that is not known any more, or not to be.
    Stranger,
}

impl Cluster {
    pub(crate) fn new(clock: Clock) -> Arc<Cluster> {
        let known = Known { id: 0, generation: Generation(0), begun_at: 0, lost_upto: 0, held: None };
        let known = watch::Sender::new(known);
        let (highest, told) = (AtomicU64::new(0), Mutex::new((Generation(0), 0)));
        Arc::new(Cluster { clock, known, highest, told, readers: Mutex::default() })
    }

    /// What is asked from now on is asked under this.
    pub(crate) fn generation(&self) -> Generation {
        self.known.borrow().generation
    }

    /// What is known to whoever asks now.
    pub(crate) fn asked(&self) -> Asked {
        let generation = self.generation();
        let (of, told) = *self.told();
        Asked { generation, told: if of == generation { told } else { 0 } }
    }

    /// Waits until another cluster has taken the place of the one of `generation`. Cancel-safe.
    pub(crate) async fn replaced(&self, generation: Generation) {
        let mut known = self.known.subscribe();
        // The sending end is ours: it is there for as long as this waits.
        let _closed = known.wait_for(|known| known.generation != generation).await.map(drop);
    }

    /// Takes in the header of an answer to what was asked under `asked`, of a member that may lag behind
    /// others.
    ///
    /// # Errors
    /// The answer is not to be used: [`RequestError::Replaced`], [`RequestError::OtherCluster`].
    pub(crate) fn note(&self, header: Header, asked: Generation) -> Result<(), RequestError> {
        self.take(header, Asked { generation: asked, told: 0 })
    }

    /// The same of an answer that is of what is current, whichever member gave it: of a linearizable read, or
    /// a transaction. All that was told before it was asked for had been applied somewhere, so it had been
    /// committed, and such an answer comes after it. If its revision is below, the store went back, under the
    /// id that it had.
    ///
    /// # Errors
    /// As for [`Cluster::note`].
    pub(crate) fn note_current(&self, header: Header, asked: Asked) -> Result<(), RequestError> {
        self.take(header, asked)
    }

    fn take(&self, header: Header, asked: Asked) -> Result<(), RequestError> {
        // Those that etcd's gRPC proxy makes itself name none.
        if header.cluster == 0 {
            return Ok(());
        }
        let (now, highest) = (self.clock.now(), self.highest.load(Ordering::Acquire));
        let known = *self.known.borrow();
        let whose = match known.judge(header, asked, highest, now) {
            (whose, next) if next.is(known) => whose,
            // Another one may have been as fast.
            _ => self.replace(header, asked, highest, now),
        };
        match whose {
            Whose::Asked => {
                self.highest.fetch_max(header.revision, Ordering::AcqRel);
                self.tell(header.revision, asked.generation);
                Ok(())
            }
            Whose::Successor => Err(RequestError::Replaced),
            Whose::Stranger => Err(stranger(header.cluster, known.id)),
        }
    }

    fn replace(&self, header: Header, asked: Asked, highest: u64, now: Instant) -> Whose {
        let (mut judged, mut went_back) = (Whose::Asked, false);
        let changed = self.known.send_if_modified(|known| {
            let (whose, next) = known.judge(header, asked, highest, now);
            (judged, went_back) = (whose, next.id == known.id);
            let changed = !next.is(*known);
            *known = next;
            changed
        });
        let cluster = format!("{:x}", header.cluster);
        let Header { revision, .. } = header;
        match (changed && judged == Whose::Successor, went_back) {
            (false, _) => {}
            (true, true) => tracing::error!(
                cluster,
                revision,
                told = asked.told,
                "etcd is at an earlier revision than before: it was restored from a backup; everything is read again"
            ),
            (true, false) => tracing::error!(
                cluster,
                revision,
                "etcd is another cluster than before: it was restored from a backup, or the endpoints are of two clusters; \
                 everything is read again"
            ),
        }
        judged
    }

    /// Notes that an answer to what was asked under `asked` told `revision`.
    fn tell(&self, revision: u64, asked: Generation) {
        let mut told = self.told();
        *told = match told.0.cmp(&asked) {
            // One that is late says nothing of those that came after it.
            std::cmp::Ordering::Greater => *told,
            std::cmp::Ordering::Equal => (asked, revision.max(told.1)),
            std::cmp::Ordering::Less => (asked, revision),
        };
    }

    fn told(&self) -> MutexGuard<'_, (Generation, u64)> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a member that says that it is of cluster `id` may be asked.
    ///
    /// # Errors
    /// [`RequestError::OtherCluster`] while no other cluster takes the place of the known one.
    pub(crate) fn admit(&self, id: u64) -> Result<(), RequestError> {
        let known = *self.known.borrow();
        let may = id == known.id || id == 0 || !known.is_held(self.clock.now());
        if may { Ok(()) } else { Err(stranger(id, known.id)) }
    }

    /// Begins a feed of `prefix` after `after`, under the generation that is given back.
    ///
    /// # Errors
    /// [`FeedError::WentBack`], once, when what its reader has is of a cluster whose place was taken, and it
    /// was not told.
    pub(crate) fn begin_feed(&self, prefix: &str, after: Revision) -> Result<Generation, FeedError> {
        let had = self.reader(prefix);
        if had == self.generation() {
            return Ok(had);
        }
        self.forget(prefix);
        Err(self.went_back(after.get()))
    }

    /// Begins to read the state below `prefix`, under the generation that is given back.
    pub(crate) fn begin_state(&self, prefix: &str) -> Generation {
        let current = self.generation();
        self.reader(prefix);
        current
    }

    /// Notes that the reader of `prefix` was told to forget what it has.
    pub(crate) fn forget(&self, prefix: &str) {
        let current = self.generation();
        if let Some(had) = self.readers().get_mut(prefix) {
            *had = current;
        }
    }

    /// The end of a feed that had reached `reached` when another cluster took the place of its own.
    pub(crate) fn went_back(&self, reached: u64) -> FeedError {
        let known = *self.known.borrow();
        let revision = |number: u64| Revision::from_log(number.max(1));
        FeedError::WentBack {
            // What others were told is of the same future that never was.
            reached: revision(reached.max(known.lost_upto)),
            current: revision(known.begun_at),
        }
    }

    /// The generation of what the reader of `prefix` has; one that has nothing yet begins with the current
    /// one.
    fn reader(&self, prefix: &str) -> Generation {
        let current = self.generation();
        let mut readers = self.readers();
        if let Some(had) = readers.get(prefix) {
            return *had;
        }
        if readers.len() < limits::PREFIXES_MAX {
            readers.insert(prefix.into(), current);
        }
        current
    }

    fn readers(&self) -> MutexGuard<'_, HashMap<Box<str>, Generation>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Whose an answer to what was asked under `asked` is, and what is known then.
    ///
    /// - `highest`: the highest revision that was told so far.
    fn judge(self, header: Header, asked: Asked, highest: u64, now: Instant) -> (Whose, Known) {
        if self.id == 0 {
            return (Whose::Asked, Known { id: header.cluster, ..self });
        }
        let went_back = header.revision < asked.told && !self.is_held(now);
        match (header.cluster == self.id, asked.generation == self.generation) {
            (true, true) if went_back => (Whose::Successor, self.followed_by(header, highest, now)),
            (true, true) => (Whose::Asked, self),
            (true, false) => (Whose::Successor, self),
            (false, true) if !self.is_held(now) => (Whose::Successor, self.followed_by(header, highest, now)),
            // One that is late says nothing of which cluster answers now.
            (false, _) => (Whose::Stranger, self),
        }
    }

    /// Whether it is the same cluster, which has not gone back.
    fn is(&self, other: Known) -> bool {
        (self.id, self.generation) == (other.id, other.generation)
    }

    fn is_held(&self, now: Instant) -> bool {
        self.held.is_some_and(|(until, _)| now < until)
    }

    /// What is known once the cluster of `header` has taken the place of this one, or this one went back to
    /// it.
    fn followed_by(self, header: Header, highest: u64, now: Instant) -> Known {
        let (first, last) = limits::CLUSTER_HOLD;
        let hold = match self.held {
            Some((until, hold)) if now < until + last => (hold * 2).min(last),
            _ => first,
        };
        Known {
            id: header.cluster,
            generation: Generation(self.generation.0 + 1),
            begun_at: header.revision,
            lost_upto: highest,
            held: Some((now + hold, hold)),
        }
    }
}

fn stranger(id: u64, known: u64) -> RequestError {
    RequestError::OtherCluster { text: format!("its id is {id:x}, that of the cluster in use is {known:x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(cluster: &Cluster, id: u64, revision: u64, asked: Generation) -> &'static str {
        shown(cluster.note(Header { cluster: id, revision }, asked))
    }

    fn shown(noted: Result<(), RequestError>) -> &'static str {
        match noted {
            Ok(()) => "asked",
            Err(RequestError::Replaced) => "replaced",
            Err(RequestError::OtherCluster { .. }) => "stranger",
            Err(fault) => panic!("{fault}"),
        }
    }

    fn at(revision: u64) -> Revision {
        Revision::from_log(revision)
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_when_it_is_of_the_cluster_that_was_asked() {
        let clock = Clock::system();
        let cluster = Cluster::new(clock.clone());
        let first = cluster.generation();
        assert_eq!(note(&cluster, 0, 0, first), "asked", "it names none");
        assert_eq!(note(&cluster, 7, 9, first), "asked");
        assert_eq!(note(&cluster, 7, 5, first), "asked", "a member that lags behind");
        assert!(cluster.admit(8).is_ok());
        assert_eq!(note(&cluster, 8, 4, first), "replaced");
        let second = cluster.generation();
        assert_ne!(first, second);
        assert_eq!(note(&cluster, 8, 4, first), "replaced", "the other one was asked");
        assert_eq!(note(&cluster, 7, 9, first), "stranger", "it is late");
        assert_eq!(note(&cluster, 8, 4, second), "asked");
        assert_eq!(note(&cluster, 7, 9, second), "stranger", "so soon");
        assert_eq!([7, 8, 0].map(|id| cluster.admit(id).is_ok()), [false, true, true]);
        assert_eq!(cluster.generation(), second, "no stranger changes anything");
        clock.sleep(limits::CLUSTER_HOLD.0).await;
        assert!(cluster.admit(7).is_ok());
        assert_eq!(note(&cluster, 7, 9, second), "replaced");
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_went_back_is_known_by_a_revision_below_what_was_told_before_it_was_asked() {
        let clock = Clock::system();
        let cluster = Cluster::new(clock.clone());
        let now = |revision, asked| shown(cluster.note_current(Header { cluster: 7, revision }, asked));
        let begun = cluster.asked();
        assert_eq!(now(8, begun), "asked");
        assert_eq!(now(5, begun), "asked", "nothing was told when it was asked for");
        let first = cluster.begin_feed("/a/", at(3)).expect("first");
        assert_eq!(note(&cluster, 7, 9, first), "asked");
        assert_eq!(note(&cluster, 7, 5, first), "asked", "a member that lags behind");
        let asked = cluster.asked();
        assert_eq!(now(9, asked), "asked", "nothing was written");
        assert_eq!(cluster.generation(), first);
        assert_eq!(now(8, asked), "replaced");
        assert_eq!(now(12, asked), "replaced", "what it had was asked");
        assert_eq!(note(&cluster, 7, 12, first), "replaced");
        let end = cluster.begin_feed("/a/", at(3)).expect_err("not told yet");
        let FeedError::WentBack { reached, current } = end else { panic!("{end}") };
        assert_eq!((reached, current), (at(9), at(8)));
        assert_ne!(cluster.begin_feed("/a/", at(3)).expect("told"), first);
        assert_eq!(now(8, cluster.asked()), "asked", "of what it is now");
        assert_eq!(now(11, cluster.asked()), "asked");
        let second = cluster.generation();
        assert_eq!(now(10, cluster.asked()), "asked", "so soon");
        assert_eq!(cluster.generation(), second);
        clock.sleep(limits::CLUSTER_HOLD.0).await;
        assert_eq!(now(10, cluster.asked()), "replaced", "it was told 11");
        assert_eq!(now(10, cluster.asked()), "asked");
        // Of another cluster nothing was told yet.
        clock.sleep(limits::CLUSTER_HOLD.1).await;
        assert_eq!(note(&cluster, 8, 4, cluster.generation()), "replaced");
        let other = cluster.asked();
        assert_eq!(shown(cluster.note_current(Header { cluster: 8, revision: 4 }, other)), "asked");
    }

    #[tokio::test(start_paused = true)]
    async fn two_clusters_take_turns_more_and_more_seldom() {
        let clock = Clock::system();
        let cluster = Cluster::new(clock.clone());
        assert_eq!(note(&cluster, 9, 1, cluster.generation()), "asked");
        let mut seconds = Vec::new();
        for round in 0..7 {
            let begun = clock.now();
            while note(&cluster, round % 2 + 1, 1, cluster.generation()) == "stranger" {
                clock.sleep(Duration::from_secs(1)).await;
            }
            seconds.push((clock.now() - begun).as_secs());
        }
        assert_eq!(seconds, [0, 10, 20, 40, 80, 120, 120]);
        // One that has stood for long enough is not held up for what was before it.
        clock.sleep(limits::CLUSTER_HOLD.1 * 3).await;
        assert_eq!(note(&cluster, 3, 1, cluster.generation()), "replaced");
        clock.sleep(limits::CLUSTER_HOLD.0).await;
        assert_eq!(note(&cluster, 4, 1, cluster.generation()), "replaced");
    }

    #[test]
    fn the_reader_of_a_prefix_is_told_once_whatever_became_of_its_feed() {
        let cluster = Cluster::new(Clock::system());
        assert_eq!(note(&cluster, 7, 9, cluster.generation()), "asked");
        let begun = ["/told/", "/left/"].map(|prefix| cluster.begin_feed(prefix, at(3)).expect("first"));
        assert_eq!(begun, [cluster.generation(); 2]);
        assert_eq!(cluster.begin_state("/read/"), cluster.generation());
        assert_eq!(note(&cluster, 8, 4, cluster.generation()), "replaced");
        assert_ne!(begun, [cluster.generation(); 2]);
        cluster.forget("/told/");
        assert_eq!(cluster.begin_feed("/told/", at(3)).expect("told"), cluster.generation());
        // Its feed was lost before it was told, and a state whose feed was never opened.
        for prefix in ["/left/", "/read/"] {
            assert_eq!(cluster.begin_state(prefix), cluster.generation(), "what is read now is of now");
            let end = cluster.begin_feed(prefix, at(3)).expect_err("not told yet");
            let FeedError::WentBack { reached, current } = end else { panic!("{end}") };
            assert_eq!((reached, current), (at(9), at(4)), "{prefix}");
            assert_eq!(cluster.begin_feed(prefix, at(3)).expect("told"), cluster.generation());
        }
        assert!(cluster.begin_feed("/new/", at(3)).is_ok(), "it had nothing");
    }

    #[tokio::test]
    async fn who_waits_for_another_cluster_is_woken_by_it_and_by_nothing_else() {
        let cluster = Cluster::new(Clock::system());
        let first = cluster.generation();
        let mut waiting = Box::pin(cluster.replaced(first));
        for id in [7, 7, 8] {
            tokio::select! { biased; () = &mut waiting => panic!("{id}"), () = std::future::ready(()) => {} }
            let _ = cluster.note(Header { cluster: id, revision: 3 }, first);
        }
        waiting.await;
        cluster.replaced(first).await;
    }
}
