//! Opens the stores of resources, all of them alike.
//!
//! In: what a server's caches share, and a resource. Out: its [`Store`], whose cache is being filled from now
//! on.

use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_backend::Backend;
use forebay_object::{Form, Layout, Scope};
use forebay_rt::{Clock, Tasks};
use forebay_watchcache::limits::Pace;
use forebay_watchcache::{Cacher, EarlyReaders, History, Resource, Room};

use crate::instrumented::Instrumented;
use crate::store::Store;

/// What every store of a server is opened with.
#[derive(Clone)]
pub struct Opener {
    /// `/registry`: what every storage key begins with.
    pub storage_prefix: String,
    /// How soon the caches seal what is quiet.
    pub pace: Pace,
    /// Whose the store's history is.
    pub history: History,
    /// For what the caches hold in plain form and have not put at rest yet.
    pub room: Arc<Room>,
    /// Held back until the server serves.
    pub early: Arc<EarlyReaders>,
    pub backend: Arc<dyn Backend>,
    pub clock: Clock,
    pub tasks: Tasks,
}

/// How the objects of one resource are kept.
pub struct Shape<'a> {
    pub group: &'a str,
    pub plural: &'a str,
    /// Where they are, below the prefix.
    pub path: &'a str,
    pub namespaced: bool,
    pub form: Form,
    /// The dotted paths whose values are kept at hand.
    pub fields: &'a [String],
    /// Those of `fields` by which there is an index.
    pub indexed: Vec<usize>,
}

impl Opener {
    /// The store of a resource. Its cache is filled from now on, and answers 429 until then:
    /// `Cacher::wait_ready`.
    pub fn open(&self, shape: Shape) -> Store {
        let Shape { group, plural, path, namespaced, form, fields, indexed } = shape;
        let prefix = format!("{}/{path}/", self.storage_prefix);
        let scope = if namespaced { Scope::Namespaced } else { Scope::Cluster };
        let fields = fields.iter().map(|path| path.split('.').map(String::from).collect()).collect();
        let layout = Layout { prefix_len: prefix.len(), scope, form, fields };
        let cached = Resource {
            name: format!("{plural}.{group}").trim_end_matches('.').to_string(),
            prefix: Key::from(prefix),
            layout,
            indexed,
            pace: self.pace,
            history: self.history,
            room: self.room.clone(),
            early: self.early.clone(),
        };
        let backend = Arc::new(Instrumented::new(self.backend.clone(), self.clock.clone()));
        Store {
            group: group.into(),
            resource: plural.into(),
            cacher: Cacher::start(cached, backend.clone(), self.clock.clone(), &self.tasks),
            backend,
            lists: Arc::default(),
            shown_from: self.storage_prefix.len(),
        }
    }
}
