//! The data directory before anything is put into it: it is there, it is a directory, it can be written.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::error::Error;
use crate::private_files;

/// Makes the directory for its owner alone, or checks the one that is there; a warning comes back.
///
/// # Errors
/// [`Error::DataDir`]: it is a file, or nothing can be made in it. [`Error::File`]: it cannot be made.
pub fn prepare(path: &Path) -> Result<Option<String>, Error> {
    let wrong = |reason: String| Error::DataDir { path: path.to_owned(), reason };
    match fs::metadata(path) {
        Ok(there) if !there.is_dir() => return Err(wrong("is not a directory".to_owned())),
        Ok(_) | Err(_) => private_files::create_dir(path)?,
    }
    try_to_write(path).map_err(|cause| wrong(format!("cannot be written: {cause}")))?;
    let mode = fs::metadata(path).map_err(Error::file("read", path))?.permissions().mode();
    Ok((mode & 0o007 != 0).then(|| {
        format!(
            "data directory {} is open to other users of this machine (mode {:04o}); chmod 700 closes it",
            path.display(),
            mode & 0o7777
        )
    }))
}

fn try_to_write(path: &Path) -> std::io::Result<()> {
    let probe = path.join(format!(".write-{}.tmp", std::process::id()));
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&probe)?;
    fs::remove_file(&probe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn it_is_made_for_its_owner_alone() {
        let scratch = Scratch::new();
        let dir = scratch.path().join("a/data");
        assert_eq!(prepare(&dir).expect("made"), None);
        assert_eq!(fs::metadata(&dir).expect("there").permissions().mode() & 0o777, 0o700);
        assert_eq!(prepare(&dir).expect("there already"), None);
        assert_eq!(fs::read_dir(&dir).expect("listed").count(), 0);
    }

    #[test]
    fn a_directory_that_others_can_enter_is_warned_about() {
        let scratch = Scratch::new();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).expect("mode set");
        let warning = prepare(scratch.path()).expect("usable").expect("a warning");
        assert!(
            warning.ends_with("is open to other users of this machine (mode 0755); chmod 700 closes it"),
            "{warning}"
        );
    }

    #[test]
    fn a_file_in_its_place_is_an_error() {
        let scratch = Scratch::new();
        let file = scratch.path().join("data");
        fs::write(&file, "x").expect("written");
        let error = prepare(&file).expect_err("a file");
        assert_eq!(error.line(), format!("data directory {}: is not a directory", file.display()));
        assert_eq!(fs::read(&file).expect("still there"), b"x");
    }

    #[test]
    fn a_place_that_cannot_be_made_is_an_error() {
        let error = prepare(Path::new("/proc/nowhere/data")).expect_err("not there");
        assert!(error.line().starts_with("create directory /proc/nowhere/data: "), "{}", error.line());
    }
}
