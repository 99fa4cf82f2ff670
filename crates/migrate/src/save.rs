//! `forebay snapshot save`: from a store that nobody has open, or from the server that has.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use forebay_embedded::OpenError;
use forebay_embedded::snapshot::{Decoder, Encoder, Head, Next, SnapshotError, State, Summary};

use crate::error::{Error, failed};
use crate::file::store_of;
use crate::live;
use crate::progress::Progress;
use forebay_pki::private_files;

/// Saves the store of `data_dir` to `file`.
///
/// # Errors
/// What is wrong with either.
pub fn save(data_dir: &Path, file: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let (head, summary) = match State::open(&store_of(data_dir)) {
        Ok(state) => save_state(state, file)?,
        Err(OpenError::Locked { dir, pid }) => {
            let stream = live::connect(data_dir).map_err(|cause| {
                let locked = failed(OpenError::Locked { dir: dir.clone(), pid });
                Error::Failed(format!(
                    "{locked}, and that gives no snapshots ({cause}): stop it first, then save again"
                ))
            })?;
            save_stream(stream, file)?
        }
        Err(error) => return Err(failed(error)),
    };
    writeln!(
        out,
        "Snapshot saved at {}: revision {}, {} keys, digest {}",
        file.display(),
        head.revision,
        summary.keys,
        summary.digest
    )?;
    Ok(())
}

fn save_state(mut state: State, file: &Path) -> Result<(Head, Summary), Error> {
    let head = state.head();
    let (mut part, mut progress) = (Part::create(file)?, Progress::new("saved", Some(state.keys())));
    let (mut encoder, begin) = Encoder::begin(head);
    part.put(&begin)?;
    loop {
        let page = state.page().map_err(failed)?;
        if page.is_empty() {
            break;
        }
        part.put(&encoder.block(&page))?;
        progress.at(encoder.keys());
    }
    let (end, summary) = encoder.finish();
    part.put(&end)?;
    part.keep()?;
    Ok((head, summary))
}

/// What a server sends is checked on its way.
fn save_stream(stream: impl Read, file: &Path) -> Result<(Head, Summary), Error> {
    let mut part = Part::create(file)?;
    let copy = Copy { input: BufReader::with_capacity(64 << 10, stream), part: &mut part };
    let mut decoder = Decoder::begin(copy, live::NAME).map_err(broken_off)?;
    let (head, mut progress) = (decoder.head(), Progress::new("saved", None));
    let summary = loop {
        match decoder.read().map_err(broken_off)? {
            Next::Entries(_) => progress.at(decoder.keys()),
            Next::End(summary) => break summary,
        }
    };
    drop(decoder);
    part.keep()?;
    Ok((head, summary))
}

fn broken_off(error: SnapshotError) -> Error {
    match error {
        SnapshotError::Truncated { .. } => Error::Failed(
            "the server broke the snapshot off; its log says why, and nothing was saved".to_owned(),
        ),
        error => failed(error),
    }
}

/// The file in the making: beside its place until it is whole, for its owner alone, since Secrets are in it.
struct Part {
    path: PathBuf,
    part: PathBuf,
    out: Option<BufWriter<File>>,
}

impl Part {
    fn create(path: &Path) -> Result<Part, Error> {
        let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
        name.push(".part");
        let part = path.with_file_name(name);
        // What a process that was killed left may be open to others.
        let out = private_files::remove_if_there(&part)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part))
            .map_err(Error::file("write", &part))?;
        Ok(Part { path: path.to_owned(), part, out: Some(BufWriter::with_capacity(256 << 10, out)) })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.write_all(bytes).map_err(Error::file("write", &self.part))
    }

    /// It is whole: puts it in its place, durably.
    fn keep(mut self) -> Result<(), Error> {
        let Some(out) = self.out.take() else { return Ok(()) };
        let synced =
            out.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        let kept = synced.and_then(|()| fs::rename(&self.part, &self.path));
        if kept.is_err() {
            let _ = fs::remove_file(&self.part);
        }
        kept.map_err(Error::file("write", &self.path))?;
        let above = self.path.parent().filter(|above| !above.as_os_str().is_empty());
        Ok(private_files::sync_dir(above.unwrap_or(Path::new(".")))?)
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(0), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.out.take().is_some() {
            // What cannot be removed now is replaced by the next.
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// Reads, and writes what it read.
struct Copy<'a, R> {
    input: R,
    part: &'a mut Part,
}

impl<R: Read> Read for Copy<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.part.write_all(&bytes[..read])?;
        Ok(read)
    }
}
