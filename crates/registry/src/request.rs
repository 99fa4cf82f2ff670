//! What the edge asks of the verbs, and what it is answered.

use std::sync::Arc;

use forebay_api::ResourceTarget;
pub use forebay_api::{Answer, Body, MayCreate, Outcome, PatchKind};
pub use forebay_apimachinery::Caller;
use forebay_apimachinery::{GroupVersionResource, Lease, Reason, Status};
use forebay_catalog::{Catalog, Served};
/// What is asked for: a resource in a version, and the part of it that the path names.
#[derive(Clone)]
pub struct Target {
    pub served: Arc<Served>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// Who asks; none when the server itself does.
    pub caller: Option<Arc<Caller>>,
    /// What the request may hold: trees of what was sent, and what is made of them.
    pub lease: Lease,
}

impl Target {
    /// The namespace of the path; empty at cluster scope.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("")
    }

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("")
    }

    /// The same by its name.
    pub fn by_name(&self) -> ResourceTarget {
        ResourceTarget {
            resource: self.served.gvr.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            subresource: self.subresource.clone(),
            caller: self.caller.clone(),
            lease: self.lease.clone(),
        }
    }

    /// What `catalog` serves by that name.
    ///
    /// # Errors
    /// 404 when it serves no such resource.
    pub(crate) fn resolve(catalog: &Catalog, target: &ResourceTarget) -> Result<Target, Status> {
        let GroupVersionResource { group, version, resource } = &target.resource;
        let served = catalog.resource(group, version, resource).cloned();
        let served = served.ok_or_else(|| {
            Status::new(Reason::NotFound, "the server could not find the requested resource")
        })?;
        let ResourceTarget { resource: _, namespace, name, subresource, caller, lease } = target.clone();
        Ok(Target { served, namespace, name, subresource, caller, lease })
    }
}

/// 404 for what `target` names.
pub(crate) fn not_found(target: &Target) -> Status {
    Status::not_found(target.served.group(), target.served.resource(), target.name())
}

/// 400 for a body that is no object at all.
pub fn unrecognized(kind: &str, error: &dyn std::fmt::Display, body: &[u8]) -> Status {
    let summary = summary(body);
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {error} ({summary})"
    ))
}

/// The beginning of a body, for messages: in hexadecimal unless it looks like JSON.
fn summary(body: &[u8]) -> String {
    const BYTES_MAX: usize = 30;
    if body.is_empty() {
        return "<empty>".into();
    }
    let shown = &body[..body.len().min(BYTES_MAX)];
    let text = match shown {
        [b'{', ..] => String::from_utf8_lossy(shown).into_owned(),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > BYTES_MAX { format!("{text} ...") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_summed_up() {
        for (body, want) in [
            ("", "<empty>"),
            ("a: [\n", "613a205b0a"),
            ("{\"a\":", "{\"a\":"),
            ("{0123456789012345678901234567890", "{01234567890123456789012345678 ..."),
        ] {
            assert_eq!(summary(body.as_bytes()), want);
        }
    }
}
