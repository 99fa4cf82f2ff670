//! The operations of a built-in resource and its subresources.
//!
//! In: what the catalog serves. Out: routes. Never: CRDs.
//!
//! Source: apiserver v1.36.3 `endpoints/installer.go`, `endpoints/discovery`.

use forebay_catalog::{Served, SubresourceInfo};
use forebay_schema::builtin::{Table, TypeId};
use forebay_schema::openapi::Fixed;

use super::media;
use super::responses::Success;
use super::route::{Action, Model, Parameter, RequestBody, Route, operation_id, options, tag};
use super::verbs;

/// What the operations of one resource have in common.
struct Resource<'c> {
    table: &'static Table,
    served: &'c Served,
    /// `/apis/apps/v1`.
    prefix: String,
    /// Where the collection is: `namespaces/{namespace}/pods`.
    collection: String,
    /// `namespace`, if it has one.
    scope: Vec<Parameter>,
}

/// The routes of `served`, its subresources included.
pub fn routes<'c>(table: &'static Table, served: &'c Served) -> Vec<Route<'c>> {
    let resource = Resource::new(table, served);
    let mut routes = resource.own_routes();
    for subresource in &served.subresources {
        // A log comes from a kubelet as the connections do, but upstream documents it as a document that is
        // read.
        routes.extend(match subresource.connect && &*subresource.name != "log" {
            true => resource.connections(subresource),
            false => resource.below(subresource),
        });
    }
    routes
}

/// `/api/v1/` and `/apis/<group>/<version>/`: what resources there are.
pub fn resource_list_route<'c>(table: &'static Table, group: &str, version: &str) -> Option<Route<'c>> {
    let path = format!("{}/", prefix(group, version));
    let id = operation_id("get", group, Some(version), "APIResources");
    document_route(table, path, id, tag(group, Some(version)), "APIResourceList")
}

/// `/apis/<group>/`.
pub fn group_route<'c>(table: &'static Table, group: &str) -> Option<Route<'c>> {
    let id = operation_id("get", group, None, "APIGroup");
    document_route(table, format!("/apis/{group}/"), id, tag(group, None), "APIGroup")
}

/// `/api/` and `/apis/`.
pub fn root_route<'c>(table: &'static Table, root: &str) -> Option<Route<'c>> {
    let (id, tag, kind) = match root {
        "api" => ("getCoreAPIVersions", "core", "APIVersions"),
        _ => ("getAPIVersions", "apis", "APIGroupList"),
    };
    document_route(table, format!("/{root}/"), id.to_string(), tag.to_string(), kind)
}

/// `/version/`.
pub fn version_route<'c>() -> Route<'c> {
    plain_route(
        "/version/".into(),
        "getCodeVersion".into(),
        "version".into(),
        Model::Fixed(Fixed::VersionInfo),
        &["application/json"],
    )
}

fn document_route<'c>(
    table: &'static Table,
    path: String,
    operation_id: String,
    tag: String,
    kind: &str,
) -> Option<Route<'c>> {
    let ty = table.type_named("meta/v1", kind)?;
    Some(plain_route(path, operation_id, tag, Model::BuiltIn(ty), media::OBJECTS))
}

fn plain_route<'c>(
    path: String,
    operation_id: String,
    tag: String,
    model: Model<'c>,
    media: &'static [&'static str],
) -> Route<'c> {
    Route {
        path,
        method: "get",
        operation_id,
        tag,
        action: None,
        parameters: Vec::new(),
        body: None,
        responses: vec![(Success::Ok, model)],
        consumes: media,
        produces: media.to_vec(),
    }
}

pub fn prefix(group: &str, version: &str) -> String {
    match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    }
}

impl<'c> Resource<'c> {
    fn new(table: &'static Table, served: &'c Served) -> Resource<'c> {
        let (collection, scope) = match served.namespaced {
            true => (
                format!("namespaces/{{namespace}}/{}", served.resource()),
                vec![Parameter::path("namespace")],
            ),
            false => (served.resource().to_string(), Vec::new()),
        };
        let prefix = prefix(served.group(), &served.gvr.version);
        Resource { table, served, prefix, collection, scope }
    }

    fn own_routes(&self) -> Vec<Route<'c>> {
        let has = |verb: &str| self.served.verbs.contains(&verb);
        let (plural, collection) = (self.served.resource(), self.collection.clone());
        let item = format!("{collection}/{{name}}");
        let watched = has("watch") && has("list");
        let mut routes = Vec::new();
        if has("list") {
            routes.extend(self.list(&collection, ""));
            if self.served.namespaced {
                routes.extend(self.list(plural, "ForAllNamespaces"));
            }
        }
        if watched {
            routes.extend(self.watch(&collection, "List"));
            if self.served.namespaced {
                routes.extend(self.watch(plural, "ListForAllNamespaces"));
            }
        }
        if has("watch") {
            routes.extend(self.watch(&item, ""));
        }
        if has("deletecollection") {
            routes.extend(self.delete_collection(&collection));
        }
        if has("delete") {
            routes.extend(self.delete(&item));
        }
        routes.extend(self.writes(&collection, &item, &self.served.verbs, None));
        routes
    }

    /// A subresource that is an object.
    fn below(&self, subresource: &'c SubresourceInfo) -> Vec<Route<'c>> {
        let item = format!("{}/{{name}}/{}", self.collection, subresource.name);
        let mut routes = self.writes(&item, &item, &subresource.verbs, Some(subresource));
        if &*subresource.name == "log" {
            for route in &mut routes {
                route.parameters.extend(self.options("core/v1", "PodLogOptions"));
                route.responses = vec![(Success::Ok, Model::Text)];
                route.produces.insert(0, "text/plain");
            }
        }
        routes
    }

    /// Create, read, replace and patch.
    fn writes(
        &self,
        collection: &str,
        item: &str,
        verbs: &[&str],
        subresource: Option<&'c SubresourceInfo>,
    ) -> Vec<Route<'c>> {
        let Some(body) = self.body_type(subresource) else { return Vec::new() };
        let object = Model::BuiltIn(body);
        let has = |verb: &str| verbs.contains(&verb);
        let mut routes = Vec::new();
        if has("create") {
            let mut route = self.route(&verbs::CREATE, collection, subresource, "");
            route.parameters.extend(self.options("meta/v1", "CreateOptions"));
            route.body = Some(RequestBody { model: object.clone(), required: true });
            route.responses =
                [Success::Ok, Success::Created, Success::Accepted].map(|done| (done, object.clone())).into();
            routes.push(route);
        }
        if has("get") {
            let mut route = self.route(&verbs::READ, item, subresource, "");
            route.responses = vec![(Success::Ok, object.clone())];
            routes.push(route);
        }
        if has("update") {
            let mut route = self.route(&verbs::REPLACE, item, subresource, "");
            route.parameters.extend(self.options("meta/v1", "UpdateOptions"));
            route.body = Some(RequestBody { model: object.clone(), required: true });
            route.responses = [Success::Ok, Success::Created].map(|done| (done, object.clone())).into();
            routes.push(route);
        }
        if has("patch") {
            let mut route = self.route(&verbs::PATCH, item, subresource, "");
            route.parameters.extend(self.options("meta/v1", "PatchOptions"));
            route.body = Some(RequestBody { model: Model::Fixed(Fixed::Patch), required: true });
            route.responses = [Success::Ok, Success::Created].map(|done| (done, object.clone())).into();
            route.consumes = media::PATCHES;
            routes.push(route);
        }
        routes
    }

    fn list(&self, path: &str, suffix: &str) -> Option<Route<'c>> {
        let list =
            self.table.kind(self.served.group(), &self.served.gvr.version, &self.served.gvk.kind)?.list?;
        let mut route = self.route(&verbs::LIST, path, None, suffix);
        route.parameters.extend(self.options("meta/v1", "ListOptions"));
        route.responses = vec![(Success::Ok, Model::BuiltIn(list))];
        route.produces.extend(media::STREAMS);
        Some(route)
    }

    /// The form of watch that has its own path, deprecated but served.
    fn watch(&self, path: &str, suffix: &str) -> Option<Route<'c>> {
        let action = if suffix.is_empty() { &verbs::WATCH } else { &verbs::WATCH_LIST };
        let mut route = self.route(action, &format!("watch/{path}"), None, suffix);
        route.parameters.extend(self.options("meta/v1", "ListOptions"));
        route.responses = vec![(Success::Ok, Model::BuiltIn(self.meta("WatchEvent")?))];
        route.produces.extend(media::STREAMS);
        Some(route)
    }

    fn delete(&self, path: &str) -> Option<Route<'c>> {
        let answer = match returns_deleted_object(self.served) {
            true => self.body_type(None)?,
            false => self.meta("Status")?,
        };
        let mut route = self.route(&verbs::DELETE, path, None, "");
        route.parameters.extend(self.options("meta/v1", "DeleteOptions"));
        route.body =
            Some(RequestBody { model: Model::BuiltIn(self.meta("DeleteOptions")?), required: false });
        route.responses = [Success::Ok, Success::Accepted].map(|done| (done, Model::BuiltIn(answer))).into();
        Some(route)
    }

    fn delete_collection(&self, path: &str) -> Option<Route<'c>> {
        let mut route = self.route(&verbs::DELETE_COLLECTION, path, None, "");
        route.parameters.extend(self.options("meta/v1", "DeleteOptions"));
        let lists = self.options("meta/v1", "ListOptions").into_iter();
        route
            .parameters
            .extend(lists.filter(|option| !["watch", "allowWatchBookmarks"].contains(&&*option.name)));
        route.body =
            Some(RequestBody { model: Model::BuiltIn(self.meta("DeleteOptions")?), required: false });
        route.responses = vec![(Success::Ok, Model::BuiltIn(self.meta("Status")?))];
        Some(route)
    }

    /// A subresource whose requests are handed on to a kubelet, by any method.
    fn connections(&self, subresource: &'c SubresourceInfo) -> Vec<Route<'c>> {
        let path = format!("{}/{{name}}/{}", self.collection, subresource.name);
        let is_proxy = &*subresource.name == "proxy";
        let (methods, paths): (&[_], &[_]) = match is_proxy {
            true => (&verbs::CONNECT_ANY, &[(path.clone(), ""), (format!("{path}/{{path}}"), "WithPath")]),
            false => (&verbs::CONNECT_STREAM, &[(path, "")]),
        };
        let options = self.body_type(Some(subresource)).map(|ty| options(self.table, ty)).unwrap_or_default();
        let mut routes = Vec::new();
        for (path, suffix) in paths {
            for verb in methods {
                let mut route = self.route(verb, path, Some(subresource), suffix);
                route.parameters.retain(|parameter| parameter.name != "pretty");
                route.parameters.extend(options.clone());
                if !suffix.is_empty() {
                    route.parameters.push(Parameter::path("path"));
                }
                route.responses = vec![(Success::Ok, Model::Text)];
                route.produces = vec!["*/*"];
                routes.push(route);
            }
        }
        routes
    }

    /// A route without options, body and answers.
    fn route(
        &self,
        verb: &'static verbs::VerbWords,
        path: &str,
        subresource: Option<&'c SubresourceInfo>,
        suffix: &str,
    ) -> Route<'c> {
        let served = self.served;
        let all_namespaces = suffix.ends_with("ForAllNamespaces");
        let namespaced = if served.namespaced && !all_namespaces { "Namespaced" } else { "" };
        let below = subresource.map(|subresource| verbs::title(&subresource.name)).unwrap_or_default();
        let rest = format!("{}{namespaced}{}{below}{suffix}", verb.infix, served.gvk.kind);
        let gvk = subresource.map_or(&served.gvk, |subresource| &subresource.gvk);
        let mut parameters = vec![Parameter::query("pretty", "string")];
        if !all_namespaces {
            parameters.extend(self.scope.clone());
        }
        if path.contains("{name}") {
            parameters.push(Parameter::path("name"));
        }
        let version = Some(&*served.gvr.version);
        Route {
            path: format!("{}/{path}", self.prefix),
            method: verb.method,
            operation_id: operation_id(verb.prefix, served.group(), version, &rest),
            tag: tag(served.group(), version),
            action: Some(Action {
                name: verb.action,
                group: &gvk.group,
                version: &gvk.version,
                kind: &gvk.kind,
            }),
            parameters,
            body: None,
            responses: Vec::new(),
            consumes: media::ANY,
            produces: media::OBJECTS.to_vec(),
        }
    }

    fn body_type(&self, subresource: Option<&SubresourceInfo>) -> Option<TypeId> {
        let gvk = subresource.map_or(&self.served.gvk, |subresource| &subresource.gvk);
        Some(self.table.kind(&gvk.group, &gvk.version, &gvk.kind)?.ty)
    }

    fn meta(&self, name: &str) -> Option<TypeId> {
        self.table.type_named("meta/v1", name)
    }

    fn options(&self, package: &str, name: &str) -> Vec<Parameter> {
        self.table.type_named(package, name).map(|ty| options(self.table, ty)).unwrap_or_default()
    }
}

/// Whether a DELETE answers with the object rather than a Status.
fn returns_deleted_object(served: &Served) -> bool {
    const CORE: [&str; 7] = [
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ];
    match served.group() {
        "" => CORE.contains(&served.resource()),
        "resource.k8s.io" => true,
        "storage.k8s.io" => served.resource() != "csistoragecapacities",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_ins;

    #[test]
    fn what_a_delete_answers_is_said_as_it_is_done() {
        let differs = |served: &&std::sync::Arc<Served>| {
            let kind =
                forebay_strategy::GroupKind { group: served.group(), kind: &served.gvk.kind, custom: None };
            let can = served.verbs.contains(&"delete");
            // A namespace's is returned, and kube-apiserver's documents do not say so.
            let can = can && !served.is("", "namespaces");
            can && returns_deleted_object(served) != kind.flags().returns_deleted_object
        };
        let catalog = built_ins();
        let differing: Vec<_> =
            catalog.iter().filter(differs).map(|one| one.gvr.group_resource().to_string()).collect();
        assert_eq!(differing, [""; 0]);
    }
}
