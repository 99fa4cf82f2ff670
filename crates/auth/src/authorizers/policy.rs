//! What kube-apiserver's own roles let everyone do who is authenticated: ask about oneself, and see what is
//! served.
//!
//! In: groups, and a request. Out: the binding that allows it. Holds until the bindings that are stored are
//! enforced.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`.

use std::fmt;

use forebay_api::{Authorizer, Because, Decision, Eventual, PathRule, ResourceRule, Rules};
use forebay_apimachinery::caller::{AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, UNAUTHENTICATED};
use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::{About, Attributes, Caller, Verb};

use super::always::everything;

/// Allows what these roles do, and says as a rule what the masters are allowed: there is a binding of theirs
/// as well.
pub struct Policy;

/// A cluster role that has a binding of its name.
struct Role {
    bindings: &'static [Binding],
    // Created, and nothing else: API group and resources.
    creates: &'static [(&'static str, &'static [&'static str])],
    // Read: paths, of which one ending in `*` stands for all that begin as it does.
    reads: &'static [&'static str],
}

/// Gives the role of its name to a group.
struct Binding {
    name: &'static str,
    group: &'static str,
}

static BASIC_USER: Role = Role {
    bindings: &[Binding { name: "system:basic-user", group: AUTHENTICATED }],
    creates: &[
        ("authorization.k8s.io", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
        ("authentication.k8s.io", &["selfsubjectreviews"]),
    ],
    reads: &[],
};

static DISCOVERY: Role = Role {
    bindings: &[Binding { name: "system:discovery", group: AUTHENTICATED }],
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

static PUBLIC_INFO_VIEWER: Role = Role {
    bindings: &[
        Binding { name: "system:public-info-viewer", group: AUTHENTICATED },
        Binding { name: "system:public-info-viewer", group: UNAUTHENTICATED },
    ],
    creates: &[],
    reads: &["/healthz", "/livez", "/readyz", "/version", "/version/"],
};

static ISSUER_DISCOVERY: Role = Role {
    bindings: &[Binding { name: "system:service-account-issuer-discovery", group: SERVICE_ACCOUNTS }],
    creates: &[],
    reads: &[
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/",
        "/openid/v1/jwks",
        "/openid/v1/jwks/",
    ],
};

static ALL: [&Role; 4] = [&BASIC_USER, &DISCOVERY, &PUBLIC_INFO_VIEWER, &ISSUER_DISCOVERY];

impl Authorizer for Policy {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        let allowing =
            ALL.iter().find_map(|role| role.binding_of(asked.caller).filter(|_| role.covers(asked)));
        Eventual::Now(match allowing {
            Some(binding) => Decision::Allow(Because::Fixed(binding)),
            None => Decision::NoOpinion(Because::Unsaid),
        })
    }

    fn rules(&self, caller: &Caller, _: &str, rules: &mut Rules) {
        if caller.is_in(MASTERS) {
            everything(rules);
        }
        let texts = |texts: &[&'static str]| texts.iter().map(|text| (*text).into()).collect();
        for role in ALL.iter().filter(|role| role.binding_of(caller).is_some()) {
            rules.resources.extend(role.creates.iter().map(|(group, resources)| ResourceRule {
                verbs: texts(&["create"]),
                groups: texts(&[group]),
                resources: texts(resources),
                names: Vec::new(),
            }));
            if !role.reads.is_empty() {
                rules.paths.push(PathRule { verbs: texts(&["get"]), paths: texts(role.reads) });
            }
        }
    }
}

impl Role {
    fn binding_of(&self, caller: &Caller) -> Option<&'static Binding> {
        self.bindings.iter().find(|binding| caller.is_in(binding.group))
    }

    fn covers(&self, asked: &Attributes<'_>) -> bool {
        match asked.about {
            About::Resource(of) => {
                *asked.verb == Verb::Create
                    && of.subresource.is_empty()
                    && self
                        .creates
                        .iter()
                        .any(|(group, resources)| of.group == *group && resources.contains(&of.resource))
            }
            About::Path(asked_path) => {
                *asked.verb == Verb::Get
                    && self.reads.iter().any(|path| match path.strip_suffix('*') {
                        Some(prefix) => asked_path.starts_with(prefix),
                        None => asked_path == *path,
                    })
            }
        }
    }
}

/// In the words of RBAC.
impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, group) = (go_quote(self.name), go_quote(self.group));
        write!(f, "RBAC: allowed by ClusterRoleBinding {name} of ClusterRole {name} to Group {group}")
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::ResourceAttributes;

    use super::*;

    /// The binding that allows `verb what`, a path or `group/resource`, to a member of `group`.
    fn by(group: &str, verb: &str, what: &str) -> Option<String> {
        let (api, resource) = what.split_once('/').unwrap_or((what, ""));
        let is_resource = !what.starts_with('/');
        let about = match is_resource {
            true => About::Resource(ResourceAttributes { group: api, resource, ..Default::default() }),
            false => About::Path(what),
        };
        let caller = Caller { groups: vec!["dev".into(), group.into()], ..Caller::default() };
        let asked = Attributes { caller: &caller, verb: &Verb::named(verb), about };
        match Policy.authorize(&asked) {
            Eventual::Now(Decision::Allow(because)) => Some(because.to_string()),
            _ => None,
        }
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
