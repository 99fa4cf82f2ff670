//! Files and directories that hold secrets: made for their owner alone, replaced whole or not at all, and
//! held to that when they are found.
//!
//! A file is written beside its place, synced, and renamed; [`sync_dir`] makes the rename itself durable.
//! What belongs to somebody else, or others can write, may be somebody else's words: root is nobody else, who
//! can do anything anyhow.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::error::Error;

/// No certificate, key, kubeconfig or token file is larger.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// 0600
    Owner,
    /// 0644
    All,
}

/// Makes the directory and what is missing above it; the directory itself is made 0700.
///
/// # Errors
/// [`Error::File`].
pub fn create_dir(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    let wrong = || Error::file("create directory", path);
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(wrong())?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.map_err(wrong()),
    }
}

/// What is wrong with a directory whose files are believed, and what helps; `None` when nobody else can put
/// something there.
///
/// # Errors
/// [`Error::File`]: it is not there.
pub fn exposure_of_dir(path: &Path) -> Result<Option<String>, Error> {
    let found = fs::metadata(path).map_err(Error::file("read", path))?;
    let (mode, shown) = (found.mode() & 0o7777, path.display());
    Ok(match foreign(found.uid()) {
        Some(foreign) => {
            Some(format!("{foreign}, who could replace what is in it; chown it, or name another directory"))
        }
        None if mode & 0o022 != 0 => Some(format!(
            "can be written by other users of this machine (mode {mode:04o}), who could replace what is in it; chmod go-w \
             {shown} closes it, or name a directory in it, which is made for this user alone"
        )),
        None => None,
    })
}

/// That it belongs to somebody else, if it does.
fn foreign(owner: u32) -> Option<String> {
    let us = rustix::process::geteuid().as_raw();
    (owner != us && owner != 0).then(|| format!("belongs to another user ({owner}; this is {us})"))
}

/// What is wrong with the file of a secret, and what helps; `None` when nobody else can read it.
fn exposure(found: &Metadata) -> Option<String> {
    let mode = found.mode() & 0o7777;
    if let Some(foreign) = foreign(found.uid()) {
        return Some(format!("{foreign}, who can read it; chown it"));
    }
    (mode & 0o077 != 0)
        .then(|| format!("is open to other users of this machine (mode {mode:04o}); chmod 600 closes it"))
}

/// What somebody should know of a file of secrets that was given: it is theirs to decide.
pub fn warn_of_exposure(path: &Path, warnings: &mut Vec<String>) {
    // One that cannot be looked at cannot be read either, which is told by who reads it.
    if let Some(exposure) = fs::metadata(path).ok().as_ref().and_then(exposure) {
        warnings.push(format!("{} {exposure}", path.display()));
    }
}

/// Replaces the file's content in one step.
///
/// # Errors
/// [`Error::File`]; the old content is still there, whole.
pub fn write(path: &Path, content: &[u8], readers: Readers) -> Result<(), Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let written = write_new(&beside, content, readers).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Nothing more can be done about it; the error that counts is the first.
        let _ = fs::remove_file(&beside);
    }
    written.map_err(Error::file("write", path))
}

fn write_new(path: &Path, content: &[u8], readers: Readers) -> io::Result<()> {
    // A file of this name is what a crashed process with our id left behind.
    remove_if_there(path)?;
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::All => 0o644,
    };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Removes the file; that there is none is as good.
///
/// # Errors
/// It is still there.
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Makes the names in the directory durable.
///
/// # Errors
/// [`Error::File`].
pub fn sync_dir(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(Error::file("sync directory", path))
}

/// The file's text, or `None` when there is no such file.
///
/// # Errors
/// [`Error::File`], also when it is not UTF-8 or larger than any such file is.
pub fn read_if_there(path: &Path) -> Result<Option<String>, Error> {
    match read(path) {
        Err(Error::File { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// The text of a file of secrets that was made here, or `None` when there is no such file.
///
/// # Errors
/// As [`read_if_there`]; [`Error::Unfit`] when it is open to others, who may have read it, or belongs to
/// them.
pub fn read_secret_if_there(path: &Path) -> Result<Option<String>, Error> {
    let file = match File::open(path) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(Error::file("read", path))?,
    };
    if let Some(exposure) = exposure(&file.metadata().map_err(Error::file("read", path))?) {
        return Err(Error::unfit(path, exposure));
    }
    text(file).map(Some).map_err(Error::file("read", path))
}

/// The file's text.
///
/// # Errors
/// As [`read_if_there`], and when there is no such file.
pub fn read(path: &Path) -> Result<String, Error> {
    File::open(path).and_then(text).map_err(Error::file("read", path))
}

fn text(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 > FILE_BYTES_MAX {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 16 MiB")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use forebay_scratch::Scratch;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn files_are_replaced_whole_and_made_for_their_owner() {
        let scratch = Scratch::new();
        let dir = scratch.path().join("a/b");
        create_dir(&dir).expect("made");
        create_dir(&dir).expect("there already");
        assert_eq!(mode(&dir), 0o700);
        let (secret, public) = (dir.join("secret"), dir.join("public"));
        write(&secret, b"one", Readers::Owner).expect("written");
        write(&secret, b"two", Readers::Owner).expect("replaced");
        write(&public, b"three", Readers::All).expect("written");
        sync_dir(&dir).expect("synced");
        assert_eq!((mode(&secret), mode(&public) & 0o600), (0o600, 0o600));
        assert_eq!(read(&secret).expect("read"), "two");
        assert_eq!(read_if_there(&dir.join("nothing")).expect("no file is fine"), None);
        let names: Vec<_> =
            fs::read_dir(&dir).expect("listed").map(|entry| entry.expect("entry").file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let scratch = Scratch::new();
        let file = scratch.path().join("file");
        fs::write(&file, "x").expect("written");
        let error = create_dir(&file.join("dir")).expect_err("a file is in the way");
        assert!(
            error.line().starts_with(&format!("create directory {}/dir: ", file.display())),
            "{}",
            error.line()
        );
        let error = create_dir(&file).expect_err("a file is in the way");
        assert!(error.line().starts_with("create directory "), "{}", error.line());
        let error = write(&file.join("x"), b"", Readers::Owner).expect_err("no directory");
        assert!(error.line().starts_with("write "), "{}", error.line());
        let error = read(&file.join("x")).expect_err("no file");
        assert!(error.line().starts_with("read "), "{}", error.line());
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode set");
    }

    #[test]
    fn a_secret_that_others_can_read_is_none() {
        let scratch = Scratch::new();
        let secret = scratch.path().join("secret");
        assert_eq!(read_secret_if_there(&secret).expect("no file is fine"), None);
        write(&secret, b"one", Readers::Owner).expect("written");
        let warned = || {
            let mut warnings = Vec::new();
            warn_of_exposure(&secret, &mut warnings);
            warnings
        };
        for mode in [0o400, 0o600, 0o700] {
            set_mode(&secret, mode);
            assert_eq!(read_secret_if_there(&secret).expect("read").as_deref(), Some("one"), "{mode:o}");
            assert_eq!(warned(), Vec::<String>::new());
        }
        for mode in [0o640, 0o604, 0o660, 0o602, 0o644] {
            set_mode(&secret, mode);
            let error = read_secret_if_there(&secret).expect_err("open to others");
            let why =
                format!("is open to other users of this machine (mode {mode:04o}); chmod 600 closes it");
            assert_eq!(error.line(), format!("{}: {why}", secret.display()));
            // One that was given is their own affair.
            assert_eq!(warned(), [format!("{} {why}", secret.display())]);
            assert_eq!(read(&secret).expect("read"), "one");
        }
    }

    #[test]
    fn what_belongs_to_somebody_else_is_told_from_ours_and_roots() {
        let us = rustix::process::geteuid().as_raw();
        assert_eq!((foreign(us), foreign(0)), (None, None));
        let them = us + 7;
        assert_eq!(foreign(them), Some(format!("belongs to another user ({them}; this is {us})")));
    }
}
