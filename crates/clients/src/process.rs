//! A server's process, with its output in files.
//!
//! In: a command and a [`Watchdog`]. Out: the running process. Never: output that blocks it; a wait that its death does not end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::watchdog::Watchdog;

/// Lines of a log that are shown when something fails.
const LOG_LINES: usize = 60;

#[derive(Debug)]
pub struct Process {
    name: &'static str,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts `command` with its output appended to `<name>.out` and `<name>.log` in the watchdog's directory.
    pub fn start(
        name: &'static str,
        command: &mut Command,
        watchdog: &mut Watchdog,
    ) -> Result<Process, String> {
        let stdout = watchdog.dir().join(format!("{name}.out"));
        let stderr = watchdog.dir().join(format!("{name}.log"));
        let open = |path: &Path| {
            let file = File::options().create(true).append(true).open(path);
            file.map_err(|e| format!("cannot write {}: {e}", path.display()))
        };
        let child = command
            .current_dir(watchdog.dir())
            .stdin(Stdio::null())
            .stdout(open(&stdout)?)
            .stderr(open(&stderr)?)
            .spawn()
            .map_err(|e| format!("cannot start {name}: {e}"))?;
        watchdog.add(child.id())?;
        Ok(Process { name, child, stdout, stderr })
    }

    /// Whether it still runs; if not, the error shows how it ended and what it logged.
    pub fn alive(&mut self) -> Result<(), String> {
        match self.child.try_wait().map_err(|e| format!("{}: {e}", self.name))? {
            None => Ok(()),
            Some(status) => Err(format!("{} ended: {status}\n{}", self.name, self.log_end())),
        }
    }

    /// Ends it by SIGKILL.
    pub fn kill(&mut self, watchdog: &mut Watchdog) -> Result<(), String> {
        self.child.kill().map_err(|e| format!("cannot kill {}: {e}", self.name))?;
        watchdog.remove(self.child.id())?;
        self.child.wait().map_err(|e| format!("{}: {e}", self.name))?;
        Ok(())
    }

    pub fn stdout(&self) -> String {
        read(&self.stdout)
    }

    pub fn log_end(&self) -> String {
        let text = read(&self.stderr);
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
        format!("--- end of the log of {}\n{end}\n---", self.name)
    }
}

fn read(path: &Path) -> String {
    // A log may end in half a character; one that is not there is empty.
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
