//! own: whose the fields of an object are once it is written.
//!
//! In: the object as it is and as it is to be with its defaults, who writes. Out: the same with its
//! `managedFields`; of an apply, the object that it makes. Never: refuses an update because of who owns what.
//!
//! Source: apiserver v0.36.3 `endpoints/handlers/{create,update,patch}.go`, which ask field managers before
//! admission.

use std::borrow::Cow;

use forebay_apimachinery::json::{self, weight};
use forebay_apimachinery::{GroupVersionKind, Status};
use forebay_catalog::Target;
use forebay_fieldmanager::{
    ConvertError, Created, EntryError, FieldManager, FieldType, Filters, ReplicasPaths, ScaleEntries, Sent,
    Versions,
};
use forebay_strategy as strategy;
use serde_json::Value;

use super::{Input, Write, scale};
use crate::context::Context;
use crate::owners::{SERVER, entries_of, of_converted, set_entries};
use crate::ruled::Ruled as _;

/// Notes who owns what, and hands the object over in the form that rules know.
pub(super) fn own(write: &mut Write<'_>, context: &Context) -> Result<(), Status> {
    match write.input {
        Input::Object(_) | Input::Patch(_) if write.is_new_object() || write.is_change() => {
            let is_lent = strategy::lend_labels(&write.served().rules(), &mut write.proposed);
            own_object(write, context)?;
            strategy::take_lent_labels(&mut write.proposed, is_lent);
        }
        Input::Scale(_) | Input::ScalePatch(_) => {
            let of_scale = of_scale_update(write, context)?;
            own_scaled(write, &of_scale)?;
        }
        Input::ScaleApply(_) => {
            let of_scale = entries_of(&write.sent).to_vec();
            own_scaled(write, &of_scale)?;
        }
        Input::Review(_) => own_review(write, context)?,
        // What is applied has its owners from there, and what only the server makes has none.
        _ => {}
    }
    if matches!(write.input, Input::Patch(_) | Input::Apply(_)) {
        let repeated = strategy::dedup_owner_references(&mut write.proposed);
        write.problems.extend(repeated.map(|uids| {
            format!(
                ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server \
                 dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your \
                 requests; duplicate UID(s) observed: {uids}"
            )
        }));
    }
    if write.is_new_object() || write.is_change() {
        write.served().to_judged(&mut write.proposed);
    }
    Ok(())
}

fn own_object(write: &mut Write<'_>, context: &Context) -> Result<(), Status> {
    let served = write.served();
    let live = match &write.old {
        None => None,
        // The rules may know it in another version than the one that is written.
        Some(_) if served.kind.is_converted() => Some(Cow::Owned(served.to_value(&write.current()?.object)?)),
        Some(old) => Some(Cow::Borrowed(old)),
    };
    let name = write.manager();
    if write.is_new_object() && live.is_none() && !served.is_custom() {
        let (created, is_stamped) =
            of_object(write, context, |fields| fields.create(&write.proposed, write.entries_sent, name))?;
        write.is_stamped = is_stamped;
        let entries = match created? {
            Created::Whole(entries) => entries,
            Created::Apart { entry, fields } => {
                write.fields = Some(fields);
                vec![entry]
            }
        };
        set_entries(&mut write.proposed, entries);
        return Ok(());
    }
    let (entries, is_stamped) = of_object(write, context, |fields| {
        fields.update(live.as_deref(), &write.proposed, write.entries_sent, name)
    })?;
    write.is_stamped = is_stamped;
    set_entries(&mut write.proposed, entries?);
    Ok(())
}

/// `live` with what `config` says, and with its owners; whether one of them has this request's time.
///
/// # Errors
/// Fields are somebody else's, or it is not what may be applied.
pub(super) fn applied(
    write: &Write<'_>,
    context: &Context,
    live: Option<Cow<'_, Value>>,
    config: &Value,
    force: bool,
) -> Result<(Value, bool), Status> {
    let bytes_max = write.store.as_ref().map_or(usize::MAX, |store| store.bytes_max(write.mode));
    let (applied, is_stamped) =
        of_object(write, context, |fields| fields.apply(live, config, write.manager(), force, bytes_max))?;
    Ok((applied?, is_stamped))
}

/// The same of a Scale.
///
/// # Errors
/// As [`applied`].
pub(super) fn applied_scale(
    write: &Write<'_>,
    context: &Context,
    config: &Value,
    force: bool,
) -> Result<(Value, bool), Status> {
    let live = live_scale(write)?;
    let (applied, is_stamped) = of_kind(&write.kind_sent()?, write.target, context, |fields| {
        fields.apply(Some(Cow::Owned(live)), config, write.manager(), force, usize::MAX)
    })?;
    Ok((applied?, is_stamped))
}

fn of_scale_update(write: &mut Write<'_>, context: &Context) -> Result<Vec<Value>, Status> {
    let (live, gvk, name) = (live_scale(write)?, write.kind_sent()?, write.manager());
    let (entries, is_stamped) = of_kind(&gvk, write.target, context, |fields| {
        fields.update(Some(&live), &write.sent, Sent::AsTheyAre, name)
    })?;
    write.is_stamped = is_stamped;
    Ok(entries?)
}

/// What is only answered has owners, too.
fn own_review(write: &mut Write<'_>, context: &Context) -> Result<(), Status> {
    let (gvk, name) = (write.kind_sent()?, write.manager());
    let (entries, is_stamped) = of_kind(&gvk, write.target, context, |fields| {
        fields.update(None, &write.proposed, write.entries_sent, name)
    })?;
    write.is_stamped = is_stamped;
    set_entries(&mut write.proposed, entries?);
    Ok(())
}

/// The Scale of what is there, with the owners of the replicas.
fn live_scale(write: &Write<'_>) -> Result<Value, Status> {
    let (target, served) = (write.target, write.served());
    let current = served.to_value(&write.current()?.object)?;
    let mut scale = strategy::scale_to_update(&served.rules(), &current)
        .map_err(|error| scale::refused(target, error))?;
    let entries = scaled(target, &current, &served.kind.replicas_paths(), |owners| owners.to_scale())?;
    set_entries(&mut scale, entries);
    Ok(scale)
}

/// Gives the object the owners that its Scale has.
fn own_scaled(write: &mut Write<'_>, of_scale: &[Value]) -> Result<(), Status> {
    let paths = write.served().kind.replicas_paths();
    let entries = scaled(write.target, &write.proposed, &paths, |owners| owners.to_object(of_scale))?;
    set_entries(&mut write.proposed, entries);
    Ok(())
}

fn scaled(
    target: &Target,
    object: &Value,
    paths: &ReplicasPaths,
    ask: impl FnOnce(&ScaleEntries<'_>) -> Result<Vec<Value>, EntryError>,
) -> Result<Vec<Value>, Status> {
    let of_object = entries_of(object);
    target.lease.charge(of_object.iter().map(weight::of).sum())?;
    let api_version = target.served.gvk.api_version();
    let owners = ScaleEntries { of_object, api_version: &api_version, paths, lease: &target.lease };
    ask(&owners).map_err(|why| match target.lease.exhausted() {
        Some(exhausted) => exhausted.into(),
        None => Status::internal(why),
    })
}

/// Asks who keeps the owners of the object that is written; and whether one has this request's time then.
fn of_object<T>(
    write: &Write<'_>,
    context: &Context,
    ask: impl FnOnce(&FieldManager<'_, '_>) -> T,
) -> Result<(T, bool), Status> {
    let served = write.served();
    let made = served.converted.as_ref().map(|_| &write.conversions);
    let subresource = write.subresource().unwrap_or_default();
    of_converted((served, made), subresource, context, &write.target.lease, |fields| {
        (ask(fields), fields.has_stamped())
    })
}

/// The same of what is no object of its own: a Scale, a review.
fn of_kind<T>(
    gvk: &GroupVersionKind,
    target: &Target,
    context: &Context,
    ask: impl FnOnce(&FieldManager<'_, '_>) -> T,
) -> Result<(T, bool), Status> {
    let (filters, now, lease) = (Filters::new(), context.now_rfc3339(), &target.lease);
    let subresource = target.subresource.as_deref().unwrap_or_default();
    let (versions, api_version) = (OneVersion(gvk), gvk.api_version());
    let fields = FieldManager::new(&versions, &api_version, &gvk.kind, subresource, filters, &now, lease);
    let fields = fields.map_err(Status::internal)?;
    Ok((ask(&fields), fields.has_stamped()))
}

/// A built-in kind in one version.
struct OneVersion<'k>(&'k GroupVersionKind);

impl Versions<'static> for OneVersion<'_> {
    fn type_in(&self, api_version: &str) -> Result<FieldType<'static>, ConvertError> {
        let GroupVersionKind { group, version, kind } = self.0;
        let known = FieldType::of_kind(group, version, kind);
        known.filter(|_| api_version == self.0.api_version()).ok_or(ConvertError::MissingVersion)
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

impl<'w> Write<'w> {
    /// Puts what is owned where whoever looks at the whole object sees it.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn show_fields(&mut self) -> Result<(), Status> {
        let Some(fields) = self.fields.take() else { return Ok(()) };
        let lease = &self.target.lease;
        let tree = json::parse(&fields, lease)
            .map_err(|why| lease.exhausted().map_or_else(|| Status::internal(why), Status::from))?;
        if let Some(shown) = self.proposed.pointer_mut("/metadata/managedFields/0/fieldsV1") {
            *shown = tree.value;
        }
        Ok(())
    }

    /// What who writes is called; empty if nobody says.
    fn manager(&self) -> &'w str {
        match (self.manager, &self.target.caller) {
            ("", None) => SERVER,
            ("", Some(_)) => &self.target.context.program,
            (name, _) => name,
        }
    }
}
