//! A catalog of the built-in resources without stores, for tests.

use forebay_apimachinery::{GroupVersionKind, GroupVersionResource};
use forebay_registry::catalog::{Catalog, Served, Source, StoredAs, SubresourceInfo};
use forebay_schema::builtin;

pub fn catalog() -> Catalog {
    let table = builtin::table();
    Catalog::new(table.resources().iter().map(served), None)
}

fn served(resource: &'static builtin::Resource) -> Served {
    let table = builtin::table();
    let kind = table.kind(resource.group, resource.version, resource.kind).expect("a known kind");
    let subresources = resource.subresources.iter().map(|known| SubresourceInfo {
        name: known.name.into(),
        gvk: GroupVersionKind::new(known.group, known.version, known.kind),
        verbs: known.verbs.iter().collect(),
        connect: known.connect,
    });
    Served {
        gvr: GroupVersionResource::new(resource.group, resource.version, resource.plural),
        gvk: GroupVersionKind::new(resource.group, resource.version, resource.kind),
        list_kind: format!("{}List", resource.kind).into(),
        singular: resource.singular.into(),
        namespaced: resource.namespaced,
        short_names: resource.short_names().map(Into::into).collect(),
        categories: resource.categories().map(Into::into).collect(),
        verbs: resource.verbs.iter().collect(),
        subresources: subresources.collect(),
        source: Source::BuiltIn { resource, ty: kind.ty, stored_as: StoredAs::of(resource) },
        selectable: Vec::new(),
        store: None,
    }
}
