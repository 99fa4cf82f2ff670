//! Where a store is kept: its file, the witness beside it, a spare place for a new copy, and how much may
//! still be written.
//!
//! In: a directory, or memory. Out: files that redb can use. Never: knows what is in them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{BackendError, StorageBackend};

use crate::error::OpenError;

/// Says how many bytes may still be written.
pub type FreeBytes = Box<dyn Fn() -> io::Result<u64> + Send + Sync>;

/// Where a store is kept.
pub struct Disk {
    /// What errors call it.
    pub name: String,
    /// The database.
    pub store: Box<dyn StorageBackend>,
    /// Bytes of it that take space: those that were written. `None` is all.
    pub used_bytes: Option<u64>,
    /// A few bytes beside it that say what was acknowledged.
    pub witness: Option<Box<dyn StorageBackend>>,
    /// `None`: the store is never copied, and its file never becomes smaller than it was.
    pub spare: Option<Box<dyn Spare>>,
    /// `None` is without end.
    pub free_bytes: Option<FreeBytes>,
}

/// A place beside the store's for a new copy of it.
pub trait Spare: Send {
    /// An empty file there, in place of what was there before.
    ///
    /// # Errors
    /// As the operating system says.
    fn create(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// Puts the file in the store's place, durably: a crash leaves either the old one there or this one.
    ///
    /// # Errors
    /// It is not known then which one a start would find.
    fn promote(&self) -> io::Result<()>;

    /// Removes the file.
    fn discard(&self);
}

impl Disk {
    /// Memory, gone when dropped.
    pub fn in_memory() -> Disk {
        Disk {
            name: "the store in memory".to_string(),
            store: Box::new(InMemoryBackend::new()),
            used_bytes: None,
            witness: None,
            spare: Some(Box::new(Memory)),
            free_bytes: None,
        }
    }
}

/// More memory; what nobody holds any more is gone by itself.
struct Memory;

impl Spare for Memory {
    fn create(&self) -> io::Result<Box<dyn StorageBackend>> {
        Ok(Box::new(InMemoryBackend::new()))
    }

    fn promote(&self) -> io::Result<()> {
        Ok(())
    }

    fn discard(&self) {}
}

/// When what is committed is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syncs {
    /// Before it is acknowledged.
    #[default]
    EachCommit,
    /// Whenever the system likes: what the machine's crash leaves may be no store any more. For data that
    /// nobody needs after this process. The process's own crash loses nothing.
    Never,
}

impl Syncs {
    /// `store` with these syncs.
    pub(crate) fn of(self, store: Box<dyn StorageBackend>) -> Box<dyn StorageBackend> {
        match self {
            Syncs::EachCommit => store,
            Syncs::Never => Box::new(Unsynced(store)),
        }
    }
}

/// A file whose syncs do nothing.
#[derive(Debug)]
struct Unsynced(Box<dyn StorageBackend>);

impl StorageBackend for Unsynced {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.query_lock_range(start, end)
    }
}

/// A second file in the store's directory.
pub(crate) struct SpareFile {
    pub(crate) syncs: Syncs,
    pub(crate) dir: PathBuf,
    pub(crate) spare: PathBuf,
    pub(crate) store: PathBuf,
}

impl Spare for SpareFile {
    fn create(&self) -> io::Result<Box<dyn StorageBackend>> {
        remove_if_there(&self.spare)?;
        let file = private().create_new(true).open(&self.spare)?;
        let backend = FileBackend::new(file).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(self.syncs.of(Box::new(backend)))
    }

    fn promote(&self) -> io::Result<()> {
        fs::rename(&self.spare, &self.store)?;
        File::open(&self.dir)?.sync_all()
    }

    fn discard(&self) {
        // What cannot be removed now is removed before the next copy, or at the next start.
        let _ = remove_if_there(&self.spare);
    }
}

/// Removes a file, unless it is not there.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The file at `path`, made if it is not there.
pub(crate) fn file(path: &Path) -> Result<Box<dyn StorageBackend>, OpenError> {
    let io_error = |cause| OpenError::Io { path: PathBuf::from(path), cause };
    let file = private().create(true).open(path).map_err(io_error)?;
    let backend = FileBackend::new(file);
    let backend =
        backend.map_err(|error| crate::error::database_error(&path.display().to_string(), error))?;
    Ok(Box::new(backend))
}

/// Opens files for this user alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Bytes of the file at `path` that are not holes.
#[cfg(unix)]
pub(crate) fn used_bytes(path: &Path) -> Option<u64> {
    let found = fs::metadata(path).ok()?;
    Some(std::os::unix::fs::MetadataExt::blocks(&found) * 512)
}

#[cfg(not(unix))]
pub(crate) fn used_bytes(_: &Path) -> Option<u64> {
    None
}

#[cfg(unix)]
pub(crate) fn free_bytes(dir: &Path) -> Option<FreeBytes> {
    let dir = dir.to_path_buf();
    Some(Box::new(move || {
        let found = rustix::fs::statvfs(&dir)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }))
}

#[cfg(not(unix))]
pub(crate) fn free_bytes(_: &Path) -> Option<FreeBytes> {
    None
}
