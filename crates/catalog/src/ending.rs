//! The end of watches whose resource has become another.
//!
//! In: what was served, and what is. Out: whether a watch is to end, and how much later than others. Never:
//! ends one.

use std::sync::Arc;
use std::time::Duration;

use forebay_rt::Stagger;
use tokio::sync::watch;

/// What ends watches of a version when its CRD changes, one after the other: their clients do not all come
/// back at once (kubernetes#123074).
pub struct Ending {
    ended: watch::Sender<Ended>,
    // Of watches that have been told.
    turns: Arc<Stagger>,
}

/// Which watches of a version are to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// All: the version is no more.
    pub(crate) all: bool,
    /// Tables: the columns are others.
    pub(crate) tables: bool,
    /// Those that select by these of [`Served::selectable`](crate::Served::selectable), which are no more.
    pub(crate) fields: Vec<usize>,
}

impl Ending {
    pub(crate) fn new() -> Ending {
        Ending { ended: watch::Sender::new(Ended::default()), turns: Arc::default() }
    }

    /// Waits until a watch is to end that shows Tables, or does not, and selects by `fields`; how much later
    /// it is its turn.
    pub fn told(&self, is_table: bool, fields: Vec<usize>) -> impl Future<Output = Duration> + use<> {
        let (mut ended, turns) = (self.ended.subscribe(), self.turns.clone());
        async move {
            let concerns = |ended: &Ended| {
                ended.all
                    || ended.tables && is_table
                    || fields.iter().any(|field| ended.fields.contains(field))
            };
            // What ended without a word is no more, either.
            let _told = ended.wait_for(concerns).await.is_ok();
            turns.next()
        }
    }

    /// How much later a watch is to end that ends now.
    pub fn turn(&self) -> Duration {
        self.turns.next()
    }

    pub(crate) fn raise(&self, ended: Ended) {
        self.ended.send_if_modified(|known| {
            let changed = *known != ended;
            *known = ended;
            changed
        });
    }
}
