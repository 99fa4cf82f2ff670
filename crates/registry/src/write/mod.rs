//! A write, as one value that passes through the stages of [`chain`].
//!
//! In: what a verb was asked. Out: the same with what each stage has made of it, and what was done at last.
//! Never: which stage comes when, which `chain.rs` says; what runs again, which `rounds.rs` does.

mod asked;
pub(crate) mod chain;
mod charge;
mod commit;
mod convert;
mod decode;
pub(crate) mod deletion;
mod escalation;
mod flow;
mod home;
mod judge;
mod own;
mod param_rights;
mod policies;
pub(crate) mod preconditions;
mod prepare;
pub(crate) mod rounds;
pub(crate) mod scale;
mod texts;
pub(crate) mod timed;
mod view;
mod webhooks;

use std::sync::Arc;

use bytes::Bytes;
use forebay_admission::WriteAttributes;
use forebay_apimachinery::options::{
    CreateOptions, DeleteOptions, FieldValidation, PatchOptions, UpdateOptions,
};
use forebay_apimachinery::{GroupVersionKind, ResourceAttributes, Status, Verb};
use forebay_catalog::Served;
use forebay_catalog::store::{Attempts, Current, Done, Mode, Store};
use forebay_fieldmanager::Sent;
use forebay_object::Object;
use forebay_quota::Charged;
use serde_json::Value;

use crate::configuration::Configuration;
use crate::patch::Patch;
use crate::services::WriteClaims;
use deletion::Then;
use forebay_api::{Body, MayCreate};
use forebay_catalog::{Target, WantedConversions};
pub(crate) use webhooks::reach;

/// See the module's doc.
pub(crate) struct Write<'w> {
    /// What it is to who judges it: create, update, delete, deletecollection or connect. A patch is an
    /// update.
    pub(crate) verb: Verb,
    pub(crate) target: &'w Target,
    pub(crate) input: Input<'w>,
    pub(crate) mode: Mode,
    pub(crate) validation: FieldValidation,
    /// What who writes is called, as the request says it.
    manager: &'w str,
    /// Asked before it creates, where it was let in as an update; once.
    pub(crate) may_create: Option<&'w MayCreate>,

    /// Whether the client named no object, but a collection that this is one of.
    pub(crate) is_nameless: bool,
    /// What the client calls a new object, where policies or webhooks may call it something else.
    pub(crate) named: String,
    /// What a new object is called that brings no name, in this attempt to store it.
    name_made: Option<String>,
    /// The name of a new object that could not have it.
    name_taken: String,
    /// Whether it is a part of what was judged already: policies and webhooks are not asked again.
    pub(crate) is_judged: bool,
    /// What it is to policies and webhooks where that is something else: what was posted to `bindings`.
    pub(crate) judged_as: Option<Arc<Served>>,
    /// What the client sent where that is not the object: a Scale, a Binding, an Eviction.
    pub(crate) sent: Value,
    /// What the client said of who owns the object's fields.
    pub(crate) entries_sent: Sent,
    /// Where it is stored; none for what is answered and not stored.
    pub(crate) store: Option<Arc<Store>>,
    /// The object that it changes, round after round.
    pub(crate) attempts: Option<Attempts>,
    /// The object that it changes in the version that is written, where a webhook made it so.
    shown: Option<Current>,
    /// What a webhook has made of objects for who asks whose the fields are.
    conversions: WantedConversions,
    /// The same as its rules know it, once a round has looked.
    pub(crate) old: Option<Value>,
    /// What is to be stored.
    pub(crate) proposed: Value,
    /// The `fieldsV1` of the one entry that it has, as JSON, until somebody asks for the tree.
    pub(crate) fields: Option<Vec<u8>>,
    /// Whether one of its entries has the time of this request.
    pub(crate) is_stamped: bool,
    /// The resourceVersion that the client says a new object has.
    pub(crate) version_sent: Option<Value>,
    /// What is wrong with the body and no reason to refuse it.
    pub(crate) problems: Vec<String>,
    /// What mutating webhooks warn of, and what preparing the object hides.
    pub(crate) told: Vec<String>,
    /// What the client is told of the object.
    pub(crate) remarks: Vec<String>,
    /// The namespace that took a new object, as it was when plugins were asked.
    home: Option<Arc<Object>>,
    /// What the object takes that only one may have.
    pub(crate) claims: WriteClaims,
    /// What is counted of it in the quotas of its namespace: a later round counts what it needs beyond that.
    charged: Charged,
    /// What a deletion does to the object.
    pub(crate) then: Option<Then>,
    /// An object that this ends, as it would have been stored.
    pub(crate) last: Option<Bytes>,
    pub(crate) done: Option<Done>,
}

/// What a write was asked with.
#[derive(Clone, Copy)]
pub(crate) enum Input<'w> {
    /// The object, or one of its subresources in its form.
    Object(&'w Body),
    /// What the object, or a subresource in its form, is to become.
    Patch(&'w Patch<'w>),
    /// What its client wants of the object, or of a subresource in its form.
    Apply(&'w Configuration),
    Scale(&'w Body),
    ScalePatch(&'w Patch<'w>),
    ScaleApply(&'w Configuration),
    Binding(&'w Body),
    Eviction(&'w Body),
    /// What is answered and not stored.
    Review(&'w Body),
    /// What a request for a connection says of it, which is proposed as it is.
    Connection,
    Deletion(&'w DeleteOptions),
}

/// How a write was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'w> {
    mode: Mode,
    validation: FieldValidation,
    manager: &'w str,
}

impl<'w> From<&'w CreateOptions> for Asked<'w> {
    fn from(options: &'w CreateOptions) -> Asked<'w> {
        let CreateOptions { dry_run, field_manager, field_validation } = options;
        Asked { mode: Mode::of(*dry_run), validation: *field_validation, manager: field_manager }
    }
}

impl<'w> From<&'w UpdateOptions> for Asked<'w> {
    fn from(options: &'w UpdateOptions) -> Asked<'w> {
        let UpdateOptions { dry_run, field_manager, field_validation } = options;
        Asked { mode: Mode::of(*dry_run), validation: *field_validation, manager: field_manager }
    }
}

impl<'w> From<&'w PatchOptions> for Asked<'w> {
    fn from(options: &'w PatchOptions) -> Asked<'w> {
        let PatchOptions { dry_run, field_manager, field_validation, force: _ } = options;
        Asked { mode: Mode::of(*dry_run), validation: *field_validation, manager: field_manager }
    }
}

impl From<&DeleteOptions> for Asked<'_> {
    fn from(options: &DeleteOptions) -> Self {
        Asked { mode: Mode::of(options.dry_run), validation: FieldValidation::Ignore, manager: "" }
    }
}

impl<'w> Write<'w> {
    pub(crate) fn new(
        verb: Verb,
        target: &'w Target,
        input: Input<'w>,
        asked: impl Into<Asked<'w>>,
    ) -> Write<'w> {
        let Asked { mode, validation, manager } = asked.into();
        Write {
            verb,
            target,
            input,
            mode,
            validation,
            manager,
            may_create: None,
            is_nameless: false,
            named: String::new(),
            name_made: None,
            name_taken: String::new(),
            is_judged: false,
            judged_as: None,
            sent: Value::Null,
            entries_sent: Sent::AsTheyAre,
            store: None,
            attempts: None,
            shown: None,
            conversions: WantedConversions::default(),
            old: None,
            proposed: Value::Null,
            fields: None,
            is_stamped: false,
            version_sent: None,
            problems: Vec::new(),
            told: Vec::new(),
            remarks: Vec::new(),
            home: None,
            claims: WriteClaims::none(),
            charged: Charged::default(),
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

    /// What it is to policies and webhooks: a resource, and the subresource of that, if it is one.
    pub(crate) fn judged(&self) -> (&Served, Option<&str>) {
        match &self.judged_as {
            Some(served) => (served, None),
            None => (self.served(), self.subresource()),
        }
    }

    /// A refusal of policies and webhooks, which is told with the name that the client gave.
    pub(crate) fn forbidden(&self, why: &str) -> Status {
        let attributes = self.judged_attributes();
        match self.target.name() {
            _ if self.is_nameless => attributes.forbidden(&Value::Null, why),
            "" => attributes.forbidden(&self.proposed, why),
            name => attributes.forbidden_as(name, why),
        }
    }

    /// It as policies and webhooks see it.
    pub(crate) fn judged_attributes(&self) -> WriteAttributes<'_> {
        let mut attributes = attributes(&self.verb, self.target, self.old.as_ref(), self.mode);
        let (served, subresource) = self.judged();
        attributes.of.resource = served.resource();
        attributes.of.subresource = subresource.unwrap_or_default();
        attributes
    }

    /// It as plugins see it that ask who may.
    pub(crate) fn asked_attributes(&self) -> WriteAttributes<'_> {
        let is_patch = matches!(self.input, Input::Patch(_) | Input::Apply(_));
        WriteAttributes { is_patch, ..attributes(&self.verb, self.target, self.old.as_ref(), self.mode) }
    }

    /// Whether it is about a whole new object.
    pub(crate) fn is_new_object(&self) -> bool {
        self.verb == Verb::Create && matches!(self.input, Input::Object(_) | Input::Apply(_))
    }

    /// Whether it is about an object in the place of another.
    pub(crate) fn is_change(&self) -> bool {
        match self.input {
            Input::Object(_) | Input::Apply(_) => self.verb == Verb::Update,
            Input::Patch(_) | Input::Scale(_) | Input::ScalePatch(_) | Input::ScaleApply(_) => true,
            Input::Binding(_)
            | Input::Eviction(_)
            | Input::Review(_)
            | Input::Connection
            | Input::Deletion(_) => false,
        }
    }

    /// The object that is changed, as this round sees it: in the version that is written, where a webhook
    /// converts.
    ///
    /// # Errors
    /// 404 when there is none.
    pub(crate) fn current(&self) -> Result<&Current, Status> {
        let stored = self.attempts.as_ref().and_then(Attempts::current);
        self.shown.as_ref().or(stored).ok_or_else(|| self.target.not_found())
    }

    /// What the client is told.
    pub(crate) fn warnings(&mut self) -> Vec<String> {
        let mut all = std::mem::take(&mut self.problems);
        all.append(&mut self.told);
        all.append(&mut self.remarks);
        all
    }

    /// A refusal with what the client is told anyway: of what was read, and of what was forgiven.
    pub(crate) fn refused(&mut self, status: Status) -> Status {
        let warnings = self.warnings();
        status.warning(warnings)
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
            Input::Scale(_) | Input::ScalePatch(_) | Input::ScaleApply(_) | Input::Eviction(_) => {
                of_subresource().ok_or_else(|| served.method_not_supported("update"))
            }
            // A Binding is sent to a pod, or to what is called so.
            Input::Binding(_) | Input::Review(_) | Input::Connection => {
                Ok(of_subresource().unwrap_or_else(|| served.gvk.clone()))
            }
            Input::Object(_) | Input::Patch(_) | Input::Apply(_) | Input::Deletion(_) => {
                Ok(served.gvk.clone())
            }
        }
    }
}

/// A write of `target` as plugins see it, where what was sent is the object.
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
        ..ResourceAttributes::default()
    };
    let (caller, dry_run) = (target.caller.as_deref(), mode == Mode::DryRun);
    let (namespaced, is_patch) = (served.namespaced, false);
    WriteAttributes { verb, of, namespaced, caller, dry_run, is_patch, old, sent: &Value::Null }
}
