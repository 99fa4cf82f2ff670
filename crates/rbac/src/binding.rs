//! Bindings: to whom they give which role.
//!
//! In: a RoleBinding or a ClusterRoleBinding as a tree. Out: the same as data, and the words for a right that
//! somebody has through it.
//!
//! Source: kubernetes v1.36.3 `pkg/registry/rbac/validation/rule.go` (`appliesTo`, `describeSubject`).

use std::fmt;
use std::sync::Arc;

use forebay_apimachinery::Caller;
use forebay_apimachinery::caller::service_account_name;
use forebay_apimachinery::json::go_quote;
use serde_json::Value;

use crate::limits::SUBJECTS_LOOKED_AT_MAX;

/// A binding.
#[derive(Debug, PartialEq, Eq)]
pub struct RoleBinding {
    /// Empty for one of the whole cluster.
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) role: RoleRef,
    pub(crate) subjects: Box<[RoleSubject]>,
}

/// The role that a binding gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RoleRef {
    /// Empty for a ClusterRole.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

/// Who is given something.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RoleSubject {
    kind: SubjectKind,
    name: Arc<str>,
    namespace: Arc<str>,
    /// How the user or the group is called.
    pub called: Arc<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SubjectKind {
    User,
    Group,
    ServiceAccount,
}

/// A right that somebody has through one subject of a binding; says so in upstream's words.
#[derive(Clone, Debug)]
pub struct Through {
    pub(crate) binding: Arc<RoleBinding>,
    pub(crate) subject: usize,
}

impl RoleRef {
    /// What a binding in `namespace`, which is empty for the whole cluster, refers to; none for what is no
    /// role.
    pub fn read(reference: &Value, namespace: &str) -> Option<RoleRef> {
        let namespace = match reference["kind"].as_str()? {
            "Role" if !namespace.is_empty() => namespace,
            "ClusterRole" => "",
            _ => return None,
        };
        Some(RoleRef { namespace: namespace.into(), name: reference["name"].as_str()?.into() })
    }

    pub fn is_cluster_role(&self) -> bool {
        self.namespace.is_empty()
    }

    /// `ClusterRole`, `Role`.
    pub fn kind(&self) -> &'static str {
        if self.is_cluster_role() { "ClusterRole" } else { "Role" }
    }
}

impl RoleBinding {
    /// The binding of an object; none for one that gives nothing to anybody.
    ///
    /// - `namespace`: empty for one of the whole cluster.
    pub fn read(object: &Value, namespace: &str) -> Option<RoleBinding> {
        let role = RoleRef::read(&object["roleRef"], namespace)?;
        let subjects = object["subjects"].as_array().into_iter().flatten();
        Some(RoleBinding {
            namespace: namespace.into(),
            name: object["metadata"]["name"].as_str()?.into(),
            role,
            subjects: subjects.filter_map(|subject| RoleSubject::read(subject, namespace)).collect(),
        })
    }
}

impl RoleSubject {
    /// None for what nobody can be.
    fn read(subject: &Value, binding: &str) -> Option<RoleSubject> {
        let (kind, name) = (subject["kind"].as_str()?, subject["name"].as_str()?);
        let mut namespace = "";
        let (kind, called) = match kind {
            "User" => (SubjectKind::User, name.into()),
            "Group" => (SubjectKind::Group, name.into()),
            "ServiceAccount" => {
                namespace = match subject["namespace"].as_str().unwrap_or("") {
                    "" => binding,
                    own => own,
                };
                if namespace.is_empty() {
                    return None;
                }
                (SubjectKind::ServiceAccount, service_account_name(namespace, name).into())
            }
            _ => return None,
        };
        Some(RoleSubject { kind, name: name.into(), namespace: namespace.into(), called })
    }

    pub fn is_group(&self) -> bool {
        self.kind == SubjectKind::Group
    }

    fn is(&self, caller: &Caller) -> bool {
        match self.kind {
            SubjectKind::Group => caller.is_in(&self.called),
            SubjectKind::User | SubjectKind::ServiceAccount => *self.called == caller.name,
        }
    }
}

impl Through {
    /// The place of the subject that upstream names, which is the first that `caller` is.
    pub(crate) fn first_subject(&self, caller: &Caller) -> usize {
        let subjects = &self.binding.subjects;
        if subjects.len() > SUBJECTS_LOOKED_AT_MAX {
            return self.subject;
        }
        // Few: `SUBJECTS_LOOKED_AT_MAX`.
        subjects.iter().position(|subject| subject.is(caller)).unwrap_or(self.subject)
    }
}

impl fmt::Display for Through {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RoleBinding { namespace, name, role, subjects } = &*self.binding;
        let subject = &subjects[self.subject];
        let (kind, name) = match namespace.is_empty() {
            true => ("ClusterRoleBinding", go_quote(name)),
            false => ("RoleBinding", go_quote(&format!("{name}/{namespace}"))),
        };
        let to = match subject.kind {
            SubjectKind::User => format!("User {}", go_quote(&subject.name)),
            SubjectKind::Group => format!("Group {}", go_quote(&subject.name)),
            SubjectKind::ServiceAccount => {
                let account = format!("{}/{}", subject.name, subject.namespace);
                format!("ServiceAccount {}", go_quote(&account))
            }
        };
        write!(f, "RBAC: allowed by {kind} {name} of {} {} to {to}", role.kind(), go_quote(&role.name))
    }
}
