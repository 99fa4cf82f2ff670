//! Why a store cannot be opened. What goes wrong later is said in the contract's errors.

use std::path::PathBuf;

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
    /// It was to be read, not made.
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
