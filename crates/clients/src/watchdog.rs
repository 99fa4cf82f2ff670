//! What ends our servers and removes their directory when the test process is gone, however it went.
//!
//! In: a directory, and the ids of child processes as they come and go. Out: nothing; when its standard input
//! ends, by [`Drop`] or by our death, it kills what is left and removes the directory. Never: a kill of an id
//! that we have reaped; that one may be another process by now.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// `+ ID` and `- ID` lines on standard input; the directory is the first argument.
const SCRIPT: &str = r#"
ids=
while read -r verb id; do
  rest=
  for each in $ids; do [ "$each" = "$id" ] || rest="$rest $each"; done
  ids=$rest
  [ "$verb" = - ] || ids="$ids $id"
done
for each in $ids; do kill -9 "$each"; done
rm -rf -- "$1" || rm -rf -- "$1"
"#;

static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub struct Watchdog {
    dir: PathBuf,
    child: Child,
    /// `None` once it was told to finish.
    orders: Option<ChildStdin>,
}

impl Watchdog {
    /// Makes a directory of its own below the system's temporary one, and watches over it.
    pub fn new() -> Result<Watchdog, String> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("forebay-clients-{}-{number}", std::process::id()));
        // An older process with our id died before its watchdog was done: what is there is nobody's.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
        let mut child = Command::new("sh")
            .args(["-c", SCRIPT, "watchdog"])
            .arg(&dir)
            .current_dir("/")
            // A group of its own: the Ctrl-C that ends us must not end it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("cannot start sh: {e}"))?;
        let orders = child.stdin.take();
        Ok(Watchdog { dir, child, orders })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A child was started.
    pub fn add(&mut self, id: u32) -> Result<(), String> {
        self.tell(&format!("+ {id}\n"))
    }

    /// A child is about to be reaped.
    pub fn remove(&mut self, id: u32) -> Result<(), String> {
        self.tell(&format!("- {id}\n"))
    }

    fn tell(&mut self, order: &str) -> Result<(), String> {
        let Some(orders) = &mut self.orders else { return Err("the watchdog was told to finish".into()) };
        orders.write_all(order.as_bytes()).map_err(|e| format!("the watchdog is gone: {e}"))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.orders = None;
        // It ends by itself; all that could fail is to learn how.
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_kills_what_was_not_removed_and_takes_the_directory_with_it() {
        let mut dog = Watchdog::new().unwrap();
        let dir = dog.dir().to_owned();
        fs::write(dir.join("file"), "x").unwrap();
        let cat = || Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let (mut left, mut removed) = (cat(), cat());
        for id in [left.id(), removed.id()] {
            dog.add(id).unwrap();
        }
        dog.remove(removed.id()).unwrap();
        drop(dog);
        assert!(!dir.exists());
        assert!(!left.wait().unwrap().success(), "killed");
        assert!(removed.wait().unwrap().success(), "ended by its closed input, not killed");
    }
}
