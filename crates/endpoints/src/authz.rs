//! Rights that a request takes beside the one that its path and its method say.
//!
//! In: who asks, and the request. Out: yes, or a refusal in kube-apiserver's words. Never: decides; the chain
//! does.

use std::sync::Arc;

use forebay_api::{Authorizer as _, Eventual, Permission};
use forebay_apimachinery::{Attributes, Caller, Reason, Status, Verb};
use forebay_auth::{Access, Asker, Refused};

use crate::memory::Memory;
use crate::request_info::RequestInfo;
use crate::status::{self, Failure};

/// What a PUT that creates is asked: it was authorized as an update, and takes room as a create does.
pub struct MayCreate {
    pub access: Arc<Access>,
    pub asker: Asker,
    pub info: RequestInfo,
    pub memory: Memory,
}

impl Permission for MayCreate {
    fn ask(&self) -> Eventual<'_, Result<(), Status>> {
        Eventual::later(async {
            let checked = self.access.check(&self.asker, &Verb::Create, self.info.about()).await;
            checked.map_err(|refused| Failure::from(refused).status)?;
            if self.memory.is_exhausted() { Err(self.memory.no_more_objects()) } else { Ok(()) }
        })
    }
}

/// Whether `user` may delete what cannot be read, which takes more than to delete.
///
/// # Errors
/// 403.
pub async fn may_delete_unread(access: &Access, user: &Caller, info: &RequestInfo) -> Result<(), Failure> {
    let refuse = |why: &str| Err(status::forbidden(&info.group, &info.resource, &info.name, why));
    if !info.subresource.is_empty() {
        return refuse(
            "ignoreStoreReadErrorWithClusterBreakingPotential delete option is not allowed on a subresource or \
             non-resource request",
        );
    }
    let asked = Attributes { caller: user, verb: &Verb::UnsafeDelete, about: info.about() };
    let decision = access.authorize(&asked).wait().await;
    if decision.is_allowed() {
        return Ok(());
    }
    refuse(&format!("not permitted to do \"{}\", reason: {}", Verb::UnsafeDelete, decision.because()))
}

/// Whether `asker` may create something, as whoever acts within a container does: by a GET as well, with
/// which WebSocket begins.
///
/// # Errors
/// 403; 500.
///
/// Source: kubernetes v1.36.3 `pkg/registry/core/pod/rest/authorize.go`.
pub async fn may_connect(access: &Access, asker: &Asker, info: &RequestInfo) -> Result<(), Failure> {
    if info.verb == Verb::Create {
        return Ok(());
    }
    access.check(asker, &Verb::Create, info.about()).await.map_err(|refused| match refused {
        Refused::Forbidden(forbidden) => {
            status::forbidden(&info.group, &info.resource, &info.name, &forbidden.why)
        }
        Refused::Undecided(why) => Status::new(Reason::Unknown, why).into(),
        refused => refused.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_apimachinery::Caller;
    use forebay_apimachinery::caller::MASTERS;
    use forebay_auth::config::{Anonymous, Authorization};

    use super::*;

    fn modes() -> (Authorization, Authorization, Authorization) {
        (Authorization::always_allow(), Authorization::always_deny(), Authorization::rbac(Arc::default()))
    }

    #[tokio::test]
    async fn who_may_update_is_asked_for_create_as_well_in_kube_apiservers_words() {
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
        let (allow, deny, rbac) = modes();
        for (mode, group, refused) in [
            (&rbac, "dev", Some(said.to_string())),
            (&deny, "dev", Some(format!("{said}: Everything is forbidden."))),
            (&allow, "dev", None),
            (&rbac, MASTERS, None),
        ] {
            let access = Access::new(mode, Anonymous::HealthAndVersion);
            let told = access.check(&asker(group), &Verb::Create, info.about()).await.err();
            let told = told.map(Failure::from);
            let told = told.map(|failure| (failure.status.reason, failure.status.message.to_string()));
            assert_eq!(told, refused.map(|said| (Reason::Forbidden, said)), "{mode:?} {group}");
        }
    }

    #[tokio::test]
    async fn who_may_not_delete_what_cannot_be_read_is_told_as_by_kube_apiserver() {
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
        let (allow, deny, rbac) = modes();
        for (mode, group, about, said) in [
            (&rbac, "dev", "", Some(verb)),
            (&deny, "dev", "", Some(denied.as_str())),
            (&allow, "dev", "", None),
            (&rbac, MASTERS, "", None),
            (&rbac, MASTERS, "status", Some(subresource)),
        ] {
            let access = Access::new(mode, Anonymous::HealthAndVersion);
            let done = may_delete_unread(&access, &user(group), &info(about)).await;
            let told = done.err().map(|failure| (failure.status.reason, failure.status.message.to_string()));
            assert_eq!(
                told,
                said.map(|said| (Reason::Forbidden, said.to_owned())),
                "{mode:?} {group} {about}"
            );
        }
    }
}
