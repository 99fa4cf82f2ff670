//! Acting as somebody else: `Impersonate-User` and its kin.
//!
//! In: the headers. Out: whom the request is to be made as; whether it may is for
//! [`forebay_auth::Impersonation`]. A
//! request with any such header is made as somebody else or refused, never made as the one who asks: what
//! cannot be read, or is not known, is not passed over.
//!
//! Source: apiserver v1.36.3 `endpoints/filters/impersonation/constrained_impersonation.go`.

use std::collections::BTreeMap;

use forebay_apimachinery::Status;
use forebay_apimachinery::json::go_quote;
use forebay_auth::Wanted;
use http::{HeaderMap, HeaderValue};

use crate::request_info;
use crate::status::Failure;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";
/// What all of them begin with.
const ALL: &str = "impersonate-";

/// What the headers ask for, if anything.
///
/// # Errors
/// 400 for attributes of a user who is not named, for what is no UTF-8, and for headers of this kind that name
/// nobody: kube-apiserver passes over an empty `Impersonate-User`, and the request would be made as who asks.
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
    let message = format!("requested {} without impersonating a user name", printed(&wanted));
    Err(Status::bad_request(message).into())
}

/// As Go prints a user who has no name.
fn printed(wanted: &Wanted) -> String {
    let list = |texts: &[&String]| {
        let quoted: Vec<String> = texts.iter().map(|text| go_quote(text)).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups: Vec<&String> = wanted.groups.iter().collect();
    let mut all = BTreeMap::<&String, Vec<&String>>::new();
    for (key, value) in &wanted.extra {
        all.entry(key).or_default().push(value);
    }
    let extra: Vec<String> =
        all.iter().map(|(key, values)| format!("{}:{}", go_quote(key), list(values))).collect();
    format!(
        "&user.DefaultInfo{{Name:\"\", UID:{}, Groups:{}, Extra:{}}}",
        go_quote(&wanted.uid),
        if groups.is_empty() { "[]string(nil)".to_owned() } else { list(&groups) },
        if all.is_empty() {
            "map[string][]string(nil)".to_owned()
        } else {
            format!("map[string][]string{{{}}}", extra.join(", "))
        },
    )
}

/// A header's value as Go reads it: UTF-8.
fn text(name: &str, value: &HeaderValue) -> Result<String, Failure> {
    let text = std::str::from_utf8(value.as_bytes());
    text.map(str::to_string)
        .map_err(|_| Status::bad_request(format!("the header {name} is not UTF-8")).into())
}

/// A key as it was before it was made fit for a header's name; one that cannot have been is taken as it
/// stands.
fn unescaped(key: &str) -> String {
    request_info::decode(key).unwrap_or_else(|_| key.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_apimachinery::Caller;
    use forebay_apimachinery::caller::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED};
    use forebay_apimachinery::{About, ResourceAttributes, Verb};
    use forebay_auth::config::{Anonymous, Authorization};
    use forebay_auth::{Access, Asker, Asking, Impersonation, Ways};
    use forebay_rt::Clock;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let value = |value: &str| HeaderValue::from_bytes(value.as_bytes()).expect("a value");
        pairs.iter().map(|(name, text)| (http::HeaderName::from_static(name), value(text))).collect()
    }

    fn asker(groups: &[&str]) -> Asker {
        let groups = groups.iter().map(|group| (*group).to_string()).collect();
        Asker::Known(Arc::new(Caller { name: "ann".to_string(), groups, ..Caller::default() }))
    }

    async fn checked(wanted: Wanted, groups: &[&str]) -> Result<Asker, Failure> {
        let access = Access::new(&Authorization::rbac(Arc::default()), Anonymous::HealthAndVersion);
        let pods = ResourceAttributes { namespace: "n", resource: "pods", ..Default::default() };
        let asking = Asking {
            access: &access,
            asker: &asker(groups),
            verb: &Verb::List,
            about: About::Resource(pods),
        };
        let impersonation = Impersonation::new(Clock::manual(0).0, Arc::default(), Ways::All);
        Ok(impersonation.become_wanted(&wanted, asking).await?.asker)
    }

    #[test]
    fn nothing_asked_is_nobody_else() {
        assert_eq!(wanted(&headers(&[("accept", "x")])), Ok(None));
        assert!(wanted(&headers(&[("impersonate-group", "g")])).is_err());
    }

    #[tokio::test]
    async fn a_name_is_utf_8_and_what_is_not_is_refused() {
        let wanted = wanted(&headers(&[("impersonate-user", "jürgen"), ("impersonate-group", "köche")]));
        let became = checked(wanted.expect("UTF-8").expect("somebody"), &[MASTERS]).await;
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
        for (name, said) in [
            ("impersonate-group", "Groups:[]string{\"\"}, Extra:map[string][]string(nil)"),
            ("impersonate-extra-a", "Groups:[]string(nil), Extra:map[string][]string{\"a\":[]string{\"\"}}"),
        ] {
            let refused = wanted(&headers(&[(name, "")])).expect_err(name);
            let user = format!("&user.DefaultInfo{{Name:\"\", UID:\"\", {said}}}");
            assert_eq!(refused.status.message, format!("requested {user} without impersonating a user name"));
            assert_eq!(refused.code(), 400, "{name}");
        }
    }

    #[tokio::test]
    async fn nobody_known_may_have_groups() {
        let asked = [("impersonate-user", ANONYMOUS), ("impersonate-group", "g")];
        let became = wanted(&headers(&asked)).expect("well made").expect("somebody");
        let became = checked(became, &[MASTERS]).await.expect("allowed");
        assert!(became.is_in("g") && became.is_in(UNAUTHENTICATED) && !became.is_in(AUTHENTICATED));
    }

    #[tokio::test]
    async fn masters_become_whom_they_name_and_lose_their_own_groups() {
        let wanted = wanted(&headers(&[("impersonate-user", "bob"), ("impersonate-group", "g")]));
        let became = checked(wanted.expect("well made").expect("somebody"), &[MASTERS]).await;
        let became = became.expect("allowed");
        assert_eq!(became.name(), "bob");
        assert!(became.is_in("g") && became.is_in(AUTHENTICATED) && !became.is_in(MASTERS));
    }

    #[tokio::test]
    async fn attributes_keep_their_keys() {
        let asked = [
            ("impersonate-user", "bob"),
            ("impersonate-extra-example.org%2fscope", "a"),
            ("impersonate-extra-example.org%2fscope", "b"),
        ];
        let became = wanted(&headers(&asked)).expect("well made").expect("somebody");
        let became = checked(became, &[MASTERS]).await.expect("allowed");
        let Asker::Known(caller) = became else { panic!("{became:?}") };
        assert_eq!(
            caller.extra,
            [("example.org/scope".to_string(), vec!["a".to_string(), "b".to_string()])].into()
        );
    }

    #[tokio::test]
    async fn others_are_refused_by_name() {
        let wanted = wanted(&headers(&[("impersonate-user", "system:serviceaccount:ns:sa")]));
        let refused = checked(wanted.expect("well made").expect("somebody"), &[]).await;
        assert_eq!(
            refused.expect_err("refused").status.message,
            "pods is forbidden: User \"ann\" cannot impersonate-on:serviceaccount:list resource \"pods\" in API \
             group \"\" in the namespace \"n\""
        );
    }
}
