//! What happens to the objects of an informer, told to one who listens, at its own pace.
//!
//! In: followers of caches, one for each namespace that is watched by itself. Out: [`Notice`]s. Owner:
//! whoever listens. Never: loses or repeats a change, waits for anybody, holds anybody up.

use std::marker::PhantomData;
use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_object::Object;
use forebay_rt::{Alarm, Duration, Instant};
use forebay_view::{Handle, TypeMeta};
use forebay_watchcache::{Changed, Followed, Follower};

use crate::change::key;
use crate::progress::Awaiting;
use crate::shared::Shared;

/// What a subscription tells.
pub enum Notice<K> {
    /// It is there and was not; what there is at the beginning among them.
    Added(Handle<K>),
    /// It is another one: the last that was told, and the one that is there now.
    Updated { old: Handle<K>, new: Handle<K> },
    /// It is gone; its last state.
    Deleted(Handle<K>),
    /// Everything was told that was there at the beginning. Once, or once more after [`Notice::LetGo`].
    Synced,
    /// A whole state had to be asked for, and so many objects were not as they had been; all of them were
    /// told by now.
    Relisted { differences: usize },
    /// What there is is more than the informer may hold, and it has let go of all of it, or of what it held
    /// of a namespace where it watches some by themselves. What was told of that counts no more, and was not
    /// deleted: once it fits it is told anew, as at the beginning, with another [`Notice::Synced`] behind it.
    LetGo { namespace: Option<String> },
    /// Nothing happened to it; it is told because a [resync](Subscription::resync) was asked for.
    Resync(Handle<K>),
    /// The informer has ended. Nothing follows.
    Ended,
}

/// See the module's doc. It keeps the informer alive.
pub struct Subscription<K> {
    shared: Arc<Shared>,
    followers: Vec<Follower>,
    // Whose turn it is to be asked first.
    turn: usize,
    // Which have told of all that there was at the beginning.
    synced: Vec<bool>,
    ended: usize,
    kind: Arc<TypeMeta>,
    resync: Option<Resync>,
    // It goes before what nobody listens to.
    _awaits: Awaiting,
    of: PhantomData<fn() -> K>,
}

struct Resync {
    every: Duration,
    at: Instant,
    alarm: Alarm,
    // What is still to be told, the last first.
    left: Vec<Arc<Object>>,
}

impl<K> Subscription<K> {
    pub(crate) fn new(shared: Arc<Shared>, followers: Vec<Follower>, kind: Arc<TypeMeta>) -> Subscription<K> {
        let synced = vec![false; followers.len()];
        Subscription {
            _awaits: shared.await_it(),
            shared,
            followers,
            turn: 0,
            synced,
            ended: 0,
            kind,
            resync: None,
            of: PhantomData,
        }
    }

    /// Has every object told again every so often, though nothing happened to it: for work that depends on
    /// something else.
    #[must_use]
    pub fn resync(mut self, every: Duration) -> Subscription<K> {
        let at = self.shared.clock.now() + every;
        self.resync = Some(Resync { every, at, alarm: Alarm::default(), left: Vec::new() });
        self
    }

    /// What comes next; [`Notice::Ended`] again and again after the end. Cancel-safe.
    pub async fn next(&mut self) -> Notice<K> {
        loop {
            if let Some(next) = self.try_next() {
                return next;
            }
            if self.ended == self.followers.len() {
                return Notice::Ended;
            }
            self.ready().await;
        }
    }

    /// The same if there is something now; never waits.
    pub fn try_next(&mut self) -> Option<Notice<K>> {
        let (count, mut empty) = (self.followers.len(), 0);
        while empty < count {
            match self.followers[self.turn].try_next() {
                Some(next) => {
                    if let Some(notice) = self.notice(next) {
                        return Some(notice);
                    }
                }
                None => {
                    self.turn = (self.turn + 1) % count;
                    empty += 1;
                }
            }
        }
        self.resynced()
    }

    /// Waits until [`Subscription::try_next`] may have something. Cancel-safe.
    pub async fn ready(&mut self) {
        let due = async {
            match &mut self.resync {
                Some(Resync { at, alarm, .. }) => alarm.rings(*at).await,
                None => std::future::pending().await,
            }
        };
        let waits = self.followers.iter_mut().map(|follower| Box::pin(follower.ready()));
        tokio::select! { _ = futures_util::future::select_all(waits) => {} () = due => {} }
    }

    /// The revision up to which everything was told: the lowest where there are several namespaces.
    pub fn revision(&self) -> Option<Revision> {
        self.followers.iter().map(Follower::revision).collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// Changes that were told as the sum of several, because this one was too slow for each.
    pub fn conflated(&self) -> u64 {
        self.followers.iter().map(Follower::conflated).sum()
    }

    /// An object as it was told last, if it was told and is there.
    pub(crate) fn told_of(&self, namespace: &str, name: &str) -> Option<Handle<K>> {
        let key = key(namespace, name);
        let told = self.followers.iter().find_map(|follower| follower.told_of(&key))?;
        Some(self.handle(told.clone()))
    }

    fn notice(&mut self, next: Followed) -> Option<Notice<K>> {
        Some(match next {
            Followed::Change(Changed { previous: None, current: Some(new), .. }) => {
                Notice::Added(self.handle(new))
            }
            Followed::Change(Changed { previous: Some(old), current: Some(new), .. }) => {
                Notice::Updated { old: self.handle(old), new: self.handle(new) }
            }
            Followed::Change(Changed { previous: Some(old), current: None, .. }) => {
                Notice::Deleted(self.handle(old))
            }
            Followed::Change(Changed { previous: None, current: None, .. }) => return None,
            Followed::Synced(_) => {
                self.synced[self.turn] = true;
                return self.has_synced().then_some(Notice::Synced);
            }
            Followed::Relisted(states) => Notice::Relisted { differences: states.differences },
            Followed::LetGo => {
                self.synced[self.turn] = false;
                if let Some(resync) = &mut self.resync {
                    resync.left.clear();
                }
                Notice::LetGo { namespace: self.shared.parts[self.turn].namespace.clone() }
            }
            Followed::Ended => {
                self.ended += 1;
                return (self.ended == self.followers.len()).then_some(Notice::Ended);
            }
        })
    }

    fn has_synced(&self) -> bool {
        self.synced.iter().all(|synced| *synced)
    }

    fn resynced(&mut self) -> Option<Notice<K>> {
        let has_synced = self.has_synced();
        let resync = self.resync.as_mut().filter(|_| has_synced)?;
        if resync.left.is_empty() && self.shared.clock.now() >= resync.at {
            resync.at = self.shared.clock.now() + resync.every;
            resync.left = self.followers.iter().rev().flat_map(|follower| follower.told().rev()).collect();
        }
        let next = resync.left.pop()?;
        Some(Notice::Resync(self.handle(next)))
    }

    fn handle(&self, object: Arc<Object>) -> Handle<K> {
        Handle::new(object, self.kind.clone())
    }
}
