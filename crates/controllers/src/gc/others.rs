//! Other servers, as the collector follows them: which kinds they have, and what is heard of their objects.
//!
//! In: what is known of them, and notices. Out: the same in the collector's words. A server that is not there
//! tells nothing: what was heard of it stays. Never: waits; asks about a single object. Owned by the
//! collector's task.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::task::{Context, Poll};

use forebay_api::{
    BoxFuture, FollowElsewhere, KindElsewhere, KnownElsewhere, NoticeElsewhere, ObjectElsewhere,
    ObjectsElsewhere, PlaceElsewhere,
};
use forebay_apimachinery::{Caller, Key};
use forebay_rt::Instant;

use super::found::FoundOwners;
use super::graph::{Followed, Graph, ObjectReference, Uid};
use crate::limits;
use crate::meta::{Meta, OwnerReference};

/// The kinds of other servers, as owner references name them. Made anew when they are others.
#[derive(Default)]
pub struct OtherKinds {
    // `apiVersion/kind` -> it
    by_name: HashMap<String, Arc<KindElsewhere>>,
    // Every version of theirs, also of those of which nobody knows what they have.
    versions: HashSet<String>,
}

/// See the module's doc.
pub struct Others {
    objects: Option<Arc<dyn ObjectsElsewhere>>,
    account: Arc<Caller>,
    // What was known when it was last looked at; `None`: not even which servers there are.
    known: Option<KnownElsewhere>,
    kinds: Arc<OtherKinds>,
    // Ready when that is no longer so; `None`: it is to be looked at.
    changed: Option<BoxFuture<'static, ()>>,
    // By their numbers. <= ELSEWHERE_FOLLOWED_MAX
    followers: Vec<Follower>,
    // Versions of theirs of which it was known once what they have. <= those of `known`
    told: HashSet<String>,
    // Whose turn it is to tell first.
    turn: usize,
    // Since when something is not known of which there may be dependents.
    unsettled_since: Option<Instant>,
}

struct Follower {
    followed: Followed,
    of: Arc<KindElsewhere>,
    follow: Box<dyn FollowElsewhere>,
    synced: bool,
    // What is to be looked at because of it once all of it is known.
    touched: Vec<Uid>,
}

/// What there is to hear.
pub enum News {
    /// What is known of them is something else.
    Changed,
    Heard(Vec<(Followed, NoticeElsewhere)>),
}

impl OtherKinds {
    fn of(known: &KnownElsewhere) -> OtherKinds {
        let named =
            |of: &Arc<KindElsewhere>| (format!("{}/{}/{}", of.group, of.version, of.kind), of.clone());
        // Of several resources of a kind the first.
        let by_name = known.kinds.iter().rev().map(named).collect();
        OtherKinds { by_name, versions: known.versions.iter().cloned().collect() }
    }

    /// Whether another server serves `api_version`, whatever this one has of the same name.
    pub fn serve(&self, api_version: &str) -> bool {
        self.versions.contains(api_version)
    }

    pub fn kind(&self, api_version: &str, kind: &str) -> Option<&Arc<KindElsewhere>> {
        if self.by_name.is_empty() {
            return None;
        }
        self.by_name.get(&format!("{api_version}/{kind}"))
    }
}

impl Others {
    /// - `account`: in whose name they are asked.
    pub fn new(objects: Option<Arc<dyn ObjectsElsewhere>>, account: Arc<Caller>) -> Others {
        Others {
            objects,
            account,
            known: None,
            kinds: Arc::default(),
            changed: None,
            followers: Vec::new(),
            told: HashSet::new(),
            turn: 0,
            unsettled_since: None,
        }
    }

    /// Whether it is known which there are: before that, nobody can be said to be no other server's. Waits
    /// for none of them.
    pub fn are_known(&self) -> bool {
        self.objects.is_none() || self.known.is_some()
    }

    pub fn objects(&self) -> Option<&Arc<dyn ObjectsElsewhere>> {
        self.objects.as_ref()
    }

    pub fn kinds(&self) -> &Arc<OtherKinds> {
        &self.kinds
    }

    /// Follows what is known now, if that is something else than it was; those that are followed no longer.
    /// One whose server cannot be asked what it serves is.
    ///
    /// - `next`: the number of the next one that is followed.
    pub fn look(&mut self, next: &mut Followed) -> Option<Vec<Followed>> {
        let objects = self.objects.as_ref().filter(|_| self.changed.is_none())?.clone();
        let known = objects.known().ok();
        let (change, listening) = (known.as_ref().map_or(0, |known| known.change), objects.clone());
        self.changed = Some(Box::pin(async move { listening.changed(change).await }));
        let known = known?;
        let told: HashSet<&Arc<KindElsewhere>> = known.kinds.iter().filter(|of| of.is_followed).collect();
        let mut ended = Vec::new();
        self.followers.retain(|follower| {
            let stays = told.contains(&follower.of) || is_unknown(&known, &follower.of);
            if !stays {
                ended.push(follower.followed);
            }
            stays
        });
        let followed: HashSet<Arc<KindElsewhere>> = self.followers.iter().map(|one| one.of.clone()).collect();
        for of in known.kinds.iter().filter(|of| of.is_followed && !followed.contains(*of)) {
            if self.followers.len() >= limits::ELSEWHERE_FOLLOWED_MAX {
                tracing::warn!(group = %of.group, resource = %of.resource, "too many are followed: not collected");
                continue;
            }
            let follow = objects.follow(self.account.clone(), of.clone());
            let (followed, of) = (*next, of.clone());
            *next += 1;
            self.followers.push(Follower { followed, of, follow, synced: false, touched: Vec::new() });
        }
        let unknown: HashSet<&String> = known.unknown.iter().collect();
        let is_told = |version: &&String| self.told.contains(*version) || !unknown.contains(*version);
        self.told = known.versions.iter().filter(is_told).cloned().collect();
        self.kinds = Arc::new(OtherKinds::of(&known));
        self.known = Some(known);
        Some(ended)
    }

    /// Waits until there is something to hear; for ever where there are no other servers. Cancel-safe.
    pub async fn news(&mut self) -> News {
        std::future::poll_fn(|cx| self.poll_news(cx)).await
    }

    /// What there is to hear now.
    pub async fn heard_now(&mut self) -> Vec<(Followed, NoticeElsewhere)> {
        std::future::poll_fn(|cx| Poll::Ready(self.poll_heard(cx))).await
    }

    fn poll_news(&mut self, cx: &mut Context<'_>) -> Poll<News> {
        if let Some(changed) = &mut self.changed
            && changed.as_mut().poll(cx).is_ready()
        {
            self.changed = None;
            return Poll::Ready(News::Changed);
        }
        let heard = self.poll_heard(cx);
        if heard.is_empty() { Poll::Pending } else { Poll::Ready(News::Heard(heard)) }
    }

    fn poll_heard(&mut self, cx: &mut Context<'_>) -> Vec<(Followed, NoticeElsewhere)> {
        let (mut heard, count) = (Vec::new(), self.followers.len());
        for at in 0..count {
            let at = (self.turn + at) % count;
            let follower = &mut self.followers[at];
            while heard.len() < limits::NOTICES_MAX {
                let Poll::Ready(notice) = follower.follow.poll_next(cx) else { break };
                heard.push((follower.followed, notice));
            }
            if heard.len() >= limits::NOTICES_MAX {
                // The next one comes first then.
                self.turn = (at + 1) % count;
                break;
            }
        }
        heard
    }

    /// Takes a notice into the graph. `touched` gets what is to be looked at because of it, once everything
    /// of its kind is known.
    pub fn take(
        &mut self,
        (followed, notice): (Followed, NoticeElsewhere),
        graph: &mut Graph,
        found: &mut FoundOwners,
        touched: &mut Vec<Uid>,
    ) {
        let Some(at) = self.at(followed) else { return };
        let mut own = Vec::new();
        match notice {
            NoticeElsewhere::Put(object) => {
                let holder = graph.reference(&object.uid).map(|reference| reference.resource);
                // Whatever another server says: what is kept here is what it is here.
                if holder.is_none_or(|holder| self.at(holder).is_some()) {
                    put(graph, found, followed, object, &mut own);
                }
            }
            NoticeElsewhere::Gone(uid) => {
                let holder = graph.reference(&uid).map(|reference| reference.resource);
                if holder.is_none_or(|holder| holder == followed) {
                    found.lose(&uid);
                    graph.remove(&uid, &mut own);
                }
            }
            NoticeElsewhere::Synced => {
                self.followers[at].synced = true;
                own = std::mem::take(&mut self.followers[at].touched);
            }
            NoticeElsewhere::LetGo => {
                self.followers[at].synced = false;
                self.followers[at].touched = Vec::new();
                found.lose_all();
                graph.forget(followed, touched);
            }
        }
        let follower = &mut self.followers[at];
        if follower.synced { touched.append(&mut own) } else { follower.touched.append(&mut own) }
    }

    /// Where the object is that the graph has there, if that is on another server.
    pub fn place(&self, reference: ObjectReference<'_>) -> Option<PlaceElsewhere> {
        let of = self.followers[self.at(reference.resource)?].of.clone();
        Some(PlaceElsewhere { of, namespace: reference.namespace.into(), name: reference.name.into() })
    }

    /// Whether it is heard when the owner that `reference` means is gone.
    pub fn hears_of(&self, reference: &OwnerReference) -> bool {
        let Some(of) = self.kinds.kind(&reference.api_version, &reference.kind) else { return false };
        // Few, and not often.
        self.followers.iter().any(|follower| follower.synced && follower.of == *of)
    }

    /// Whether all dependents are known that other servers have, as far as that is waited for.
    ///
    /// # Errors
    /// What is not known yet.
    pub fn settled(&mut self, now: Instant) -> Result<(), String> {
        let Some(lacking) = self.lacking() else {
            self.unsettled_since = None;
            return Ok(());
        };
        let since = *self.unsettled_since.get_or_insert(now);
        if now.duration_since(since) >= limits::ELSEWHERE_SETTLE_WAIT { Ok(()) } else { Err(lacking) }
    }

    fn lacking(&self) -> Option<String> {
        self.objects.as_ref()?;
        let Some(known) = &self.known else { return Some("other servers are not known yet".to_owned()) };
        if let Some(follower) = self.followers.iter().find(|follower| !follower.synced) {
            return Some(format!("{}.{} are not listed yet", follower.of.resource, follower.of.group));
        }
        let never_told = known.unknown.iter().find(|version| !self.told.contains(*version));
        never_told.map(|version| format!("it is not known yet what {version} has"))
    }

    fn at(&self, followed: Followed) -> Option<usize> {
        self.followers.binary_search_by_key(&followed, |follower| follower.followed).ok()
    }
}

fn is_unknown(known: &KnownElsewhere, of: &KindElsewhere) -> bool {
    known.unknown.iter().any(|version| is_of(of, version))
}

fn is_of(of: &KindElsewhere, version: &str) -> bool {
    version.split_once('/') == Some((&of.group, &of.version))
}

fn put(
    graph: &mut Graph,
    found: &mut FoundOwners,
    followed: Followed,
    object: ObjectElsewhere,
    touched: &mut Vec<Uid>,
) {
    let ObjectElsewhere { namespace, name, uid, is_deleting, finalizers, owners } = object;
    let owner_references = owners.into_iter().map(|owner| OwnerReference {
        api_version: owner.api_version,
        kind: owner.kind,
        name: owner.name,
        uid: owner.uid,
        block_owner_deletion: Some(owner.blocks),
        controller: None,
    });
    let meta = Meta {
        uid: uid.into(),
        // When is nothing to the graph.
        deletion_timestamp: is_deleting.then(String::new),
        finalizers,
        owner_references: owner_references.collect(),
        ..Meta::default()
    };
    if is_deleting {
        found.lose(&meta.uid);
    }
    let owned = found.has_all(&namespace, &meta.owner_references);
    // Of no store: it ends as theirs do.
    let key = Key::from(format!("/{namespace}/{name}"));
    let reference = ObjectReference { resource: followed, namespace: &namespace, name: &name };
    graph.put(&key, reference, &meta, owned, touched);
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use forebay_apimachinery::Status;
    use forebay_apimachinery::options::DeleteOptions;
    use forebay_rt::{Clock, Duration};
    use serde_json::Value;

    use super::*;

    /// Says that it is so, and knows nothing else.
    struct Said(Mutex<KnownElsewhere>);

    fn a_version(is_unknown: bool) -> KnownElsewhere {
        let versions = vec!["a.io/v1".to_owned()];
        let unknown = versions.iter().filter(|_| is_unknown).cloned().collect();
        KnownElsewhere { versions, unknown, change: 1, ..KnownElsewhere::default() }
    }

    impl ObjectsElsewhere for Said {
        fn known(&self) -> Result<KnownElsewhere, Status> {
            Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
        }

        fn changed(&self, _: u64) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }

        fn follow(&self, _: Arc<Caller>, _: Arc<KindElsewhere>) -> Box<dyn FollowElsewhere> {
            unreachable!("nothing is known to follow")
        }

        fn metadata<'a>(
            &'a self,
            _: &'a Caller,
            _: &'a PlaceElsewhere,
        ) -> BoxFuture<'a, Result<Option<Value>, Status>> {
            Box::pin(async { Err(Status::internal("unknown")) })
        }

        fn delete<'a>(
            &'a self,
            _: &'a Caller,
            _: &'a PlaceElsewhere,
            _: &'a DeleteOptions,
        ) -> BoxFuture<'a, Result<(), Status>> {
            Box::pin(async { Err(Status::internal("unknown")) })
        }

        fn merge<'a>(
            &'a self,
            _: &'a Caller,
            _: &'a PlaceElsewhere,
            _: &'a Value,
        ) -> BoxFuture<'a, Result<(), Status>> {
            Box::pin(async { Err(Status::internal("unknown")) })
        }
    }

    #[test]
    fn a_server_that_never_tells_what_it_has_is_waited_for_and_not_for_ever() {
        let now = Clock::system().now();
        let said = Arc::new(Said(Mutex::new(a_version(true))));
        let (mut others, mut next) = (Others::new(Some(said), Arc::default()), 0);
        assert!(!others.are_known());
        assert_eq!(others.settled(now), Err("other servers are not known yet".to_owned()));
        assert_eq!(others.look(&mut next), Some(Vec::new()));
        assert!(others.are_known(), "as far as that waits for nobody");
        let later = now + limits::ELSEWHERE_SETTLE_WAIT;
        let early = later - Duration::from_millis(1);
        assert_eq!(others.settled(early), Err("it is not known yet what a.io/v1 has".to_owned()));
        assert_eq!(others.settled(later), Ok(()));
        assert_eq!(Others::new(None, Arc::default()).settled(now), Ok(()), "there are none");
    }

    #[test]
    fn one_that_told_once_what_it_has_is_not_waited_for_when_it_is_away() {
        let now = Clock::system().now();
        let said = Arc::new(Said(Mutex::new(a_version(false))));
        let (mut others, mut next) = (Others::new(Some(said.clone()), Arc::default()), 0);
        assert_eq!(others.look(&mut next), Some(Vec::new()));
        assert_eq!(others.settled(now), Ok(()));
        *said.0.lock().unwrap_or_else(PoisonError::into_inner) = a_version(true);
        others.changed = None;
        assert_eq!(others.look(&mut next), Some(Vec::new()));
        assert_eq!(others.settled(now), Ok(()));
    }
}
