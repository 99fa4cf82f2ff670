//! The data directory before anything is put into it: it is there, it is a directory, it can be written, and
//! by nobody else.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use forebay_rt::Random;

use crate::error::Error;
use forebay_pki::private_files;

/// Makes the directory for its owner alone, or checks the one that is there; a warning comes back.
///
/// # Errors
/// [`Error::DataDir`]: it is a file, it belongs to somebody else or others can write it, or nothing can be
/// made in it. [`Error::File`]: it cannot be made.
pub fn prepare(path: &Path) -> Result<Option<String>, Error> {
    let wrong = |reason: String| Error::DataDir { path: path.to_owned(), reason };
    match fs::metadata(path) {
        Ok(there) if !there.is_dir() => return Err(wrong("is not a directory".to_owned())),
        Ok(_) | Err(_) => private_files::create_dir(path)?,
    }
    if let Some(exposure) = private_files::exposure_of_dir(path)? {
        return Err(wrong(exposure));
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

/// Under a name that nobody can have foreseen, and only where there is nothing of that name, be it a link.
fn try_to_write(path: &Path) -> std::io::Result<()> {
    let probe = path.join(format!(".write-{:016x}.tmp", Random::system().next_u64()));
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&probe)?;
    fs::remove_file(&probe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_scratch::Scratch;

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
    fn a_directory_that_others_can_write_is_refused() {
        let scratch = Scratch::new();
        for mode in [0o775, 0o757, 0o777, 0o1777, 0o2775] {
            fs::set_permissions(scratch.path(), fs::Permissions::from_mode(mode)).expect("mode set");
            let error = prepare(scratch.path()).expect_err("anybody could put something there");
            let dir = scratch.path().display();
            assert_eq!(
                crate::line(&error),
                format!(
                    "data directory {dir}: can be written by other users of this machine (mode {mode:04o}), who could \
                     replace what is in it; chmod go-w {dir} closes it, or name a directory in it, which is made for this \
                     user alone"
                )
            );
            assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 0);
        }
        // What the advice leads to.
        assert_eq!(prepare(&scratch.path().join("data")).expect("made"), None);
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused() {
        let scratch = Scratch::new();
        const THEM: u32 = 54_321;
        if std::os::unix::fs::chown(scratch.path(), Some(THEM), None).is_err() {
            // Only root gives something away.
            return;
        }
        let error = prepare(scratch.path()).expect_err("theirs");
        assert_eq!(
            crate::line(&error),
            format!(
                "data directory {}: belongs to another user (54321; this is 0), who could replace what is in it; chown it, \
                 or name another directory",
                scratch.path().display()
            )
        );
    }

    #[test]
    fn the_probe_touches_nothing_that_is_there() {
        let scratch = Scratch::new();
        let (dir, precious) = (scratch.path().join("data"), scratch.path().join("precious"));
        fs::write(&precious, "x").expect("written");
        prepare(&dir).expect("made");
        // Where probes have been, and whatever lies there.
        let was = dir.join(format!(".write-{}.tmp", std::process::id()));
        std::os::unix::fs::symlink(&precious, &was).expect("linked");
        prepare(&dir).expect("usable");
        assert_eq!(fs::read(&precious).expect("still there"), b"x");
        let names: Vec<_> =
            fs::read_dir(&dir).expect("listed").map(|entry| entry.expect("entry").path()).collect();
        assert_eq!(names, [was]);
    }

    #[test]
    fn a_file_in_its_place_is_an_error() {
        let scratch = Scratch::new();
        let file = scratch.path().join("data");
        fs::write(&file, "x").expect("written");
        let error = prepare(&file).expect_err("a file");
        assert_eq!(crate::line(&error), format!("data directory {}: is not a directory", file.display()));
        assert_eq!(fs::read(&file).expect("still there"), b"x");
    }

    #[test]
    fn a_place_that_cannot_be_made_is_an_error() {
        let error = prepare(Path::new("/proc/nowhere/data")).expect_err("not there");
        assert!(
            crate::line(&error).starts_with("create directory /proc/nowhere/data: "),
            "{}",
            crate::line(&error)
        );
    }
}
