//! `forebay snapshot save|restore|status`: the embedded store out of a data directory into one file, and
//! back.
//!
//! In: what was typed. Out: a file that is whole or not there, a store that is whole or not there, a summary
//! on stdout. The file and the store are `embedded`'s (`docs/formats/snapshot.md`); here is where they come
//! from and go to.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use forebay_embedded::limits::RESTORE_GAP;
use forebay_embedded::snapshot::{Head, Summary};
use forebay_migrate::{BUMP_MAX, verified};
use jiff::Timestamp;
use serde_json::json;

use crate::error::Error;
use crate::flags::options::{self, Given, Known, known};
use crate::flags::served;

const DATA_DIR: Known = known("data-dir", "DIR", "Where the server keeps its data [forebay-data]");
const SAVE: &[Known] = &[DATA_DIR];
const RESTORE: &[Known] = &[
    DATA_DIR,
    known("bump-revision", "N", "How far above the snapshot's revisions go on [1073741824]"),
    known("mark-compacted", "", "Nothing before that can be watched from; always so"),
];
const STATUS: &[Known] =
    &[Known { name: "output", short: Some("o"), value: "FORMAT", text: "table or json [table]" }];

/// Runs the command behind `forebay snapshot`.
///
/// # Errors
/// What was typed wrong; what is wrong with the file or the directory.
pub fn run(mut arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Error> {
    let command = arguments.next().map(|command| command.to_string_lossy().into_owned());
    let (known, command): (&'static [Known], Command) = match command.as_deref() {
        Some("save") => (SAVE, save),
        Some("restore") => (RESTORE, restore),
        Some("status") => (STATUS, status),
        Some("-h" | "--help" | "help") => return Ok(out.write_all(help().as_bytes())?),
        Some(given) => {
            let nearest = crate::flags::nearest(given, ["save", "restore", "status"].into_iter());
            let nearest = nearest.map(|nearest| format!("snapshot {nearest}"));
            return Err(Error::Unknown { what: "command", given: format!("snapshot {given}"), nearest });
        }
        None => return Err(Error::Usage("snapshot needs a command: save, restore or status".to_owned())),
    };
    let given = Given::read(arguments, known)?;
    if given.help {
        return Ok(out.write_all(help().as_bytes())?);
    }
    let [file] = given.rest.as_slice() else {
        return Err(match given.rest.get(1) {
            Some(more) => Error::Usage(format!("unexpected argument: {more}")),
            None => Error::Usage("snapshot needs the name of a file".to_owned()),
        });
    };
    command(&given, Path::new(file), out)
}

/// The commands, and what each knows.
pub fn commands() -> impl Iterator<Item = (&'static str, &'static [Known])> {
    [("save", SAVE), ("restore", RESTORE), ("status", STATUS)].into_iter()
}

type Command = fn(&Given, &Path, &mut dyn Write) -> Result<(), Error>;

/// `forebay snapshot --help`
pub fn help() -> String {
    let (save, restore, status) =
        (options::describe(SAVE), options::describe(RESTORE), options::describe(STATUS));
    format!(
        "\
Save the store of a data directory to one file, look at such a file, and make a store of it.

Usage:
  forebay snapshot save FILE [flags]
  forebay snapshot status FILE [flags]
  forebay snapshot restore FILE [flags]

save takes the state at one revision, also while a server runs on the directory:
{save}
status reads the whole file, checks it, and says what is in it:
{status}
restore makes a store where there is none. Every client lists again then, so that none goes on from
what was after the snapshot; with --bump-revision=0 those go on who had seen just what is in it:
{restore}"
    )
}

/// The directory that is asked for.
pub(crate) fn data_dir(given: &Given) -> PathBuf {
    let of_environment = || std::env::var_os(served::DATA_DIR.variable()).map(PathBuf::from);
    given.path("data-dir").or_else(of_environment).unwrap_or_else(|| served::DATA_DIR.default().into())
}

/// Reads the whole file, and checks it.
fn status(given: &Given, file: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let is_json = match given.value("output") {
        None | Some("table") => false,
        Some("json") => true,
        Some(_) => return Err(Error::Usage("--output must be 'table' or 'json'".to_owned())),
    };
    let (head, summary) = verified(file)?;
    let taken = taken(head);
    let Summary { keys, bytes, digest } = summary;
    if is_json {
        let status = json!({
            "revision": head.revision.get(), "keys": keys, "bytes": bytes, "digest": digest.to_string(), "taken": taken,
        });
        return Ok(writeln!(out, "{status}")?);
    }
    let revision = head.revision.to_string();
    writeln!(out, "{:<12} {:<10} {:<12} {:<22} DIGEST", "REVISION", "KEYS", "BYTES", "TAKEN")?;
    Ok(writeln!(out, "{revision:<12} {keys:<10} {bytes:<12} {taken:<22} {digest}")?)
}

fn taken(head: Head) -> String {
    let taken = i64::try_from(head.taken_ms / 1000).ok().and_then(|at| Timestamp::from_second(at).ok());
    taken.map_or_else(|| "unknown".to_owned(), |taken| taken.to_string())
}

/// Makes a store of the file.
fn restore(given: &Given, file: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let bump = given.number("bump-revision", RESTORE_GAP, BUMP_MAX)?;
    if bump > 0 && !given.switch("mark-compacted", true)? {
        return Err(Error::Conflict(
            "--mark-compacted=false is not possible with --bump-revision: clients that had seen more than the \
             snapshot has would go on as if they had missed nothing"
                .to_owned(),
        ));
    }
    Ok(forebay_migrate::restore(&data_dir(given), file, bump, out)?)
}

fn save(given: &Given, file: &Path, out: &mut dyn Write) -> Result<(), Error> {
    Ok(forebay_migrate::save(&data_dir(given), file, out)?)
}
