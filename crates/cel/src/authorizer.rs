//! Whom the `authorizer` of an expression asks.
//!
//! In: checks that an expression puts together. Out: decisions, from an implementation elsewhere. Never:
//! decides.

use std::sync::Arc;

/// What one check costs; upstream's, so that an evaluation can have two.
pub const CHECK_COST: u64 = crate::cost::CHECK;

/// On whose behalf it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Asker {
    /// Whoever sent the request.
    #[default]
    Requester,
    ServiceAccount {
        namespace: Arc<str>,
        name: Arc<str>,
    },
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    Path {
        asker: Asker,
        path: Arc<str>,
    },
    /// Not yet of a resource: it cannot be asked.
    Group {
        asker: Asker,
        group: Arc<str>,
    },
    Resource(Box<ResourceCheck>),
}

impl Asker {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Asker::Requester => 0,
            Asker::ServiceAccount { namespace, name } => namespace.len() + name.len(),
        }
    }
}

impl Check {
    /// Of all that it says.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Check::Path { asker, path } => asker.bytes() + path.len(),
            Check::Group { asker, group } => asker.bytes() + group.len(),
            Check::Resource(of) => {
                let texts = [
                    &of.group,
                    &of.resource,
                    &of.subresource,
                    &of.namespace,
                    &of.name,
                    &of.field_selector,
                    &of.label_selector,
                ];
                of.asker.bytes() + texts.iter().map(|text| text.len()).sum::<usize>()
            }
        }
    }
}

/// A check of a resource; selectors are as they were written, empty if none were.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct ResourceCheck {
    pub asker: Asker,
    pub group: Arc<str>,
    pub resource: Arc<str>,
    pub subresource: Arc<str>,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    pub field_selector: Arc<str>,
    pub label_selector: Arc<str>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckDecision {
    pub allowed: bool,
    pub reason: Arc<str>,
    pub error: Option<Arc<str>>,
}

/// An authorizer of the house, behind this seam. One check is costed so that an evaluation can have two.
pub trait Authorizer {
    /// Whether `verb` is allowed.
    fn check(&self, check: &Check, verb: &str) -> CheckDecision;
}
