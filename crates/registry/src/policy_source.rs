//! Who takes in what policies, bindings and webhooks there are: one task, as their caches tell of them.
//!
//! In: notices. Out: what is in force, published. Never: compiles one again whose spec is as it was.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arc_swap::ArcSwap;
use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{Revision, Status};
use forebay_catalog::{Served, Target};
use forebay_object::Object;
use forebay_policy::{Binding, Hook, Hooks, Policy};
use forebay_webhooks::Webhook;
use serde_json::Value;

use crate::context::Context;
use crate::informer::{self, Informer, Notice};
use crate::limits::TAKEN_IN_WAIT;

const GROUP: &str = "admissionregistration.k8s.io";

/// Whether what is served are policies, bindings of them, or webhooks.
pub(crate) fn has(served: &Served) -> bool {
    served.group() == GROUP
}

/// Waits until what was written of them by `revision` is in force, before its writer is answered.
pub(crate) async fn take_in(context: &Context, served: &Served, revision: Revision) {
    let Some(store) = &served.store else { return };
    let deadline = context.clock.now() + TAKEN_IN_WAIT;
    // A cache that is behind for so long is behind for everybody: the write itself is done.
    if store.cacher.at_least(revision, deadline).await.is_ok() {
        context.in_force.reach(&context.clock, deadline).await;
    }
}

/// Follows them from now on, and returns once what is there is in force.
///
/// # Errors
/// When they are not served.
pub(crate) async fn start(context: &Arc<Context>) -> Result<(), Status> {
    let validating =
        Followed::of(context, "validatingadmissionpolicies", "validatingadmissionpolicybindings")?;
    let mutating = Followed::of(context, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings")?;
    let webhooks = [
        Webhooks::of(context, "validatingwebhookconfigurations")?,
        Webhooks::of(context, "mutatingwebhookconfigurations")?,
    ];
    context.tasks.spawn("admission policies", follow(context.clone(), validating, mutating, webhooks));
    let mut taken_in = context.in_force.taken_in.subscribe();
    context.in_force.asked.send_modify(|asked| *asked += 1);
    // It ends with the task, when the server does.
    let _ended = taken_in.wait_for(|reached| *reached > 0).await;
    Ok(())
}

async fn follow(
    context: Arc<Context>,
    mut validating: Followed,
    mut mutating: Followed,
    [mut validating_webhooks, mut mutating_webhooks]: [Webhooks; 2],
) {
    let mut asked = context.in_force.asked.subscribe();
    loop {
        let reached = *asked.borrow_and_update();
        validating.take_in(&context.in_force.validating).await;
        mutating.take_in(&context.in_force.mutating).await;
        validating_webhooks.take_in(&context.in_force.validating_webhooks).await;
        mutating_webhooks.take_in(&context.in_force.mutating_webhooks).await;
        let are_synced = [&validating_webhooks, &mutating_webhooks].iter().all(|it| it.source.is_synced);
        if validating.is_synced() && mutating.is_synced() && are_synced {
            context.in_force.taken_in.send_replace(reached);
        }
        tokio::select! {
            () = validating.policies.informer.ready() => {}
            () = validating.bindings.informer.ready() => {}
            () = mutating.policies.informer.ready() => {}
            () = mutating.bindings.informer.ready() => {}
            () = validating_webhooks.source.informer.ready() => {}
            () = mutating_webhooks.source.informer.ready() => {}
            asking = asked.changed() => if asking.is_err() { return },
        }
    }
}

/// Policies of one kind, and their bindings.
struct Followed {
    policies: Source,
    bindings: Source,
    hooks: Hooks,
}

impl Followed {
    fn of(context: &Arc<Context>, policies: &str, bindings: &str) -> Result<Followed, Status> {
        let (policies, bindings) = (Source::of(context, policies)?, Source::of(context, bindings)?);
        Ok(Followed { policies, bindings, hooks: Hooks::default() })
    }

    fn is_synced(&self) -> bool {
        self.policies.is_synced && self.bindings.is_synced
    }

    /// Takes in what there is to be told.
    async fn take_in(&mut self, in_force: &ArcSwap<Vec<Hook>>) {
        let mut is_other = false;
        while let Some(notice) = self.policies.informer.try_next() {
            is_other |= self.policies.take_policy(notice, &mut self.hooks);
            // Compiling takes long, and others work meanwhile.
            tokio::task::yield_now().await;
        }
        while let Some(notice) = self.bindings.informer.try_next() {
            is_other |= self.bindings.take_binding(notice, &mut self.hooks);
        }
        if is_other {
            in_force.store(Arc::new(self.hooks.in_force()));
        }
    }
}

/// Configurations of webhooks of one kind.
struct Webhooks {
    source: Source,
    // By the configuration's name: its webhooks, in their order.
    known: BTreeMap<String, Vec<Arc<Webhook>>>,
}

impl Webhooks {
    fn of(context: &Arc<Context>, configurations: &str) -> Result<Webhooks, Status> {
        Ok(Webhooks { source: Source::of(context, configurations)?, known: BTreeMap::new() })
    }

    /// Takes in what there is to be told.
    async fn take_in(&mut self, in_force: &ArcSwap<Vec<Arc<Webhook>>>) {
        let mut is_other = false;
        while let Some(notice) = self.source.informer.try_next() {
            is_other |= self.take(notice);
            // Compiling takes long, and others work meanwhile.
            tokio::task::yield_now().await;
        }
        if is_other {
            in_force.store(Arc::new(self.known.values().flatten().cloned().collect()));
        }
    }

    /// Whether there is something else in force now.
    fn take(&mut self, notice: Notice) -> bool {
        match notice {
            Notice::Put(object) => {
                let Some(value) = self.source.changed(&object) else { return false };
                self.known.insert(object.name().to_owned(), Webhook::read_all(&value));
                true
            }
            Notice::Deleted(object) => {
                self.source.known.remove(object.name());
                self.known.remove(object.name());
                true
            }
            other => self.source.end_of_beginning(&other),
        }
    }
}

/// Where a collection is told of.
struct Source {
    served: Arc<Served>,
    informer: Informer,
    is_synced: bool,
    // By name: what changes with every change of a spec, and with the object.
    known: HashMap<String, (Value, Value)>,
}

impl Source {
    fn of(context: &Arc<Context>, resource: &str) -> Result<Source, Status> {
        let served = context.catalog().resource(GROUP, "v1", resource).cloned();
        let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
        let target = Target::of_server(served.clone(), None, None);
        let informer = informer::informer(&target, &ListOptions::default())?;
        Ok(Source { served, informer, is_synced: false, known: HashMap::new() })
    }

    /// Whether there is something else in force now.
    fn take_policy(&mut self, notice: Notice, hooks: &mut Hooks) -> bool {
        match notice {
            Notice::Put(object) => {
                let Some(value) = self.changed(&object) else { return false };
                match Policy::read(&value) {
                    Some(policy) => hooks.put_policy(policy),
                    None => hooks.remove_policy(object.name()),
                }
                true
            }
            Notice::Deleted(object) => {
                self.known.remove(object.name());
                hooks.remove_policy(object.name());
                true
            }
            other => self.end_of_beginning(&other),
        }
    }

    fn take_binding(&mut self, notice: Notice, hooks: &mut Hooks) -> bool {
        match notice {
            Notice::Put(object) => {
                let Some(value) = self.changed(&object) else { return false };
                match Binding::read(&value) {
                    Some(binding) => hooks.put_binding(binding),
                    None => hooks.remove_binding(object.name()),
                }
                true
            }
            Notice::Deleted(object) => {
                self.known.remove(object.name());
                hooks.remove_binding(object.name());
                true
            }
            other => self.end_of_beginning(&other),
        }
    }

    fn end_of_beginning(&mut self, notice: &Notice) -> bool {
        self.is_synced |= matches!(notice, Notice::Synced);
        false
    }

    /// The object, if its spec is another than was taken in last.
    fn changed(&mut self, object: &Object) -> Option<Value> {
        let value = match self.served.to_value(object) {
            Ok(value) => value,
            Err(status) => {
                tracing::warn!(name = object.name(), why = status.message, "it is not taken in");
                return None;
            }
        };
        let metadata = &value["metadata"];
        let version = (metadata["uid"].clone(), metadata["generation"].clone());
        let before = self.known.insert(object.name().to_string(), version.clone());
        (before.as_ref() != Some(&version)).then_some(value)
    }
}
