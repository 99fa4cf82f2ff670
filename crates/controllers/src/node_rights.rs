//! Which objects lead to which node, as pods, volumes, attachments and slices of this server come and go.
//!
//! In: their informers. Out: the graph that the node authorizer decides by, published after each batch.
//! Never: runs where no node is asked about; keeps an object.

use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;
use forebay_node_rights::{
    NodeGraph, NodesInForce, PodLinks, VolumeLinks, node_of_attachment, node_of_slice,
};
use forebay_object::Object;
use forebay_registry::{Informer, Notice, Registry};
use forebay_rt::Tasks;
use tokio::sync::watch;

use crate::limits::{HINDERED_LOOK, NODE_RIGHTS_BATCH};
use crate::objects::{built_in, collection};

/// What leads to nodes.
#[derive(Clone, Copy)]
enum Leading {
    Pods,
    Volumes,
    Attachments,
    Slices,
}

const SOURCES: [(Leading, &str, &str); 4] = [
    (Leading::Pods, "", "pods"),
    (Leading::Volumes, "", "persistentvolumes"),
    (Leading::Attachments, "storage.k8s.io", "volumeattachments"),
    (Leading::Slices, "resource.k8s.io", "resourceslices"),
];

/// Where a collection is told of.
struct Source {
    is: Leading,
    informer: Informer,
    is_synced: bool,
}

/// Follows what leads to nodes from now on, and returns once what is there is published: kubelets that come
/// back to a server that starts are answered as before. Where some of it cannot be read for now it returns as
/// well, and nodes have no rights until it can: everybody else is served meanwhile. Cancel-safe: it is
/// followed all the same.
///
/// # Errors
/// When something of it is not served.
pub async fn follow_node_rights(
    registry: &Registry,
    in_force: Arc<NodesInForce>,
    tasks: &Tasks,
) -> Result<(), Status> {
    let mut sources = Vec::with_capacity(SOURCES.len());
    let mut stores = Vec::with_capacity(SOURCES.len());
    for (is, group, resource) in SOURCES {
        let served = built_in(registry, group, "v1", resource)?;
        stores.push(served.stored()?);
        let informer = registry.informer(&collection(&served, None), &ListOptions::default())?;
        sources.push(Source { is, informer, is_synced: false });
    }
    let Ok(sources) = <[Source; 4]>::try_from(sources) else {
        return Err(Status::internal("four collections lead to nodes"));
    };
    let (published, mut is_published) = watch::channel(false);
    tasks.spawn("rights of nodes", follow(in_force, sources, published));
    loop {
        tokio::select! {
            biased;
            // It ends with the task, when the server does.
            _ended = is_published.wait_for(|published| *published) => return Ok(()),
            () = registry.clock().sleep(HINDERED_LOOK) => {}
        }
        // What is there, and was not told yet, is waited for.
        let Some(store) = stores.iter().find(|store| store.cacher.snapshot().is_err()) else { continue };
        if let Some(why) = store.hindered() {
            let resource = &*store.resource;
            tracing::error!(resource, why, "nodes have no rights until it can be read");
            return Ok(());
        }
    }
}

async fn follow(in_force: Arc<NodesInForce>, mut sources: [Source; 4], published: watch::Sender<bool>) {
    let mut graph = NodeGraph::default();
    loop {
        let mut is_other = false;
        for source in &mut sources {
            is_other |= source.take_in(&mut graph).await;
        }
        if is_other && sources.iter().all(|source| source.is_synced) {
            in_force.publish(graph.clone());
            published.send_replace(true);
        }
        let [pods, volumes, attachments, slices] = &mut sources;
        tokio::select! {
            () = pods.informer.ready() => {}
            () = volumes.informer.ready() => {}
            () = attachments.informer.ready() => {}
            () = slices.informer.ready() => {}
        }
    }
}

impl Source {
    /// Takes in what there is to be told. Whether something is other than before.
    async fn take_in(&mut self, graph: &mut NodeGraph) -> bool {
        let (mut count, mut is_other) = (0, false);
        while let Some(notice) = self.informer.try_next() {
            match notice {
                Notice::Put(object) => is_other |= self.put(graph, &object),
                Notice::Deleted(object) => is_other |= self.remove(graph, &object),
                Notice::Synced => {
                    self.is_synced = true;
                    is_other = true;
                }
                Notice::Ended => {}
            }
            count += 1;
            if count % NODE_RIGHTS_BATCH == 0 {
                // Others work meanwhile.
                tokio::task::yield_now().await;
            }
        }
        is_other
    }

    fn put(&self, graph: &mut NodeGraph, object: &Object) -> bool {
        let (name, json) = (object.name(), object.untyped_json());
        let put = match self.is {
            Leading::Pods => {
                PodLinks::read(&json).map(|links| graph.put_pod(object.namespace(), name, links.as_ref()))
            }
            Leading::Volumes => VolumeLinks::read(&json).map(|links| {
                graph.put_volume(name, links.as_ref());
                true
            }),
            Leading::Attachments => node_of_attachment(&json).map(|node| {
                graph.put_attachment(name, node.as_deref());
                true
            }),
            Leading::Slices => node_of_slice(&json).map(|node| {
                graph.put_slice(name, node.as_deref());
                true
            }),
        };
        put.unwrap_or_else(|why| {
            tracing::warn!(name, %why, "it leads to no node");
            self.remove(graph, object)
        })
    }

    fn remove(&self, graph: &mut NodeGraph, object: &Object) -> bool {
        let name = object.name();
        match self.is {
            Leading::Pods => return graph.remove_pod(object.namespace(), name),
            Leading::Volumes => graph.remove_volume(name),
            Leading::Attachments => graph.remove_attachment(name),
            Leading::Slices => graph.remove_slice(name),
        }
        true
    }
}
