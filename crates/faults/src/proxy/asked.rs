//! What a request asks for: the whole state, a watch from a revision, or something else.
//!
//! In: method and URI. Out: [`RequestInfo`]. Never: what is answered.

use std::borrow::Cow;

use hyper::{Method, Uri};

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    pub kind: RequestKind,
    /// Path and selectors: what two requests of one informer have in common.
    pub interest: String,
    /// `resourceVersion`, if it names one: not empty, not `0`.
    pub revision: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// GET of a collection, from its beginning.
    List,
    /// A list of one object at most.
    Probe,
    /// A further page of one.
    Page,
    /// A watch that begins with the whole state.
    WatchList,
    /// A watch that goes on.
    Watch,
    Other,
}

impl RequestInfo {
    pub fn of(method: &Method, uri: &Uri) -> RequestInfo {
        let query = uri.query().unwrap_or_default();
        let value = |name: &str| {
            query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name)
        };
        let value = |name: &str| value(name).map_or("", |(_, value)| value);
        let revision = Some(value("resourceVersion")).and_then(|revision| revision.parse().ok());
        let revision = revision.filter(|revision| *revision > 0);
        let watches = matches!(value("watch"), "true" | "1");
        let kind = match () {
            () if method != Method::GET || !is_collection(uri.path()) => RequestKind::Other,
            // Without a revision, or from 0, the state comes as events, whether it was asked for or not.
            () if watches && (value("sendInitialEvents") == "true" || revision.is_none()) => {
                RequestKind::WatchList
            }
            () if watches => RequestKind::Watch,
            () if value("continue").is_empty() && value("limit") == "1" => RequestKind::Probe,
            () if value("continue").is_empty() => RequestKind::List,
            () => RequestKind::Page,
        };
        let selectors = [value("labelSelector"), value("fieldSelector")].map(|selector| match selector {
            "" => Cow::Borrowed(""),
            selector => Cow::Owned(format!("?{selector}")),
        });
        RequestInfo { kind, interest: format!("{}{}", uri.path(), selectors.concat()), revision }
    }

    pub fn watches(&self) -> bool {
        matches!(self.kind, RequestKind::WatchList | RequestKind::Watch)
    }
}

/// Whether a path is of all objects of a resource, in a namespace or in all.
fn is_collection(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = match parts[..] {
        ["api", _, ref rest @ ..] | ["apis", _, _, ref rest @ ..] => rest,
        _ => return false,
    };
    matches!(rest, [_] | ["namespaces", _, _])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &Method, uri: &str, kind: RequestKind, revision: Option<u64>) {
        let asked = RequestInfo::of(method, &uri.parse().unwrap());
        assert_eq!((asked.kind, asked.revision), (kind, revision), "{uri}");
    }

    #[test]
    fn what_asks_for_the_whole_state_is_told_from_what_goes_on() {
        let maps = "/api/v1/namespaces/a/configmaps";
        let get =
            |query: &str, kind, revision| check(&Method::GET, &format!("{maps}{query}"), kind, revision);
        get("", RequestKind::List, None);
        get("?limit=500&resourceVersion=0", RequestKind::List, None);
        get("?resourceVersion=7&resourceVersionMatch=NotOlderThan", RequestKind::List, Some(7));
        get("?limit=500&continue=abc", RequestKind::Page, None);
        get("?limit=1", RequestKind::Probe, None);
        get("?watch=true&resourceVersion=7", RequestKind::Watch, Some(7));
        get("?watch=1&resourceVersion=0", RequestKind::WatchList, None);
        get("?watch=true", RequestKind::WatchList, None);
        get("?watch=true&sendInitialEvents=true&resourceVersion=7", RequestKind::WatchList, Some(7));
        get("?watch=true&sendInitialEvents=false&resourceVersion=7", RequestKind::Watch, Some(7));
        get("/one", RequestKind::Other, None);
        check(&Method::POST, maps, RequestKind::Other, None);
        for uri in ["/api/v1/pods", "/apis/apps/v1/deployments", "/api/v1/namespaces"] {
            check(&Method::GET, uri, RequestKind::List, None);
        }
        for uri in ["/api", "/apis/apps/v1", "/version", "/api/v1/namespaces/a", "/openapi/v3"] {
            check(&Method::GET, uri, RequestKind::Other, None);
        }
    }

    #[test]
    fn an_interest_is_a_path_and_its_selectors() {
        let of = |uri: &str| RequestInfo::of(&Method::GET, &uri.parse().unwrap()).interest;
        assert_eq!(of("/api/v1/pods?watch=1&labelSelector=a%3Db"), "/api/v1/pods?a%3Db");
        assert_eq!(of("/api/v1/pods?limit=1"), "/api/v1/pods");
    }
}
