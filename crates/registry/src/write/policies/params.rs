//! The parameters that a binding evaluates its policy with.
//!
//! In: a kind, a reference. Out: objects of the caches. Never: a tree of more than one of them at a time.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/policy/generic/{policy_dispatcher,policy_source}.go`.

use std::sync::Arc;

use forebay_apimachinery::selector::LabelSelector;
use forebay_apimachinery::{Lease, Status, json};
use forebay_catalog::Served;
use forebay_catalog::store::Store;
use forebay_object::Object;
use forebay_policy::{NotFound, ParamKind, ParamRef, ParameterTrees};
use forebay_reads::{ListPlan, ShownStore};
use forebay_watchcache::Snapshot;
use serde_json::Value;

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
    let found = catalog.stored_kind(&of.group, &of.version, &of.kind);
    found.cloned().ok_or_else(|| format!("failed to find resource referenced by paramKind: '{of}'"))
}

/// What was read of parameters, by which version of which object.
pub(super) type Trees = ParameterTrees<(Arc<Served>, Arc<Object>)>;

/// The tree of a parameter; `None` where the write may not cost as much any more.
///
/// - `left`: what it may still cost.
///
/// # Errors
/// JSON of ours that is none; no room.
pub(super) fn read(
    trees: &mut Trees,
    (served, object): (&Arc<Served>, &Arc<Object>),
    lease: &Lease,
    left: &mut u64,
) -> Result<Option<Arc<Value>>, Status> {
    let key = (Arc::as_ptr(served) as usize, Arc::as_ptr(object) as usize);
    trees.read(key, object.body_len(), left, || {
        let tree = served.to_value(object)?;
        let weight = json::weight::of(&tree);
        lease.charge(weight)?;
        Ok((tree, weight, (served.clone(), object.clone())))
    })
}

/// The parameters that a binding refers to.
///
/// - `lease`: what pays for as many as a selector finds.
/// - `left`: what the write may still cost: each object that a selector is held against is paid for.
///
/// # Errors
/// Why they cannot be had, as the policy fails by; and that there is no room for them.
pub(super) async fn collect(
    context: &Context,
    served: Option<&(Arc<Served>, &ParamKind)>,
    of: Option<&ParamRef>,
    namespace: &str,
    lease: &Lease,
    left: &mut u64,
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
    let found = match look((store, &now), of, place, (lease, left))? {
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
    (lease, left): (&Lease, &mut u64),
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
        *left = left.saturating_sub(1);
        if *left == 0 {
            return Ok(Err("the policies of the write cost more than they may".to_owned()));
        }
        if selector.matches(|key| object.label(key)) {
            lease.charge(size_of::<Arc<Object>>())?;
            found.push(object.clone());
        }
    }
    Ok(Ok(found))
}
