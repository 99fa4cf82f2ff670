//! The built-in resources as a catalog, from the generated table.

use std::sync::Arc;

use forebay_apimachinery::{GroupVersionKind, GroupVersionResource};
use forebay_object::Form;
use forebay_schema::builtin::{self, StoredAs};

use crate::built_in::{BuiltIn, Conversions};
use crate::catalog::Catalog;
use crate::opener::{Opener, Shape};
use crate::selectable::SelectableField;
use crate::served::{Served, SubresourceInfo};
use crate::store::Store;

/// Every resource of the table, each with its store. Resources that share a storage prefix share the store's
/// cache only when they are versions of one resource; events of both groups are one, and so are both versions
/// of autoscalers.
pub fn catalog(opener: &Opener, conversions: Conversions) -> Catalog {
    let mut stores: Vec<(&str, Arc<Store>)> = Vec::new();
    let mut opened = |resource: &'static builtin::Resource, path: &'static str| {
        let known = stores.iter().find(|(known, _)| *known == path).map(|(_, store)| store.clone());
        known.unwrap_or_else(|| {
            let store = Arc::new(open(opener, resource, path, conversions));
            stores.push((path, store.clone()));
            store
        })
    };
    let served = builtin::table().resources().iter().filter_map(|resource| {
        let store = resource.storage_prefix.map(|path| opened(resource, path));
        served(resource, conversions, store)
    });
    Catalog::new(served, None)
}

/// The same without stores: what describes the resources, for who answers none.
pub fn without_stores(conversions: Conversions) -> Catalog {
    let resources = builtin::table().resources().iter();
    Catalog::new(resources.filter_map(|resource| served(resource, conversions, None)), None)
}

/// `resource`, its objects being in `store`; `None` where the table has no type for it.
pub fn served(
    resource: &'static builtin::Resource,
    conversions: Conversions,
    store: Option<Arc<Store>>,
) -> Option<Served> {
    Some(Served {
        kind: Box::new(BuiltIn::new(resource, conversions)?),
        gvr: GroupVersionResource::new(resource.group, resource.version, resource.plural),
        gvk: GroupVersionKind::new(resource.group, resource.version, resource.kind),
        list_kind: format!("{}List", resource.kind).into(),
        singular: resource.singular.into(),
        namespaced: resource.namespaced,
        short_names: resource.short_names().map(Arc::from).collect(),
        categories: resource.categories().map(Arc::from).collect(),
        verbs: resource.verbs.iter().collect(),
        subresources: resource.subresources.iter().map(subresource).collect(),
        selectable: selectable(resource, conversions),
        store,
        converted: None,
        unserved: Arc::default(),
    })
}

/// The built-in part of a catalog.
pub fn of(catalog: &Catalog) -> Vec<Arc<Served>> {
    catalog.iter().filter(|served| !served.is_custom()).cloned().collect()
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
fn fields(
    resource: &builtin::Resource,
    conversions: Conversions,
) -> Vec<(&'static str, Vec<String>, &'static str)> {
    let conversion = StoredAs::of(resource).and_then(conversions);
    let own = resource
        .fields()
        .iter()
        .filter(|field| !matches!(field.label, "metadata.name" | "metadata.namespace"));
    own.map(|field| {
        let stored = |path: &str| match conversion {
            Some(conversion) => (conversion.path_to_stored)(path),
            None => path.to_string(),
        };
        (field.label, field.paths().map(stored).collect(), field.absent)
    })
    .collect()
}

/// Resources that share a store share its layout, whose fields are the core resource's: paths are looked up
/// there.
fn selectable(resource: &builtin::Resource, conversions: Conversions) -> Vec<SelectableField> {
    let layout = layout_fields(resource, conversions);
    fields(resource, conversions)
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

/// The paths that the store of `resource` keeps the values of: those of every resource with its storage
/// prefix.
fn layout_fields(resource: &builtin::Resource, conversions: Conversions) -> Vec<String> {
    let sharing =
        builtin::table().resources().iter().filter(|other| other.storage_prefix == resource.storage_prefix);
    let mut paths: Vec<String> =
        sharing.flat_map(|resource| fields(resource, conversions)).flat_map(|(_, paths, _)| paths).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// Fields that many clients list by, each with its own value: kubelets, and whoever describes an object.
const INDEXED: [(&str, &str); 3] =
    [("pods", "spec.nodeName"), ("resourceslices", "spec.nodeName"), ("events", "involvedObject.uid")];

fn open(
    opener: &Opener,
    resource: &'static builtin::Resource,
    path: &str,
    conversions: Conversions,
) -> Store {
    let fields = layout_fields(resource, conversions);
    let is_indexed = |path: &String| INDEXED.contains(&(resource.plural, path.as_str()));
    let indexed = (0..fields.len()).filter(|at| is_indexed(&fields[*at])).collect();
    opener.open(Shape {
        group: resource.group,
        plural: resource.plural,
        path,
        namespaced: resource.namespaced,
        form: Form::Typed,
        fields: &fields,
        indexed,
    })
}
