//! A server's process, with its output in files.
//!
//! In: a command and a [`Watchdog`]. Out: the running process. Never: output that blocks it; a wait that its
//! death does not end.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait::until;
use crate::watchdog::Watchdog;

/// Longest orderly end of a process.
const END_MAX: Duration = Duration::from_secs(90);

/// Lines of a log that are shown when something fails.
const LOG_LINES: usize = 60;

#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts `command` with its output appended to `<name>.out` and `<name>.log` in the watchdog's
    /// directory.
    pub fn start(name: &str, command: &mut Command, watchdog: &mut Watchdog) -> Result<Process, String> {
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
        Ok(Process { name: name.to_owned(), child, stdout, stderr })
    }

    /// Whether it still runs; if not, the error shows how it ended and what it logged.
    pub fn alive(&mut self) -> Result<(), String> {
        match self.child.try_wait().map_err(|e| format!("{}: {e}", self.name))? {
            None => Ok(()),
            Some(status) => Err(format!("{} ended: {status}\n{}", self.name, self.log_end())),
        }
    }

    /// What it ended with, if it has; 128 and the signal, as a shell has it, if a signal ended it.
    pub fn exit_code(&mut self, watchdog: &mut Watchdog) -> Result<Option<i32>, String> {
        let Some(status) = self.child.try_wait().map_err(|e| format!("{}: {e}", self.name))? else {
            return Ok(None);
        };
        watchdog.remove(self.child.id())?;
        Ok(status.code().or_else(|| status.signal().map(|signal| 128 + signal)))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends it by SIGKILL.
    pub fn kill(&mut self, watchdog: &mut Watchdog) -> Result<(), String> {
        self.child.kill().map_err(|e| format!("cannot kill {}: {e}", self.name))?;
        watchdog.remove(self.child.id())?;
        self.child.wait().map_err(|e| format!("{}: {e}", self.name))?;
        Ok(())
    }

    /// Lets it do nothing until it is resumed.
    pub fn pause(&mut self) -> Result<(), String> {
        self.signal(Signal::STOP)
    }

    /// Ends [`Process::pause`].
    pub fn resume(&mut self) -> Result<(), String> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), String> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| format!("{} has no id", self.name))?;
        kill_process(id, signal).map_err(|e| format!("cannot signal {}: {e}", self.name))
    }

    /// Asks it to end by SIGTERM, and waits until it has.
    pub fn terminate(&mut self, watchdog: &mut Watchdog) -> Result<(), String> {
        let name = self.name.clone();
        self.signal(Signal::TERM)?;
        // It is reaped as soon as it has ended. Should we die before that, it still ends by itself.
        watchdog.remove(self.child.id())?;
        let child = &mut self.child;
        let ended = until("it ends", END_MAX, || match child.try_wait() {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err("it still runs".to_owned()),
            Err(why) => Err(why.to_string()),
        });
        if ended.is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        ended.map_err(|why| format!("{name}: {why}\n{}", self.log_end()))
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
