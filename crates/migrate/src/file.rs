//! Snapshot files, read (`docs/formats/snapshot.md`), and where a data directory has its store.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use forebay_embedded::snapshot::{Decoder, Head, Next, Summary};

use crate::error::{Error, failed};
use crate::progress::Progress;

/// Where the store is in a data directory.
pub fn store_of(data_dir: &Path) -> PathBuf {
    data_dir.join("store")
}

/// A reader of the file from its beginning.
pub(crate) fn open(file: &Path) -> Result<Decoder<BufReader<File>>, Error> {
    let input = File::open(file).map_err(Error::file("read", file))?;
    Decoder::begin(BufReader::with_capacity(64 << 10, input), file.display().to_string()).map_err(failed)
}

/// What is in the file, which is read to its end.
///
/// # Errors
/// It cannot be read, or is not whole.
pub fn verified(file: &Path) -> Result<(Head, Summary), Error> {
    let (mut decoder, mut progress) = (open(file)?, Progress::new("read", None));
    loop {
        match decoder.read().map_err(failed)? {
            Next::Entries(_) => progress.at(decoder.keys()),
            Next::End(summary) => return Ok((decoder.head(), summary)),
        }
    }
}
