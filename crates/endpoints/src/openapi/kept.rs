//! The documents that are kept.
//!
//! In: a catalog and a document's name. Out: the document, made when it is asked for and again when what it is made
//! from has changed. Owner of the state: whoever holds the lock, for a look-up; one document is made at a time, on a
//! thread that may block. Never: made at start.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use forebay_registry::catalog::Catalog;
use tokio::sync::Semaphore;

use super::contents::{Subject, subjects};
use super::document::{self, Fingerprint, Name};
use super::limits::KEPT_BYTES_MAX;
use super::packed::{Packed, Packer};

/// The documents of one server; cloning it copies a pointer.
#[derive(Clone)]
pub struct OpenApi(Arc<Shared>);

struct Shared {
    kept: Mutex<Kept>,
    /// The right to make documents.
    maker: Arc<Semaphore>,
}

#[derive(Default)]
struct Kept {
    /// What the marks `checked` and the index are about.
    catalog: Weak<Catalog>,
    index: Option<Packed>,
    // name -> document; <= KEPT_BYTES_MAX of compressed bytes, hashes for every document
    entries: HashMap<Name, Entry>,
    // counts look-ups, to know what was asked for longest ago
    now: u64,
}

struct Entry {
    fingerprint: Fingerprint,
    /// The fingerprint is that of the present catalog.
    checked: bool,
    hash: Arc<str>,
    /// `None` once it had to go.
    packed: Option<Packed>,
    used: u64,
}

impl Default for OpenApi {
    fn default() -> OpenApi {
        OpenApi(Arc::new(Shared { kept: Mutex::default(), maker: Arc::new(Semaphore::new(1)) }))
    }
}

impl OpenApi {
    /// The document `name` of `catalog`; `None` when there is no such document.
    pub async fn document(&self, catalog: &Arc<Catalog>, name: Name) -> Option<Packed> {
        if let Some(packed) = self.look_up(catalog, &name) {
            return Some(packed);
        }
        if let Name::V3(subject) = &name
            && !subjects(catalog).contains(subject)
        {
            return None;
        }
        self.made(catalog, move |shared, catalog| shared.document(catalog, &name)).await
    }

    /// Where the v3 documents are, with their hashes.
    pub async fn index(&self, catalog: &Arc<Catalog>) -> Option<Packed> {
        if let Some(packed) = self.0.locked(catalog, |kept| kept.index.clone()) {
            return Some(packed);
        }
        self.made(catalog, |shared, catalog| shared.index(catalog)).await
    }

    fn look_up(&self, catalog: &Arc<Catalog>, name: &Name) -> Option<Packed> {
        self.0.locked(catalog, |kept| kept.look_up(name))
    }

    /// Runs `make` where it may take its time. Drop-safe: what was begun is finished, and kept.
    async fn made(
        &self,
        catalog: &Arc<Catalog>,
        make: impl FnOnce(&Shared, &Arc<Catalog>) -> Packed + Send + 'static,
    ) -> Option<Packed> {
        let permit = self.0.maker.clone().acquire_owned().await.ok()?;
        let (shared, catalog) = (self.0.clone(), catalog.clone());
        let made = tokio::task::spawn_blocking(move || {
            let packed = make(&shared, &catalog);
            drop(permit);
            packed
        });
        made.await.ok()
    }
}

impl Shared {
    fn locked<T>(&self, catalog: &Arc<Catalog>, look: impl FnOnce(&mut Kept) -> T) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.turn_to(catalog);
        look(&mut kept)
    }

    /// The document, from what is kept if it is still the same.
    fn document(&self, catalog: &Arc<Catalog>, name: &Name) -> Packed {
        if let Some(packed) = self.locked(catalog, |kept| kept.look_up(name)) {
            return packed;
        }
        let fingerprint = document::fingerprint(catalog, name);
        let known = self.locked(catalog, |kept| match kept.confirm(name, &fingerprint) {
            true => kept.look_up(name),
            false => None,
        });
        known.unwrap_or_else(|| {
            let packed = document::make(catalog, name);
            self.locked(catalog, |kept| kept.put(name.clone(), fingerprint, packed.clone()));
            packed
        })
    }

    fn index(&self, catalog: &Arc<Catalog>) -> Packed {
        if let Some(packed) = self.locked(catalog, |kept| kept.index.clone()) {
            return packed;
        }
        let subjects = subjects(catalog);
        let mut out = Packer::new();
        out.piece.extend_from_slice(b"{\"paths\":{");
        for (at, subject) in subjects.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let (path, url) = (subject.path(), relative_url(subject, &self.hash(catalog, subject)));
            // Paths are of letters, digits, dots, dashes and slashes, and need no escape.
            out.piece.extend_from_slice(
                format!("{comma}\"{path}\":{{\"serverRelativeURL\":\"{url}\"}}").as_bytes(),
            );
            out.drain();
        }
        out.piece.extend_from_slice(b"}}");
        let packed = out.finish();
        self.locked(catalog, |kept| {
            kept.entries.retain(|name, _| match name {
                Name::V3(subject) => subjects.contains(subject),
                Name::V2Json | Name::V2Proto => true,
            });
            kept.index = Some(packed.clone());
        });
        packed
    }

    fn hash(&self, catalog: &Arc<Catalog>, subject: &Subject) -> Arc<str> {
        let name = Name::V3(subject.clone());
        let fingerprint = document::fingerprint(catalog, &name);
        let known = self.locked(catalog, |kept| match kept.confirm(&name, &fingerprint) {
            true => kept.entries.get(&name).map(|entry| entry.hash.clone()),
            false => None,
        });
        known.unwrap_or_else(|| self.document(catalog, &name).hash)
    }
}

/// Where a document of the hash is.
pub fn relative_url(subject: &Subject, hash: &str) -> String {
    format!("/openapi/v3/{}?hash={hash}", subject.path())
}

impl Kept {
    fn turn_to(&mut self, catalog: &Arc<Catalog>) {
        if self.catalog.as_ptr() == Arc::as_ptr(catalog) {
            return;
        }
        // A weak pointer keeps the address from being used again.
        self.catalog = Arc::downgrade(catalog);
        self.index = None;
        self.entries.values_mut().for_each(|entry| entry.checked = false);
    }

    fn look_up(&mut self, name: &Name) -> Option<Packed> {
        self.now += 1;
        let entry = self.entries.get_mut(name).filter(|entry| entry.checked)?;
        entry.used = self.now;
        entry.packed.clone()
    }

    /// Whether the entry is made from the same.
    fn confirm(&mut self, name: &Name, fingerprint: &Fingerprint) -> bool {
        let entry = self.entries.get_mut(name).filter(|entry| entry.fingerprint == *fingerprint);
        entry.map(|entry| entry.checked = true).is_some()
    }

    fn put(&mut self, name: Name, fingerprint: Fingerprint, packed: Packed) {
        self.now += 1;
        let hash = packed.hash.clone();
        let entry = Entry { fingerprint, checked: true, hash, packed: Some(packed), used: self.now };
        self.entries.insert(name, entry);
        while self.bytes() > KEPT_BYTES_MAX {
            let held = self.entries.values_mut().filter(|entry| entry.packed.is_some());
            let Some(oldest) = held.min_by_key(|entry| entry.used) else { return };
            oldest.packed = None;
        }
    }

    fn bytes(&self) -> usize {
        self.entries.values().filter_map(|entry| entry.packed.as_ref()).map(|packed| packed.gzip.len()).sum()
    }
}
