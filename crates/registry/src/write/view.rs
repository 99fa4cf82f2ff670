//! A write as policies and webhooks see it: what it is about, and its objects in the version that they take
//! it for.
//!
//! In: a write. Out: the parts of a request; trees, charged to the write's lease. Never: a tree that no
//! policy asks for.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_apimachinery::options::{DeleteOptions, Preconditions};
use forebay_apimachinery::{Caller, GroupVersionKind, Status, Verb, json};
use forebay_catalog::Served;
use forebay_catalog::store::Mode;
use forebay_cel::authorizer::ResourceCheck;
use forebay_object::Object;
use forebay_policy::{
    AdmissionOperation, Inputs, PolicyRequest, RequestedResource, request_json, shown_namespace,
};
use forebay_strategy as strategy;
use serde_json::{Value, json};

use super::asked::{Answers, Asked};
use super::timed::operation;
use super::{Input, Write, scale, texts};
use crate::context::Context;
use crate::incoming::name_of;
use crate::ruled::Ruled as _;

/// See the module's doc.
pub(super) struct View<'a> {
    pub context: &'a Arc<Context>,
    caller: Caller,
    own: RequestedResource,
    equivalents: Vec<RequestedResource>,
    // The same, as they are served.
    served: Vec<Arc<Served>>,
    operation: AdmissionOperation,
    name: String,
    pub namespace: String,
    options: Value,
    namespace_object: Option<Arc<Object>>,
    namespace_tree: OnceLock<Arc<Value>>,
    // The same as policies see it.
    namespace_shown: OnceLock<Option<Value>>,
    // Of what is judged or changed by it.
    answers: Answers,
}

/// The objects of a write in one version.
pub(super) struct Objects {
    pub object: Option<Value>,
    pub old_object: Option<Value>,
}

/// The same as text.
pub(super) struct ObjectTexts {
    pub object: Option<Bytes>,
    pub old_object: Option<Bytes>,
}

impl<'a> View<'a> {
    pub async fn of(write: &Write<'_>, context: &'a Arc<Context>) -> Result<View<'a>, Status> {
        let (target, (served, subresource)) = (write.target, write.judged());
        let operation = operation(&write.verb);
        let name = match target.name() {
            _ if write.is_nameless => "",
            "" if write.named.is_empty() => name_of(&write.proposed),
            "" => &write.named,
            name => name,
        };
        let is_namespaces = served.is("", "namespaces");
        let namespace = if is_namespaces { name } else { target.namespace() };
        let catalog = context.catalog();
        let same = catalog.iter().filter(|other| is_same(served, other)).chain(&*served.unserved);
        // Where one has no such subresource it is not asked for.
        let has = |other: &Served| subresource.is_none_or(|name| other.subresource(name).is_some());
        let others = same.filter(|other| other.gvr != served.gvr && has(other)).cloned();
        let others: Vec<Arc<Served>> = others.collect();
        let equivalents = others.iter().map(|other| RequestedResource {
            resource: other.gvr.clone(),
            kind: match subresource.and_then(|name| other.subresource(name)) {
                Some(subresource) => subresource.gvk.clone(),
                None => other.gvk.clone(),
            },
        });
        let namespace_object = match is_namespaces && operation == AdmissionOperation::Create {
            true => None,
            false => namespace_object(context, namespace).await?,
        };
        Ok(View {
            context,
            caller: target.caller.as_deref().map_or_else(of_server, Caller::clone),
            own: RequestedResource { resource: served.gvr.clone(), kind: write.kind_sent()? },
            equivalents: equivalents.collect(),
            served: others,
            operation,
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            options: options(write),
            namespace_object,
            namespace_tree: OnceLock::new(),
            namespace_shown: OnceLock::new(),
            answers: Answers::default(),
        })
    }

    /// What rules match by.
    pub fn request<'r>(&'r self, write: &'r Write<'_>) -> PolicyRequest<'r> {
        PolicyRequest {
            operation: self.operation,
            own: &self.own,
            equivalents: &self.equivalents,
            subresource: write.judged().1.unwrap_or_default(),
            name: &self.name,
            namespace: &self.namespace,
            caller: &self.caller,
            dry_run: write.mode == Mode::DryRun,
            options: &self.options,
            // What has no metadata has no labels, and no selector is about it.
            object: object(write).filter(|_| !matches!(write.input, Input::Connection)),
            old_object: old_object(write),
        }
    }

    /// What it is taken for by who takes it for one of the equivalents, or for itself.
    pub fn taken_for(&self, equivalent: Option<usize>) -> &RequestedResource {
        equivalent.map_or(&self.own, |at| &self.equivalents[at])
    }

    pub fn operation(&self) -> AdmissionOperation {
        self.operation
    }

    /// Empty where the server makes one and has not yet.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What serves that of the equivalents.
    pub fn served_as(&self, equivalent: Option<usize>) -> Option<Arc<Served>> {
        equivalent.map(|at| self.served[at].clone())
    }

    /// The same as it is served.
    pub fn shown<'s>(&'s self, write: &Write<'s>, equivalent: Option<usize>) -> &'s Served {
        equivalent.map_or(write.served(), |at| &self.served[at])
    }

    /// The kind of what is shown: of a subresource it may be another than that of its object.
    pub fn kind_shown(&self, write: &Write<'_>, equivalent: Option<usize>) -> GroupVersionKind {
        match write.subresource() {
            Some(_) => self.taken_for(equivalent).kind.clone(),
            None => self.shown(write, equivalent).gvk.clone(),
        }
    }

    /// The namespace that it is in, as a tree.
    ///
    /// # Errors
    /// There is none.
    pub fn namespace_tree(&self) -> Result<Arc<Value>, String> {
        if let Some(tree) = self.namespace_tree.get() {
            return Ok(tree.clone());
        }
        let missing = || format!("namespaces {:?} not found", self.namespace);
        let object = self.namespace_object.as_ref().ok_or_else(missing)?;
        let served = self.context.catalog().resource("", "v1", "namespaces").cloned().ok_or_else(missing)?;
        let tree = served.to_value(object).map_err(|status| status.message)?;
        Ok(self.namespace_tree.get_or_init(|| Arc::new(tree)).clone())
    }

    /// The same as policies see it, put together once; nothing where there is none.
    fn namespace_shown(&self) -> Option<&Value> {
        let shown = || self.namespace_tree().ok().map(|tree| shown_namespace((*tree).clone()));
        self.namespace_shown.get_or_init(shown).as_ref()
    }

    /// The objects in the version of one of the equivalents, or in its own.
    ///
    /// # Errors
    /// What cannot be converted; no room.
    pub async fn objects(&self, write: &Write<'_>, equivalent: Option<usize>) -> Result<Objects, Status> {
        match write.input {
            Input::Scale(_) | Input::ScalePatch(_) | Input::ScaleApply(_) => {
                let scale = |value: &Value| {
                    strategy::to_scale(&write.served().rules(), value)
                        .map_err(|error| scale::refused(write.target, error))
                };
                Ok(Objects {
                    object: Some(scale(&write.proposed)?),
                    old_object: write.old.as_ref().map(scale).transpose()?,
                })
            }
            Input::Binding(_) | Input::Eviction(_) | Input::Review(_) | Input::Connection => {
                let object = object(write).cloned().unwrap_or_default();
                write.target.lease.charge(json::weight::of(&object))?;
                Ok(Objects { object: Some(object), old_object: None })
            }
            Input::Object(_) | Input::Patch(_) | Input::Apply(_) | Input::Deletion(_) => {
                let texts = self.whole(write, equivalent).await?;
                let tree = |text| texts::tree(text, &write.target.lease);
                Ok(Objects { object: tree(&texts.object)?, old_object: tree(&texts.old_object)? })
            }
        }
    }

    /// The same as text, where what is sent is the object itself; nothing where it is in a form of its own.
    ///
    /// # Errors
    /// As for trees.
    pub async fn texts(
        &self,
        write: &Write<'_>,
        equivalent: Option<usize>,
    ) -> Result<Option<ObjectTexts>, Status> {
        match write.input {
            Input::Object(_) | Input::Patch(_) | Input::Apply(_) | Input::Deletion(_) => {
                self.whole(write, equivalent).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    async fn whole(&self, write: &Write<'_>, equivalent: Option<usize>) -> Result<ObjectTexts, Status> {
        let (target, shown) = (write.target, self.shown(write, equivalent));
        if let Some(converted) = &shown.converted {
            let text = async |value: Option<&Value>| match value {
                Some(value) => texts::of_converted(target, shown, converted, value).await.map(Some),
                None => Ok(None),
            };
            return Ok(ObjectTexts {
                object: text(object(write)).await?,
                old_object: text(old_object(write)).await?,
            });
        }
        let stored = write.old.as_ref().map(|_| write.current()).transpose()?;
        Ok(ObjectTexts {
            object: object(write).map(|value| texts::of_proposed(target, shown, value)).transpose()?,
            old_object: stored.map(|old| texts::of_stored(target, shown, &old.object)).transpose()?,
        })
    }

    /// Evaluates the expressions of a policy over their inputs, and its match conditions over theirs; again
    /// as often as they ask for a decision that has to be waited for.
    ///
    /// - `left`: what the write may still cost. It pays for each time, but for the checks only once.
    pub async fn with_inputs<R>(
        &self,
        write: &Write<'_>,
        equivalent: Option<usize>,
        objects: &Objects,
        params: Option<&Value>,
        left: &mut u64,
        mut evaluate: impl FnMut(&Inputs<'_>, &Inputs<'_>, &mut u64) -> R,
    ) -> R {
        loop {
            let before = *left;
            let found = self.evaluated(write, equivalent, objects, params, &mut |inputs, for_conditions| {
                evaluate(inputs, for_conditions, left)
            });
            let Some((open, checks)) = self.answers.open() else { return found };
            *left = before.min(left.saturating_add(checks));
            write.target.context.away(self.answers.wait(open)).await;
        }
    }

    fn evaluated<R>(
        &self,
        write: &Write<'_>,
        equivalent: Option<usize>,
        objects: &Objects,
        params: Option<&Value>,
        evaluate: &mut impl FnMut(&Inputs<'_>, &Inputs<'_>) -> R,
    ) -> R {
        let (request, taken_for) = (self.request(write), self.taken_for(equivalent));
        let sees_namespace = !self.namespace.is_empty() && !is_namespace(&self.own);
        let namespace = match sees_namespace {
            true => self.namespace_shown(),
            false => None,
        };
        let authorizer = &self.context.config.authorizer;
        let asked = Asked { authorizer, caller: &self.caller, answers: &self.answers };
        let of_policy = request_json(&request, &taken_for.resource, &taken_for.kind);
        let of_conditions = request_json(&request, &self.own.resource, &taken_for.kind);
        let inputs = Inputs {
            object: objects.object.as_ref(),
            old_object: objects.old_object.as_ref(),
            params,
            namespace,
            request: &of_policy,
            authorizer: &asked,
            request_resource: &request_resource(&request),
        };
        evaluate(&inputs, &Inputs { namespace: None, request: &of_conditions, ..inputs })
    }
}

/// The object itself, as far as its labels are concerned.
fn object<'v>(write: &'v Write<'_>) -> Option<&'v Value> {
    match write.input {
        Input::Deletion(_) => None,
        Input::Binding(_) | Input::Eviction(_) => Some(&write.sent),
        _ => Some(&write.proposed),
    }
}

fn old_object<'v>(write: &'v Write<'_>) -> Option<&'v Value> {
    match write.input {
        Input::Binding(_) | Input::Eviction(_) | Input::Review(_) | Input::Connection => None,
        _ => write.old.as_ref(),
    }
}

/// The server itself, as policies know it.
fn of_server() -> Caller {
    let groups = vec!["system:masters".to_owned()];
    Caller { name: "system:apiserver".to_owned(), groups, ..Caller::default() }.authenticated()
}

fn is_namespace(of: &RequestedResource) -> bool {
    (&*of.kind.group, &*of.kind.version, &*of.kind.kind) == ("", "v1", "Namespace")
}

fn request_resource(request: &PolicyRequest<'_>) -> ResourceCheck {
    let of = &request.own.resource;
    ResourceCheck {
        group: of.group.clone(),
        resource: of.resource.clone(),
        subresource: request.subresource.into(),
        namespace: request.namespace.into(),
        name: request.name.into(),
        ..ResourceCheck::default()
    }
}

/// The namespace of that name, as it is cached, or else as it is.
async fn namespace_object(context: &Context, name: &str) -> Result<Option<Arc<Object>>, Status> {
    if name.is_empty() {
        return Ok(None);
    }
    let store = context.built_in("", "v1", "namespaces")?;
    let key = store.key("", name);
    match store.cached(&key) {
        Some(found) => Ok(Some(found.object)),
        None => Ok(store.live(&key).await?.map(|found| found.object)),
    }
}

/// Whether both are the same objects.
fn is_same(served: &Served, other: &Served) -> bool {
    match (&served.store, &other.store) {
        (Some(one), Some(two)) => Arc::ptr_eq(one, two),
        _ => false,
    }
}

fn options(write: &Write<'_>) -> Value {
    let kind = match write.verb {
        // Its options are the object.
        Verb::Connect => return Value::Null,
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        _ => "DeleteOptions",
    };
    let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
    if write.mode == Mode::DryRun {
        options["dryRun"] = json!(["All"]);
    }
    match write.input {
        Input::Deletion(deletion) => add_deletion(&mut options, deletion),
        _ => {
            let given = [("fieldManager", write.manager), ("fieldValidation", write.validation.as_str())];
            for (name, text) in given.into_iter().filter(|(_, text)| !text.is_empty()) {
                options[name] = json!(text);
            }
        }
    }
    options
}

fn add_deletion(options: &mut Value, deletion: &DeleteOptions) {
    if let Some(seconds) = deletion.grace_period_seconds {
        options["gracePeriodSeconds"] = json!(seconds);
    }
    if let Some(orphans) = deletion.orphan_dependents {
        options["orphanDependents"] = json!(orphans);
    }
    if let Some(policy) = deletion.propagation_policy {
        options["propagationPolicy"] = json!(policy.as_str());
    }
    let Preconditions { uid, resource_version } = &deletion.preconditions;
    for (name, text) in [("uid", uid), ("resourceVersion", resource_version)] {
        if let Some(text) = text {
            options["preconditions"][name] = json!(text);
        }
    }
}
