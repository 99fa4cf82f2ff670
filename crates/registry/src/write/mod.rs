//! A write, as one value that passes through the stages of [`chain`].
//!
//! In: what a verb was asked. Out: the same with what each stage has made of it, and what was done at last. Never: which stage comes
//! when, which `chain.rs` says; what runs again, which `rounds.rs` does.

pub(crate) mod chain;
mod commit;
mod decode;
pub(crate) mod deletion;
mod flow;
mod judge;
pub(crate) mod preconditions;
mod prepare;
pub(crate) mod rounds;
pub(crate) mod scale;

use std::sync::Arc;

use bytes::Bytes;
use forebay_admission::WriteAttributes;
use forebay_apimachinery::options::{DeleteOptions, FieldValidation};
use forebay_apimachinery::{GroupVersionKind, ResourceAttributes, Status, Verb};
use forebay_catalog::Served;
use forebay_catalog::store::{Attempts, Current, Done, Mode, Store};
use serde_json::Value;

use crate::patch::Patch;
use crate::request::{Body, MayCreate, Target, not_found};
use crate::services::Claims;
use deletion::Then;

/// See the module's doc.
pub(crate) struct Write<'w> {
    /// What it is to who judges it: create, update, delete or deletecollection. A patch is an update.
    pub(crate) verb: Verb,
    pub(crate) target: &'w Target,
    pub(crate) input: Input<'w>,
    pub(crate) mode: Mode,
    pub(crate) validation: FieldValidation,
    /// Asked before it creates, where it was let in as an update; once.
    pub(crate) may_create: Option<&'w MayCreate>,

    /// What the client sent where that is not the object: a Scale, a Binding, an Eviction.
    pub(crate) sent: Value,
    /// Where it is stored; none for what is answered and not stored.
    pub(crate) store: Option<Arc<Store>>,
    /// The object that it changes, round after round.
    pub(crate) attempts: Option<Attempts>,
    /// The same as its rules know it, once a round has looked.
    pub(crate) old: Option<Value>,
    /// What is to be stored.
    pub(crate) proposed: Value,
    /// What is wrong with the body and no reason to refuse it.
    pub(crate) problems: Vec<String>,
    /// What the client is told of the object.
    pub(crate) remarks: Vec<String>,
    /// What the object takes that only one may have.
    pub(crate) claims: Claims,
    /// What a deletion does to the object.
    pub(crate) then: Option<Then>,
    /// An object that this ends, as it would have been stored.
    pub(crate) last: Option<Bytes>,
    pub(crate) done: Option<Done<()>>,
}

/// What a write was asked with.
#[derive(Clone, Copy)]
pub(crate) enum Input<'w> {
    /// The object, or one of its subresources in its form.
    Object(&'w Body),
    /// What the object, or a subresource in its form, is to become.
    Patch(&'w Patch<'w>),
    Scale(&'w Body),
    ScalePatch(&'w Patch<'w>),
    Binding(&'w Body),
    Eviction(&'w Body),
    /// What is answered and not stored.
    Review(&'w Body),
    Deletion(&'w DeleteOptions),
}

impl<'w> Write<'w> {
    pub(crate) fn new(
        verb: Verb,
        target: &'w Target,
        input: Input<'w>,
        mode: Mode,
        validation: FieldValidation,
    ) -> Write<'w> {
        Write {
            verb,
            target,
            input,
            mode,
            validation,
            may_create: None,
            sent: Value::Null,
            store: None,
            attempts: None,
            old: None,
            proposed: Value::Null,
            problems: Vec::new(),
            remarks: Vec::new(),
            claims: Claims::none(),
            then: None,
            last: None,
            done: None,
        }
    }

    pub(crate) fn served(&self) -> &'w Served {
        &self.target.served
    }

    /// The subresource that is written, if it is one.
    pub(crate) fn subresource(&self) -> Option<&'w str> {
        self.target.subresource.as_deref()
    }

    /// Whether it is about a whole new object.
    pub(crate) fn is_new_object(&self) -> bool {
        self.verb == Verb::Create && matches!(self.input, Input::Object(_))
    }

    /// Whether it is about an object in the place of another.
    pub(crate) fn is_change(&self) -> bool {
        match self.input {
            Input::Object(_) => self.verb == Verb::Update,
            Input::Patch(_) | Input::Scale(_) | Input::ScalePatch(_) => true,
            Input::Binding(_) | Input::Eviction(_) | Input::Review(_) | Input::Deletion(_) => false,
        }
    }

    /// The object that is changed, as this round sees it.
    ///
    /// # Errors
    /// 404 when there is none.
    pub(crate) fn current(&self) -> Result<&Current, Status> {
        let current = self.attempts.as_ref().and_then(Attempts::current);
        current.ok_or_else(|| not_found(self.target))
    }

    /// What the client is told.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        let mut all = std::mem::take(&mut self.problems);
        all.append(&mut self.remarks);
        all
    }

    /// The kind of what the client sends.
    ///
    /// # Errors
    /// 405 for a subresource that there is not.
    pub(crate) fn kind_sent(&self) -> Result<GroupVersionKind, Status> {
        let served = self.served();
        let of_subresource = || {
            let known = self.subresource().and_then(|name| served.subresource(name));
            known.map(|known| known.gvk.clone())
        };
        match self.input {
            Input::Scale(_) | Input::ScalePatch(_) | Input::Eviction(_) => {
                of_subresource().ok_or_else(|| served.method_not_supported("update"))
            }
            // A Binding is sent to a pod, or to what is called so.
            Input::Binding(_) | Input::Review(_) => {
                Ok(of_subresource().unwrap_or_else(|| served.gvk.clone()))
            }
            Input::Object(_) | Input::Patch(_) | Input::Deletion(_) => Ok(served.gvk.clone()),
        }
    }
}

/// A write of `target` as plugins see it.
///
/// - `old`: the stored object, if there is one.
pub(crate) fn attributes<'a>(
    verb: &'a Verb,
    target: &'a Target,
    old: Option<&'a Value>,
    mode: Mode,
) -> WriteAttributes<'a> {
    let served = &target.served;
    let of = ResourceAttributes {
        group: served.group(),
        version: &served.gvr.version,
        namespace: target.namespace(),
        resource: served.resource(),
        subresource: target.subresource.as_deref().unwrap_or(""),
        name: target.name(),
    };
    let (caller, dry_run) = (target.caller.as_deref(), mode == Mode::DryRun);
    WriteAttributes { verb, of, namespaced: served.namespaced, caller, dry_run, old }
}
