//! The roles and bindings of Kubernetes' own users, looked after by each start: what is missing is there
//! afterwards, and what somebody added stays. They may be deleted, and come back with the next start.
//!
//! In: the table, and what is stored. Out: both together, stored. Never: touches what says that it is not to
//! be.
//!
//! Source: kubernetes v1.36.3 `pkg/registry/rbac/rest/storage_rbac.go` (`EnsureRBACPolicy`).

use std::sync::Arc;

use forebay_apimachinery::options::{DeleteOptions, Preconditions, UpdateOptions};
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::Target;
use forebay_rbac::{GROUP, Reconciled, reconciled};
use futures_util::{TryStreamExt, stream};

use super::built_ins::{BuiltIn, ensure_one};
use super::roles;
use crate::context::Context;
use crate::limits::{BUILT_IN_WRITES_MAX, RECONCILE_ROUNDS_MAX};
use crate::owners;
use crate::{delete, update};
use forebay_api::Body;

/// Makes sure that all of them are as they are to be.
///
/// # Errors
/// When the store cannot be written or read.
pub(super) async fn ensure_roles(context: &Arc<Context>) -> Result<(), Status> {
    let catalog = context.catalog();
    let wanted = roles::all().into_iter().filter_map(|role| {
        let served = catalog.resource(GROUP, "v1", role.resource)?.clone();
        Some(BuiltIn { served, namespace: role.namespace, object: role.object })
    });
    stream::iter(wanted.map(Ok))
        .try_for_each_concurrent(BUILT_IN_WRITES_MAX, |one| ensure_role(context, one))
        .await
}

async fn ensure_role(context: &Arc<Context>, wanted: BuiltIn) -> Result<(), Status> {
    let BuiltIn { served, namespace, object } = &wanted;
    let store = served.stored()?;
    let name = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
    let key = store.key(namespace.unwrap_or(""), &name);
    let target = Target::of_server(served.clone(), namespace.map(String::from), Some(name));
    for round in 0..RECONCILE_ROUNDS_MAX {
        let current = if round == 0 { store.cached(&key) } else { store.live(&key).await? };
        let Some(current) = current else { return ensure_one(context, wanted).await };
        let current = served.to_value(&current.object)?;
        let done = match reconciled(&current, object) {
            Reconciled::Kept => return Ok(()),
            Reconciled::Updated(updated) => {
                let options =
                    UpdateOptions { field_manager: owners::SERVER.to_owned(), ..UpdateOptions::default() };
                update::update(context, &target, &Body::Value(updated), &options, None).await
            }
            Reconciled::Recreated => {
                let uid = current["metadata"]["uid"].as_str().map(str::to_owned);
                let preconditions = Preconditions { uid, ..Preconditions::default() };
                let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
                delete::delete(context, &target, &options).await
            }
        };
        match done {
            Ok(_) => {}
            Err(status) if matches!(status.reason, Reason::Conflict | Reason::NotFound) => {}
            Err(status) => return Err(status),
        }
    }
    // Somebody writes it again and again, or holds on to it: it gives no more rights than it says.
    tracing::warn!(name = target.name(), "a role or binding of Kubernetes' own is not as it should be");
    Ok(())
}
