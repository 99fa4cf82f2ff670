//! A file without a name, readable by its user alone, that is gone with the process however that ends.
//!
//! It is made when something is put there first. It does not shrink: what is given back is used again, and
//! all of it is given back when the informer lets go of what it holds, or ends.
//!
//! In: texts. Out: [`Region`]s of it. Never: syncs, since nothing of it outlives the process.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Context;

use forebay_object::{Region, Spill};
use futures_util::task::AtomicWaker;

use super::space::Space;
use crate::progress::Progress;

/// How long the files of one informer may be, all together.
#[derive(Debug)]
pub(crate) struct Budget {
    max_bytes: u64,
    used: AtomicU64,
}

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct SpillFile {
    dir: PathBuf,
    budget: Arc<Budget>,
    progress: Arc<Progress>,
    // Regions hold the file through it.
    this: Weak<SpillFile>,
    // Nothing where it cannot be made.
    file: OnceLock<Option<File>>,
    space: Mutex<Space>,
    // The disk did not take something: nothing more is put there.
    is_refused: AtomicBool,
    // Something that was put there did not come back.
    is_damaged: AtomicBool,
    waker: AtomicWaker,
}

#[derive(Debug)]
struct Stretch {
    file: Arc<SpillFile>,
    at: u64,
    len: u32,
}

impl Budget {
    pub(crate) fn new(max_bytes: u64) -> Budget {
        Budget { max_bytes, used: AtomicU64::new(0) }
    }

    fn claim(&self, more: u64) -> bool {
        let within = |used: u64| used.checked_add(more).filter(|used| *used <= self.max_bytes);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }
}

impl SpillFile {
    pub(crate) fn new(dir: &Path, budget: Arc<Budget>, progress: Arc<Progress>) -> Arc<SpillFile> {
        Arc::new_cyclic(|this| SpillFile {
            dir: dir.to_owned(),
            budget,
            progress,
            this: this.clone(),
            file: OnceLock::new(),
            space: Mutex::default(),
            is_refused: AtomicBool::new(false),
            is_damaged: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        })
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Acquire)
    }

    /// Whether something did not come back; who asks last is woken when it does not.
    pub(crate) fn poll_damaged(&self, context: &mut Context<'_>) -> bool {
        self.waker.register(context.waker());
        self.is_damaged()
    }

    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self) -> io::Result<&File> {
        let made = self.file.get_or_init(|| match make(&self.dir) {
            Ok(file) => Some(file),
            Err(error) => {
                tracing::error!(dir = %self.dir.display(), %error, "a file for what is too much cannot be made");
                None
            }
        });
        made.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn write(&self, text: &[u8], at: u64) -> io::Result<()> {
        let written = write_at(self.file()?, text, at);
        if let Err(error) = &written {
            tracing::error!(dir = %self.dir.display(), %error, "what is too much cannot be written");
        }
        written
    }
}

impl Spill for SpillFile {
    fn put(&self, text: &[u8]) -> Option<Box<dyn Region>> {
        let file = self.this.upgrade()?;
        if self.is_refused.load(Ordering::Relaxed) {
            return None;
        }
        let at = self.space().take(text.len(), |more| self.budget.claim(more))?;
        if self.write(text, at).is_err() {
            self.is_refused.store(true, Ordering::Relaxed);
            self.space().give_back(at, text.len());
            return None;
        }
        self.progress.spilled(text.len());
        Some(Box::new(Stretch { file, at, len: text.len() as u32 }))
    }
}

impl Region for Stretch {
    fn read(&self, out: &mut [u8]) -> io::Result<()> {
        read_at(self.file.file()?, out, self.at)
    }

    fn note_damage(&self) {
        if !self.file.is_damaged.swap(true, Ordering::AcqRel) {
            self.file.progress.lost_spilled();
            self.file.waker.wake();
        }
    }
}

impl Drop for Stretch {
    fn drop(&mut self) {
        self.file.space().give_back(self.at, self.len as usize);
        self.file.progress.unspilled(self.len as usize);
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        let end = self.space().end();
        self.budget.used.fetch_sub(end, Ordering::Relaxed);
    }
}

/// An open file that has no name any more.
fn make(dir: &Path) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    fs::create_dir_all(dir)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = dir.join(format!("forebay-spill-{}-{number}", std::process::id()));
    // One of a process that was ended between making it and taking its name away, and had the same number.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(unix)]
use std::os::unix::fs::FileExt;

#[cfg(unix)]
fn write_at(file: &File, text: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(text, at)
}

#[cfg(unix)]
fn read_at(file: &File, out: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(out, at)
}

#[cfg(not(unix))]
fn write_at(_file: &File, _text: &[u8], _at: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn read_at(_file: &File, _out: &mut [u8], _at: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
