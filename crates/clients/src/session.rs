//! A person at a shell: commands in, a transcript out.
//!
//! In: a server and lines of shell, in which `kubectl` is the peers' and uses a namespace of the test's own.
//! Out: the lines with what they printed, made comparable; commands that keep printing are followed in the
//! background. Never: a person's own kubeconfig, cache or home.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use crate::normal::normal;
use crate::wait;
use crate::{ControlPlane, needs};

/// Longest wait for a line that is expected.
const LINE_MAX: Duration = Duration::from_secs(120);
/// Longest run of a command that is not followed, as `timeout` reads it.
const COMMAND_MAX: &str = "150s";
/// Lines kept of a command that is followed; beyond it waits.
const LINES_MAX: usize = 1024;

pub struct Session<'a> {
    pub server: &'a ControlPlane,
    /// Where the commands run and where [`Session::file`] puts files.
    dir: PathBuf,
    kubeconfig: PathBuf,
    /// Directories before those of PATH.
    programs: PathBuf,
    /// Commands followed so far; the next one's file is named by it.
    followed: AtomicU32,
}

impl<'a> Session<'a> {
    /// Begins in a fresh namespace `name`; `None` after a skip was announced, for want of kubectl.
    pub fn new(server: &'a ControlPlane, name: &str) -> Option<Session<'a>> {
        let session = Session::open(server, name)?;
        session.file(
            "namespace.yaml",
            &format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}\n"),
        );
        session.run("kubectl create --validate=false -f namespace.yaml");
        Some(session)
    }

    /// The same in a namespace that is there already, or will be.
    pub fn open(server: &'a ControlPlane, name: &str) -> Option<Session<'a>> {
        let programs = needs::kubectl()?.parent()?.to_owned();
        let dir = server.dir().join(format!("session-{name}"));
        let made = fs::create_dir(&dir).and_then(|()| fs::copy(server.kubeconfig(), dir.join("kubeconfig")));
        made.unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
        let session = Session {
            server,
            kubeconfig: dir.join("kubeconfig"),
            dir,
            programs,
            followed: AtomicU32::new(0),
        };
        session.run(&format!("kubectl config set-context --current --namespace={name}"));
        Some(session)
    }

    /// Writes a file that commands may name.
    pub fn file(&self, name: &str, text: &str) {
        let path = self.dir.join(name);
        fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Runs each line, and compares the transcript.
    pub fn check(&self, lines: &str, want: expect_test::Expect) {
        want.assert_eq(&self.transcript(lines));
    }

    /// Runs each line: `$ line`, what it printed, its standard error behind `! `, and its exit code unless 0.
    pub fn transcript(&self, lines: &str) -> String {
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| self.one(line)).collect()
    }

    /// Runs one line that has to succeed, and returns its standard output as it is.
    pub fn run(&self, line: &str) -> String {
        needs::output(&mut self.limited(line)).unwrap_or_else(|why| panic!("{why}"))
    }

    /// Starts one line, and follows what it prints.
    pub fn follow(&self, line: &str) -> BackgroundCommand<'_> {
        // `exec`, so that what is killed at the end is the command itself.
        let mut command = self.shell(&format!("exec {line}"));
        let stderr = self.dir.join(format!("follow-{}.err", self.followed.fetch_add(1, Ordering::Relaxed)));
        let errors = fs::File::create(&stderr);
        command.stdout(Stdio::piped()).stderr(errors.unwrap_or_else(|e| panic!("{}: {e}", stderr.display())));
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{line}: {e}"));
        let stdout = child.stdout.take().unwrap_or_else(|| panic!("{line}: no standard output"));
        let (sender, lines) = sync_channel(LINES_MAX);
        let reader = std::thread::Builder::new().name("follower".into()).spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        reader.unwrap_or_else(|e| panic!("{line}: {e}"));
        BackgroundCommand { session: self, line: line.to_owned(), child, lines, stderr }
    }

    fn one(&self, line: &str) -> String {
        let done = self.limited(line).output().unwrap_or_else(|e| panic!("{line}: {e}"));
        let mut text = format!("$ {line}\n");
        let add = |text: &mut String, bytes: &[u8], mark: &str| {
            for line in causes_sorted(&self.normal(&String::from_utf8_lossy(bytes))) {
                *text += format!("{mark}{line}").trim_end();
                *text += "\n";
            }
        };
        add(&mut text, &done.stdout, "");
        add(&mut text, &done.stderr, "! ");
        match done.status.code() {
            Some(0) => {}
            Some(code) => text += &format!("exit {code}\n"),
            None => text += &format!("{}\n", done.status),
        }
        text
    }

    fn normal(&self, text: &str) -> String {
        normal(text, self.server.port(), &self.dir.to_string_lossy())
    }

    /// Ended, with all that it started, when it does not end by itself: an editor may wait for a person.
    fn limited(&self, line: &str) -> Command {
        self.command("timeout", &[COMMAND_MAX, "sh", "-c", line])
    }

    fn shell(&self, line: &str) -> Command {
        self.command("sh", &["-c", line])
    }

    fn command(&self, program: &str, args: &[&str]) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(self.programs.clone()).chain(std::env::split_paths(&path));
        let path = std::env::join_paths(dirs).unwrap_or_else(|e| panic!("PATH: {e}"));
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.dir)
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.dir)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }
}

/// The lines, with those of a list of causes sorted: kube-apiserver walks a map for them.
fn causes_sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    let is_cause = |line: &str| line.starts_with("* ");
    for causes in lines.chunk_by_mut(|one, next| is_cause(one) && is_cause(next)) {
        causes.sort_unstable();
    }
    lines
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.server.show_log_on_failure();
    }
}

/// A command in the background and the lines it has printed so far; killed when dropped.
pub struct BackgroundCommand<'a> {
    session: &'a Session<'a>,
    line: String,
    child: Child,
    lines: Receiver<String>,
    stderr: PathBuf,
}

impl BackgroundCommand<'_> {
    /// Returns the next `count` lines, made comparable.
    ///
    /// # Panics
    /// When they do not come in time, or the command ends before.
    pub fn lines(&mut self, count: usize) -> String {
        self.take(|taken, _| taken == count)
    }

    /// Returns the lines up to and with the first that contains `text`, made comparable.
    ///
    /// # Panics
    /// When it does not come in time, or the command ends before.
    pub fn until(&mut self, text: &str) -> String {
        self.take(|_, last| last.contains(text))
    }

    /// Waits until its standard error, which `-v=6` makes kubectl tell each request on, contains `text`.
    ///
    /// # Panics
    /// When it does not come in time.
    pub fn told(&self, text: &str) {
        let told = wait::until(&self.line, LINE_MAX, || {
            let said = fs::read_to_string(&self.stderr).unwrap_or_default();
            if said.contains(text) { Ok(()) } else { Err(said) }
        });
        told.unwrap_or_else(|why| panic!("{why}"));
    }

    fn take(&mut self, is_enough: impl Fn(usize, &str) -> bool) -> String {
        let deadline = Instant::now() + LINE_MAX;
        let mut seen: Vec<String> = Vec::new();
        while !is_enough(seen.len(), seen.last().map_or("", String::as_str)) {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => seen.push(line),
                Err(why) => panic!("{}", self.missing(&seen, why)),
            }
        }
        self.session.normal(&(seen.join("\n") + "\n"))
    }

    fn missing(&self, seen: &[String], why: RecvTimeoutError) -> String {
        let errors = fs::read_to_string(&self.stderr).unwrap_or_default();
        format!("{}: {why}\nit printed:\n{}\nstandard error:\n{errors}", self.line, seen.join("\n"))
    }
}

impl Drop for BackgroundCommand<'_> {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lists_of_causes_are_sorted() {
        assert_eq!(causes_sorted("z\na\n* c\n* b\ny\n* a"), ["z", "a", "* b", "* c", "y", "* a"]);
    }
}
