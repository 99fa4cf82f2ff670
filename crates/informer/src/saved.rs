//! A collection's state on disk, so that a program that starts again goes on from there without a list.
//!
//! In: a snapshot, or a file. Out: the other one. The file is gzip of lines of JSON: what it is of, each object as it came, and how
//! many they were; it takes the place of the one before as a whole. One that is of something else, was cut, or does not add up counts
//! as none. Never: blocks the runtime, holds more than a batch.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_apimachinery::{Key, Revision};
use forebay_client::wire::{ObjectText, Projection, TypeMeta};
use forebay_watchcache::{Reach, Snapshot};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, mpsc};
use twox_hash::XxHash3_64;

use crate::change::{Of, change};
use crate::limits;
use forebay_backend::Change;

/// The first line.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Head {
    format: u32,
    collection: String,
    revision: u64,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
struct Tail {
    objects: u64,
}

const FORMAT: u32 = 1;

/// What a file has, in order.
#[derive(Debug)]
pub(crate) enum Loaded {
    Changes(Vec<Change>),
    /// That was all of it, and it is whole.
    End(Revision),
}

/// Where a factory keeps states.
#[derive(Debug)]
pub(crate) struct States {
    dir: PathBuf,
    turn: Arc<Mutex<()>>,
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
    turn: Arc<Mutex<()>>,
}

impl States {
    pub(crate) fn new(dir: PathBuf) -> States {
        States { dir, turn: Arc::default() }
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
        let path = self.dir.join(format!("{}-{digest:016x}.json.gz", legible.trim_matches('-')));
        Place { path, collection, saved: AtomicU64::new(0), turn: self.turn.clone() }
    }
}

impl Place {
    /// Reads the file on a thread that blocks. The end of what comes without [`Loaded::End`] means that there is no state to go on
    /// from.
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
        let text = flate2::read::GzDecoder::new(BufReader::new(File::open(&self.path)?));
        let mut lines = BufReader::new(text);
        let mut line = Vec::new();
        next_line(&mut lines, &mut line)?;
        let head: Head = serde_json::from_slice(&line)?;
        let revision = Revision::new(head.revision).filter(|_| head.format == FORMAT);
        let Some(revision) = revision.filter(|_| head.collection == self.collection) else {
            return Err(garbled("it is of something else"));
        };
        let (mut batch, mut bytes, mut objects) = (Vec::new(), 0, 0);
        let everything = Projection::default();
        let gone = |_| garbled("nobody takes it");
        loop {
            next_line(&mut lines, &mut line)?;
            if let Some(tail) = line.strip_prefix(b"=") {
                let tail: Tail = serde_json::from_slice(tail)?;
                let is_all = tail.objects == objects && lines.fill_buf()?.is_empty();
                if !is_all {
                    return Err(garbled("it does not add up"));
                }
                give.blocking_send(Loaded::Changes(batch)).map_err(gone)?;
                return give.blocking_send(Loaded::End(revision)).map_err(gone);
            }
            let object = ObjectText::read(&line).map_err(io::Error::other)?;
            let at =
                object.revision().and_then(Revision::new).ok_or_else(|| garbled("no resourceVersion"))?;
            let saved =
                change(object, at, &TypeMeta::default(), &everything, Of::Whole).map_err(io::Error::other)?;
            batch.push(saved);
            (bytes, objects) = (bytes + line.len(), objects + 1);
            if bytes >= limits::TOLD_BYTES_MAX {
                give.blocking_send(Loaded::Changes(std::mem::take(&mut batch))).map_err(gone)?;
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
        let file = BufWriter::new(options.open(&new)?);
        let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        let head =
            Head { format: FORMAT, collection: self.collection.clone(), revision: snapshot.revision().get() };
        serde_json::to_writer(&mut out, &head)?;
        out.write_all(b"\n")?;
        let (all, mut line, mut objects) = (Reach::Below(Key::from("/")), Vec::new(), 0);
        for object in snapshot.range(&all, None) {
            line.clear();
            line.extend_from_slice(&object.try_body().map_err(io::Error::other)?);
            line.push(b'\n');
            out.write_all(&line)?;
            objects += 1;
        }
        out.write_all(b"=")?;
        serde_json::to_writer(&mut out, &Tail { objects })?;
        out.write_all(b"\n")?;
        let file = out.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&new, &self.path)?;
        File::open(dir)?.sync_all()
    }
}

/// The next line without its end.
fn next_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<()> {
    line.clear();
    let max = forebay_client::limits::OBJECT_BYTES_MAX as u64 + 1;
    io::Read::take(&mut *lines, max).read_until(b'\n', line)?;
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
    let _turn = place.turn.clone().lock_owned().await;
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
