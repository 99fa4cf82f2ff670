//! The store that a read is of: where the objects are, or, where a webhook makes them, the view of the
//! version that is read.
//!
//! In: what is served, and from where on it is read. Out: a store, once it can be read, and what fails to
//! convert while it is. Never: a wait where no webhook converts.

use std::sync::Arc;

use forebay_apimachinery::{Revision, Status};
use forebay_catalog::{Served, Store, View};

use crate::plan::{Freshness, ListPlan};

/// See the module's doc.
pub struct ShownStore {
    store: Arc<Store>,
    view: Option<Arc<View>>,
}

impl ShownStore {
    /// Of a LIST.
    ///
    /// # Errors
    /// 405 for what is not stored; what fails to convert; 429 where memory is too short to convert it.
    pub async fn of(served: &Served, plan: &ListPlan) -> Result<ShownStore, Status> {
        let after = match plan.freshness {
            Freshness::Exact(revision) => Some(revision),
            Freshness::Latest | Freshness::Any | Freshness::AtLeast(_) => None,
        };
        ShownStore::after(served, served.stored()?, after).await
    }

    /// - `after`: the revision that it is to reach back to, if it can.
    pub(crate) async fn after(
        served: &Served,
        store: Arc<Store>,
        after: Option<Revision>,
    ) -> Result<ShownStore, Status> {
        match served.converted.as_ref().filter(|converted| converted.has_view()) {
            None => Ok(ShownStore { store, view: None }),
            Some(converted) => {
                let view = converted.view(after)?;
                // Boxed, because others have none of it.
                Box::pin(view.ready()).await?;
                Ok(ShownStore { store: view.store().clone(), view: Some(view) })
            }
        }
    }

    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// What `read` says, unless something fails to convert meanwhile.
    ///
    /// # Errors
    /// What failed to convert.
    pub async fn guard<T>(&self, read: impl Future<Output = T>) -> Result<T, Status> {
        match &self.view {
            Some(view) => Box::pin(view.guard(read)).await,
            None => Ok(read.await),
        }
    }

    /// Waits until something fails to convert; `None` where nothing is converted.
    pub(crate) fn failed(&self) -> Option<impl Future<Output = Status> + Send + use<>> {
        self.view.clone().map(View::failed)
    }
}
