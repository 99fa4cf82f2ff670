//! What an expression of a policy may name.
//!
//! In: which of the variables that not all have. Out: an environment with every variable in its slot. Never:
//! a value.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/cel/{compile,composition}.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_cel::value::COMPOSED;
use forebay_cel::{Env, Fields, StructType, Type};

/// Slots of the variables. Those that are not declared have theirs under a name that no expression has.
pub(crate) const OBJECT: usize = 0;
pub(crate) const OLD_OBJECT: usize = 1;
pub(crate) const NAMESPACE: usize = 2;
pub(crate) const REQUEST: usize = 3;
pub(crate) const PARAMS: usize = 4;
pub(crate) const AUTHORIZER: usize = 5;
pub(crate) const REQUEST_RESOURCE: usize = 6;
pub(crate) const VARIABLES: usize = 7;
pub(crate) const SLOTS: usize = 8;

/// Which of the variables that not all have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub params: bool,
    pub authorizer: bool,
    /// Variables of the policy.
    pub variables: bool,
    /// The literals of mutating policies.
    pub mutations: bool,
}

/// The types of what is not known before it is asked about.
#[derive(Clone)]
pub(crate) struct Objects {
    pub object: Type,
    pub params: Type,
}

impl Objects {
    /// Anything.
    pub fn unknown() -> Objects {
        Objects { object: Type::Dyn, params: Type::Dyn }
    }
}

/// The environment of Kubernetes 1.`minor`, with `variables` as they are known so far.
pub(crate) fn env(
    minor: u32,
    declared: Declared,
    types: &Objects,
    variables: BTreeMap<Arc<str>, Type>,
) -> Env {
    let hidden = |is: bool, name: &'static str| if is { name } else { "" };
    let authorizer = Type::named("kubernetes.authorization.Authorizer");
    let check = Type::named("kubernetes.authorization.ResourceCheck");
    let env = Env::new(minor)
        .with("object", types.object.clone())
        .with("oldObject", types.object.clone())
        .with("namespaceObject", namespace())
        .with("request", request())
        .with(hidden(declared.params, "params"), types.params.clone())
        .with(hidden(declared.authorizer, "authorizer"), authorizer)
        .with(hidden(declared.authorizer, "authorizer.requestResource"), check)
        .with(hidden(declared.variables, "variables"), object(COMPOSED, variables));
    if declared.mutations { env.with_mutations() } else { env }
}

fn object(name: &str, fields: BTreeMap<Arc<str>, Type>) -> Type {
    Type::Struct(Arc::new(StructType { name: name.into(), fields: Fields::Known(fields) }))
}

fn fields<const N: usize>(name: &str, fields: [(&str, Type); N]) -> Type {
    object(name, fields.into_iter().map(|(name, of)| (name.into(), of)).collect())
}

fn request() -> Type {
    let kind = fields(
        "kubernetes.GroupVersionKind",
        [("group", Type::String), ("version", Type::String), ("kind", Type::String)],
    );
    let resource = fields(
        "kubernetes.GroupVersionResource",
        [("group", Type::String), ("version", Type::String), ("resource", Type::String)],
    );
    let user = fields(
        "kubernetes.UserInfo",
        [
            ("username", Type::String),
            ("uid", Type::String),
            ("groups", Type::list(Type::String)),
            ("extra", Type::map(Type::String, Type::list(Type::String))),
        ],
    );
    fields(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", Type::String),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", Type::String),
            ("name", Type::String),
            ("namespace", Type::String),
            ("operation", Type::String),
            ("userInfo", user),
            ("dryRun", Type::Bool),
            ("options", Type::Dyn),
        ],
    )
}

fn namespace() -> Type {
    let texts = || Type::list(Type::String);
    let named = || Type::map(Type::String, Type::String);
    let spec = fields("kubernetes.NamespaceSpec", [("finalizers", texts())]);
    let condition = fields(
        "kubernetes.NamespaceCondition",
        [
            ("status", Type::String),
            ("type", Type::String),
            ("lastTransitionTime", Type::Timestamp),
            ("message", Type::String),
            ("reason", Type::String),
        ],
    );
    let status = fields(
        "kubernetes.NamespaceStatus",
        [("conditions", Type::list(condition)), ("phase", Type::String)],
    );
    let metadata = fields(
        "kubernetes.NamespaceMetadata",
        [
            ("name", Type::String),
            ("generateName", Type::String),
            ("namespace", Type::String),
            ("labels", named()),
            ("annotations", named()),
            ("UID", Type::String),
            ("creationTimestamp", Type::Timestamp),
            ("deletionGracePeriodSeconds", Type::Int),
            ("deletionTimestamp", Type::Timestamp),
            ("generation", Type::Int),
            ("resourceVersion", Type::String),
            ("finalizers", texts()),
        ],
    );
    fields("kubernetes.Namespace", [("metadata", metadata), ("spec", spec), ("status", status)])
}

/// What an expression sees of a variable's type: what is no plain value is judged when it is evaluated.
pub(crate) fn seen(of: &Type) -> Type {
    match of {
        Type::Any
        | Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => of.clone(),
        Type::List(item) => Type::list(seen(item)),
        Type::Map(both) => Type::map(seen(&both.0), seen(&both.1)),
        _ => Type::Dyn,
    }
}
