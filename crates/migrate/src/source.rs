//! What is moved into etcd: a data directory, whether a server has it open or not, or a snapshot.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use forebay_embedded::OpenError;
use forebay_embedded::snapshot::{Decoder, Entry, Head, Next, State};

use crate::error::{Error, failed};
use crate::file::{store_of, verified};
use crate::live;

/// Where it is.
pub enum Location {
    DataDir(PathBuf),
    Snapshot(PathBuf),
}

/// Its entries, in key order.
pub enum Source {
    /// Of a store that nobody has open.
    State(Box<State>),
    /// What a server sends, or a file has.
    Snapshot(Box<Decoder<Box<dyn Read + Send>>>),
}

impl Source {
    /// Opens it. A file is read once before, so that nothing is moved of one that is not whole.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn open(location: &Location) -> Result<Source, Error> {
        match location {
            Location::DataDir(dir) => Source::of_directory(dir),
            Location::Snapshot(file) => {
                verified(file)?;
                let input = std::fs::File::open(file).map_err(Error::file("read", file))?;
                Source::of(Box::new(input), file.display().to_string())
            }
        }
    }

    fn of_directory(dir: &Path) -> Result<Source, Error> {
        match State::open(&store_of(dir)) {
            Ok(state) => Ok(Source::State(Box::new(state))),
            Err(locked @ OpenError::Locked { .. }) => {
                let Ok(stream) = live::connect(dir) else { return Err(failed(locked)) };
                eprintln!(
                    "warning: a server has {} open: what it writes from now on is not moved",
                    dir.display()
                );
                Source::of(Box::new(stream), live::NAME.to_owned())
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn of(input: Box<dyn Read + Send>, name: String) -> Result<Source, Error> {
        let input: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(64 << 10, input));
        let decoder = Decoder::begin(input, name).map_err(failed)?;
        Ok(Source::Snapshot(Box::new(decoder)))
    }

    pub fn head(&self) -> Head {
        match self {
            Source::State(state) => state.head(),
            Source::Snapshot(decoder) => decoder.head(),
        }
    }

    /// How many keys there are, if that is known.
    pub fn keys(&self) -> Option<u64> {
        match self {
            Source::State(state) => Some(state.keys()),
            Source::Snapshot(_) => None,
        }
    }

    /// The next entries; none at the end. Blocks.
    ///
    /// # Errors
    /// It cannot be read on.
    pub fn page(&mut self) -> Result<Vec<Entry>, Error> {
        match self {
            Source::State(state) => state.page().map_err(failed),
            Source::Snapshot(decoder) => match decoder.read().map_err(failed)? {
                Next::Entries(entries) => Ok(entries),
                Next::End(_) => Ok(Vec::new()),
            },
        }
    }
}
