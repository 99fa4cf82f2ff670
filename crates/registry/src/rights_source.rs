//! Who takes in what roles and bindings there are: one task, as their caches tell of them.
//!
//! In: notices. Out: the rights in force, published; who waits for it is told when something has been taken
//! in. Never: gives a right for what cannot be read.

use std::sync::Arc;

use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{Revision, Status};
use forebay_catalog::{Served, Target};
use forebay_object::Object;
use forebay_rbac::{GROUP, Rights, RightsInForce, Role, RoleBinding, RoleRef};
use forebay_rt::{Clock, Instant};
use serde_json::Value;
use tokio::sync::watch;

use crate::context::Context;
use crate::informer::{self, Informer, Notice};
use crate::limits::{RIGHTS_BATCH, TAKEN_IN_WAIT};

const RESOURCES: [&str; 4] = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];

/// How far the task has come.
pub(crate) struct RightsTaken {
    // How often somebody asked that all be taken in, and as of which asking it was.
    asked: watch::Sender<u64>,
    taken_in: watch::Sender<u64>,
}

impl Default for RightsTaken {
    fn default() -> RightsTaken {
        RightsTaken { asked: watch::Sender::new(0), taken_in: watch::Sender::new(0) }
    }
}

impl RightsTaken {
    /// Waits until everything that the caches tell of is in force, at most until `deadline`. Whether it is.
    async fn reach(&self, clock: &Clock, deadline: Instant) -> bool {
        let mut mine = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            mine = *asked;
        });
        let mut taken_in = self.taken_in.subscribe();
        tokio::select! {
            reached = taken_in.wait_for(|reached| *reached >= mine) => reached.is_ok(),
            () = clock.sleep_until(deadline) => false,
        }
    }
}

/// Whether what is served are roles or bindings.
pub(crate) fn has(served: &Served) -> bool {
    served.group() == GROUP
}

/// Waits until what was written of them by `revision` is in force, before its writer is answered.
pub(crate) async fn take_in(context: &Context, served: &Served, revision: Revision) {
    let (Some(store), Some(_)) = (&served.store, &context.config.rights) else { return };
    let deadline = context.clock.now() + TAKEN_IN_WAIT;
    // A cache that is behind for so long is behind for everybody: the write itself is done.
    if store.cacher.at_least(revision, deadline).await.is_ok() {
        context.rights.reach(&context.clock, deadline).await;
    }
}

/// The rights of every role and binding that was acknowledged before the call, on whichever server.
///
/// # Errors
/// 429 and 504 when a cache cannot answer, and when they are not taken in in time: who gives rights is judged
/// by what is so now.
pub(crate) async fn current(context: &Context) -> Result<Arc<Rights>, Status> {
    let Some(rights) = &context.config.rights else { return Ok(Arc::default()) };
    for resource in RESOURCES {
        let store = context.built_in(GROUP, "v1", resource)?;
        context.fresh(&store).await?;
    }
    let deadline = context.clock.now() + TAKEN_IN_WAIT;
    if !context.rights.reach(&context.clock, deadline).await {
        return Err(Status::internal("roles and bindings are not taken in yet"));
    }
    Ok(rights.load_full())
}

/// Follows them from now on, and returns once what is there is in force. Nothing where nobody asks for it.
///
/// # Errors
/// When they are not served.
pub(crate) async fn start(context: &Arc<Context>) -> Result<(), Status> {
    let Some(rights) = context.config.rights.clone() else { return Ok(()) };
    let mut sources = Vec::with_capacity(RESOURCES.len());
    for resource in RESOURCES {
        sources.push(Source::of(context, resource)?);
    }
    let Ok(sources) = <[Source; 4]>::try_from(sources) else {
        return Err(Status::internal("there are four sources of rights"));
    };
    context.tasks.spawn("rights", follow(context.clone(), rights, sources));
    let mut taken_in = context.rights.taken_in.subscribe();
    context.rights.asked.send_modify(|asked| *asked += 1);
    // It ends with the task, when the server does.
    let _ended = taken_in.wait_for(|reached| *reached > 0).await;
    Ok(())
}

async fn follow(context: Arc<Context>, in_force: Arc<RightsInForce>, mut sources: [Source; 4]) {
    let mut asked = context.rights.asked.subscribe();
    let mut rights = Rights::default();
    loop {
        let reached = *asked.borrow_and_update();
        let mut is_other = false;
        for source in &mut sources {
            is_other |= source.take_in(&mut rights).await;
        }
        if is_other {
            in_force.publish(rights.clone());
        }
        if sources.iter().all(|source| source.is_synced) {
            context.rights.taken_in.send_replace(reached);
        }
        let [roles, cluster_roles, bindings, cluster_bindings] = &mut sources;
        tokio::select! {
            () = roles.informer.ready() => {}
            () = cluster_roles.informer.ready() => {}
            () = bindings.informer.ready() => {}
            () = cluster_bindings.informer.ready() => {}
            asking = asked.changed() => if asking.is_err() { return },
        }
    }
}

/// Where a collection is told of.
struct Source {
    served: Arc<Served>,
    informer: Informer,
    is_synced: bool,
    are_bindings: bool,
}

impl Source {
    fn of(context: &Arc<Context>, resource: &str) -> Result<Source, Status> {
        let served = context.catalog().resource(GROUP, "v1", resource).cloned();
        let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
        let target = Target::of_server(served.clone(), None, None);
        let informer = informer::informer(&target, &ListOptions::default())?;
        Ok(Source { served, informer, is_synced: false, are_bindings: resource.ends_with("bindings") })
    }

    /// Takes in what there is to be told. Whether there was something.
    async fn take_in(&mut self, rights: &mut Rights) -> bool {
        let mut count = 0;
        while let Some(notice) = self.informer.try_next() {
            match notice {
                Notice::Put(object) => self.put(rights, &object),
                Notice::Deleted(object) => self.remove(rights, &object),
                Notice::Synced => self.is_synced = true,
                Notice::Ended => {}
            }
            count += 1;
            if count % RIGHTS_BATCH == 0 {
                // Others work meanwhile.
                tokio::task::yield_now().await;
            }
        }
        count > 0
    }

    fn put(&self, rights: &mut Rights, object: &Object) {
        let value = match self.served.to_value(object) {
            Ok(value) => value,
            Err(status) => {
                tracing::warn!(name = object.name(), why = status.message, "it gives no right");
                return self.remove(rights, object);
            }
        };
        if !self.are_bindings {
            return rights.put_role(&reference(object), Role::read(&value));
        }
        match binding(&value, object) {
            Some(binding) => rights.put_binding(binding),
            None => self.remove(rights, object),
        }
    }

    fn remove(&self, rights: &mut Rights, object: &Object) {
        match self.are_bindings {
            true => rights.remove_binding(object.namespace(), object.name()),
            false => rights.remove_role(&reference(object)),
        }
    }
}

fn reference(object: &Object) -> RoleRef {
    RoleRef { namespace: object.namespace().into(), name: object.name().into() }
}

fn binding(value: &Value, object: &Object) -> Option<RoleBinding> {
    RoleBinding::read(value, object.namespace())
}
