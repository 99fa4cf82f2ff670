//! `kube::runtime` on top of an informer: its streams of events, and its `Controller`.
//!
//! In: a subscription. Out: `watcher::Event`s as kube's own watcher tells them, and a `Controller` over
//! metadata. Never: a second copy of the objects: kube's store keeps decoded objects, so it is given metadata
//! alone, and a reconciler reads the whole from the informer. A stream of whole `K`s into
//! `kube::runtime::reflector` works too, and costs three to five times their JSON.

use forebay_view::Handle;
use futures_util::stream::{self, Stream};
use kube::Resource;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{Controller, WatchStreamExt as _, reflector};
use serde::de::{DeserializeOwned, Error as _};

use crate::informer::Informer;
use crate::subscription::{Notice, Subscription};

/// Where a stream stands.
struct Telling<K> {
    subscription: Subscription<K>,
    begun: bool,
    synced: bool,
}

impl<K: Send + Sync + 'static> Informer<K> {
    /// What `kube::runtime::watcher` tells of the same objects, but that it never begins anew: one `Init`,
    /// and what differs after a list is told as `Apply` and `Delete`. An object that is no `K` is an error,
    /// and the stream goes on.
    pub fn events(&self) -> impl Stream<Item = watcher::Result<Event<K>>> + Send + use<K>
    where
        K: Clone + DeserializeOwned,
    {
        tell(self.subscribe())
    }

    /// The same with metadata alone, as `kube::runtime::metadata_watcher` tells it.
    pub fn metadata_events(
        &self,
    ) -> impl Stream<Item = watcher::Result<Event<PartialObjectMeta<K>>>> + Send + use<K>
    where
        K: Clone,
    {
        tell(self.cast::<PartialObjectMeta<K>>().subscribe())
    }

    /// A `Controller` of the informer's objects. Its store and its reconciler have their metadata; what else
    /// a reconciler needs it reads from [`Informer::view`], where it is not held twice.
    pub fn controller(&self) -> Controller<PartialObjectMeta<K>>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug,
    {
        let (reader, writer) = reflector::store();
        let objects = reflector::reflector(writer, self.metadata_events()).applied_objects();
        Controller::for_stream(objects, reader)
    }
}

fn tell<J>(subscription: Subscription<J>) -> impl Stream<Item = watcher::Result<Event<J>>> + Send
where
    J: Clone + DeserializeOwned + Send + Sync + 'static,
{
    let telling = Telling { subscription, begun: false, synced: false };
    stream::unfold(telling, |mut telling| async move {
        if !std::mem::replace(&mut telling.begun, true) {
            return Some((Ok(Event::Init), telling));
        }
        loop {
            let event = match telling.subscription.next().await {
                Notice::Added(new) if !telling.synced => whole(&new).map(Event::InitApply),
                Notice::Added(new) | Notice::Updated { new, .. } => whole(&new).map(Event::Apply),
                Notice::Deleted(gone) => whole(&gone).map(Event::Delete),
                Notice::Resync(object) => whole(&object).map(Event::Apply),
                Notice::Synced => {
                    telling.synced = true;
                    Ok(Event::InitDone)
                }
                Notice::Relisted { .. } => continue,
                // As kube's own watcher has it where it begins anew.
                Notice::LetGo { .. } => {
                    telling.synced = false;
                    Ok(Event::Init)
                }
                Notice::Ended => return None,
            };
            return Some((event, telling));
        }
    })
}

fn whole<J: Clone + DeserializeOwned>(object: &Handle<J>) -> watcher::Result<J> {
    object.typed().cloned().map_err(|error| {
        watcher::Error::WatchFailed(kube::Error::SerdeError(serde_json::Error::custom(error)))
    })
}
