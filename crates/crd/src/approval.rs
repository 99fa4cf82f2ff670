//! Whether a CRD in a group that belongs to Kubernetes says that it was approved.
//!
//! In: a CRD. Out: what its annotation comes to, and what is said of that. Never: judges anything else.
//!
//! Source: apiextensions-apiserver v0.36.3 `apihelpers.GetAPIApprovalState`; KEP-1111.

use serde_json::Value;

use super::field::{BadValue, FieldError, Path};
use super::format::Url;
use super::spec::Spec;
use forebay_apimachinery::go_format as go;

pub(crate) const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

/// What is to be said of a CRD in a group that belongs to Kubernetes.
pub(crate) struct Approval<'a> {
    pub(crate) state: ApprovalState,
    annotation: &'a str,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ApprovalState {
    Approved,
    Bypassed,
    Missing,
    Invalid,
}

impl<'a> Approval<'a> {
    /// None for groups that are anybody's.
    pub(crate) fn of(crd: &'a Value) -> Option<Self> {
        let group = Spec::of(crd).spec.str("group");
        let protected = |owner: &str| {
            group.strip_suffix(owner).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let is_protected = protected("k8s.io") || protected("kubernetes.io");
        is_protected.then(|| Approval { state: Self::state_of(crd), annotation: Self::annotation(crd) })
    }

    fn annotation(crd: &'a Value) -> &'a str {
        crd["metadata"]["annotations"][APPROVAL_ANNOTATION].as_str().unwrap_or("")
    }

    /// The state by the annotation alone, whatever the group.
    pub(crate) fn state_of(crd: &'a Value) -> ApprovalState {
        match Self::annotation(crd) {
            "" => ApprovalState::Missing,
            text if text.starts_with("unapproved") => ApprovalState::Bypassed,
            text if Url::parse_request(text)
                .is_ok_and(|url| !url.host.is_empty() && !url.scheme.is_empty()) =>
            {
                ApprovalState::Approved
            }
            _ => ApprovalState::Invalid,
        }
    }

    pub(crate) fn reason(&self) -> String {
        let name = go::quote(APPROVAL_ANNOTATION);
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        match self.state {
            ApprovalState::Approved => format!("approved in {}", self.annotation),
            ApprovalState::Bypassed => format!("not approved: {}", go::quote(self.annotation)),
            ApprovalState::Missing => format!("protected groups must have approval annotation {name}, {see}"),
            ApprovalState::Invalid => format!(
                "protected groups must have approval annotation {name} with either a URL or a reason starting with \
                 \"unapproved\", {see}"
            ),
        }
    }

    /// The violation, if the state is one.
    pub(crate) fn refusal(&self, path: &Path<'_>) -> Option<FieldError> {
        match self.state {
            ApprovalState::Approved | ApprovalState::Bypassed => None,
            ApprovalState::Missing => Some(FieldError::required(path, self.reason())),
            ApprovalState::Invalid => {
                Some(FieldError::invalid(path, BadValue::Text(self.annotation), self.reason()))
            }
        }
    }
}
