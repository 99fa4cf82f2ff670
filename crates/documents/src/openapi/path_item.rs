//! The operations of one path, in the words of OpenAPI v3 and v2.
//!
//! In: the routes of a path. Out: its path item as JSON. Never: descriptions, but the few that the formats
//! require.

use std::collections::BTreeMap;

use forebay_schema::builtin::Table;
use forebay_schema::openapi::{Dialect, custom_name};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::responses::UNAUTHORIZED;
use super::route::{Action, Model, Parameter, ParameterLocation, RequestBody, Route};

/// Parameters that v2 documents spell out in each operation. Clients look for them there, and not all of them
/// follow references.
const SPELLED_OUT: [&str; 3] = ["dryRun", "fieldValidation", "name"];

/// The parameters that v2 operations refer to: name -> definition.
pub type SharedParameters = BTreeMap<String, Value>;

/// The name of a model's definition; `None` for plain text.
pub fn model_name(table: &Table, model: &Model<'_>) -> Option<String> {
    match model {
        Model::BuiltIn(ty) => table.openapi_name(*ty),
        Model::Fixed(fixed) => Some(fixed.name().to_string()),
        Model::Custom { group, version, kind } => Some(custom_name(group, version, kind)),
        Model::Text => None,
    }
}

fn model_schema(table: &Table, model: &Model<'_>, dialect: Dialect) -> Value {
    match model_name(table, model) {
        Some(name) => json!({ "$ref": dialect.reference(&name) }),
        None => json!({ "type": "string" }),
    }
}

/// The path item in v3.
pub fn v3(table: &Table, routes: &[Route<'_>]) -> Value {
    let common = common_parameters(routes);
    let mut item = Map::new();
    for route in routes {
        let mut operation = operation(route);
        let own = own_parameters(route, &common);
        if !own.is_empty() {
            operation.insert("parameters".into(), own.into_iter().map(parameter_v3).collect());
        }
        if let Some(RequestBody { model, required }) = &route.body {
            let mut body = json!({ "content": content(table, model, route.consumes) });
            if *required {
                body["required"] = true.into();
            }
            operation.insert("requestBody".into(), body);
        }
        let responses =
            responses(route, |model| json!({ "content": content(table, model, &route.produces) }));
        operation.insert("responses".into(), responses);
        item.insert(route.method.into(), operation.into());
    }
    if !common.is_empty() {
        item.insert("parameters".into(), common.into_iter().map(parameter_v3).collect());
    }
    item.into()
}

/// The path item in v2.
///
/// - `shared`: takes up the parameters that the item refers to.
pub fn v2(table: &Table, routes: &[Route<'_>], shared: &mut SharedParameters) -> Value {
    let common = common_parameters(routes);
    let mut item = Map::new();
    for route in routes {
        let mut operation = operation(route);
        let mut parameters: Vec<Value> = Vec::new();
        if let Some(RequestBody { model, required }) = &route.body {
            parameters.push(body_v2(table, model, *required, shared));
        }
        parameters.extend(own_parameters(route, &common).into_iter().map(|own| parameter_v2(own, shared)));
        if !parameters.is_empty() {
            operation.insert("parameters".into(), parameters.into());
        }
        operation.insert("consumes".into(), json!(route.consumes));
        operation.insert("produces".into(), json!(route.produces));
        operation.insert("schemes".into(), json!(["https"]));
        let responses =
            responses(route, |model| json!({ "schema": model_schema(table, model, Dialect::V2) }));
        operation.insert("responses".into(), responses);
        item.insert(route.method.into(), operation.into());
    }
    if !common.is_empty() {
        item.insert(
            "parameters".into(),
            common.into_iter().map(|common| parameter_v2(common, shared)).collect(),
        );
    }
    item.into()
}

/// What both generations write alike.
fn operation(route: &Route<'_>) -> Map<String, Value> {
    let mut operation = Map::new();
    operation.insert("tags".into(), json!([route.tag]));
    operation.insert("operationId".into(), json!(route.operation_id));
    if let Some(Action { name, group, version, kind }) = &route.action {
        operation.insert("x-kubernetes-action".into(), json!(name));
        let gvk = json!({ "group": group, "version": version, "kind": kind });
        operation.insert("x-kubernetes-group-version-kind".into(), gvk);
    }
    operation
}

fn responses(route: &Route<'_>, answer: impl Fn(&Model<'_>) -> Value) -> Value {
    let mut responses = Map::new();
    for (done, model) in &route.responses {
        let mut response = answer(model);
        response["description"] = done.words().into();
        responses.insert(done.code().into(), response);
    }
    let (code, words) = UNAUTHORIZED;
    responses.insert(code.into(), json!({ "description": words }));
    responses.into()
}

fn content(table: &Table, model: &Model<'_>, types: &[&str]) -> Value {
    let schema = model_schema(table, model, Dialect::V3);
    types.iter().map(|media| (media.to_string(), json!({ "schema": schema }))).collect::<Map<_, _>>().into()
}

/// The parameters that every operation of a path has, by name.
fn common_parameters<'r>(routes: &'r [Route<'_>]) -> Vec<&'r Parameter> {
    let Some((first, others)) = routes.split_first() else { return Vec::new() };
    let is_common = |parameter: &&Parameter| others.iter().all(|route| route.parameters.contains(parameter));
    let mut common: Vec<&Parameter> = first.parameters.iter().filter(is_common).collect();
    common.sort();
    common
}

fn own_parameters<'r>(route: &'r Route<'_>, common: &[&Parameter]) -> Vec<&'r Parameter> {
    let mut own: Vec<&Parameter> =
        route.parameters.iter().filter(|parameter| !common.contains(parameter)).collect();
    own.sort();
    own
}

fn parameter(parameter: &Parameter) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("name".into(), json!(parameter.name));
    match parameter.location {
        ParameterLocation::Query => out.insert("in".into(), json!("query")),
        ParameterLocation::Path => {
            out.insert("required".into(), json!(true));
            out.insert("in".into(), json!("path"))
        }
    };
    out
}

fn parameter_v3(of: &Parameter) -> Value {
    let mut out = parameter(of);
    out.insert("schema".into(), json!({ "type": of.of_type, "uniqueItems": true }));
    out.into()
}

fn parameter_v2(of: &Parameter, shared: &mut SharedParameters) -> Value {
    let mut out = parameter(of);
    out.insert("type".into(), json!(of.of_type));
    out.insert("uniqueItems".into(), json!(true));
    match SPELLED_OUT.contains(&&*of.name) {
        true => out.into(),
        false => share(out.into(), &of.name, shared),
    }
}

fn body_v2(table: &Table, model: &Model<'_>, required: bool, shared: &mut SharedParameters) -> Value {
    let mut body = json!({ "name": "body", "in": "body", "schema": model_schema(table, model, Dialect::V2) });
    if required {
        body["required"] = true.into();
    }
    // A kind's own body stands in few operations; options and patches in all.
    let everywhere = match model {
        Model::Fixed(_) => true,
        _ => !required,
    };
    if everywhere { share(body, "body", shared) } else { body }
}

/// Puts a parameter among the shared ones, and refers to it.
fn share(parameter: Value, name: &str, shared: &mut SharedParameters) -> Value {
    let digest = Sha256::digest(parameter.to_string().as_bytes());
    let hash: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{name}-{hash}");
    let reference = json!({ "$ref": format!("#/parameters/{name}") });
    shared.entry(name).or_insert(parameter);
    reference
}
