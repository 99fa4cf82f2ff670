//! Why a store cannot be opened. What goes wrong later is said in the contract's errors.

use std::io;
use std::path::{Path, PathBuf};

/// Why a store cannot be opened. The text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the store open.
    #[error("{} is in use by {}", dir.display(), holder(*.pid))]
    Locked { dir: PathBuf, pid: Option<u32> },
    /// A newer version wrote the store.
    #[error(
        "{file} has format {found}, this version reads up to {supported}; start the version that wrote it"
    )]
    Newer { file: String, found: u32, supported: u32 },
    /// What was stored is not what is there now.
    #[error(
        "{file} is damaged: {cause}; nothing was changed or dropped; restore the directory from a backup, or move \
         it away to start empty"
    )]
    Corrupt { file: String, cause: String },
    /// The newest commits that were acknowledged are not in the file.
    #[error(
        "{file} ends at revision {found}, but revision {acknowledged} was acknowledged: the newest pages are \
         damaged, the file is an older copy, or the disk lost what it had synced; restore the directory from a \
         backup, or remove {witness} to go on without those commits"
    )]
    Lost { file: String, witness: String, found: u64, acknowledged: u64 },
    /// A restore or a migration into it was killed.
    #[error(
        "a store was being put together in {} and was not finished: do that again, or remove the directory to start empty",
        beside.display()
    )]
    Unfinished { beside: PathBuf },
    /// There is no store to read, and none was to be made.
    #[error("{} has no store", dir.display())]
    Absent { dir: PathBuf },
    /// There is something else in the directory's place.
    #[error("{} is not a directory", dir.display())]
    NotADirectory { dir: PathBuf },
    /// The operating system refused.
    #[error("{}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    /// The storage engine refused.
    #[error("{file} cannot be opened: {cause}")]
    Failed { file: String, cause: String },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_string(), |pid| format!("process {pid}"))
}

/// Why stored bytes could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error(transparent)]
    Row(#[from] crate::row::RowError),
    #[error("{0}")]
    Redb(Box<redb::Error>),
    #[error("revision {revision} is in the index but not in the file")]
    Missing { revision: u64 },
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    Disk(String),
}

impl<E: Into<redb::Error>> From<E> for StoreError
where
    redb::Error: From<E>,
{
    fn from(error: E) -> StoreError {
        StoreError::Redb(Box::new(error.into()))
    }
}

pub(crate) fn io_error(path: &Path, cause: io::Error) -> OpenError {
    OpenError::Io { path: PathBuf::from(path), cause }
}

pub(crate) fn database_error(file: &str, error: redb::DatabaseError) -> OpenError {
    store_error(file, error.into())
}

pub(crate) fn store_error(file: &str, error: StoreError) -> OpenError {
    let file = file.to_string();
    let StoreError::Redb(error) = error else {
        return OpenError::Corrupt { file, cause: error.to_string() };
    };
    match *error {
        redb::Error::DatabaseAlreadyOpen => OpenError::Locked { dir: PathBuf::from(file), pid: None },
        redb::Error::Io(cause) if !is_damage(&cause) => OpenError::Io { path: PathBuf::from(file), cause },
        redb::Error::Io(cause) => OpenError::Corrupt { file, cause: cause.to_string() },
        error @ (redb::Error::Corrupted(_)
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TableIsNotMultimap(_)
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::TableDoesNotExist(_)
        | redb::Error::UpgradeRequired(_)) => OpenError::Corrupt { file, cause: error.to_string() },
        error => OpenError::Failed { file, cause: error.to_string() },
    }
}

/// What a read of the wrong bytes, or past the end, is reported as.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput
    )
}
