//! A new store made of entries: put together beside its place, and moved there when it is whole.
//!
//! In: entries in any order, then the revision of the store. Out: a directory that [`crate::Engine::open`]
//! takes. A process that is killed meanwhile leaves nothing in that place, and beside it a directory whose
//! name says so: a start refuses to begin an empty store then, and the next [`Builder`] begins anew. Without
//! syncs until the end: nobody reads it before.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use forebay_apimachinery::Revision;

use super::format::Entry;
use crate::disk::{file, free_bytes};
use crate::error::{self, OpenError, StoreError};
use crate::guard::Guard;
use crate::limits::{FREE_BYTES_MIN, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::open::{self, LOCK_FILE, STORE_FILE, WITNESS_FILE};
use crate::row::{NewChange, NewPut, Stored};
use crate::store::{Meta, Progress, Store, Sync};
use crate::witness::Witness;

/// Why a store cannot be made. Nothing is in its place then.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is a store, which would have to be overwritten.
    #[error("{} has a store already, and is left as it is; name another directory, or move that away", dir.display())]
    NotEmpty { dir: PathBuf },
    #[error("{key}: the {part} has {bytes} bytes, a store takes {bytes_max}")]
    TooLarge { key: String, part: &'static str, bytes: usize, bytes_max: usize },
    #[error("{} cannot be written: {cause}", dir.display())]
    Failed { dir: PathBuf, cause: String },
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// A store that is being made. Dropping it leaves nothing.
pub struct Builder {
    place: Place,
    store: Store,
    guard: Guard,
    meta: Meta,
    lock: File,
    // Bytes since there was last looked for space.
    unlooked: usize,
}

/// A store that is whole and beside its place. Dropping it leaves nothing.
pub struct Sealed {
    place: Place,
}

/// Where a store is to be, and where it is until then.
struct Place {
    dir: PathBuf,
    beside: PathBuf,
    is_done: bool,
}

impl Builder {
    /// Begins a store that is to be in `dir`. What is above `dir` is there.
    ///
    /// # Errors
    /// [`BuildError::NotEmpty`]; [`OpenError::Locked`] when another process makes one.
    pub fn begin(dir: &Path) -> Result<Builder, BuildError> {
        if open::has_anything(dir)? {
            return Err(BuildError::NotEmpty { dir: dir.to_path_buf() });
        }
        let beside = open::beside(dir);
        open::make_dir(&beside)?;
        let lock = open::lock(&beside)?;
        let place = Place { dir: dir.to_path_buf(), beside, is_done: false };
        // Left by a build that was killed.
        for name in [STORE_FILE, WITNESS_FILE] {
            let path = place.beside.join(name);
            crate::disk::remove_if_there(&path).map_err(|cause| error::io_error(&path, cause))?;
        }
        let path = place.beside.join(STORE_FILE);
        let guard = Guard::new(file(&path)?, None).map_err(|cause| error::io_error(&path, cause))?;
        let name = path.display().to_string();
        let store = open::open_store(guard.clone(), &name)?;
        let meta = open::initialize(&store).map_err(|error| error::store_error(&name, error))?;
        Ok(Builder { place, store, guard, meta, lock, unlooked: 0 })
    }

    /// Adds keys that are not there yet; several may share a revision.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`] before any of `entries` is added; [`BuildError::Failed`], such as a full
    /// disk.
    pub fn add(&mut self, entries: Vec<Entry>) -> Result<(), BuildError> {
        entries.iter().try_for_each(Builder::check)?;
        self.unlooked += entries.iter().map(|entry| entry.value.len()).sum::<usize>();
        if self.unlooked >= SYNC_BYTES {
            self.look_for_space()?;
        }
        let sync = if self.unlooked >= SYNC_BYTES { Sync::Now } else { Sync::Later };
        if sync == Sync::Now {
            self.unlooked = 0;
        }
        let change = |entry: Entry| {
            let Entry { key, revision, expires_ms, value } = entry;
            let put = NewPut { stored: Stored::new(value.clone()), value, expires_ms };
            (revision.get(), NewChange { key, put: Some(put) })
        };
        let changes: Vec<_> = entries.into_iter().map(change).collect();
        self.store.load(&changes, sync).map_err(|error| self.failed(&error))?;
        self.check_disk()
    }

    /// Whether a store takes it.
    ///
    /// # Errors
    /// [`BuildError::TooLarge`].
    pub fn check(entry: &Entry) -> Result<(), BuildError> {
        let parts =
            [("key", entry.key.as_str().len(), KEY_BYTES_MAX), ("value", entry.value.len(), VALUE_BYTES_MAX)];
        for (part, bytes, bytes_max) in parts {
            if bytes > bytes_max {
                let key = entry.key.to_string();
                return Err(BuildError::TooLarge { key, part, bytes, bytes_max });
            }
        }
        Ok(())
    }

    /// Makes it whole and durable, at `revision`, where its history begins: no entry is above it.
    ///
    /// # Errors
    /// [`BuildError::Failed`].
    pub fn seal(self, revision: Revision) -> Result<Sealed, BuildError> {
        let revision = revision.get();
        let progress = Progress { revision, compacted: revision, swept: revision };
        let work = crate::store::Work { progress: Some(progress), ..Default::default() };
        self.store.commit(&work).map_err(|error| self.failed(&error))?;
        self.check_disk()?;
        let Builder { place, store, guard, meta, lock, .. } = self;
        drop(store);
        let failed = |cause: String| BuildError::Failed { dir: place.beside.clone(), cause };
        if let Some(cause) = guard.failure() {
            return Err(failed(cause));
        }
        let path = place.beside.join(WITNESS_FILE);
        let witness = Witness::new(file(&path)?, meta.store_id);
        let noted = witness.write(revision).and_then(|()| witness.sync());
        noted.and_then(|()| sync_dir(&place.beside)).map_err(|cause| failed(cause.to_string()))?;
        drop(lock);
        Ok(Sealed { place })
    }

    fn look_for_space(&self) -> Result<(), BuildError> {
        let free = free_bytes(&self.place.beside).and_then(|free| free().ok());
        match free.is_some_and(|free| free < FREE_BYTES_MIN) {
            true => Err(BuildError::Failed {
                dir: self.place.beside.clone(),
                cause: "too little space is left on the disk".to_string(),
            }),
            false => Ok(()),
        }
    }

    fn check_disk(&self) -> Result<(), BuildError> {
        let failed = |cause| BuildError::Failed { dir: self.place.beside.clone(), cause };
        self.guard.failure().map_or(Ok(()), |cause| Err(failed(cause)))
    }

    fn failed(&self, error: &StoreError) -> BuildError {
        BuildError::Failed { dir: self.place.beside.clone(), cause: error.to_string() }
    }
}

/// Bytes of values between two syncs: what redb may have to keep in memory of pages that are not durable.
const SYNC_BYTES: usize = 16 << 20;

impl Sealed {
    /// Where it is until [`Sealed::promote`]: it can be read there.
    pub fn beside(&self) -> &Path {
        &self.place.beside
    }

    /// Moves it into its place, durably: a crash leaves it there or beside it.
    ///
    /// # Errors
    /// [`BuildError::NotEmpty`] when there is something by now.
    pub fn promote(mut self) -> Result<(), BuildError> {
        let Place { dir, beside, .. } = &self.place;
        if open::has_anything(dir)? {
            return Err(BuildError::NotEmpty { dir: dir.clone() });
        }
        // Left by a process that looked for a store here.
        let lock = dir.join(LOCK_FILE);
        crate::disk::remove_if_there(&lock).map_err(|cause| error::io_error(&lock, cause))?;
        // A directory that is empty is replaced.
        fs::rename(beside, dir).map_err(|cause| error::io_error(dir, cause))?;
        self.place.is_done = true;
        let above = self.place.dir.parent().filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        Ok(sync_dir(above).map_err(|cause| error::io_error(above, cause))?)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_done {
            // What cannot be removed now is removed by the next.
            let _ = fs::remove_dir_all(&self.beside);
        }
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
