//! The built-in resources as a catalog, from the generated table.

use std::sync::Arc;

use forebay_apimachinery::{GroupVersionKind, GroupVersionResource};
use forebay_backend::Backend;
use forebay_object::{Form, Layout, Scope};
use forebay_rt::{Clock, Tasks};
use forebay_schema::builtin;

use crate::catalog::{Catalog, Served, Source, StoredAs, SubresourceInfo};
use crate::registry::Config;
use crate::store::{SelectableField, Store};

/// Every resource of the table, each with its store. Resources that share a storage prefix share the store's cache
/// only when they are versions of one resource; events of both groups are one, and so are both versions of autoscalers.
pub fn catalog(config: &Config, backend: &Arc<dyn Backend>, clock: &Clock, tasks: &Tasks) -> Catalog {
    let table = builtin::table();
    let mut stores: Vec<(&str, Arc<Store>)> = Vec::new();
    let mut served = Vec::new();
    for resource in table.resources() {
        let Some(kind) = table.kind(resource.group, resource.version, resource.kind) else { continue };
        let store =
            resource.storage_prefix.map(|prefix| match stores.iter().find(|(known, _)| *known == prefix) {
                Some((_, store)) => store.clone(),
                None => {
                    let store = Arc::new(store(config, resource, prefix, backend, clock, tasks));
                    stores.push((prefix, store.clone()));
                    store
                }
            });
        let gvk = GroupVersionKind::new(resource.group, resource.version, resource.kind);
        served.push(Served {
            gvr: GroupVersionResource::new(resource.group, resource.version, resource.plural),
            list_kind: format!("{}List", resource.kind).into(),
            gvk,
            singular: resource.singular.into(),
            namespaced: resource.namespaced,
            short_names: resource.short_names().map(Arc::from).collect(),
            categories: resource.categories().map(Arc::from).collect(),
            verbs: resource.verbs.iter().collect(),
            subresources: resource.subresources.iter().map(subresource).collect(),
            selectable: selectable(resource),
            source: Source::BuiltIn { resource, ty: kind.ty, stored_as: StoredAs::of(resource) },
            store,
        });
    }
    Catalog::new(served, None)
}

/// The built-in part of a catalog.
pub fn of(catalog: &Catalog) -> Vec<Arc<Served>> {
    let built_in = |served: &&Arc<Served>| matches!(served.source, Source::BuiltIn { .. });
    catalog.iter().filter(built_in).cloned().collect()
}

fn subresource(known: &builtin::Subresource) -> SubresourceInfo {
    SubresourceInfo {
        name: known.name.into(),
        gvk: GroupVersionKind::new(known.group, known.version, known.kind),
        verbs: known.verbs.iter().collect(),
        connect: known.connect,
    }
}

/// The field selectors beyond name and namespace: label, stored paths, and what an absent value counts as.
fn fields(resource: &builtin::Resource) -> Vec<(&'static str, Vec<String>, &'static str)> {
    let own = resource
        .fields()
        .iter()
        .filter(|field| !matches!(field.label, "metadata.name" | "metadata.namespace"));
    own.map(|field| {
        let stored = |path: &str| match StoredAs::of(resource) {
            Some(stored) => (stored.conversion.path_to_stored)(path),
            None => path.to_string(),
        };
        (field.label, field.paths().map(stored).collect(), field.absent)
    })
    .collect()
}

/// Resources that share a store share its layout, whose fields are the core resource's: paths are looked up there.
fn selectable(resource: &builtin::Resource) -> Vec<SelectableField> {
    let layout = layout_fields(resource);
    fields(resource)
        .into_iter()
        .map(|(label, paths, absent)| {
            let place = |path: &String| layout.iter().position(|known| known == path);
            SelectableField {
                label: label.to_string(),
                fields: paths.iter().filter_map(place).collect(),
                absent,
            }
        })
        .collect()
}

/// The paths that the store of `resource` keeps the values of: those of every resource with its storage prefix.
fn layout_fields(resource: &builtin::Resource) -> Vec<String> {
    let sharing =
        builtin::table().resources().iter().filter(|other| other.storage_prefix == resource.storage_prefix);
    let mut paths: Vec<String> = sharing.flat_map(fields).flat_map(|(_, paths, _)| paths).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Fields that many clients list by, each with its own value: kubelets, and whoever describes an object.
const INDEXED: [(&str, &str); 3] =
    [("pods", "spec.nodeName"), ("resourceslices", "spec.nodeName"), ("events", "involvedObject.uid")];

fn store(
    config: &Config,
    resource: &'static builtin::Resource,
    prefix: &str,
    backend: &Arc<dyn Backend>,
    clock: &Clock,
    tasks: &Tasks,
) -> Store {
    let prefix = format!("{}/{prefix}/", config.storage_prefix);
    let paths = layout_fields(resource);
    let is_indexed = |path: &String| INDEXED.contains(&(resource.plural, path.as_str()));
    let indexed = (0..paths.len()).filter(|at| is_indexed(&paths[*at])).collect();
    let fields = paths.iter().map(|path| path.split('.').map(String::from).collect()).collect();
    let scope = if resource.namespaced { Scope::Namespaced } else { Scope::Cluster };
    let layout = Layout { prefix_len: prefix.len(), scope, form: Form::Typed, fields };
    let name = format!("{}.{}", resource.plural, resource.group);
    let name = name.trim_end_matches('.').to_string();
    let cached = config.cached(name, prefix, layout, indexed);
    Store::open((resource.group, resource.plural), cached, config, backend, (clock, tasks))
}
