//! What is told in `extension-apiserver-authentication` to programs beside this server: whose certificates
//! are clients', and by what a proxy is known that is believed whom a request is from.
//!
//! In: what that is, and the ConfigMap as it changes. Out: the ConfigMap, made or mended where it has to be.
//! Never: other members touched.
//!
//! Source: kube-apiserver v1.36.3 `controlplane/controller/clusterauthenticationtrust`.

use std::collections::HashSet;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;
use forebay_catalog::Target;
use forebay_registry::{Informer, Notice, Registry};
use serde_json::json;
use tokio::sync::watch;

use crate::limits::PUBLISH_RETRY;

const NAMESPACE: &str = "kube-system";
const MAP: &str = "extension-apiserver-authentication";

/// What is told. Lists count as sets, to which others may add theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedAuthentication {
    /// PEM.
    pub client_authorities: String,
    /// Of proxies, PEM.
    pub proxy_authorities: String,
    /// What proxies' certificates are called; any, if there is none.
    pub proxy_names: Vec<String>,
    pub username_headers: Vec<String>,
    pub uid_headers: Vec<String>,
    pub group_headers: Vec<String>,
    pub extra_prefixes: Vec<String>,
}

impl PublishedAuthentication {
    /// The members that are to be published.
    ///
    /// - `published`: a member as it is.
    /// - `combined`: authorities that were published with those that are ours.
    pub fn members(
        &self,
        published: &dyn Fn(&str) -> String,
        combined: &dyn Fn(&str, &str) -> String,
    ) -> Vec<(&'static str, String)> {
        let bundle = |name: &'static str, ours: &str| (name, combined(&published(name), ours));
        let list = |name: &'static str, ours: &[String]| (name, joined(&published(name), ours));
        let mut members = vec![bundle("client-ca-file", &self.client_authorities)];
        if !self.proxy_authorities.is_empty() {
            members.extend([
                bundle("requestheader-client-ca-file", &self.proxy_authorities),
                list("requestheader-allowed-names", &self.proxy_names),
                list("requestheader-extra-headers-prefix", &self.extra_prefixes),
                list("requestheader-group-headers", &self.group_headers),
                list("requestheader-uid-headers", &self.uid_headers),
                list("requestheader-username-headers", &self.username_headers),
            ]);
        }
        members
    }
}

/// Those that were published and ours behind them, each once: two servers that publish different ones agree
/// on the same text, or each would write over what the other has written, without an end.
fn joined(published: &str, ours: &[String]) -> String {
    let before: Vec<String> = serde_json::from_str(published).unwrap_or_default();
    let mut known = HashSet::new();
    let all: Vec<&String> = before.iter().chain(ours).filter(|one| known.insert(one.as_str())).collect();
    json!(all).to_string()
}

/// Publishes it now and whenever it, or the ConfigMap, changes.
///
/// - `publish`: does so.
pub async fn keep_published<F: Future<Output = Result<(), Status>>>(
    registry: Registry,
    mut changes: watch::Receiver<PublishedAuthentication>,
    publish: impl Fn(PublishedAuthentication) -> F,
) {
    let mut map = match follow(&registry) {
        Ok(map) => map,
        Err(status) => return tracing::error!(why = status.message, "{MAP} is not followed"),
    };
    loop {
        while map.try_next().is_some_and(|notice| !matches!(notice, Notice::Ended)) {}
        let wanted = changes.borrow_and_update().clone();
        let retry = match publish(wanted).await {
            Ok(()) => false,
            Err(status) => {
                tracing::warn!(why = status.message, "{MAP} is not what it should be yet");
                true
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = is_touched(&mut map) => {}
            () = registry.clock().sleep(PUBLISH_RETRY), if retry => {}
        }
    }
}

fn follow(registry: &Registry) -> Result<Informer, Status> {
    let served = registry.catalog().resource("", "v1", "configmaps").cloned();
    let served = served.ok_or_else(|| Status::internal("configmaps are not served"))?;
    registry.informer(&Target::of_server(served, Some(NAMESPACE.to_owned()), None), &ListOptions::default())
}

/// Waits until something happens to the map. Cancel-safe: what was told of others is nothing.
async fn is_touched(map: &mut Informer) {
    loop {
        map.ready().await;
        while let Some(notice) = map.try_next() {
            match notice {
                Notice::Put(object) | Notice::Deleted(object) if object.name() == MAP => return,
                Notice::Ended => return std::future::pending().await,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> PublishedAuthentication {
        let list = |text: &str| vec![text.to_owned()];
        PublishedAuthentication {
            client_authorities: "clients".to_owned(),
            proxy_authorities: "proxies".to_owned(),
            proxy_names: list("front-proxy-client"),
            username_headers: list("X-Remote-User"),
            uid_headers: list("X-Remote-Uid"),
            group_headers: list("X-Remote-Group"),
            extra_prefixes: list("X-Remote-Extra-"),
        }
    }

    fn members(of: &PublishedAuthentication, published: &dyn Fn(&str) -> String) -> Vec<String> {
        let combined = |published: &str, ours: &str| format!("{published}+{ours}");
        let members = of.members(published, &combined);
        members.into_iter().map(|(name, text)| format!("{name}={text}")).collect()
    }

    #[test]
    fn the_members_are_those_that_extension_servers_read() {
        assert_eq!(
            members(&own(), &|_| String::new()),
            [
                "client-ca-file=+clients",
                "requestheader-client-ca-file=+proxies",
                "requestheader-allowed-names=[\"front-proxy-client\"]",
                "requestheader-extra-headers-prefix=[\"X-Remote-Extra-\"]",
                "requestheader-group-headers=[\"X-Remote-Group\"]",
                "requestheader-uid-headers=[\"X-Remote-Uid\"]",
                "requestheader-username-headers=[\"X-Remote-User\"]",
            ]
        );
        let without = PublishedAuthentication { proxy_authorities: String::new(), ..own() };
        assert_eq!(members(&without, &|_| String::new()), ["client-ca-file=+clients"]);
    }

    #[test]
    fn what_other_servers_published_stays_and_is_not_doubled() {
        let ours = ["a".to_owned(), "b".to_owned()];
        assert_eq!(joined("[\"b\",\"c\"]", &ours), "[\"b\",\"c\",\"a\"]");
        assert_eq!(joined("[\"a\",\"b\",\"c\",\"a\"]", &ours), "[\"a\",\"b\",\"c\"]");
        assert_eq!(joined("nonsense", &ours), "[\"a\",\"b\"]");
        assert_eq!(joined("[\"a\"]", &[]), "[\"a\"]");
        assert_eq!(joined("", &[]), "[]", "any will do");
    }

    #[test]
    fn two_servers_agree_on_what_is_published() {
        let lists: [&[&str]; 4] = [&["a", "b"], &["b", "a"], &["c"], &[]];
        let lists = lists.map(|list| list.iter().map(|one| (*one).to_owned()).collect::<Vec<String>>());
        for (one, two) in lists.iter().flat_map(|one| lists.iter().map(move |two| (one, two))) {
            let both = joined(&joined("", one), two);
            assert_eq!((joined(&both, one), joined(&both, two)), (both.clone(), both), "{one:?} {two:?}");
        }
    }
}
