//! What was asked of a proxy.
//!
//! In: each request, when it comes, whatever is answered. Out: sums, and who asked for what. Never: what
//! never came, because there was no connection.

use std::collections::BTreeMap;

use super::asked::{RequestInfo, RequestKind};

/// Sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Lists, each counted once however many pages it has.
    pub lists: u64,
    /// Watches that begin with the whole state.
    pub watch_lists: u64,
    /// Watches that go on.
    pub watches: u64,
    /// Lists of one object at most: what is asked for is the newest resourceVersion.
    pub probes: u64,
    /// Further pages.
    pub pages: u64,
    pub others: u64,
}

/// Who asked for what, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    // (interest, User-Agent) -> what was asked; as many as the clients of a run have.
    pub by: BTreeMap<(String, String), RequestCounts>,
}

impl RequestCounts {
    /// All that asks for the whole state.
    pub fn whole(&self) -> u64 {
        self.lists + self.watch_lists
    }

    /// What came after `before`.
    pub fn since(&self, before: &RequestCounts) -> RequestCounts {
        RequestCounts {
            lists: self.lists - before.lists,
            watch_lists: self.watch_lists - before.watch_lists,
            watches: self.watches - before.watches,
            probes: self.probes - before.probes,
            pages: self.pages - before.pages,
            others: self.others - before.others,
        }
    }

    fn add(&mut self, kind: RequestKind) {
        *match kind {
            RequestKind::List => &mut self.lists,
            RequestKind::WatchList => &mut self.watch_lists,
            RequestKind::Watch => &mut self.watches,
            RequestKind::Probe => &mut self.probes,
            RequestKind::Page => &mut self.pages,
            RequestKind::Other => &mut self.others,
        } += 1;
    }
}

impl Counts {
    pub fn add(&mut self, asked: &RequestInfo, user_agent: &str) {
        self.by.entry((asked.interest.clone(), user_agent.to_owned())).or_default().add(asked.kind);
    }

    /// All together.
    pub fn tally(&self) -> RequestCounts {
        self.by.values().fold(RequestCounts::default(), |sum, each| RequestCounts {
            lists: sum.lists + each.lists,
            watch_lists: sum.watch_lists + each.watch_lists,
            watches: sum.watches + each.watches,
            probes: sum.probes + each.probes,
            pages: sum.pages + each.pages,
            others: sum.others + each.others,
        })
    }
}

#[cfg(test)]
mod tests {
    use hyper::Method;

    use super::*;

    #[test]
    fn requests_are_counted_by_what_and_by_whom() {
        let mut counts = Counts::default();
        for (uri, who) in [
            ("/api/v1/pods", "a"),
            ("/api/v1/pods?limit=1", "a"),
            ("/api/v1/pods?continue=x", "a"),
            ("/api/v1/pods?watch=1&resourceVersion=5", "a"),
            ("/api/v1/pods?watch=1&sendInitialEvents=true", "b"),
        ] {
            counts.add(&RequestInfo::of(&Method::GET, &uri.parse().unwrap()), who);
        }
        let (of_a, of_b) = (
            RequestCounts { lists: 1, probes: 1, pages: 1, watches: 1, ..RequestCounts::default() },
            RequestCounts { watch_lists: 1, ..RequestCounts::default() },
        );
        let key = |who: &str| ("/api/v1/pods".to_owned(), who.to_owned());
        assert_eq!(counts.by, BTreeMap::from([(key("a"), of_a), (key("b"), of_b)]));
        assert_eq!(counts.tally().whole(), 2);
    }
}
