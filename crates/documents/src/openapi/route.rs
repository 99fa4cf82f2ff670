//! One operation of the API, as both generations of OpenAPI describe it.
//!
//! In: what a resource offers. Out: [`Route`], plain data. Never: the words of v2 or v3.

use forebay_schema::builtin::{Table, TypeId, TypeKind};
use forebay_schema::openapi::Fixed;

use super::responses::Success;

/// A method on a path.
pub struct Route<'c> {
    pub path: String,
    /// In small letters, as path items name it.
    pub method: &'static str,
    pub operation_id: String,
    pub tag: String,
    /// `x-kubernetes-action` and `x-kubernetes-group-version-kind`; none of what is no resource.
    pub action: Option<Action<'c>>,
    /// In the path or the query.
    pub parameters: Vec<Parameter>,
    pub body: Option<RequestBody<'c>>,
    /// By code, ascending; 401 is added to each.
    pub responses: Vec<(Success, Model<'c>)>,
    pub consumes: &'static [&'static str],
    pub produces: Vec<&'static str>,
}

/// What an operation does, to a kind.
pub struct Action<'c> {
    pub name: &'static str,
    pub group: &'c str,
    pub version: &'c str,
    pub kind: &'c str,
}

/// What a request carries.
pub struct RequestBody<'c> {
    pub model: Model<'c>,
    pub required: bool,
}

/// A value that is described elsewhere in the document.
#[derive(Clone, PartialEq, Eq)]
pub enum Model<'c> {
    BuiltIn(TypeId),
    Fixed(Fixed),
    Custom { group: &'c str, version: &'c str, kind: &'c str },
    Text,
}

/// A parameter in the path or the query.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameter {
    pub name: String,
    pub location: ParameterLocation,
    /// `string`, `boolean` or `integer`.
    pub of_type: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParameterLocation {
    Path,
    Query,
}

impl Parameter {
    pub fn path(name: &str) -> Parameter {
        Parameter { name: name.to_string(), location: ParameterLocation::Path, of_type: "string" }
    }

    pub fn query(name: &str, of_type: &'static str) -> Parameter {
        Parameter { name: name.to_string(), location: ParameterLocation::Query, of_type }
    }
}

/// The fields of an options struct as parameters of the query. Fields that are structs have no place in a
/// query.
pub fn options(table: &Table, ty: TypeId) -> Vec<Parameter> {
    let fields = table.fields(ty).iter().filter(|field| !field.name.is_empty());
    fields
        .filter_map(|field| {
            let of_type = match table.ty(field.ty).kind {
                TypeKind::Bool => "boolean",
                TypeKind::Int32 | TypeKind::Int64 => "integer",
                TypeKind::List if table.ty(table.elem(field.ty)).kind == TypeKind::Int32 => "integer",
                TypeKind::Struct | TypeKind::Time => return None,
                _ => "string",
            };
            Some(Parameter::query(field.name, of_type))
        })
        .collect()
}

/// An operation's name: its verb, group, version, and what follows.
///
/// - `rest`: `NamespacedPodStatus`.
pub fn operation_id(verb: &str, group: &str, version: Option<&str>, rest: &str) -> String {
    let group = joined(group_name(group), true);
    let version = version.map(|version| joined(version, true)).unwrap_or_default();
    format!("{verb}{group}{version}{}", joined(rest, true))
}

/// The tag of a group and version: `core_v1`.
pub fn tag(group: &str, version: Option<&str>) -> String {
    let group = joined(group_name(group), false);
    version.map_or_else(|| group.clone(), |version| format!("{group}_{}", joined(version, false)))
}

fn group_name(group: &str) -> &str {
    if group.is_empty() { "core" } else { group.strip_suffix(".k8s.io").unwrap_or(group) }
}

/// The letters, digits and underscores of a text, with a capital where something was left out.
fn joined(text: &str, capital: bool) -> String {
    let mut capital = capital;
    let mut out = String::new();
    for (at, c) in text.char_indices() {
        let kept = c.is_alphabetic() || c == '_' || (at > 0 && c.is_numeric());
        match (kept, capital) {
            (false, _) => capital = true,
            (true, true) => {
                out.extend(c.to_uppercase());
                capital = false;
            }
            (true, false) => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_as_upstream_names_them() {
        let id = |verb, group, version, rest| operation_id(verb, group, Some(version), rest);
        assert_eq!(id("read", "", "v1", "NamespacedPodStatus"), "readCoreV1NamespacedPodStatus");
        assert_eq!(
            id("list", "rbac.authorization.k8s.io", "v1", "ClusterRole"),
            "listRbacAuthorizationV1ClusterRole"
        );
        assert_eq!(
            id("patch", "stable.example.com", "v1beta1", "CronTab"),
            "patchStableExampleComV1beta1CronTab"
        );
        assert_eq!(operation_id("get", "apps", None, "APIGroup"), "getAppsAPIGroup");
        assert_eq!(tag("", Some("v1")), "core_v1");
        assert_eq!(tag("rbac.authorization.k8s.io", Some("v1")), "rbacAuthorization_v1");
        assert_eq!(tag("stable.example.com", Some("v1")), "stableExampleCom_v1");
    }
}
