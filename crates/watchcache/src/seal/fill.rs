//! Puts a state at rest while it is read from the store, so that it is never held as a whole in plain form.
//!
//! In: pages of objects, in key order. Out: the same, sealed, in order. Each page is sealed on a thread that blocks, some of
//! them at once; who brings the next waits for the first of them. Never: loses an object.

use std::collections::VecDeque;
use std::sync::Arc;

use forebay_apimachinery::Object;
use forebay_apimachinery::object::{RecentBlocks, Sealer};
use tokio::task::JoinHandle;

use crate::limits;

type Page = Vec<Arc<Object>>;

pub(crate) struct Resting {
    recent: Arc<RecentBlocks>,
    // Oldest first, at most FILL_SEALING_MAX: a page as it was, and as it is going to be.
    pages: VecDeque<(Page, JoinHandle<Page>)>,
}

impl Resting {
    pub(crate) fn new(recent: Arc<RecentBlocks>) -> Resting {
        Resting { recent, pages: VecDeque::new() }
    }

    /// Takes a page, and returns an earlier one if it has enough of them.
    pub(crate) async fn put(&mut self, page: Page) -> Page {
        let ready = match self.pages.len() < limits::FILL_SEALING_MAX {
            true => Vec::new(),
            false => self.next().await.unwrap_or_default(),
        };
        let (plain, recent) = (page.clone(), self.recent.clone());
        let sealing = forebay_rt::blocking(move || Sealer::new(recent).seal(&plain));
        self.pages.push_back((page, sealing));
        ready
    }

    /// The oldest page, when it is sealed; as it was when that failed.
    pub(crate) async fn next(&mut self) -> Option<Page> {
        let (plain, sealing) = self.pages.front_mut()?;
        let page = match sealing.await {
            Ok(sealed) => sealed,
            Err(_) => std::mem::take(plain),
        };
        self.pages.pop_front();
        Some(page)
    }
}
