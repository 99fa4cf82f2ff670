//! Acting as somebody else: `Impersonate-User` and its kin.
//!
//! In: the headers and who really asks. Out: whom the request is made as. Every name, group and attribute has to be
//! allowed by itself, as in kube-apiserver; a request that may not is refused, never made as the one who asks.
//!
//! Source: apiserver v1.36.3 `endpoints/filters/impersonation.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_registry::request::Caller;
use http::HeaderMap;

use crate::authn::{ANONYMOUS, AUTHENTICATED, Asker, UNAUTHENTICATED};
use crate::authz::Authorizer;
use crate::request_info::{self, RequestInfo};
use crate::status::Failure;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";
/// What service accounts are named by.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Whom a request wants to be made as.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    user: String,
    uid: String,
    groups: Vec<String>,
    // Further attributes, key and value.
    extra: Vec<(String, String)>,
}

/// What the headers ask for, if anything.
///
/// # Errors
/// Attributes of a user who is not named: 500, as kube-apiserver has it.
pub fn wanted(headers: &HeaderMap) -> Result<Option<Wanted>, Failure> {
    let all = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_string).collect()
    };
    let first = |name: &str| all(name).into_iter().next().unwrap_or_default();
    let extra: Vec<(String, String)> = headers
        .iter()
        .filter_map(|(name, value)| {
            let key = name.as_str().strip_prefix(EXTRA)?;
            Some((unescaped(key), value.to_str().ok()?.to_string()))
        })
        .collect();
    let wanted = Wanted { user: first(USER), uid: first(UID), groups: all(GROUP), extra };
    if !wanted.user.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
        return Ok(None);
    }
    let message = "requested to impersonate attributes without impersonating a user";
    Err(Status::internal(message).into())
}

impl Wanted {
    /// Whom the request is made as, if `asker` may.
    ///
    /// # Errors
    /// 401 and 403.
    pub fn checked(self, authorizer: &Authorizer, asker: &Asker) -> Result<Asker, Failure> {
        let account = self.user.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
        let who = match account {
            Some((namespace, name)) => request("", "serviceaccounts", namespace, name),
            None => request("", "users", "", &self.user),
        };
        authorizer.authorize(asker, &who)?;
        for group in &self.groups {
            authorizer.authorize(asker, &request("", "groups", "", group))?;
        }
        if !self.uid.is_empty() {
            authorizer.authorize(asker, &request("authentication.k8s.io", "uids", "", &self.uid))?;
        }
        for (key, value) in &self.extra {
            let mut about = request("authentication.k8s.io", "userextras", "", value);
            about.subresource = key.clone();
            authorizer.authorize(asker, &about)?;
        }
        let mut groups = self.groups;
        if let (Some((namespace, _)), true) = (account, groups.is_empty()) {
            groups =
                vec!["system:serviceaccounts".to_string(), format!("system:serviceaccounts:{namespace}")];
        }
        if self.user == ANONYMOUS {
            return Ok(Asker::Anonymous);
        }
        if !groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED) {
            groups.push(AUTHENTICATED.to_string());
        }
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for (key, value) in self.extra {
            extra.entry(key).or_default().push(value);
        }
        Ok(Asker::Known(Arc::new(Caller { name: self.user, uid: self.uid, groups, extra })))
    }
}

/// A key as it was before it was made fit for a header's name; one that cannot have been is taken as it stands.
fn unescaped(key: &str) -> String {
    request_info::decode(key).unwrap_or_else(|_| key.to_string())
}

fn request(group: &str, resource: &str, namespace: &str, name: &str) -> RequestInfo {
    RequestInfo {
        is_resource: true,
        verb: "impersonate".to_string(),
        group: group.to_string(),
        resource: resource.to_string(),
        namespace: namespace.to_string(),
        name: name.to_string(),
        ..RequestInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::MASTERS;
    use crate::config::{Anonymous, Authorization};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().expect("a value")))
            .collect()
    }

    fn asker(groups: &[&str]) -> Asker {
        let groups = groups.iter().map(|group| (*group).to_string()).collect();
        Asker::Known(Arc::new(Caller { name: "ann".to_string(), groups, ..Caller::default() }))
    }

    const AUTHORIZER: Authorizer =
        Authorizer { mode: Authorization::SystemMastersOnly, anonymous: Anonymous::HealthAndVersion };

    #[test]
    fn nothing_asked_is_nobody_else() {
        assert_eq!(wanted(&headers(&[("accept", "x")])), Ok(None));
        assert!(wanted(&headers(&[("impersonate-group", "g")])).is_err());
    }

    #[test]
    fn masters_become_whom_they_name_and_lose_their_own_groups() {
        let wanted = wanted(&headers(&[("impersonate-user", "bob"), ("impersonate-group", "g")]));
        let became = wanted.expect("well made").expect("somebody").checked(&AUTHORIZER, &asker(&[MASTERS]));
        let became = became.expect("allowed");
        assert_eq!(became.name(), "bob");
        assert!(became.is_in("g") && became.is_in(AUTHENTICATED) && !became.is_in(MASTERS));
    }

    #[test]
    fn attributes_keep_their_keys() {
        let asked = [
            ("impersonate-user", "bob"),
            ("impersonate-extra-example.org%2fscope", "a"),
            ("impersonate-extra-example.org%2fscope", "b"),
        ];
        let became = wanted(&headers(&asked)).expect("well made").expect("somebody");
        let became = became.checked(&AUTHORIZER, &asker(&[MASTERS])).expect("allowed");
        let Asker::Known(caller) = became else { panic!("{became:?}") };
        assert_eq!(
            caller.extra,
            [("example.org/scope".to_string(), vec!["a".to_string(), "b".to_string()])].into()
        );
    }

    #[test]
    fn others_are_refused_by_name() {
        let wanted = wanted(&headers(&[("impersonate-user", "system:serviceaccount:ns:sa")]));
        let refused = wanted.expect("well made").expect("somebody").checked(&AUTHORIZER, &asker(&[]));
        assert_eq!(
            refused.expect_err("refused").status.message,
            "serviceaccounts \"sa\" is forbidden: User \"ann\" cannot impersonate resource \"serviceaccounts\" \
             in API group \"\" in the namespace \"ns\""
        );
    }
}
