//! The parameters that a binding evaluates its policy with.
//!
//! In: a kind, a reference. Out: objects of the caches. Never: a tree of more than one of them at a time.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/policy/generic/{policy_dispatcher,policy_source}.go`.

use std::sync::Arc;

use forebay_apimachinery::selector::LabelSelector;
use forebay_apimachinery::{Lease, Status};
use forebay_catalog::Served;
use forebay_catalog::store::Store;
use forebay_object::Object;
use forebay_policy::{NotFound, ParamKind, ParamRef};
use forebay_reads::{ListPlan, ShownStore};
use forebay_watchcache::Snapshot;

use crate::context::Context;

/// What a policy is evaluated with.
pub(super) enum Params {
    /// Once, with null.
    Nothing,
    Each(Arc<Served>, Vec<Arc<Object>>),
}

/// What is served of a kind.
///
/// # Errors
/// Nothing is.
pub(super) fn kind(context: &Context, of: &ParamKind) -> Result<Arc<Served>, String> {
    let catalog = context.catalog();
    let found = catalog.iter().find(|served| {
        let gvk = &served.gvk;
        (&*gvk.group, &*gvk.version, &*gvk.kind) == (&*of.group, &*of.version, &*of.kind)
            && served.store.is_some()
    });
    found.cloned().ok_or_else(|| format!("failed to find resource referenced by paramKind: '{of}'"))
}

/// The parameters that a binding refers to.
///
/// - `lease`: what pays for as many as a selector finds.
///
/// # Errors
/// Why they cannot be had, as the policy fails by; and that there is no room for them.
pub(super) async fn collect(
    context: &Context,
    served: Option<&(Arc<Served>, &ParamKind)>,
    of: Option<&ParamRef>,
    namespace: &str,
    lease: &Lease,
) -> Result<Result<Params, String>, Status> {
    let (Some((served, kind)), Some(of)) = (served, of) else { return Ok(Ok(Params::Nothing)) };
    let place = match place(served, of, namespace) {
        Ok(place) => place,
        Err(why) => return Ok(Err(why)),
    };
    served.stored()?;
    // What fails to convert is not there yet.
    let Ok(shown) = ShownStore::of(served, &ListPlan::EVERYTHING).await else {
        return Ok(Err(unsynced(kind)));
    };
    let store = shown.store();
    if store.cacher.snapshot().is_err() {
        return Ok(Err(unsynced(kind)));
    }
    // One of them may have been written, or changed, a moment ago: whoever was told so counts on it.
    let now = context.fresh(store).await?;
    let found = match look((store, &now), of, place, lease)? {
        Ok(found) => found,
        Err(why) => return Ok(Err(why)),
    };
    if found.is_empty() && of.not_found == NotFound::Deny {
        let why = "no params found for policy binding with `Deny` parameterNotFoundAction";
        return Ok(Err(why.to_owned()));
    }
    Ok(Ok(Params::Each(served.clone(), found)))
}

fn unsynced(kind: &ParamKind) -> String {
    let (version, kind) = (kind.api_version(), &kind.kind);
    format!(
        "paramKind kind `&ParamKind{{APIVersion:{version},Kind:{kind},}}` not yet synced to use for admission"
    )
}

/// The namespace of the parameters; none at cluster scope.
fn place<'a>(served: &Served, of: &'a ParamRef, namespace: &'a str) -> Result<Option<&'a str>, String> {
    match (served.namespaced, &*of.namespace, namespace) {
        (true, "", "") => {
            Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                .into())
        }
        (true, "", namespace) | (true, namespace, _) => Ok(Some(namespace)),
        (false, "", _) => Ok(None),
        (false, ..) => {
            Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned())
        }
    }
}

type Found = Result<Vec<Arc<Object>>, String>;

/// What there is of them in a state of the store.
fn look(
    (store, snapshot): (&Store, &Snapshot),
    of: &ParamRef,
    place: Option<&str>,
    lease: &Lease,
) -> Result<Found, Status> {
    if !of.name.is_empty() {
        let key = store.key(place.unwrap_or_default(), &of.name);
        return Ok(Ok(snapshot.get(&key).cloned().into_iter().collect()));
    }
    let selector: &LabelSelector = match &of.selector {
        Some(Ok(selector)) => selector,
        Some(Err(why)) => return Ok(Err(why.clone())),
        None => return Ok(Err("one of name or selector must be provided".to_owned())),
    };
    let mut found = Vec::new();
    for object in snapshot.range(&store.reach(place, None), None) {
        if selector.matches(|key| object.label(key)) {
            lease.charge(size_of::<Arc<Object>>())?;
            found.push(object.clone());
        }
    }
    Ok(Ok(found))
}
