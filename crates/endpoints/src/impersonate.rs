//! Acting as somebody else: `Impersonate-User` and its kin.
//!
//! In: the headers and who really asks. Out: whom the request is made as. Every name, group and attribute has to be
//! allowed by itself, as in kube-apiserver. A request with any such header is made as somebody else or refused, never made as
//! the one who asks: what cannot be read, or is not known, is not passed over.
//!
//! Source: apiserver v1.36.3 `endpoints/filters/impersonation.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_apimachinery::{Status, Verb};
use forebay_registry::request::Caller;
use http::{HeaderMap, HeaderValue};

use crate::authn::{ANONYMOUS, AUTHENTICATED, Asker, UNAUTHENTICATED};
use crate::authz::Authorizer;
use crate::request_info::{self, RequestInfo};
use crate::status::Failure;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";
/// What all of them begin with.
const ALL: &str = "impersonate-";
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
/// Attributes of a user who is not named: 500, as kube-apiserver has it. 400 for what is no UTF-8, and for headers of this kind
/// that name nobody: kube-apiserver passes over an empty `Impersonate-User`, and the request would be made as who asks.
pub fn wanted(headers: &HeaderMap) -> Result<Option<Wanted>, Failure> {
    let mut asked = headers.keys().filter(|name| name.as_str().starts_with(ALL)).peekable();
    if asked.peek().is_none() {
        return Ok(None);
    }
    let all = |name: &str| headers.get_all(name).iter().map(|value| text(name, value)).collect();
    let first = |name: &str| headers.get(name).map_or(Ok(String::new()), |value| text(name, value));
    let mut extra = Vec::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            extra.push((unescaped(key), text(name.as_str(), value)?));
        }
    }
    let groups: Result<Vec<String>, Failure> = all(GROUP);
    let wanted = Wanted { user: first(USER)?, uid: first(UID)?, groups: groups?, extra };
    if !wanted.user.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() {
        let names: Vec<&str> = asked.map(|name| name.as_str()).collect();
        let message = format!("{} names nobody to impersonate", names.join(", "));
        return Err(Status::bad_request(message).into());
    }
    let message = "requested to impersonate attributes without impersonating a user";
    Err(Status::internal(message).into())
}

/// A header's value as Go reads it: UTF-8.
fn text(name: &str, value: &HeaderValue) -> Result<String, Failure> {
    let text = std::str::from_utf8(value.as_bytes());
    text.map(str::to_string)
        .map_err(|_| Status::bad_request(format!("the header {name} is not UTF-8")).into())
}

impl Wanted {
    #[cfg(test)]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Whom the request is made as, if `asker` may.
    ///
    /// # Errors
    /// 401 and 403.
    pub fn checked(self, authorizer: &Authorizer, asker: &Asker) -> Result<Asker, Failure> {
        let account = service_account(&self.user);
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
        let is_anonymous = self.user == ANONYMOUS;
        if is_anonymous && groups.is_empty() && self.uid.is_empty() && self.extra.is_empty() {
            return Ok(Asker::Anonymous);
        }
        let of_all = if is_anonymous { UNAUTHENTICATED } else { AUTHENTICATED };
        if !groups.iter().any(|group| group == of_all || group == UNAUTHENTICATED) {
            groups.push(of_all.to_string());
        }
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for (key, value) in self.extra {
            extra.entry(key).or_default().push(value);
        }
        Ok(Asker::Known(Arc::new(Caller { name: self.user, uid: self.uid, groups, extra })))
    }
}

/// The namespace and the name of the service account that `user` is; one that could not be there is a user like any other.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let is_label = |text: &str| {
        let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let ends = bytes.first().is_some_and(is_end) && bytes.last().is_some_and(is_end);
        ends && bytes.iter().all(|byte| is_end(byte) || *byte == b'-')
    };
    let fits =
        namespace.len() <= 63 && is_label(namespace) && name.len() <= 253 && name.split('.').all(is_label);
    fits.then_some((namespace, name))
}

/// A key as it was before it was made fit for a header's name; one that cannot have been is taken as it stands.
fn unescaped(key: &str) -> String {
    request_info::decode(key).unwrap_or_else(|_| key.to_string())
}

fn request(group: &str, resource: &str, namespace: &str, name: &str) -> RequestInfo {
    RequestInfo {
        is_resource: true,
        verb: Verb::Impersonate,
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
        let value = |value: &str| HeaderValue::from_bytes(value.as_bytes()).expect("a value");
        pairs.iter().map(|(name, text)| (http::HeaderName::from_static(name), value(text))).collect()
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
    fn a_name_is_utf_8_and_what_is_not_is_refused() {
        let wanted = wanted(&headers(&[("impersonate-user", "jürgen"), ("impersonate-group", "köche")]));
        let became = wanted.expect("UTF-8").expect("somebody").checked(&AUTHORIZER, &asker(&[MASTERS]));
        let became = became.expect("allowed");
        assert_eq!((became.name(), became.is_in("köche")), ("jürgen", true));
        for name in [USER, GROUP, UID, "impersonate-extra-a"] {
            let mut headers = headers(&[("impersonate-user", "bob")]);
            headers.insert(name, HeaderValue::from_bytes(b"j\xfcrgen").expect("a value"));
            let refused = super::wanted(&headers).expect_err(name);
            assert_eq!(refused.code(), 400, "{name}");
        }
    }

    #[test]
    fn whoever_says_anything_of_the_kind_does_not_ask_as_oneself() {
        for (name, value) in [("impersonate-user", ""), ("impersonate-uid", ""), ("impersonate-usr", "bob")] {
            assert_eq!(wanted(&headers(&[(name, value)])).expect_err(name).code(), 400, "{name}");
        }
        // An attribute that is empty is one.
        for name in ["impersonate-group", "impersonate-extra-a"] {
            assert_eq!(wanted(&headers(&[(name, "")])).expect_err(name).code(), 500, "{name}");
        }
    }

    #[test]
    fn a_service_account_that_could_not_be_there_is_a_user() {
        for (user, want) in [
            ("system:serviceaccount:ns:sa", Some(("ns", "sa"))),
            ("system:serviceaccount:ns:s.a", Some(("ns", "s.a"))),
            ("system:serviceaccount:ns:sa:x", None),
            ("system:serviceaccount:Ns:sa", None),
            ("system:serviceaccount::sa", None),
            ("system:serviceaccount:ns:", None),
            ("bob", None),
        ] {
            assert_eq!(service_account(user), want, "{user}");
        }
    }

    #[test]
    fn nobody_known_may_have_groups() {
        let asked = [("impersonate-user", ANONYMOUS), ("impersonate-group", "g")];
        let became = wanted(&headers(&asked)).expect("well made").expect("somebody");
        let became = became.checked(&AUTHORIZER, &asker(&[MASTERS])).expect("allowed");
        assert!(became.is_in("g") && became.is_in(UNAUTHENTICATED) && !became.is_in(AUTHENTICATED));
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
