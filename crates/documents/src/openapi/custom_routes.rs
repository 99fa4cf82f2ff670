//! The operations of a custom resource.
//!
//! In: what the catalog serves of a CRD's version. Out: routes. Never: built-in resources.
//!
//! Source: apiextensions-apiserver v1.36.3 `controller/openapi/builder`; it differs from the built-in ones in detail.

use forebay_catalog::Served;
use forebay_schema::builtin::{Table, TypeId};
use forebay_schema::openapi::Fixed;

use super::media;
use super::responses::Success;
use super::route::{Action, Model, Parameter, RequestBody, Route, operation_id, options, tag};
use super::verbs::{self, VerbWords};

/// The routes of `served`, its subresources included.
pub fn routes<'c>(table: &'static Table, served: &'c Served) -> Vec<Route<'c>> {
    let resource = Resource { table, served };
    let root = format!("/apis/{}/{}", served.group(), served.gvr.version);
    let plural = served.resource();
    let collection = match served.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{plural}"),
        false => format!("{root}/{plural}"),
    };
    let item = format!("{collection}/{{name}}");
    let (object, list) = (resource.model(&served.gvk.kind), resource.model(&served.list_kind));
    let mut routes = Vec::new();
    if served.namespaced {
        let mut all = resource.route(&verbs::LIST, &format!("{root}/{plural}"), "", &list);
        all.operation_id = resource.operation_id("list", &format!("{}ForAllNamespaces", served.gvk.kind));
        routes.push(all);
    }
    routes.push(resource.route(&verbs::LIST, &collection, "", &list));
    routes.push(resource.route(&verbs::CREATE, &collection, "", &object));
    if let Some(status) = resource.meta("Status").map(Model::BuiltIn) {
        routes.push(resource.route(&verbs::DELETE_COLLECTION, &collection, "", &status));
        routes.push(resource.route(&verbs::DELETE, &item, "", &status));
    }
    routes.extend(resource.writes(&item, "", &object));
    for subresource in &served.subresources {
        let body = match &*subresource.name {
            "scale" => table.type_named("autoscaling/v1", "Scale").map(Model::BuiltIn),
            _ => Some(object.clone()),
        };
        let Some(body) = body else { continue };
        routes.extend(resource.writes(&format!("{item}/{}", subresource.name), &subresource.name, &body));
    }
    routes
}

struct Resource<'c> {
    table: &'static Table,
    served: &'c Served,
}

impl<'c> Resource<'c> {
    fn writes(&self, path: &str, subresource: &str, model: &Model<'c>) -> [Route<'c>; 3] {
        [&verbs::READ, &verbs::REPLACE, &verbs::PATCH].map(|verb| self.route(verb, path, subresource, model))
    }

    fn route(&self, verb: &'static VerbWords, path: &str, subresource: &str, model: &Model<'c>) -> Route<'c> {
        let served = self.served;
        let namespaced = if served.namespaced { "Namespaced" } else { "" };
        let rest = format!("{}{namespaced}{}{}", verb.infix, served.gvk.kind, verbs::title(subresource));
        let mut parameters = vec![Parameter::query("pretty", "string")];
        parameters.extend(
            ["namespace", "name"]
                .into_iter()
                .filter(|name| path.contains(&format!("{{{name}}}")))
                .map(Parameter::path),
        );
        let options = match verb.action {
            "get" => "GetOptions",
            "list" | "deletecollection" => "ListOptions",
            "put" => "UpdateOptions",
            "patch" => "PatchOptions",
            "post" => "CreateOptions",
            _ => "DeleteOptions",
        };
        parameters.extend(self.meta(options).map(|ty| self::options(self.table, ty)).unwrap_or_default());
        let codes: &[Success] = match verb.action {
            "post" => &[Success::Ok, Success::Created, Success::Accepted],
            "put" => &[Success::Ok, Success::Created],
            "delete" => &[Success::Ok, Success::Accepted],
            _ => &[Success::Ok],
        };
        Route {
            path: path.to_string(),
            method: verb.method,
            operation_id: self.operation_id(verb.prefix, &rest),
            tag: tag(served.group(), Some(&served.gvr.version)),
            action: Some(Action {
                name: verb.action,
                group: &served.gvk.group,
                version: &served.gvk.version,
                kind: &served.gvk.kind,
            }),
            parameters,
            body: self.body(verb, model),
            responses: codes.iter().map(|done| (*done, model.clone())).collect(),
            consumes: if verb.action == "patch" { media::CUSTOM_PATCHES } else { media::CUSTOM_OBJECTS },
            produces: media::CUSTOM_OBJECTS.to_vec(),
        }
    }

    fn body(&self, verb: &VerbWords, model: &Model<'c>) -> Option<RequestBody<'c>> {
        match verb.action {
            "post" | "put" => Some(RequestBody { model: model.clone(), required: true }),
            "patch" => Some(RequestBody { model: Model::Fixed(Fixed::Patch), required: true }),
            "delete" => {
                Some(RequestBody { model: Model::BuiltIn(self.meta("DeleteOptions")?), required: false })
            }
            _ => None,
        }
    }

    fn model(&self, kind: &'c str) -> Model<'c> {
        Model::Custom { group: &self.served.gvr.group, version: &self.served.gvr.version, kind }
    }

    fn operation_id(&self, verb: &str, rest: &str) -> String {
        operation_id(verb, self.served.group(), Some(&self.served.gvr.version), rest)
    }

    fn meta(&self, name: &str) -> Option<TypeId> {
        self.table.type_named("meta/v1", name)
    }
}

#[cfg(test)]
mod tests {
    use forebay_schema::builtin::table;

    use super::*;
    use crate::built_ins;

    /// Lines of method, path, operation, action, parameters that patches and writes are known by, and codes.
    fn said(served: &Served) -> Vec<String> {
        let routes = routes(table(), served);
        let line = |route: &Route<'_>| {
            let has = |name: &str| route.parameters.iter().any(|parameter| parameter.name == name);
            let marks = ["dryRun", "fieldValidation", "watch"].into_iter().filter(|name| has(name));
            let codes = route.responses.iter().map(|(done, _)| done.code().to_string());
            let action = route.action.as_ref().map_or("", |action| action.name);
            let words: Vec<String> = [route.method, &route.path, &route.operation_id, action]
                .into_iter()
                .chain(marks)
                .map(String::from)
                .chain(codes)
                .collect();
            words.join(" ")
        };
        routes.iter().map(line).collect()
    }

    #[test]
    fn a_custom_resource_has_the_operations_that_apiextensions_gives_it() {
        // Any resource will do, as routes are made of its names alone.
        let catalog = built_ins();
        let served = catalog.resource("apps", "v1", "replicasets").expect("a resource");
        let root = "/apis/apps/v1/namespaces/{namespace}/replicasets";
        let mut want = vec![
            "get /apis/apps/v1/replicasets listAppsV1ReplicaSetForAllNamespaces list watch 200".to_string(),
            format!("get {root} listAppsV1NamespacedReplicaSet list watch 200"),
            format!("post {root} createAppsV1NamespacedReplicaSet post dryRun fieldValidation 200 201 202"),
            format!("delete {root} deleteAppsV1CollectionNamespacedReplicaSet deletecollection watch 200"),
            format!("delete {root}/{{name}} deleteAppsV1NamespacedReplicaSet delete dryRun 200 202"),
        ];
        for (below, title) in [("", ""), ("/scale", "Scale"), ("/status", "Status")] {
            let id = format!("AppsV1NamespacedReplicaSet{title}");
            want.push(format!("get {root}/{{name}}{below} read{id} get 200"));
            want.push(format!("put {root}/{{name}}{below} replace{id} put dryRun fieldValidation 200 201"));
            want.push(format!("patch {root}/{{name}}{below} patch{id} patch dryRun fieldValidation 200"));
        }
        assert_eq!(said(served), want);
    }
}
