//! Custom resources in a version that only a webhook makes of what is stored.
//!
//! In: objects as they are stored, or as a client wrote them; who asks the webhook. Out: the same in another
//! version. A single object is converted when it is asked for, and kept for a while; who lists or watches
//! has a [`View`]: a cache of its own, in which each object is once, and into which each event is converted
//! once, however many read it. Never: knows what a webhook is; an object left out because it failed.
//!
//! A view takes what the objects take in the cache of what is stored, and goes when nobody has read it for
//! [`limits::VIEW_IDLE`](crate::limits::VIEW_IDLE). Where memory is short it is the first to go: it can be
//! made again.

mod attempts;
mod converter;
mod converts;
mod kept;
mod memo;
mod tell;
#[cfg(test)]
mod tests;
mod view;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use forebay_apimachinery::{Lease, Revision, Status};
use forebay_crd::Definition;
use forebay_object::Object;
use forebay_watchcache::Relief;
use serde_json::Value;

use crate::limits::{VIEW_IDLE, VIEW_IDLE_WHEN_SHORT};
use crate::opener::Opener;
use crate::request_context::RequestContext;
use crate::store::Store;
use converter::Converter;
pub use converts::{Converting, Converts};
use kept::{KeptObjects, identity};
pub use memo::Conversions;
pub use view::View;

/// What the versions of a definition are converted with.
#[derive(Clone)]
pub struct WebhookConversion {
    pub converts: Arc<dyn Converts>,
    pub opener: Opener,
    /// Whether objects may be stored in another version than they are now.
    pub is_mixed: bool,
}

/// One version of a definition whose objects a webhook converts.
pub struct Converted {
    converter: Arc<Converter>,
    opener: Opener,
    is_mixed: bool,
    // Locked for a few lines.
    kept: Mutex<KeptObjects>,
    // While somebody reads it. Locked for a few lines.
    view: Mutex<Option<Arc<View>>>,
    // Whether memory is so short that none is begun.
    is_short: AtomicBool,
}

impl Converted {
    /// - `version`: which of the definition's it is.
    /// - `since`: the revision at which the definition became what it is.
    pub(crate) fn new(
        definition: &Arc<Definition>,
        version: usize,
        since: Revision,
        store: &Arc<Store>,
        of: &WebhookConversion,
    ) -> Converted {
        let (definition, store, converts) = (definition.clone(), store.clone(), of.converts.clone());
        Converted {
            converter: Arc::new(Converter { definition, version, since, store, converts }),
            opener: of.opener.clone(),
            is_mixed: of.is_mixed,
            kept: Mutex::default(),
            view: Mutex::default(),
            is_short: AtomicBool::new(false),
        }
    }

    /// Whether what is stored may be in another version, so that who lists or watches needs a [`View`].
    pub fn has_view(&self) -> bool {
        self.is_mixed || !self.converter.is_stored()
    }

    /// What it takes at least to have the webhook asked for the object: its tree, what is sent, what comes
    /// back. Nothing where nobody needs to be asked.
    pub fn bytes_to_ask(&self, object: &Object) -> usize {
        const COPIES: usize = 4;
        if self.converter.is_shown(object) { 0 } else { COPIES * object.body_len() }
    }

    /// The object in this version. While the webhook is asked, the request has no turn.
    ///
    /// # Errors
    /// What the webhook says, or what is wrong with what it says; no room.
    pub async fn shown(
        &self,
        object: &Arc<Object>,
        (lease, context): (&Lease, &RequestContext),
    ) -> Result<Arc<Object>, Status> {
        if self.converter.is_shown(object) {
            return Ok(object.clone());
        }
        let identity = identity(object);
        if let Some(known) = self.known(object, identity) {
            return Ok(known);
        }
        let value = self.converter.value(object, lease)?;
        let asked = self.converter.convert(vec![value], self.converter.api_version(), lease);
        let mut made = context.away(asked).await?;
        let body = self.converter.body(made.pop().unwrap_or_default());
        let shown = self.converter.store.decode(object.key().clone(), object.revision(), &body)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.put(object, identity, shown.clone());
        Ok(shown)
    }

    /// The bytes that are stored for an object of this version. While the webhook is asked, the request has
    /// no turn.
    ///
    /// - `body`: the object as JSON, in this version.
    ///
    /// # Errors
    /// As [`Converted::shown`].
    pub async fn stored(
        &self,
        body: Bytes,
        (lease, context): (&Lease, &RequestContext),
    ) -> Result<Bytes, Status> {
        if self.converter.is_stored() {
            return Ok(body);
        }
        context.away(self.converter.stored(&body, lease)).await
    }

    /// An object of any of the versions in another, as the webhook has it. While that is asked, the request
    /// has no turn.
    ///
    /// # Errors
    /// As [`Converted::shown`].
    pub async fn convert(
        &self,
        value: Value,
        api_version: &str,
        (lease, context): (&Lease, &RequestContext),
    ) -> Result<Value, Status> {
        if value["apiVersion"] == api_version {
            return Ok(value);
        }
        let mut made = context.away(self.converter.convert(vec![value], api_version, lease)).await?;
        Ok(made.pop().unwrap_or_default())
    }

    /// All objects of this version. Is begun by who comes first; it may take a while.
    ///
    /// - `after`: the revision after which somebody wants events, which a view that is begun now then has, if
    ///   the store's cache does.
    ///
    /// # Errors
    /// 429 where none is there and memory is too short to begin one.
    pub fn view(self: &Arc<Self>, after: Option<Revision>) -> Result<Arc<View>, Status> {
        let mut place = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(view) = &*place {
            view.touch();
            return Ok(view.clone());
        }
        if self.is_short.load(Ordering::Relaxed) {
            return Err(view::no_memory(&self.converter.store.resource));
        }
        let view = Arc::new(View::open(&self.converter, &self.opener, after));
        *place = Some(view.clone());
        let (owner, own, clock) = (Arc::downgrade(self), Arc::downgrade(&view), self.opener.clock.clone());
        self.opener.tasks.spawn("conversion view", async move {
            loop {
                clock.sleep(VIEW_IDLE).await;
                if Converted::let_go(&owner, &own) {
                    return;
                }
            }
        });
        Ok(view)
    }

    /// Lets go of `own` if nobody has read it for long; whether it is gone.
    fn let_go(owner: &Weak<Converted>, own: &Weak<View>) -> bool {
        let Some(owner) = owner.upgrade() else { return true };
        let mut place = owner.view.lock().unwrap_or_else(PoisonError::into_inner);
        let is_own = |view: &Arc<View>| std::ptr::eq(Arc::as_ptr(view), own.as_ptr());
        // Nobody else has it, nor can get it now.
        let gone =
            place.take_if(|view| is_own(view) && Arc::strong_count(view) == 1 && view.is_idle(VIEW_IDLE));
        let is_gone = !place.as_ref().is_some_and(is_own);
        drop(place);
        drop(gone);
        is_gone
    }

    /// Lets go of what memory is too short for. What was made of what is there can be made again, so that it
    /// goes before anything else does: first what nobody has read for a moment, then what nobody reads, and
    /// at last what is read. Whether a view went.
    pub fn relieve(&self, relief: Relief) -> bool {
        self.is_short.store(relief.windows, Ordering::Relaxed);
        if !relief.made {
            return false;
        }
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = KeptObjects::default();
        let mut place = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = place.take_if(|view| {
            let is_unread = relief.snapshots || view.is_idle(VIEW_IDLE_WHEN_SHORT);
            relief.windows || (is_unread && Arc::strong_count(view) == 1)
        });
        drop(place);
        if let Some(view) = &gone {
            view.give_up();
        }
        gone.is_some()
    }

    /// Where the objects of the view are, if there is one.
    pub fn viewed(&self) -> Option<Arc<Store>> {
        let place = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().map(|view| view.store().clone())
    }

    /// The object in this version, if that was made a moment ago, or is in the view.
    fn known(&self, object: &Arc<Object>, identity: u64) -> Option<Arc<Object>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(object, identity);
        kept.or_else(|| {
            let view = self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
            let viewed = view.store().cached(object.key())?.object;
            (viewed.revision() == object.revision()).then_some(viewed)
        })
    }
}
