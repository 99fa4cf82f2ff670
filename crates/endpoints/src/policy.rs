//! What kube-apiserver's own roles let everyone do who is authenticated: ask about oneself, and see what is served.
//!
//! In: groups, and a request. Out: the binding that allows it. Holds until the bindings that are stored are enforced.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`.

use forebay_apimachinery::Verb;
use forebay_apimachinery::json::go_quote;
use forebay_registry::request::Caller;

use crate::authn::{AUTHENTICATED, UNAUTHENTICATED};
use crate::request_info::RequestInfo;
use crate::tokens::SERVICE_ACCOUNTS;

/// A cluster role that has a binding of its name.
pub struct Bound {
    name: &'static str,
    groups: &'static [&'static str],
    // Created, and nothing else: API group and resources.
    pub creates: &'static [(&'static str, &'static [&'static str])],
    // Read: paths, of which one ending in `*` stands for all that begin as it does.
    pub reads: &'static [&'static str],
}

const BASIC_USER: Bound = Bound {
    name: "system:basic-user",
    groups: &[AUTHENTICATED],
    creates: &[
        ("authorization.k8s.io", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
        ("authentication.k8s.io", &["selfsubjectreviews"]),
    ],
    reads: &[],
};

const DISCOVERY: Bound = Bound {
    name: "system:discovery",
    groups: &[AUTHENTICATED],
    creates: &[],
    reads: &[
        "/api",
        "/api/*",
        "/apis",
        "/apis/*",
        "/healthz",
        "/livez",
        "/openapi",
        "/openapi/*",
        "/readyz",
        "/version",
        "/version/",
    ],
};

const PUBLIC_INFO_VIEWER: Bound = Bound {
    name: "system:public-info-viewer",
    groups: &[AUTHENTICATED, UNAUTHENTICATED],
    creates: &[],
    reads: &["/healthz", "/livez", "/readyz", "/version", "/version/"],
};

const ISSUER_DISCOVERY: Bound = Bound {
    name: "system:service-account-issuer-discovery",
    groups: &[SERVICE_ACCOUNTS],
    creates: &[],
    reads: &[
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/",
        "/openid/v1/jwks",
        "/openid/v1/jwks/",
    ],
};

const ALL: [&Bound; 4] = [&BASIC_USER, &DISCOVERY, &PUBLIC_INFO_VIEWER, &ISSUER_DISCOVERY];

/// The roles of `user`.
pub fn of(user: &Caller) -> impl Iterator<Item = &'static Bound> {
    ALL.into_iter().filter(|bound| bound.group_of(user).is_some())
}

/// Why `user` may do what `request` says, in the words of RBAC; `None` when no role says so.
pub fn allows(user: &Caller, request: &RequestInfo) -> Option<String> {
    ALL.iter().find_map(|bound| {
        let group = bound.group_of(user)?;
        let name = go_quote(bound.name);
        bound.covers(request).then(|| {
            format!(
                "RBAC: allowed by ClusterRoleBinding {name} of ClusterRole {name} to Group {}",
                go_quote(group)
            )
        })
    })
}

impl Bound {
    fn group_of(&self, user: &Caller) -> Option<&'static str> {
        self.groups.iter().find(|group| user.groups.iter().any(|own| own == *group)).copied()
    }

    fn covers(&self, request: &RequestInfo) -> bool {
        if request.is_resource {
            return request.verb == Verb::Create
                && request.subresource.is_empty()
                && self.creates.iter().any(|(group, resources)| {
                    request.group == *group && resources.contains(&&*request.resource)
                });
        }
        request.verb == Verb::Get
            && self.reads.iter().any(|path| match path.strip_suffix('*') {
                Some(prefix) => request.path.starts_with(prefix),
                None => request.path == *path,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The binding that allows `verb what`, a path or `group/resource`, to a member of `group`.
    fn by(group: &str, verb: &str, what: &str) -> Option<String> {
        let (api, resource) = what.split_once('/').unwrap_or((what, ""));
        let is_resource = !what.starts_with('/');
        let request = RequestInfo {
            is_resource,
            verb: Verb::named(verb),
            path: if is_resource { String::new() } else { what.into() },
            group: api.into(),
            resource: resource.into(),
            ..RequestInfo::default()
        };
        let user = Caller { groups: vec!["dev".into(), group.into()], ..Caller::default() };
        allows(&user, &request)
    }

    #[test]
    fn everyone_may_ask_about_themselves_and_look_around() {
        for (group, verb, what, want) in [
            (AUTHENTICATED, "create", "authentication.k8s.io/selfsubjectreviews", Some("system:basic-user")),
            (
                AUTHENTICATED,
                "create",
                "authorization.k8s.io/selfsubjectaccessreviews",
                Some("system:basic-user"),
            ),
            (AUTHENTICATED, "create", "authorization.k8s.io/subjectaccessreviews", None),
            (AUTHENTICATED, "create", "authentication.k8s.io/tokenreviews", None),
            (AUTHENTICATED, "get", "authentication.k8s.io/selfsubjectreviews", None),
            (AUTHENTICATED, "get", "/api", Some("system:discovery")),
            (AUTHENTICATED, "get", "/api/v1", Some("system:discovery")),
            (AUTHENTICATED, "post", "/api", None),
            (AUTHENTICATED, "get", "/apiary", None),
            (AUTHENTICATED, "get", "/metrics", None),
            (UNAUTHENTICATED, "get", "/api", None),
            (UNAUTHENTICATED, "get", "/version", Some("system:public-info-viewer")),
            (AUTHENTICATED, "get", "/openid/v1/jwks", None),
            (SERVICE_ACCOUNTS, "get", "/openid/v1/jwks", Some("system:service-account-issuer-discovery")),
        ] {
            let want = want.map(|name| {
                format!("RBAC: allowed by ClusterRoleBinding \"{name}\" of ClusterRole \"{name}\" to Group \"{group}\"")
            });
            assert_eq!(by(group, verb, what), want, "{group} {verb} {what}");
        }
    }
}
