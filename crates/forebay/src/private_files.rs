//! Files and directories that hold secrets: made for their owner alone, replaced whole or not at all.
//!
//! A file is written beside its place, synced, and renamed; [`sync_dir`] makes the rename itself durable.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
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

/// The file's text.
///
/// # Errors
/// As [`read_if_there`], and when there is no such file.
pub fn read(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .and_then(|_| match text.len() as u64 > FILE_BYTES_MAX {
            true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 16 MiB")),
            false => Ok(text),
        })
        .map_err(Error::file("read", path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::scratch::Scratch;

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
}
