//! Informers of client-go, unmodified, in a program of their own: `crates/faults/go/crowd`.
//!
//! In: the program, a server, who asks. Out: how far they have come, and what they asked for. One owner;
//! dropping it ends the program. Never: an informer that this process runs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::Error;
use crate::arrivals::Purpose;

/// Where they ask, and as who.
#[derive(Clone, Debug)]
pub struct Asking<'a> {
    pub port: u16,
    /// The file with the server's authority.
    pub authority: &'a Path,
    /// One that ends in `-` is followed by the number of the informer.
    pub token: &'a str,
    pub resource: &'a str,
}

pub struct Informers {
    pub count: usize,
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// How far all of them have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub synced: usize,
    /// What the last of them has.
    pub revision: u64,
}

/// A request of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub at_unix_ms: u64,
    pub query: String,
    /// As [`SentRequest::code`](crate::arrivals::SentRequest::code).
    pub code: u16,
}

/// The program beside this one, where `cargo xtask bench` builds it.
pub fn program() -> Option<PathBuf> {
    let here = std::env::current_exe().ok()?;
    Some(here.with_file_name("forebay-crowd-client-go")).filter(|program| program.is_file())
}

impl Informers {
    pub fn start(program: &Path, count: usize, asking: &Asking<'_>) -> Result<Informers, Error> {
        let mut child = Command::new(program)
            .arg(format!("--server=https://127.0.0.1:{}", asking.port))
            .arg("--ca")
            .arg(asking.authority)
            .args(["--token", asking.token, "--resource", asking.resource])
            .arg(format!("--count={count}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // It tells of each failed watch there.
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::file("cannot start", program))?;
        let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Proc("client-go has no pipes".into()));
        };
        Ok(Informers { count, child, orders, answers: BufReader::new(answers) })
    }

    pub fn look(&mut self) -> Result<Progress, Error> {
        let said = self.order("look")?;
        let synced = said["synced"].as_u64().unwrap_or(0) as usize;
        Ok(Progress { synced, revision: said["revision"].as_u64().unwrap_or(0) })
    }

    /// What they asked for since this was asked last.
    pub fn asked(&mut self) -> Result<Vec<Asked>, Error> {
        let said = self.order("asked")?;
        let each = |one: &Value| Asked {
            at_unix_ms: one["at_ms"].as_u64().unwrap_or(0),
            query: one["query"].as_str().unwrap_or_default().to_owned(),
            code: one["code"].as_u64().unwrap_or(0) as u16,
        };
        Ok(said.as_array().into_iter().flatten().map(each).collect())
    }

    fn order(&mut self, order: &str) -> Result<Value, Error> {
        let failed = |e: std::io::Error| Error::Proc(format!("client-go: {order}: {e}"));
        writeln!(self.orders, "{order}").map_err(failed)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(failed)?;
        serde_json::from_str(&line).map_err(|e| Error::Answer {
            what: format!("client-go: {order}"),
            answer: format!("{e}: {line}"),
        })
    }
}

impl Asked {
    pub fn kind(&self) -> Purpose {
        match () {
            () if self.query.contains("sendInitialEvents=true") => Purpose::WatchList,
            () if self.query.contains("watch=true") => Purpose::Watch,
            () => Purpose::List,
        }
    }
}

impl Drop for Informers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
