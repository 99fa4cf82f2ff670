//! What is asked of a collection.

use forebay_apimachinery::Revision;

use crate::Collection;

/// How a list is to stand to its `resourceVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Nothing older.
    NotOlderThan,
    /// The state at exactly this revision.
    Exact,
}

/// A list or a watch to be asked for. A watch always asks for bookmarks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// A page of a list.
    List {
        /// Objects at most; `None` is all of them.
        limit: Option<u32>,
        /// The token of the page before.
        next: Option<String>,
        /// `None` is the newest state, which the server has to prove.
        at: Option<(Revision, Match)>,
    },
    /// What changes after a revision.
    Watch { after: Revision, timeout_seconds: u32 },
    /// The whole state, a bookmark that says that it was all, then what changes.
    WatchList { not_older_than: Option<Revision>, timeout_seconds: u32 },
}

impl Ask {
    /// The path and query of the request for `collection`.
    pub fn target(&self, collection: &Collection) -> String {
        let mut query = Query(collection.path() + "?");
        match self {
            Ask::List { limit, next, at } => {
                query.put("limit", limit.map(|limit| limit.to_string()));
                query.put("continue", next.clone());
                // A token names its state itself, and another one beside it is refused.
                if let (Some((revision, how)), None) = (at, next) {
                    query.put("resourceVersion", Some(revision.to_string()));
                    let how = if *how == Match::Exact { "Exact" } else { "NotOlderThan" };
                    query.put("resourceVersionMatch", Some(how.into()));
                }
            }
            Ask::Watch { after, timeout_seconds } => {
                query.watch(Some(after), *timeout_seconds);
            }
            Ask::WatchList { not_older_than, timeout_seconds } => {
                query.watch(not_older_than.as_ref(), *timeout_seconds);
                query.put("sendInitialEvents", Some("true".into()));
                query.put("resourceVersionMatch", Some("NotOlderThan".into()));
            }
        }
        let selector = |text: &String| (!text.is_empty()).then(|| text.clone());
        query.put("labelSelector", selector(&collection.label_selector));
        query.put("fieldSelector", selector(&collection.field_selector));
        query.0.pop();
        query.0
    }

    /// Whether the answer goes on until somebody ends it.
    pub fn is_watch(&self) -> bool {
        !matches!(self, Ask::List { .. })
    }
}

/// A target that ends with `?` or `&`.
struct Query(String);

impl Query {
    fn watch(&mut self, revision: Option<&Revision>, timeout_seconds: u32) {
        self.put("watch", Some("true".into()));
        self.put("allowWatchBookmarks", Some("true".into()));
        self.put("resourceVersion", revision.map(Revision::to_string));
        self.put("timeoutSeconds", Some(timeout_seconds.to_string()));
    }

    fn put(&mut self, name: &str, value: Option<String>) {
        let Some(value) = value else { return };
        self.0.push_str(name);
        self.0.push('=');
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    self.0.push(byte as char)
                }
                other => self.0.push_str(&format!("%{other:02X}")),
            }
        }
        self.0.push('&');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_stands_in_the_query() {
        let pods =
            Collection { field_selector: "spec.nodeName=a b".into(), ..Collection::all("", "v1", "pods") };
        let revision = Revision::new(7).expect("a revision");
        let rows = [
            (
                Ask::List { limit: None, next: None, at: None },
                "/api/v1/pods?fieldSelector=spec.nodeName%3Da%20b",
            ),
            (
                Ask::List { limit: Some(500), next: None, at: Some((revision, Match::NotOlderThan)) },
                "/api/v1/pods?limit=500&resourceVersion=7&resourceVersionMatch=NotOlderThan&fieldSelector=spec.nodeName%3Da%20b",
            ),
            (
                Ask::List { limit: Some(500), next: Some("e30=".into()), at: Some((revision, Match::Exact)) },
                "/api/v1/pods?limit=500&continue=e30%3D&fieldSelector=spec.nodeName%3Da%20b",
            ),
            (
                Ask::Watch { after: revision, timeout_seconds: 300 },
                "/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300&fieldSelector=spec.nodeName%3Da%20b",
            ),
            (
                Ask::WatchList { not_older_than: None, timeout_seconds: 300 },
                "/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&fieldSelector=spec.nodeName%3Da%20b",
            ),
        ];
        for (ask, target) in rows {
            assert_eq!(ask.target(&pods), target);
            assert_eq!(ask.is_watch(), target.contains("watch=true"));
        }
        assert_eq!(
            Ask::List { limit: None, next: None, at: None }.target(&Collection::all("", "v1", "nodes")),
            "/api/v1/nodes"
        );
    }
}
