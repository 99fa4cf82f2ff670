//! The tables on disk, and the one kind of write transaction that changes them.
//!
//! In: a disk, the work of one batch. Out: what was stored, for the index to be built from; durable commits;
//! tables to read rows from. Never: decides what to write. `docs/formats/embedded.md` describes the tables.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, TableDefinition, WriteTransaction};

use crate::error::StoreError;
use crate::guard::Guard;
use crate::limits::PAGE_CACHE_BYTES;
use crate::row::{self, NewChange};

/// Format of the tables, and of everything in them that has no version of its own.
pub(crate) const FORMAT: u32 = 1;

const ROWS: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");
const MARKS: TableDefinition<u64, u64> = TableDefinition::new("marks");
const META: TableDefinition<&str, &[u8]> = TableDefinition::new("meta");

/// The rows as of one commit. Dropped soon: while it lives, pages that later commits free are not used again,
/// and a file that was replaced stays open.
pub(crate) struct Rows {
    table: ReadOnlyTable<u64, &'static [u8]>,
    // One of those that `Store::is_read` counts.
    _reader: Arc<()>,
}

impl Deref for Rows {
    type Target = ReadOnlyTable<u64, &'static [u8]>;

    fn deref(&self) -> &Self::Target {
        &self.table
    }
}

/// What is stored about the store itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) format: u32,
    pub(crate) store_id: [u8; 16],
    pub(crate) progress: Progress,
}

/// How far the store has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The highest revision ever used when this was written; rows above it may follow.
    pub(crate) revision: u64,
    /// History up to here is given up.
    pub(crate) compacted: u64,
    /// What `compacted` gave up has been deleted up to here.
    pub(crate) swept: u64,
}

/// What one write transaction does.
#[derive(Debug, Default)]
pub(crate) struct Work<'a> {
    /// (revision, row), ascending, above every earlier one.
    pub(crate) rows: &'a [(u64, Vec<u8>)],
    /// (revision, key): changes to delete from their rows.
    pub(crate) dead: &'a [(u64, forebay_apimachinery::Key)],
    pub(crate) progress: Option<Progress>,
    /// (revision, unix ms) to add.
    pub(crate) marks: &'a [(u64, u64)],
    /// Marks below this revision are deleted.
    pub(crate) marks_below: Option<u64>,
    pub(crate) sync: Sync,
}

/// When a transaction becomes durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sync {
    /// When it is committed.
    #[default]
    Now,
    /// Durable with the next commit that is synced.
    Later,
}

/// The database file. Owner: the writer thread, after opening.
pub(crate) struct Store {
    db: Database,
    // A clone for each `Rows`: a closed database cannot be read.
    readers: Arc<()>,
}

impl Store {
    /// Opens the database on `guard`, made if the disk is empty, with the checksums of every page verified.
    pub(crate) fn open(guard: Guard) -> Result<Store, redb::DatabaseError> {
        let mut builder = Database::builder();
        builder.set_cache_size(PAGE_CACHE_BYTES);
        // A plain open trusts a file that was closed cleanly, and may panic on damage. The check reads what
        // the index is built from anyway.
        builder.set_check_integrity_on_open(true);
        let db = builder.create_with_backend(guard)?;
        Ok(Store { db, readers: Arc::new(()) })
    }

    /// What the store says about itself; `None` when nothing was ever committed.
    pub(crate) fn meta(&self) -> Result<Option<Meta>, StoreError> {
        let txn = self.db.begin_read()?;
        let table = match txn.open_table(META) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let format = u32::from_le_bytes(field(&table, "format")?);
        if format > FORMAT {
            let progress = Progress { revision: 0, compacted: 0, swept: 0 };
            return Ok(Some(Meta { format, store_id: [0; 16], progress }));
        }
        let number = |name| field(&table, name).map(u64::from_le_bytes);
        let progress = Progress {
            revision: number("revision")?,
            compacted: number("compacted")?,
            swept: number("swept")?,
        };
        Ok(Some(Meta { format, store_id: field(&table, "store-id")?, progress }))
    }

    /// Writes what a new store begins with.
    pub(crate) fn initialize(&self, meta: &Meta) -> Result<(), StoreError> {
        let txn = self.db.begin_write()?;
        {
            let mut table = txn.open_table(META)?;
            table.insert("format", &meta.format.to_le_bytes()[..])?;
            table.insert("store-id", &meta.store_id[..])?;
        }
        write_progress(&txn, meta.progress)?;
        txn.open_table(ROWS)?;
        txn.open_table(MARKS)?;
        txn.commit()?;
        Ok(())
    }

    /// The rows as of the last commit.
    pub(crate) fn rows(&self) -> Result<Rows, StoreError> {
        let table = self.db.begin_read()?.open_table(ROWS)?;
        Ok(Rows { table, _reader: self.readers.clone() })
    }

    /// Whether there are rows that nobody has dropped.
    pub(crate) fn is_read(&self) -> bool {
        Arc::strong_count(&self.readers) > 1
    }

    /// (revision, unix ms), ascending.
    pub(crate) fn marks(&self) -> Result<VecDeque<(u64, u64)>, StoreError> {
        let table = self.db.begin_read()?.open_table(MARKS)?;
        let mut marks = VecDeque::new();
        for entry in table.range_owned::<u64>(..)? {
            let (revision, at_ms) = entry?;
            marks.push_back((revision.value(), at_ms.value()));
        }
        Ok(marks)
    }

    /// Does `work` in one transaction, durable when this returns unless it says otherwise. Returns the bytes
    /// of rows added and deleted.
    ///
    /// One-phase commit: one sync. redb finds at the next start, by checksums, whether a crash tore the
    /// newest commit, and goes back to the one before it. Two phases would sync twice and save that check,
    /// which is made anyway; that an attacker who can crash the machine at will and knows the file could
    /// forge a checksum is not a threat here.
    pub(crate) fn commit(&self, work: &Work<'_>) -> Result<(u64, u64), StoreError> {
        let mut txn = self.db.begin_write()?;
        if work.sync == Sync::Later {
            txn.set_durability(Durability::None)?;
        }
        let bytes = {
            let mut table = txn.open_table(ROWS)?;
            let deleted = delete(&mut table, work.dead)?;
            let mut added = 0;
            for (revision, row) in work.rows {
                let before = table.insert(revision, row.as_slice())?;
                if before.is_some() {
                    return Err(StoreError::Damaged(format!("revision {revision} has a row already")));
                }
                added += row.len() as u64;
            }
            (added, deleted)
        };
        if let Some(progress) = work.progress {
            write_progress(&txn, progress)?;
        }
        if !work.marks.is_empty() || work.marks_below.is_some() {
            let mut table = txn.open_table(MARKS)?;
            if let Some(below) = work.marks_below {
                table.retain_in(..below, |_, _| false)?;
            }
            for (revision, at_ms) in work.marks {
                table.insert(revision, at_ms)?;
            }
        }
        txn.commit()?;
        Ok(bytes)
    }
}

impl Store {
    /// Adds `changes`, in any order, to rows that may be there already. For a store that nobody reads yet.
    pub(crate) fn load(&self, changes: &[(u64, NewChange)], sync: Sync) -> Result<(), StoreError> {
        let mut txn = self.db.begin_write()?;
        if sync == Sync::Later {
            txn.set_durability(Durability::None)?;
        }
        {
            let (mut table, mut row, mut both) = (txn.open_table(ROWS)?, Vec::new(), Vec::new());
            for (revision, change) in changes {
                row::encode(*revision, std::slice::from_ref(change), &mut row);
                let Some(there) = table.insert(revision, row.as_slice())?.map(|there| there.value().to_vec())
                else {
                    continue;
                };
                let mut all = row::decode(*revision, &there)?;
                all.extend(row::decode(*revision, &row)?);
                row::encode_rest(*revision, &all, &mut both);
                table.insert(revision, both.as_slice())?;
            }
        }
        Ok(txn.commit()?)
    }
}

/// Deletes changes from their rows, and rows that have none left. Returns the bytes that were freed.
fn delete(
    table: &mut redb::Table<'_, u64, &[u8]>,
    dead: &[(u64, forebay_apimachinery::Key)],
) -> Result<u64, StoreError> {
    let (mut freed, mut rest) = (0, Vec::new());
    for of_row in dead.chunk_by(|a, b| a.0 == b.0) {
        let revision = of_row[0].0;
        {
            let Some(row) = table.remove(revision)? else { return Err(StoreError::Missing { revision }) };
            let row = row.value();
            freed += row.len() as u64;
            let mut changes = row::decode(revision, row)?;
            changes.retain(|change| !of_row.iter().any(|(_, key)| key.as_str() == change.key));
            rest.clear();
            if !changes.is_empty() {
                row::encode_rest(revision, &changes, &mut rest);
            }
        }
        if !rest.is_empty() {
            freed -= rest.len() as u64;
            table.insert(revision, rest.as_slice())?;
        }
    }
    Ok(freed)
}

fn write_progress(txn: &WriteTransaction, progress: Progress) -> Result<(), StoreError> {
    let mut table = txn.open_table(META)?;
    table.insert("revision", &progress.revision.to_le_bytes()[..])?;
    table.insert("compacted", &progress.compacted.to_le_bytes()[..])?;
    table.insert("swept", &progress.swept.to_le_bytes()[..])?;
    Ok(())
}

fn field<const N: usize>(
    table: &ReadOnlyTable<&'static str, &'static [u8]>,
    name: &str,
) -> Result<[u8; N], StoreError> {
    let damaged = || StoreError::Damaged(format!("the field {name} is missing or has another length"));
    let value = table.get_owned(name)?.ok_or_else(damaged)?;
    value.value().try_into().map_err(|_| damaged())
}
