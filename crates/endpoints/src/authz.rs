//! What an asker may do.
//!
//! In: who asks, and for what. Out: yes, or a refusal in kube-apiserver's words. Never: looks at a body.

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::{GroupResource, Reason, Status, Verb};
use forebay_registry::request::Caller;

use crate::authn::Asker;
use crate::config::{Anonymous, Authorization};
use crate::policy;
use crate::request_info::RequestInfo;
use crate::status::Failure;

/// Members may do everything, whatever the mode.
pub const MASTERS: &str = "system:masters";

/// Decides. Reviews ask the same one that requests are judged by.
#[derive(Clone, Copy, Debug)]
pub struct Authorizer {
    pub mode: Authorization,
    pub anonymous: Anonymous,
}

/// Whether somebody may do something, and why, as far as there is something to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    pub reason: String,
}

/// What somebody may do in one namespace.
#[derive(Debug, Default)]
pub struct Rules {
    pub resources: Vec<ResourceRule>,
    /// Verbs and paths.
    pub paths: Vec<(Verb, &'static [&'static str])>,
}

/// One verb on resources of one API group.
#[derive(Debug)]
pub struct ResourceRule {
    pub verb: Verb,
    pub group: &'static str,
    pub resources: &'static [&'static str],
}

impl Authorizer {
    /// Whether `asker` may do what `info` says.
    ///
    /// # Errors
    /// 401 for nobody, 403 for somebody.
    pub fn authorize(&self, asker: &Asker, info: &RequestInfo) -> Result<(), Failure> {
        let user = match (asker, self.anonymous) {
            (Asker::Known(user), _) => user,
            (Asker::Anonymous, Anonymous::HealthAndVersion) if is_open(info) => return Ok(()),
            (Asker::Anonymous, _) => return Err(Failure::unauthorized()),
        };
        let decision = self.decide(user, info);
        if decision.allowed { Ok(()) } else { Err(forbidden(asker, info, &decision.reason)) }
    }

    /// Whether `asker`, who may update what `info` names, may create it as well: it is not there yet.
    ///
    /// # Errors
    /// As [`Authorizer::authorize`].
    pub fn authorize_create(&self, asker: &Asker, info: &RequestInfo) -> Result<(), Failure> {
        self.authorize(asker, &RequestInfo { verb: Verb::Create, ..info.clone() })
    }

    /// Whether `asker` may hear why one health check failed: whoever was let in by more than that the path is open to everyone.
    pub fn may_hear_why(&self, asker: &Asker, info: &RequestInfo) -> bool {
        match asker {
            Asker::Anonymous => false,
            Asker::Known(user) => match self.mode {
                _ if is_master(user) => true,
                Authorization::AlwaysAllow => true,
                Authorization::SystemMastersOnly => policy::allows(user, info).is_some(),
                Authorization::AlwaysDeny => false,
            },
        }
    }

    /// Whether `user` may delete what cannot be read, which takes more than to delete.
    ///
    /// # Errors
    /// 403.
    pub fn authorize_unsafe_delete(&self, user: &Caller, info: &RequestInfo) -> Result<(), Failure> {
        let refuse = |why: &str| Err(refuse(&info.group, &info.resource, &info.name, why));
        if !info.subresource.is_empty() {
            return refuse(
                "ignoreStoreReadErrorWithClusterBreakingPotential delete option is not allowed on a subresource or \
                 non-resource request",
            );
        }
        let asked = RequestInfo { verb: Verb::UnsafeDelete, ..info.clone() };
        let decision = self.decide(user, &asked);
        match decision.allowed {
            true => Ok(()),
            false => refuse(&format!(
                "not permitted to do \"{}\", reason: {}",
                Verb::UnsafeDelete,
                decision.reason
            )),
        }
    }

    /// Whether `user` may do what `request` says.
    pub fn decide(&self, user: &Caller, request: &RequestInfo) -> Decision {
        let (allowed, reason) = match self.mode {
            _ if is_master(user) => (true, String::new()),
            Authorization::AlwaysAllow => (true, String::new()),
            Authorization::SystemMastersOnly => match policy::allows(user, request) {
                Some(reason) => (true, reason),
                None => (is_open(request), String::new()),
            },
            Authorization::AlwaysDeny if is_open(request) => (true, String::new()),
            Authorization::AlwaysDeny => (false, "Everything is forbidden.".to_string()),
        };
        Decision { allowed, reason }
    }

    /// What `user` may do, as rules.
    pub fn rules(&self, user: &Caller) -> Rules {
        const ALL: &[&str] = &["*"];
        let mut rules = Rules::default();
        let is_roled = self.mode == Authorization::SystemMastersOnly;
        if self.mode == Authorization::AlwaysAllow || is_roled && is_master(user) {
            rules.resources.push(ResourceRule { verb: Verb::named("*"), group: "*", resources: ALL });
            rules.paths.push((Verb::named("*"), ALL));
        }
        for bound in policy::of(user).filter(|_| is_roled) {
            let creates = bound.creates.iter();
            rules.resources.extend(creates.map(|(group, resources)| ResourceRule {
                verb: Verb::Create,
                group,
                resources,
            }));
            if !bound.reads.is_empty() {
                rules.paths.push((Verb::Get, bound.reads));
            }
        }
        rules
    }
}

fn is_master(user: &Caller) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

/// What is answered to everyone.
fn is_open(request: &RequestInfo) -> bool {
    if request.is_resource {
        return false;
    }
    let path = request.path.as_str();
    let first = path.strip_prefix('/').unwrap_or(path);
    let (first, rest) = first.split_once('/').unwrap_or((first, ""));
    matches!(first, "healthz" | "livez" | "readyz") || (first == "version" && rest.is_empty())
}

/// `pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "n"`.
fn forbidden(asker: &Asker, info: &RequestInfo, reason: &str) -> Failure {
    let (user, verb) = (go_quote(asker.name()), &info.verb);
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    if !info.is_resource {
        let message = format!("forbidden: User {user} cannot {verb} path {}{reason}", go_quote(&info.path));
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
        "User {user} cannot {verb} resource {} in API group {} {place}{reason}",
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn who_may_update_is_asked_for_create_as_well_in_kube_apiservers_words() {
        let info = RequestInfo {
            is_resource: true,
            verb: Verb::Update,
            group: "coordination.k8s.io".into(),
            version: "v1".into(),
            namespace: "n".into(),
            resource: "leases".into(),
            name: "l".into(),
            ..RequestInfo::default()
        };
        let asker = |group: &str| {
            let groups = vec![group.to_string()];
            Asker::Known(Arc::new(Caller { name: "bob".into(), groups, ..Caller::default() }))
        };
        let said = r#"leases.coordination.k8s.io "l" is forbidden: User "bob" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "n""#;
        for (mode, group, refused) in [
            (Authorization::SystemMastersOnly, "dev", Some(said.to_string())),
            (Authorization::AlwaysDeny, "dev", Some(format!("{said}: Everything is forbidden."))),
            (Authorization::AlwaysAllow, "dev", None),
            (Authorization::SystemMastersOnly, MASTERS, None),
        ] {
            let authorizer = Authorizer { mode, anonymous: Anonymous::HealthAndVersion };
            let told = authorizer.authorize_create(&asker(group), &info).err();
            let told = told.map(|failure| (failure.status.reason, failure.status.message.to_string()));
            assert_eq!(told, refused.map(|said| (Reason::Forbidden, said)), "{mode:?} {group}");
        }
    }

    #[test]
    fn why_a_check_failed_is_told_to_nobody_whom_only_the_open_path_lets_in() {
        let info = RequestInfo { verb: Verb::Get, path: "/livez/etcd".into(), ..RequestInfo::default() };
        let known = |group: &str| {
            let groups = vec![crate::authn::AUTHENTICATED.to_string(), group.to_string()];
            Asker::Known(Arc::new(Caller { name: "bob".into(), groups, ..Caller::default() }))
        };
        for (mode, asker, hears) in [
            (Authorization::AlwaysAllow, Asker::Anonymous, false),
            (Authorization::SystemMastersOnly, Asker::Anonymous, false),
            (Authorization::AlwaysAllow, known("dev"), true),
            (Authorization::SystemMastersOnly, known("dev"), false),
            (Authorization::AlwaysDeny, known("dev"), false),
            (Authorization::SystemMastersOnly, known(MASTERS), true),
            (Authorization::AlwaysDeny, known(MASTERS), true),
        ] {
            let authorizer = Authorizer { mode, anonymous: Anonymous::HealthAndVersion };
            assert!(authorizer.authorize(&asker, &info).is_ok(), "{mode:?} {asker:?}");
            assert_eq!(authorizer.may_hear_why(&asker, &info), hears, "{mode:?} {asker:?}");
        }
    }

    #[test]
    fn who_may_not_delete_what_cannot_be_read_is_told_as_by_kube_apiserver() {
        let info = |subresource: &str| RequestInfo {
            is_resource: true,
            verb: Verb::Delete,
            version: "v1".into(),
            namespace: "n".into(),
            resource: "secrets".into(),
            subresource: subresource.into(),
            name: "s".into(),
            ..RequestInfo::default()
        };
        let user =
            |group: &str| Caller { name: "bob".into(), groups: vec![group.into()], ..Caller::default() };
        let verb =
            r#"secrets "s" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: "#;
        let denied = format!("{verb}Everything is forbidden.");
        let subresource = "secrets \"s\" is forbidden: ignoreStoreReadErrorWithClusterBreakingPotential delete option is not \
                           allowed on a subresource or non-resource request";
        for (mode, group, about, said) in [
            (Authorization::SystemMastersOnly, "dev", "", Some(verb)),
            (Authorization::AlwaysDeny, "dev", "", Some(denied.as_str())),
            (Authorization::AlwaysAllow, "dev", "", None),
            (Authorization::SystemMastersOnly, MASTERS, "", None),
            (Authorization::SystemMastersOnly, MASTERS, "status", Some(subresource)),
        ] {
            let authorizer = Authorizer { mode, anonymous: Anonymous::HealthAndVersion };
            let done = authorizer.authorize_unsafe_delete(&user(group), &info(about));
            let told = done.err().map(|failure| (failure.status.reason, failure.status.message.to_string()));
            assert_eq!(
                told,
                said.map(|said| (Reason::Forbidden, said.to_owned())),
                "{mode:?} {group} {about}"
            );
        }
    }
}
