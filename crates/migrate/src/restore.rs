//! A store made of a snapshot file.

use std::io::Write;
use std::path::Path;

use forebay_apimachinery::Revision;
use forebay_embedded::snapshot::{Builder, Next};

use crate::data_dir;
use crate::error::{Error, failed};
use crate::file::{open, store_of, verified};
use crate::progress::Progress;

/// Further than it can have been before, and never as far as revisions go.
pub const BUMP_MAX: u64 = 1 << 62;

/// Makes a store of the file, which is read twice: nothing is written before it is known to be whole.
///
/// - `bump`: how far above the snapshot's revisions go on.
///
/// # Errors
/// The file is not whole, or the directory has a store already.
pub fn restore(data_dir: &Path, file: &Path, bump: u64, out: &mut dyn Write) -> Result<(), Error> {
    let (head, summary) = verified(file)?;
    let revision = head.revision.get().checked_add(bump).filter(|revision| *revision <= BUMP_MAX);
    let revision = revision.and_then(Revision::new).ok_or_else(|| {
        Error::Refused(format!("--bump-revision: {} and {bump} is more than revisions may be", head.revision))
    })?;
    if let Some(warning) = data_dir::prepare(data_dir)? {
        eprintln!("warning: {warning}");
    }
    let mut builder = Builder::begin(&store_of(data_dir)).map_err(failed)?;
    let (mut decoder, mut progress) = (open(file)?, Progress::new("restored", Some(summary.keys)));
    let again = loop {
        match decoder.read().map_err(failed)? {
            Next::Entries(entries) => builder.add(entries).map_err(failed)?,
            Next::End(summary) => break summary,
        }
        progress.at(decoder.keys());
    };
    if again != summary {
        return Err(Error::Failed(format!("{} was changed while it was read", file.display())));
    }
    builder.seal(revision).and_then(|sealed| sealed.promote()).map_err(failed)?;
    if bump == 0 {
        eprintln!(
            "warning: revisions go on at {revision}: a client that has seen more than the snapshot has would meet its \
             numbers again with other meanings"
        );
    }
    writeln!(
        out,
        "Restored {} to {}: {} keys of revision {}, digest {}; goes on at revision {revision}",
        file.display(),
        data_dir.display(),
        summary.keys,
        head.revision,
        summary.digest
    )?;
    Ok(())
}
