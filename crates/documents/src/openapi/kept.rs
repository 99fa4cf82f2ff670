//! The documents that are kept.
//!
//! In: a catalog and a document's name. Out: the document, made when it is asked for and again when what it
//! is made from has changed. Owner of the state: whoever holds the lock, for a look-up; one document is made
//! at a time, on a thread that may block. Never: made at start.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use forebay_catalog::Catalog;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::contents::{Subject, subjects};
use super::document::{self, Fingerprint, Name};
use super::limits::{KEPT_BYTES_MAX, PARTS_BYTES_MAX};
use super::packed::{Packed, Packer};
use super::part::OpenApiPart;
use crate::discovery::Extension;

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
    /// What other servers say of themselves, as far as what is marked `checked` is about it.
    of_parts: Fingerprint,
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
    ///
    /// - `parts`: what other servers say of themselves, for those of v2.
    pub async fn document(
        &self,
        catalog: &Arc<Catalog>,
        name: Name,
        parts: Vec<Arc<OpenApiPart>>,
    ) -> Option<Packed> {
        let of_parts = OpenApiPart::fingerprint(&parts);
        if let Some(packed) = self.0.locked(catalog, |kept| kept.look_up_with(&name, of_parts)) {
            return Some(packed);
        }
        if let Name::V3(subject) = &name
            && !subjects(catalog).contains(subject)
        {
            return None;
        }
        self.made(catalog, move |shared, catalog| shared.document(catalog, &name, &parts)).await
    }

    /// Where the v3 documents are, with their hashes.
    pub async fn index(&self, catalog: &Arc<Catalog>) -> Option<Packed> {
        if let Some(packed) = self.0.locked(catalog, |kept| kept.index.clone()) {
            return Some(packed);
        }
        self.made(catalog, |shared, catalog| shared.index(catalog)).await
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
    fn document(&self, catalog: &Arc<Catalog>, name: &Name, parts: &[Arc<OpenApiPart>]) -> Packed {
        let of_parts = OpenApiPart::fingerprint(parts);
        if let Some(packed) = self.locked(catalog, |kept| kept.look_up_with(name, of_parts)) {
            return packed;
        }
        let fingerprint = document::fingerprint(catalog, name, parts);
        let known = self.locked(catalog, |kept| match kept.confirm(name, &fingerprint) {
            true => kept.look_up(name),
            false => None,
        });
        known.unwrap_or_else(|| {
            let packed = document::make(catalog, name, parts);
            self.locked(catalog, |kept| kept.put(name.clone(), fingerprint, packed.clone()));
            packed
        })
    }

    fn index(&self, catalog: &Arc<Catalog>) -> Packed {
        if let Some(packed) = self.locked(catalog, |kept| kept.index.clone()) {
            return packed;
        }
        let fingerprints = document::fingerprints(catalog);
        let mut hashes: Vec<(String, Arc<str>)> = Vec::new();
        for (subject, fingerprint) in &fingerprints {
            hashes.push((subject.path(), self.hash(catalog, subject, fingerprint)));
        }
        hashes.sort();
        let packed = index_of(&hashes);
        self.locked(catalog, |kept| {
            kept.entries.retain(|name, _| match name {
                Name::V3(subject) => fingerprints.contains_key(subject),
                Name::V2Json | Name::V2Proto => true,
            });
            kept.index = Some(packed.clone());
        });
        packed
    }

    fn hash(&self, catalog: &Arc<Catalog>, subject: &Subject, fingerprint: &Fingerprint) -> Arc<str> {
        let name = Name::V3(subject.clone());
        let known = self.locked(catalog, |kept| match kept.confirm(&name, fingerprint) {
            true => kept.entries.get(&name).map(|entry| entry.hash.clone()),
            false => None,
        });
        known.unwrap_or_else(|| self.document(catalog, &name, &[]).hash)
    }
}

/// - `hashes`: path and hash of each document, by path.
fn index_of(hashes: &[(String, Arc<str>)]) -> Packed {
    let mut out = Packer::default();
    out.piece.extend_from_slice(b"{\"paths\":{");
    for (at, (path, hash)) in hashes.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        // Paths are of letters, digits, dots, dashes and slashes, and need no escape.
        let url = relative_url(path, hash);
        out.piece
            .extend_from_slice(format!("{comma}\"{path}\":{{\"serverRelativeURL\":\"{url}\"}}").as_bytes());
        out.drain();
    }
    out.piece.extend_from_slice(b"}}");
    out.finish()
}

/// An index with the documents that other servers have, who send them themselves; `None` where there are
/// none. Their order among the others says nothing.
pub fn extended(index: &Packed, extensions: &[Extension]) -> Option<Vec<u8>> {
    let of_others = extensions.iter().filter_map(|one| Some((one, one.openapi_url.as_deref()?)));
    let mut of_others = of_others.peekable();
    of_others.peek()?;
    let (mut json, mut plain) = (Vec::with_capacity(index.plain_len), index.plain());
    while plain.fill(index.plain_len, &mut json) {}
    let mut document: Value = serde_json::from_slice(&json).ok()?;
    for (extension, url) in of_others {
        let path = format!("apis/{}/{}", extension.group, extension.version);
        document["paths"][path] = json!({ "serverRelativeURL": url });
    }
    Some(document.to_string().into_bytes())
}

/// What other servers say of themselves in v2, as much as is told.
pub fn openapi_parts(extensions: &[Extension]) -> Vec<Arc<OpenApiPart>> {
    let mut left = PARTS_BYTES_MAX;
    let all = extensions.iter().filter_map(|extension| extension.openapi_v2.clone());
    let fit = all.filter(|part| match left.checked_sub(part.bytes()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    fit.collect()
}

/// Where a document of the hash is.
///
/// - `path`: below `/openapi/v3/`.
pub fn relative_url(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
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

    /// - `of_parts`: what other servers say of themselves, in short.
    fn look_up_with(&mut self, name: &Name, of_parts: Fingerprint) -> Option<Packed> {
        if matches!(name, Name::V2Json | Name::V2Proto) && self.of_parts != of_parts {
            self.of_parts = of_parts;
            for of_v2 in [Name::V2Json, Name::V2Proto] {
                self.entries.get_mut(&of_v2).into_iter().for_each(|entry| entry.checked = false);
            }
        }
        self.look_up(name)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(len: usize) -> Packed {
        let mut packer = Packer::default();
        // What does not compress, so that its length is known about.
        let mut state = 1_u64;
        packer.piece.extend((0..len).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        }));
        packer.finish()
    }

    fn name(version: &str) -> Name {
        Name::V3(Subject::Version { group: String::new(), version: version.to_string() })
    }

    #[test]
    fn at_the_limit_what_was_asked_for_longest_ago_goes_and_its_hash_stays() {
        let mut kept = Kept::default();
        let third = packed(KEPT_BYTES_MAX / 3);
        for version in ["v1", "v2"] {
            kept.put(name(version), [0; 32], third.clone());
        }
        assert!(kept.look_up(&name("v1")).is_some());
        kept.put(name("v3"), [0; 32], third.clone());
        assert!(kept.bytes() <= KEPT_BYTES_MAX);
        let held = ["v1", "v2", "v3"].map(|version| kept.look_up(&name(version)).is_some());
        assert_eq!(held, [true, false, true]);
        assert_eq!(kept.entries[&name("v2")].hash, third.hash);
    }

    #[test]
    fn another_catalog_has_every_document_checked_again() {
        let mut kept = Kept::default();
        let (first, second) = (Arc::new(Catalog::default()), Arc::new(Catalog::default()));
        kept.turn_to(&first);
        kept.put(name("v1"), [1; 32], packed(10));
        kept.turn_to(&first);
        assert!(kept.look_up(&name("v1")).is_some());
        kept.turn_to(&second);
        assert!(kept.look_up(&name("v1")).is_none());
        assert!(!kept.confirm(&name("v1"), &[2; 32]));
        assert!(kept.look_up(&name("v1")).is_none());
        assert!(kept.confirm(&name("v1"), &[1; 32]));
        assert!(kept.look_up(&name("v1")).is_some());
    }
}
