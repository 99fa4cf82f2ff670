//! What an asker may do.
//!
//! In: who asks, and for what. Out: yes, or a refusal in kube-apiserver's words. Never: looks at a body.

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::{GroupResource, Reason, Status};

use crate::authn::Asker;
use crate::config::{Anonymous, Authorization};
use crate::request_info::RequestInfo;
use crate::status::Failure;

/// Members may do everything, whatever the mode.
pub const MASTERS: &str = "system:masters";

/// Decides.
#[derive(Clone, Copy, Debug)]
pub struct Authorizer {
    pub mode: Authorization,
    pub anonymous: Anonymous,
}

impl Authorizer {
    /// Whether `asker` may do what `info` says.
    ///
    /// # Errors
    /// 401 for nobody, 403 for somebody.
    pub fn authorize(&self, asker: &Asker, info: &RequestInfo) -> Result<(), Failure> {
        let is_open = !info.is_resource && is_open_path(&info.path);
        match (asker, self.anonymous, self.mode) {
            (Asker::Anonymous, Anonymous::HealthAndVersion, _) if is_open => Ok(()),
            (Asker::Anonymous, ..) => Err(Failure::unauthorized()),
            (Asker::Known(_), _, Authorization::AlwaysAllow) => Ok(()),
            (Asker::Known(_), ..) if is_open || asker.is_in(MASTERS) => Ok(()),
            (Asker::Known(_), ..) => Err(forbidden(asker, info)),
        }
    }
}

/// What is answered to everyone.
fn is_open_path(path: &str) -> bool {
    let first = path.strip_prefix('/').unwrap_or(path);
    let (first, rest) = first.split_once('/').unwrap_or((first, ""));
    matches!(first, "healthz" | "livez" | "readyz") || (first == "version" && rest.is_empty())
}

/// `pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "n"`.
pub fn forbidden(asker: &Asker, info: &RequestInfo) -> Failure {
    let (user, verb) = (go_quote(asker.name()), &info.verb);
    if !info.is_resource {
        let message = format!("forbidden: User {user} cannot {verb} path {}", go_quote(&info.path));
        return Failure::from(Status::new(Reason::Forbidden, message)).with_details();
    }
    let mut resource = info.resource.clone();
    if !info.subresource.is_empty() {
        resource = format!("{resource}/{}", info.subresource);
    }
    let place = match info.namespace.as_str() {
        "" => "at the cluster scope".to_string(),
        namespace => format!("in the namespace {}", go_quote(namespace)),
    };
    let why = format!(
        "User {user} cannot {verb} resource {} in API group {} {place}",
        go_quote(&resource),
        go_quote(&info.group),
    );
    refuse(&info.group, &info.resource, &info.name, &why)
}

/// `pods "x" is forbidden: <why>`.
pub fn refuse(group: &str, resource: &str, name: &str, why: &str) -> Failure {
    let qualified = GroupResource { group: group.into(), resource: resource.into() };
    let message = match name {
        "" => format!("{qualified} is forbidden: {why}"),
        name => format!("{qualified} {} is forbidden: {why}", go_quote(name)),
    };
    Failure::from(Status::new(Reason::Forbidden, message).about(group, resource, name)).with_details()
}
