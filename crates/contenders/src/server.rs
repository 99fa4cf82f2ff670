//! A running server: its processes, where to reach it, and its end.
//!
//! In: commands. Out: [`Instance`], ready. One owner; dropping it kills what still runs.
//! Never: a process that is not ours; a wait without a limit.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{Client, Protocol, RestConfig};
use crate::{Error, proc};

/// Longest wait for readiness, and for the end after SIGTERM.
const READY_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(90);
/// Between two looks at a port, a process or `/readyz`: what the figures are exact to.
const POLL: Duration = Duration::from_millis(1);
/// Longest wait for one answer of `/readyz`.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Where a server says whether it is ready.
pub const READY: &str = "/readyz";

/// A server that answered 200 on `/readyz`.
#[derive(Debug)]
pub struct Instance {
    pub name: &'static str,
    /// In the order they were started.
    pub processes: Vec<Process>,
    pub target: RestConfig,
    /// From the first exec to the first 200 on `/readyz`.
    pub ready: Duration,
    /// Where the first of them is asked, if that is an etcd.
    pub etcd_port: Option<u16>,
}

/// An etcd that listens, and where.
#[derive(Debug)]
pub struct RunningEtcd {
    pub process: Process,
    pub port: u16,
}

/// A child process whose output goes to a file.
#[derive(Debug)]
pub struct Process {
    pub name: &'static str,
    child: Child,
    log: PathBuf,
    pub started: Instant,
}

impl Instance {
    /// CPU time so far, of each process.
    pub fn cpus(&self) -> Result<Vec<Duration>, Error> {
        self.processes.iter().map(|process| proc::cpu(process.pid())).collect()
    }

    /// CPU time of each process since [`Instance::cpus`] said `before`.
    pub fn cpu_since(&self, before: &[Duration]) -> Result<Vec<Duration>, Error> {
        Ok(self.cpus()?.iter().zip(before).map(|(now, then)| now.saturating_sub(*then)).collect())
    }

    /// Whether all of its processes are still there.
    pub fn is_alive(&mut self) -> bool {
        self.processes.iter_mut().all(|process| process.alive().is_ok())
    }

    /// Counts its readiness from `started`, when what it stands on was started.
    pub fn since(mut self, started: Instant) -> Instance {
        let own = self.processes.last().map_or(started, |process| process.started);
        self.ready += own.saturating_duration_since(started);
        self
    }

    /// Ends the API server by SIGTERM; what it stood on goes on.
    pub async fn stop_apiserver(mut self) -> Result<Option<RunningEtcd>, Error> {
        if let Some(mut process) = self.processes.pop() {
            process.terminate()?;
            process.ended().await?;
        }
        Ok(self.etcd_port.and_then(|port| Some(RunningEtcd { process: self.processes.pop()?, port })))
    }

    /// Ends the processes by SIGTERM, the last one started first, each after the one before is gone.
    pub async fn stop(mut self) -> Result<(), Error> {
        while let Some(mut process) = self.processes.pop() {
            process.terminate()?;
            process.ended().await?;
        }
        Ok(())
    }
}

impl Process {
    /// Starts `command` with its output in `log`.
    pub fn start(name: &'static str, command: &mut Command, log: &Path) -> Result<Process, Error> {
        let file =
            File::options().create(true).append(true).open(log).map_err(Error::file("cannot write", log))?;
        let twin = file.try_clone().map_err(Error::file("cannot write", log))?;
        let program = PathBuf::from(command.get_program());
        let started = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(twin)
            .spawn()
            .map_err(Error::file("cannot start", &program))?;
        Ok(Process { name, child, log: log.to_owned(), started })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it by SIGKILL.
    pub fn kill(mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Why it is not there any more, if it has ended.
    pub fn has_ended(&mut self) -> Option<Error> {
        self.alive().err()
    }

    /// Waits until something accepts on `port`, and makes sure that it is this process.
    pub async fn listening(&mut self, port: u16) -> Result<(), Error> {
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            self.alive()?;
            self.in_time("listen", READY_MAX, self.started, "its port refuses connections")?;
            tokio::time::sleep(POLL).await;
        }
        match proc::listens(self.pid(), port) {
            true => Ok(()),
            false => Err(Error::NotOurs { name: self.name, port }),
        }
    }

    /// Waits for the first 200 on `/readyz`, counted from `since`: [`Process::ready_at`].
    pub async fn ready(
        &mut self,
        since: Instant,
        port: u16,
        tls: impl Fn() -> Result<Arc<ClientConfig>, Error>,
    ) -> Result<(RestConfig, Duration), Error> {
        self.ready_at(READY, since, port, tls).await
    }

    /// The same on `path`, which is `/readyz` without some of its checks.
    ///
    /// `tls` is asked once the port accepts, and again until it has an answer: a server may write its
    /// certificates late.
    pub async fn ready_at(
        &mut self,
        path: &str,
        since: Instant,
        port: u16,
        tls: impl Fn() -> Result<Arc<ClientConfig>, Error>,
    ) -> Result<(RestConfig, Duration), Error> {
        self.listening(port).await?;
        let mut client: Option<(Client, RestConfig)> = None;
        loop {
            let last = match timeout(LOOK_MAX, ready_once(&mut client, (port, path), &tls)).await {
                Ok(Ok(target)) => return Ok((target, since.elapsed())),
                Ok(Err(why)) => why.to_string(),
                Err(_) => format!("no answer within {LOOK_MAX:?}"),
            };
            self.alive()?;
            self.in_time("become ready", READY_MAX, self.started, &last)?;
            tokio::time::sleep(POLL).await;
        }
    }

    /// A pause before the next look at something that is not as it should be yet, as `last` says.
    pub async fn again(&mut self, what: &'static str, since: Instant, last: &str) -> Result<(), Error> {
        self.alive()?;
        self.in_time(what, READY_MAX, since, last)?;
        tokio::time::sleep(POLL).await;
        Ok(())
    }

    fn terminate(&mut self) -> Result<(), Error> {
        self.alive()?;
        let sent = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &self.pid().to_string()]).status();
        match sent {
            Ok(status) if status.success() => Ok(()),
            other => Err(Error::Proc(format!("cannot send SIGTERM to {}: {other:?}", self.name))),
        }
    }

    async fn ended(&mut self) -> Result<ExitStatus, Error> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().map_err(|e| Error::Proc(e.to_string()))? {
                return Ok(status);
            }
            self.in_time("end after SIGTERM", STOP_MAX, since, "still running")?;
            tokio::time::sleep(POLL).await;
        }
    }

    fn alive(&mut self) -> Result<(), Error> {
        match self.child.try_wait().map_err(|e| Error::Proc(e.to_string()))? {
            None => Ok(()),
            Some(status) => {
                Err(Error::Died { name: self.name, status: status.to_string(), log: self.log_end() })
            }
        }
    }

    fn in_time(&self, what: &'static str, limit: Duration, since: Instant, last: &str) -> Result<(), Error> {
        match since.elapsed() < limit {
            true => Ok(()),
            false => {
                Err(Error::Late { name: self.name, what, limit, last: last.to_owned(), log: self.log_end() })
            }
        }
    }

    fn log_end(&self) -> String {
        let text = std::fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing to do when it is gone already; a scenario that failed half way must leave nothing running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ports that nothing takes before the server does.
///
/// # Errors
/// [`Error::Proc`]: there is none.
pub fn free_ports<const N: usize>() -> Result<[u16; N], Error> {
    forebay_clients::ports::free().map_err(Error::Proc)
}

/// One look at `path`, on the connection of the look before where there is one.
async fn ready_once(
    client: &mut Option<(Client, RestConfig)>,
    (port, path): (u16, &str),
    tls: &impl Fn() -> Result<Arc<ClientConfig>, Error>,
) -> Result<RestConfig, Error> {
    let (mut open, target) = match client.take() {
        Some(open) => open,
        None => {
            let target = RestConfig::local(port, tls()?);
            (Client::connect(&target, Protocol::Http1).await?, target)
        }
    };
    let answer = open.get(path).await?;
    if answer.status == 200 {
        return Ok(target);
    }
    *client = Some((open, target));
    Err(Error::Answer { what: path.to_owned(), answer: answer.shown() })
}
