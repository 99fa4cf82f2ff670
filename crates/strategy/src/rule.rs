//! What a rule is: one kind's row of functions and flags, and what they are given of a write.
//!
//! In and out: the types alone. Never: a rule itself, or which kinds there are.

use forebay_apimachinery::Caller;

use super::field::Causes;
use super::names::NameRule;
use super::value::Members;

/// What a write needs to know besides the objects.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time, RFC 3339 in whole seconds, UTC: `2006-01-02T15:04:05Z`.
    pub now: &'a str,
    /// Who asks; none when the server itself does.
    pub user: Option<&'a Caller>,
}

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
    /// Labels that an object has by Go's defaults and gets here in the end, as those may grow: who owns
    /// fields is noted with them.
    pub labels_by_default: fn(&Members) -> Option<Members>,
    /// What a client is told of a new object that preparing it would hide.
    pub warnings_as_sent: fn(&Members, &mut Vec<String>),
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
    /// Deleting takes time, as [`start_deletion`](crate::start_deletion) has it.
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
    labels_by_default: |_| None,
    warnings_as_sent: |_, _| {},
    prepare_create: |_, _| {},
    prepare_update: |_, _, _| {},
    validate_create: |_, _| {},
    validate_update: |_, _, _| {},
    warnings: |_, _, _| {},
    flags: Flags::PLAIN,
};

/// What becomes of dependents when neither the options nor finalizers say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultPropagation {
    Background,
    Orphan,
    /// The kind has no dependents: neither finalizer is ever set.
    Unsupported,
}
