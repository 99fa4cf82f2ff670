//! The table of built-in kinds: one row of functions and flags each.
//!
//! In: a group and a kind. Out: its [`Rules`]; [`NONE`] for one that has none of its own. Never: a rule itself; those
//! are in one file a group.

use super::deletion::DefaultPropagation;
use super::field::Causes;
use super::names::NameRule;
use super::value::Members;
use super::{
    Context, apps, autoscaling, batch, coordination, core, discovery, events, extensions, networking, node,
    policy, rbac, scheduling, storage,
};
use super::{admissionregistration, apiregistration, certificates, flowcontrol, resource};

/// A write to an object that exists.
pub struct Update<'a> {
    /// `status`, `scale`; none for the resource itself.
    pub subresource: Option<&'a str>,
    pub old: &'a Members,
}

impl Update<'_> {
    pub fn is_status(&self) -> bool {
        self.subresource == Some("status")
    }
}

/// What one kind does around a write. Functions see the whole object.
pub struct Rules {
    pub kind: &'static str,
    pub namespaced: bool,
    /// What its own validation of metadata asks of names; where it has none, only the common one looks at it.
    pub name: Option<NameRule>,
    /// Whether that validation asks of finalizers without a domain to be known.
    pub knows_finalizers: bool,
    pub defaults: fn(&mut Members),
    pub prepare_create: fn(&mut Members, &Context<'_>),
    pub prepare_update: fn(&mut Members, &Update<'_>, &Context<'_>),
    pub validate_create: fn(&Members, &mut Causes),
    pub validate_update: fn(&Members, &Update<'_>, &mut Causes),
    /// What a client is told of an object that is accepted as it is; for a new one there is no update.
    pub warnings: fn(&Members, Option<&Update<'_>>, &mut Vec<String>),
    pub flags: Flags,
}

/// What a kind's store does differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// An update may leave `metadata.resourceVersion` out.
    pub unconditional_update: bool,
    /// A PUT of what does not exist creates it.
    pub create_on_update: bool,
    /// A DELETE that ends the object answers with it, not with a Status.
    pub returns_deleted_object: bool,
    /// Objects go away by themselves, after the server's event TTL.
    pub expires: bool,
    /// Deleting takes time, as [`start_deletion`](super::deletion::start_deletion) has it.
    pub graceful: bool,
    pub propagation: DefaultPropagation,
}

impl Flags {
    /// What most built-in kinds have.
    pub const PLAIN: Flags = Flags {
        unconditional_update: true,
        create_on_update: false,
        returns_deleted_object: false,
        expires: false,
        graceful: false,
        propagation: DefaultPropagation::Background,
    };

    /// What custom resources have.
    pub const CUSTOM: Flags = Flags { unconditional_update: false, ..Flags::PLAIN };

    pub const CREATED_ON_UPDATE: Flags = Flags { create_on_update: true, ..Flags::PLAIN };
    pub const RETURNED: Flags = Flags { returns_deleted_object: true, ..Flags::PLAIN };
}

/// The row of a kind without rules of its own.
pub const NONE: Rules = Rules {
    kind: "",
    namespaced: true,
    name: None,
    knows_finalizers: true,
    defaults: |_| {},
    prepare_create: |_, _| {},
    prepare_update: |_, _, _| {},
    validate_create: |_, _| {},
    validate_update: |_, _, _| {},
    warnings: |_, _, _| {},
    flags: Flags::PLAIN,
};

static NO_RULES: Rules = NONE;

/// The rules of a built-in kind.
pub fn of(group: &str, kind: &str) -> &'static Rules {
    let rows: &[Rules] = match group {
        "" => core::KINDS,
        "apps" => apps::KINDS,
        "batch" => batch::KINDS,
        "admissionregistration.k8s.io" => admissionregistration::KINDS,
        "certificates.k8s.io" => certificates::KINDS,
        "resource.k8s.io" => resource::KINDS,
        "rbac.authorization.k8s.io" => rbac::KINDS,
        "coordination.k8s.io" => coordination::KINDS,
        "scheduling.k8s.io" => scheduling::KINDS,
        "node.k8s.io" => node::KINDS,
        "networking.k8s.io" => networking::KINDS,
        "policy" => policy::KINDS,
        "autoscaling" => autoscaling::KINDS,
        "storage.k8s.io" => storage::KINDS,
        "discovery.k8s.io" => discovery::KINDS,
        "events.k8s.io" => events::KINDS,
        "apiextensions.k8s.io" => extensions::KINDS,
        "apiregistration.k8s.io" => apiregistration::KINDS,
        "flowcontrol.apiserver.k8s.io" => flowcontrol::KINDS,
        _ => &[],
    };
    // Few: the kinds of a group.
    rows.iter().find(|row| row.kind == kind).unwrap_or(&NO_RULES)
}
