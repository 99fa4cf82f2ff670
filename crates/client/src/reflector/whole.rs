//! The whole state that is being asked for: why, which, how, and how far it has come.

use forebay_apimachinery::Revision;

use super::effect::{ListReason, Way};
use crate::limits::{PAGE_ITEMS, TOKENS_EXPIRED_MAX};
use crate::{Ask, Match};

/// A state on its way in. It outlives the requests that bring it.
#[derive(Debug)]
pub(super) struct Whole {
    pub why: ListReason,
    /// It is refused below this; `None` when there was none, or when the store was restored.
    pub floor: Option<Revision>,
    /// Whether the floor is asked for: a server may then answer from its cache. Otherwise the newest state
    /// is.
    pub asks_floor: bool,
    pub way: Way,
    /// Watch-lists that the server answered with an error of its own.
    pub watch_list_errors: u32,
    pages: Pages,
}

/// How far a list has come.
#[derive(Debug)]
struct Pages {
    /// The revision of the first page, which is that of all: a watch from there misses nothing.
    revision: Option<Revision>,
    next: Option<String>,
    /// `None` is all in one piece.
    items: Option<u32>,
    tokens_expired: u32,
}

impl Whole {
    /// - `held`: the revision of the state that there is.
    pub fn new(why: ListReason, held: Option<Revision>, way: Way) -> Whole {
        // What lost an event may have it in its cache as well, and so may what was served before it was made
        // anew.
        let from_a_cache = matches!(
            why,
            ListReason::Expired | ListReason::WentBack | ListReason::SameErrorTwice | ListReason::Garbled
        );
        let floor = held.filter(|_| why != ListReason::Restored);
        Whole {
            why,
            floor,
            asks_floor: from_a_cache && floor.is_some(),
            way,
            watch_list_errors: 0,
            pages: Pages { revision: None, next: None, items: Some(PAGE_ITEMS), tokens_expired: 0 },
        }
    }

    /// What brings it, or more of it.
    pub fn ask(&self, timeout_seconds: u32) -> Ask {
        let floor = self.floor.filter(|_| self.asks_floor);
        match self.way {
            Way::WatchList => Ask::WatchList { not_older_than: floor, timeout_seconds },
            Way::Pages => {
                let next = self.pages.next.clone();
                let at = floor.filter(|_| next.is_none()).map(|floor| (floor, Match::NotOlderThan));
                Ask::List { limit: self.pages.items, next, at }
            }
        }
    }

    pub fn is_at_its_beginning(&self) -> bool {
        self.pages.next.is_none()
    }

    /// Whether a state of `revision` is older than it may be.
    pub fn is_stale(&self, revision: Revision) -> bool {
        self.floor.is_some_and(|floor| revision < floor)
    }

    /// Begin it from the start.
    pub fn restart(&mut self) {
        self.pages.next = None;
        self.pages.revision = None;
    }

    /// The page was cut, by a timeout perhaps: ask for less at a time.
    pub fn smaller_pages(&mut self) {
        self.pages.items = Some(self.pages.items.map_or(PAGE_ITEMS, |items| (items / 2).max(1)));
    }

    /// The token expired: from the start, and, when that happens too often, in one piece.
    pub fn token_expired(&mut self) {
        self.restart();
        self.pages.tokens_expired += 1;
        if self.pages.tokens_expired >= TOKENS_EXPIRED_MAX {
            self.pages.items = None;
        }
    }

    /// A page came. `Ok` is the revision of the list when it was the last one, `Err` a token that leads back
    /// to itself.
    pub fn page(&mut self, revision: Revision, next: Option<String>) -> Result<Option<Revision>, ()> {
        let revision = *self.pages.revision.get_or_insert(revision);
        let Some(next) = next.filter(|next| !next.is_empty()) else { return Ok(Some(revision)) };
        if self.pages.next.as_ref() == Some(&next) {
            return Err(());
        }
        self.pages.next = Some(next);
        Ok(None)
    }
}
