//! Informers as programs of their own: `forebay-mirrored` for ours and kube-rs, and the program in Go for
//! client-go.
//!
//! In: a client's name, a server's kubeconfig. Out: [`Mirrored`], which has a whole state and takes orders.
//! One owner; dropping it ends the program. Never: client-go where it was not built: it is left out, and
//! standard error says so.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::contender::present;
use crate::server::Instance;
use crate::{Error, proc};

/// Ours.
pub const OURS: &str = "forebay-informer";
/// All of them, in the order of the figures.
pub const CLIENTS: [&str; 5] = [OURS, "client-go", "client-go-dynamic", "kube-rs", "kube-rs-streaming"];

/// Longest wait for the end once its input has ended: it may have a state to write.
const END_MAX: Duration = Duration::from_secs(120);
/// The same for one whose figures are had, or that failed.
const DROP_MAX: Duration = Duration::from_secs(2);
/// Between two looks at whether it has ended.
const POLL: Duration = Duration::from_millis(5);

/// A client that has a whole state.
pub struct Mirrored {
    name: String,
    child: Child,
    // None: it was told that there are no more.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What it says it has.
    pub count: usize,
    /// From its start until it had that.
    pub took: Duration,
}

/// Those of [`CLIENTS`] that can be run here.
///
/// # Errors
/// [`Error::Missing`]: ours was not built.
pub fn clients() -> Result<Vec<&'static str>, Error> {
    let own = program(OURS)?;
    present("forebay-mirrored", &own, "build it with `cargo build --release --package forebay-faults`")?;
    let is_built = |client: &&str| {
        let there = program(client).is_ok_and(|program| program.is_file());
        if !there {
            eprintln!(
                "!!! {client} is LEFT OUT: forebay-mirrored-client-go is not beside this program; `cargo xtask bench` builds it, with Go"
            );
        }
        there
    };
    Ok(CLIENTS.into_iter().filter(is_built).collect())
}

fn program(client: &str) -> Result<PathBuf, Error> {
    let here = std::env::current_exe().map_err(|e| Error::Proc(e.to_string()))?;
    // A test is one level below the programs.
    let dir = here.parent().filter(|dir| dir.ends_with("deps")).map_or(here.as_path(), |deps| deps);
    let name =
        if client.starts_with("client-go") { "forebay-mirrored-client-go" } else { "forebay-mirrored" };
    Ok(dir.with_file_name(name))
}

impl Mirrored {
    /// Starts it and waits for its state.
    pub fn start(client: &str, kubeconfig: &Path, flags: &[&str]) -> Result<Mirrored, Error> {
        let failed = |e: std::io::Error| Error::Proc(format!("{client}: {e}"));
        let mut command = Command::new(program(client)?);
        command.arg(client).arg("--kubeconfig").arg(kubeconfig).args(flags);
        let begun = Instant::now();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let orders = child.stdin.take();
        let answers = child.stdout.take().ok_or_else(|| Error::Proc("no output".into()))?;
        let answers = BufReader::new(answers);
        let mut it = Mirrored { name: client.into(), child, orders, answers, count: 0, took: Duration::ZERO };
        let line = it.line()?;
        it.took = begun.elapsed();
        it.count = line.trim().parse().map_err(|_| it.odd("a number of objects", line))?;
        Ok(it)
    }

    /// The same where it is to have `count`.
    pub fn start_with(
        client: &str,
        kubeconfig: &Path,
        flags: &[&str],
        count: usize,
    ) -> Result<Mirrored, Error> {
        let it = Mirrored::start(client, kubeconfig, flags)?;
        match it.count == count {
            true => Ok(it),
            false => Err(it.odd(&format!("{count} objects"), it.count.to_string())),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU that it has taken so far.
    pub fn cpu(&self) -> Result<Duration, Error> {
        proc::cpu(self.pid())
    }

    /// What it answers to an order. Waits for that.
    pub fn ask(&mut self, order: &str) -> Result<Value, Error> {
        let failed = |e: std::io::Error| Error::Proc(format!("{order}: {e}"));
        let orders = self.orders.as_mut().ok_or_else(|| Error::Proc("it was ended".into()))?;
        writeln!(orders, "{order}").map_err(failed)?;
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|_| self.odd(order, line))
    }

    /// Ends it, and waits for what it still does.
    pub fn end(mut self) -> Result<(), Error> {
        drop(self.orders.take());
        match self.ended_within(END_MAX) {
            true => Ok(()),
            false => Err(self.odd("its end", format!("still running after {END_MAX:?}"))),
        }
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err(self.odd("a line", "it has ended".into())),
            Ok(_) => Ok(line),
            Err(error) => Err(self.odd("a line", error.to_string())),
        }
    }

    fn odd(&self, what: &str, answer: String) -> Error {
        Error::Answer { what: format!("{}: {what}", self.name), answer }
    }

    fn ended_within(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while Instant::now() < end {
            match self.child.try_wait() {
                Ok(None) => std::thread::park_timeout(POLL),
                Ok(Some(_)) | Err(_) => return true,
            }
        }
        false
    }
}

impl Drop for Mirrored {
    fn drop(&mut self) {
        drop(self.orders.take());
        if !self.ended_within(DROP_MAX) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// That of the server's administrator: ours writes one, for kube-apiserver it is made in `dir`.
pub fn kubeconfig(dir: &Path, server: &Instance) -> Result<PathBuf, Error> {
    let written = dir.join("data/admin.kubeconfig");
    if written.exists() {
        return Ok(written);
    }
    let (pki, made) = (dir.join("pki"), dir.join("admin.kubeconfig"));
    let (pki, address) = (pki.display(), server.target.address);
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{{"name":"c","context":{{"cluster":"c","user":"u"}}}}],
"clusters":[{{"name":"c","cluster":{{"server":"https://{address}","certificate-authority":"{pki}/ca.crt"}}}}],
"users":[{{"name":"u","user":{{"client-certificate":"{pki}/client.crt","client-key":"{pki}/client.key"}}}}]}}"#
    );
    fs::write(&made, text).map_err(Error::file("cannot write", &made))?;
    Ok(made)
}
