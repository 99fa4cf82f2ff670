//! Puts a state at rest while it is read from the store, so that it is never held as a whole in plain form.
//!
//! In: pages of objects, in key order. Out: the same, sealed, in order. Each page is sealed on a thread
//! that blocks, several at once; with too many, the caller waits for the oldest. Never: loses an object.

use std::collections::VecDeque;
use std::sync::Arc;

use std::panic::{AssertUnwindSafe, catch_unwind};

use forebay_object::Object;
use forebay_object::seal::{RecentBlocks, Sealer};
use tokio::task::JoinHandle;

use crate::limits;
use crate::room::Share;

type Page = Vec<Arc<Object>>;

pub(crate) struct Resting {
    recent: Arc<RecentBlocks>,
    // Oldest first, at most FILL_SEALING_MAX.
    pages: VecDeque<JoinHandle<Page>>,
}

impl Resting {
    pub(crate) fn new(recent: Arc<RecentBlocks>) -> Resting {
        Resting { recent, pages: VecDeque::new() }
    }

    /// Takes a page, and returns an earlier one when it has too many.
    ///
    /// - `share`: the page's room, given back once it is sealed.
    pub(crate) async fn put(&mut self, page: Page, share: Option<Share>) -> Page {
        let ready = match self.pages.len() < limits::FILL_SEALING_MAX {
            true => Vec::new(),
            false => self.next().await.unwrap_or_default(),
        };
        let recent = self.recent.clone();
        self.pages.push_back(forebay_rt::blocking(move || {
            let _share = share;
            sealed(page, recent)
        }));
        ready
    }

    /// The oldest page, when it is sealed.
    pub(crate) async fn next(&mut self) -> Option<Page> {
        let page = self.pages.front_mut()?.await;
        self.pages.pop_front();
        match page {
            Ok(page) => Some(page),
            Err(lost) => panic!("a page was lost: {lost}"),
        }
    }
}

/// A page at rest; unchanged if sealing panicked, which the panic hook has reported.
fn sealed(page: Page, recent: Arc<RecentBlocks>) -> Page {
    let seal = || Sealer::new(recent).seal(&page);
    catch_unwind(AssertUnwindSafe(seal)).unwrap_or(page)
}
