//! Opening: the directory and its lock, the file and its checks, and the index built from every row.
//!
//! In: a directory or a disk. Out: a writer ready to run, or a clear reason why not. What a crash left
//! unfinished is undone; anything else that is not as it was written is refused. Never: drops what was
//! acknowledged.

use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_rt::Random;
use redb::StorageBackend;

use crate::compaction::Compaction;
use crate::defrag::Defrag;
use crate::disk::{Disk, SpareFile, Syncs, file, free_bytes, private, remove_if_there, used_bytes};
use crate::error::{OpenError, StoreError, database_error, io_error, store_error};
use crate::expiry::Expiry;
use crate::feeds::Feeds;
use crate::guard::Guard;
use crate::index::{Index, Version};
use crate::limits::{LARGE_BYTES, RESTORE_GAP};
use crate::options::Options;
use crate::row;
use crate::shared::Shared;
use crate::store::{FORMAT, Meta, Progress, Rows, Store, Work};
use crate::witness::Witness;
use crate::writer::Writer;

pub(crate) const STORE_FILE: &str = "store.redb";
const NEW_FILE: &str = "store.redb.new";
/// What the name of a directory in which a store is put together ends with.
const BESIDE: &str = ".unfinished";
pub(crate) const WITNESS_FILE: &str = "store.witness";
pub(crate) const LOCK_FILE: &str = "store.lock";

/// An engine that is open and not yet running.
pub(crate) struct Opened {
    pub(crate) writer: Writer,
    pub(crate) lock: Option<File>,
    /// What errors call it.
    pub(crate) file: String,
}

/// Opens the store in `dir`, made if it is not there.
pub(crate) fn open_dir(dir: &Path, options: &Options) -> Result<Opened, OpenError> {
    refuse_what_is_unfinished(dir)?;
    make_dir(dir)?;
    let lock = lock(dir)?;
    let (path, new) = (dir.join(STORE_FILE), dir.join(NEW_FILE));
    // A copy that a crash left unfinished.
    remove_if_there(&new).map_err(|cause| io_error(&new, cause))?;
    if !path.try_exists().map_err(|cause| io_error(&path, cause))? {
        create(dir, &path, &new)?;
    }
    let syncs = options.syncs;
    // The witness says what was durable before it was acknowledged: of nothing, without syncs.
    let witness = (syncs == Syncs::EachCommit).then(|| file(&dir.join(WITNESS_FILE))).transpose()?;
    let disk = Disk {
        name: path.display().to_string(),
        store: syncs.of(file(&path)?),
        used_bytes: used_bytes(&path),
        witness,
        spare: Some(Box::new(SpareFile { syncs, dir: dir.to_path_buf(), spare: new, store: path.clone() })),
        free_bytes: free_bytes(dir),
    };
    let len = disk.store.len().map_err(|cause| io_error(&path, cause))?;
    if len == 0 {
        // Made whole and then moved into place, so it never was empty.
        return Err(OpenError::Corrupt { file: disk.name, cause: "the file is empty".to_string() });
    }
    if len >= LARGE_BYTES {
        tracing::info!(
            file = disk.name,
            bytes = len,
            "the store is read through, three times, before it is opened"
        );
    }
    let mut opened = open_disk(disk, options)?;
    opened.lock = Some(lock);
    Ok(opened)
}

/// Opens the store on `disk`, new if that is empty.
pub(crate) fn open_disk(disk: Disk, options: &Options) -> Result<Opened, OpenError> {
    let Disk { name, store, used_bytes, witness, spare, free_bytes } = disk;
    let guard = Guard::new(store, used_bytes).map_err(|cause| io_error(Path::new(&name), cause))?;
    let file = name.as_str();
    refuse_what_is_no_store(&guard, file)?;
    let store = open_store(guard.clone(), file)?;
    let failed = |error| store_error(file, error);
    let mut meta = match store.meta().map_err(failed)? {
        Some(meta) => meta,
        None => initialize(&store).map_err(failed)?,
    };
    if meta.format > FORMAT {
        return Err(OpenError::Newer { file: name, found: meta.format, supported: FORMAT });
    }
    let witness = witness.map(|disk| Witness::new(disk, meta.store_id));
    let rows = store.rows().map_err(failed)?;
    let mut scan = scan(&rows, meta.progress).map_err(failed)?;
    check_witness(witness.as_ref(), file, scan.revision)?;
    let unwritten = |cause| io_error(Path::new(file), cause);
    if let Some(witness) = &witness
        && witness.is_absent().map_err(unwritten)?
    {
        if scan.revision > Revision::FIRST.get() {
            meta.progress = go_past_what_was(&store, meta.progress, scan.revision).map_err(failed)?;
            scan.revision = meta.progress.revision;
        }
        witness.write(scan.revision).and_then(|()| witness.sync()).map_err(unwritten)?;
    }
    if let Some(cause) = guard.failure() {
        return Err(OpenError::Failed { file: name, cause });
    }
    let now_ms = options.clock.unix_ms();
    let marks = store.marks().map_err(failed)?;
    let progress = Progress { revision: scan.revision, ..meta.progress };
    let compaction = Compaction::new((options.history_ms, options.mark_every_ms), marks, progress, now_ms);
    let shared = Shared::new(&guard, scan.index, rows, (scan.revision, progress.compacted), scan.bytes);
    let writer = Writer {
        shared: Arc::new(shared),
        store,
        guard,
        defrag: Defrag::new(spare, meta.store_id, options.slack_bytes),
        witness,
        free_bytes,
        clock: options.clock.clone(),
        revision: scan.revision,
        expiry: scan.expiry,
        compaction,
        feeds: Feeds::new(),
        steady_ms: now_ms,
    };
    Ok(Opened { writer, lock: None, file: name })
}

/// Whether there is a store in `dir`.
pub(crate) fn is_there(dir: &Path) -> Result<bool, OpenError> {
    let path = dir.join(STORE_FILE);
    match path.try_exists() {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(OpenError::NotADirectory { dir: dir.to_path_buf() })
        }
        found => found.map_err(|cause| io_error(&path, cause)),
    }
}

/// Whether there is anything in `dir` that a store would be made of; a lock alone is nothing.
pub(crate) fn has_anything(dir: &Path) -> Result<bool, OpenError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(OpenError::NotADirectory { dir: dir.to_path_buf() });
        }
        Err(cause) => return Err(io_error(dir, cause)),
    };
    for entry in entries {
        if entry.map_err(|cause| io_error(dir, cause))?.file_name() != LOCK_FILE {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where a store that is to be in `dir` is put together.
pub(crate) fn beside(dir: &Path) -> PathBuf {
    let mut name = dir.file_name().unwrap_or_default().to_os_string();
    name.push(BESIDE);
    dir.with_file_name(name)
}

/// An empty store where another one was about to be would pass for it.
fn refuse_what_is_unfinished(dir: &Path) -> Result<(), OpenError> {
    let beside = beside(dir);
    let is_unfinished = !is_there(dir)? && beside.try_exists().map_err(|cause| io_error(&beside, cause))?;
    if is_unfinished { Err(OpenError::Unfinished { beside }) } else { Ok(()) }
}

pub(crate) fn make_dir(dir: &Path) -> Result<(), OpenError> {
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(OpenError::NotADirectory { dir: dir.to_path_buf() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(dir).map_err(|cause| io_error(dir, cause))
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(OpenError::NotADirectory { dir: dir.to_path_buf() })
        }
        Err(cause) => Err(io_error(dir, cause)),
    }
}

/// Takes the directory for this process, for as long as the file is open, and writes the process id into it.
pub(crate) fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join(LOCK_FILE);
    let failed = |cause| io_error(&path, cause);
    let mut file = private().create(true).open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            let mut text = String::new();
            // Only for the message; a file that is being written shows no id.
            let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(OpenError::Locked { dir: dir.to_path_buf(), pid });
        }
        Err(fs::TryLockError::Error(cause)) => return Err(failed(cause)),
    }
    file.set_len(0).map_err(failed)?;
    file.rewind().map_err(failed)?;
    writeln!(file, "{}", std::process::id()).map_err(failed)?;
    Ok(file)
}

/// Makes the file whole under another name, then moves it into place: a crash leaves all of it or nothing.
fn create(dir: &Path, path: &Path, new: &Path) -> Result<(), OpenError> {
    let witness = dir.join(WITNESS_FILE);
    if let Some((_, acknowledged)) =
        Witness::peek(&*file(&witness)?).map_err(|cause| io_error(&witness, cause))?
    {
        let (file, witness) = (path.display().to_string(), witness.display().to_string());
        return Err(OpenError::Lost { file, witness, found: 0, acknowledged });
    }
    let name = new.display().to_string();
    let guard = Guard::new(file(new)?, None).map_err(|cause| io_error(new, cause))?;
    let store = open_store(guard.clone(), &name)?;
    initialize(&store).map_err(|error| store_error(&name, error))?;
    drop(store);
    if let Some(cause) = guard.failure() {
        return Err(OpenError::Failed { file: name, cause });
    }
    fs::rename(new, path).map_err(|cause| io_error(path, cause))?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|cause| io_error(dir, cause))
}

/// redb makes a new database of a file whose first bytes are zero; here that is damage, unless all of it is.
fn refuse_what_is_no_store(guard: &Guard, file: &str) -> Result<(), OpenError> {
    let mut first = [0; 4];
    let read = |guard: &Guard, first: &mut [u8]| {
        if guard.len()? < first.len() as u64 { Ok(()) } else { guard.read(0, first) }
    };
    read(guard, &mut first).map_err(|cause| io_error(Path::new(file), cause))?;
    if guard.bytes() > 0 && first != *b"redb" {
        return Err(OpenError::Corrupt {
            file: file.to_string(),
            cause: "it does not begin as a store does".to_string(),
        });
    }
    Ok(())
}

/// redb means to report damage, but where it panics instead, that is a report as well.
pub(crate) fn open_store(guard: Guard, file: &str) -> Result<Store, OpenError> {
    match catch_unwind(AssertUnwindSafe(|| Store::open(guard))) {
        Ok(opened) => opened.map_err(|error| database_error(file, error)),
        Err(_) => {
            let cause = "its pages contradict each other".to_string();
            Err(OpenError::Corrupt { file: file.to_string(), cause })
        }
    }
}

pub(crate) fn initialize(store: &Store) -> Result<Meta, StoreError> {
    let random = Random::system();
    let mut store_id = [0; 16];
    store_id[..8].copy_from_slice(&random.next_u64().to_le_bytes());
    store_id[8..].copy_from_slice(&random.next_u64().to_le_bytes());
    let meta = Meta { format: FORMAT, store_id, progress: Progress { revision: 1, compacted: 1, swept: 1 } };
    store.initialize(&meta)?;
    Ok(meta)
}

/// A store whose witness was taken away is one that was put back: nobody knows how far it had been. Revisions
/// go on far above that, and history begins there, so that whoever comes with one of before, from a future
/// that never was, is told to read the state again.
fn go_past_what_was(store: &Store, was: Progress, revision: u64) -> Result<Progress, StoreError> {
    let past = revision + RESTORE_GAP;
    tracing::warn!(
        revision,
        past,
        "the store has no witness: it is taken for a backup, and clients list again"
    );
    let progress = Progress { revision: past, compacted: past, ..was };
    store.commit(&Work { progress: Some(progress), ..Work::default() })?;
    Ok(progress)
}

fn check_witness(witness: Option<&Witness>, file: &str, found: u64) -> Result<(), OpenError> {
    let Some(witness) = witness else { return Ok(()) };
    let name = format!("{}.witness", file.trim_end_matches(".redb"));
    let acknowledged = witness.read().map_err(|cause| io_error(Path::new(&name), cause))?;
    match acknowledged {
        Some(acknowledged) if acknowledged > found => {
            Err(OpenError::Lost { file: file.to_string(), witness: name, found, acknowledged })
        }
        _ => Ok(()),
    }
}

/// What a pass over all rows gives.
struct Scan {
    index: Index,
    expiry: Expiry,
    revision: u64,
    bytes: u64,
}

/// Reads every row once. Values are checked, not decompressed.
fn scan(rows: &Rows, progress: Progress) -> Result<Scan, StoreError> {
    let mut scan =
        Scan { index: Index::default(), expiry: Expiry::new(), revision: progress.revision, bytes: 0 };
    for entry in rows.range_owned::<u64>(..)? {
        let (revision, row) = entry?;
        let revision = revision.value();
        scan.bytes += row.value().len() as u64;
        scan.revision = scan.revision.max(revision);
        for change in row::decode(revision, row.value())? {
            let key = Key::new(change.key);
            if let Some(at_ms) = change.put.and_then(|put| put.expires_ms) {
                scan.expiry.add(at_ms, revision, key.clone());
            }
            scan.index.learn(key, Version::new(revision, change.put.is_some()));
        }
    }
    scan.expiry.sift(&scan.index);
    Ok(scan)
}
