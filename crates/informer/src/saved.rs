//! A collection's state on disk, so that a program that starts again goes on from there without a list.
//!
//! In: a snapshot, or a file. Out: the other one. The file has each object as it came, in the deflated texts
//! that it is kept in, and how many they were; it takes the place of the one before as a whole. One that is
//! of something else, was cut, or does not add up counts as none. Never: blocks the runtime, holds more than
//! a batch, deflates what is at rest already.

mod records;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_apimachinery::{Key, Revision};
use forebay_backend::Told;
use forebay_client::wire::{ObjectText, Projection, TypeMeta};
use forebay_object::{Came, Packed};
use forebay_watchcache::{Reach, Snapshot};
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, mpsc};
use twox_hash::XxHash3_64;

use self::records::{Next, Record, Records};
use crate::change::{Of, change, key};
use crate::limits;

/// The first line.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Head {
    format: u32,
    collection: String,
    revision: u64,
}

const FORMAT: u32 = 2;

/// What a file has, in order.
#[derive(Debug)]
pub(crate) enum Loaded {
    Told(Vec<Told>),
    /// That was all of it, and it is whole.
    End(Revision),
}

/// Where a factory keeps states.
#[derive(Debug)]
pub(crate) struct States {
    dir: PathBuf,
    turn: Arc<Semaphore>,
}

/// Where a collection's state is kept.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// What the file is to be of: the request for it.
    pub(crate) collection: String,
    // What the file has; 0 where this has saved none.
    saved: AtomicU64,
    // One is written after the other: an informer that goes and its successor have the same file.
    turn: Arc<Semaphore>,
}

impl States {
    pub(crate) fn new(dir: PathBuf) -> States {
        States { dir, turn: Arc::new(Semaphore::new(1)) }
    }

    /// - `collection`: names it, with its selectors.
    pub(crate) fn place(&self, collection: String) -> Place {
        // A name is a legible part of it and a digest of all of it.
        let legible: String = collection
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
            .take(limits::FILE_NAME_MAX)
            .collect();
        let digest = XxHash3_64::oneshot(collection.as_bytes());
        let path = self.dir.join(format!("{}-{digest:016x}.state", legible.trim_matches('-')));
        Place { path, collection, saved: AtomicU64::new(0), turn: self.turn.clone() }
    }
}

impl Place {
    /// Reads the file on a thread that blocks. The end of what comes without [`Loaded::End`] means that there
    /// is no state to go on from.
    pub(crate) fn load(self: &Arc<Place>) -> mpsc::Receiver<Loaded> {
        let (give, take) = mpsc::channel(limits::BATCHES_LOADED_MAX);
        let place = self.clone();
        // It ends by itself: at the end of the file, or when nobody takes any more.
        drop(forebay_rt::blocking(move || match place.read(&give) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(path = %place.path.display(), %error, "the saved state is not used"),
        }));
        take
    }

    fn read(&self, give: &mpsc::Sender<Loaded>) -> io::Result<()> {
        let mut file = BufReader::with_capacity(limits::TOLD_BYTES_MAX, File::open(&self.path)?);
        let mut line = Vec::new();
        next_line(&mut file, &mut line)?;
        let head: Head = serde_json::from_slice(&line)?;
        let revision = Revision::new(head.revision).filter(|_| head.format == FORMAT);
        let Some(revision) = revision.filter(|_| head.collection == self.collection) else {
            return Err(garbled("it is of something else"));
        };
        let (mut batch, mut bytes, mut objects) = (Vec::new(), 0, 0);
        let gone = |_| garbled("nobody takes it");
        loop {
            match records::next(&mut file)? {
                Next::Record(record) => {
                    (bytes, objects) = (bytes + record.plain.len(), objects + record.spans.len() as u64);
                    told(&record, &mut batch)?;
                }
                Next::End(all) => {
                    if all != objects || !file.fill_buf()?.is_empty() {
                        return Err(garbled("it does not add up"));
                    }
                    give.blocking_send(Loaded::Told(batch)).map_err(gone)?;
                    return give.blocking_send(Loaded::End(revision)).map_err(gone);
                }
            }
            if bytes >= limits::TOLD_BYTES_MAX {
                give.blocking_send(Loaded::Told(std::mem::take(&mut batch))).map_err(gone)?;
                bytes = 0;
            }
        }
    }

    /// Writes `snapshot` in place of what is there. Blocks.
    ///
    /// # Errors
    /// The disk's; then what is there stays.
    pub(crate) fn save(&self, snapshot: &Snapshot) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let new = self.path.with_extension("new");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut out = BufWriter::with_capacity(limits::TOLD_BYTES_MAX, options.open(&new)?);
        let head =
            Head { format: FORMAT, collection: self.collection.clone(), revision: snapshot.revision().get() };
        serde_json::to_writer(&mut out, &head)?;
        out.write_all(b"\n")?;
        let all = Reach::Below(Key::from("/"));
        let (mut out, objects) = Records::new(out).write(snapshot.range(&all, None))?;
        out.write_all(&records::end(objects))?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&new, &self.path)?;
        File::open(dir)?.sync_all()
    }
}

/// Tells the objects of a record: as they are kept where that is worth it, else one by one.
fn told(record: &Record, batch: &mut Vec<Told>) -> io::Result<()> {
    let read = |span: &Range<usize>| {
        let object = ObjectText::read(&record.plain[span.clone()]).map_err(io::Error::other)?;
        let at = object.revision().and_then(Revision::new).ok_or_else(|| garbled("no resourceVersion"))?;
        Ok((object, at, span.clone()))
    };
    let objects = record.spans.iter().map(read).collect::<io::Result<Vec<_>>>()?;
    let came = |(object, revision, span): &(ObjectText, Revision, Range<usize>)| {
        let key = key(&object.namespace(), &object.name());
        Some(Came { key, revision: *revision, span: span.clone(), marks: object.marks()? })
    };
    let came = objects.iter().map(came).collect::<Option<Vec<Came>>>();
    if let Some(packed) =
        came.and_then(|came| Packed::new(record.plain.clone(), record.deflated.clone(), came))
    {
        batch.push(Told::Packed(packed));
        return Ok(());
    }
    let everything = Projection::default();
    for (object, at, _) in objects {
        let saved = change(object, at, &TypeMeta::default(), &everything, Of::Whole);
        batch.push(Told::Change(saved.map_err(io::Error::other)?));
    }
    Ok(())
}

/// The next line without its end.
fn next_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    io::Read::take(&mut *lines, limits::TOLD_BYTES_MAX as u64).read_until(b'\n', line)?;
    match line.pop() {
        Some(b'\n') => Ok(()),
        _ => Err(garbled("a line without an end")),
    }
}

fn garbled(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Saves `snapshot` on a thread that blocks, unless that is what was saved last, and says so when that fails.
pub(crate) async fn save(place: Arc<Place>, snapshot: Arc<Snapshot>) {
    // Nobody closes it.
    let _turn = place.turn.acquire().await;
    let revision = snapshot.revision().get();
    if place.saved.load(Ordering::Relaxed) == revision {
        return;
    }
    let writes = place.clone();
    let saved = forebay_rt::blocking(move || writes.save(&snapshot)).await;
    match saved.unwrap_or_else(|lost| Err(io::Error::other(lost))) {
        Ok(()) => place.saved.store(revision, Ordering::Relaxed),
        Err(error) => tracing::error!(path = %place.path.display(), %error, "the state cannot be saved"),
    }
}
