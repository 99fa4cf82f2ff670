//! A directory for one test, removed when the test is over.
//!
//! In: nothing. Out: places below the system's temporary directory that no other test has. Never: used but in
//! tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// The directory, until it is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty one.
    #[allow(clippy::new_without_default, reason = "it makes something outside of the process")]
    pub fn new() -> Scratch {
        let path = env::temp_dir().join(format!("forebay-test-{}-{}", process::id(), number()));
        fs::create_dir_all(&path).expect("a directory for the test");
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A place in it that was not handed out before.
    pub fn new_path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}-{}", number()))
    }

    /// Writes a file into it and says where it is.
    pub fn file(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, contents).expect("a file for the test");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
