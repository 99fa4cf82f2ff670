//! Servers on one etcd behind a balancer, each held to a bound of memory: who dies is started again, as
//! a kubelet would.
//!
//! In: a contender. Out: two ports, one for the crowd and one for those whose latency is measured; each
//! server's memory and deaths. One owner, who looks after them by [`Fleet::tend`]. Never: a server that gets
//! connections before it said that it is ready.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::balancer::Balancer;
use crate::cage::Cage;
use crate::client::{Client, Protocol, RestConfig};
use crate::contender::Contender;
use crate::guard::{Guard, Place};
use crate::lab::Lab;
use crate::server::{Instance, Process, RunningEtcd, free_ports};
use crate::{Error, kubernetes, pki, users};

/// Between two looks of whoever waits for a server to be ready.
const LOOK: Duration = Duration::from_millis(50);
const READY_MAX: Duration = Duration::from_secs(180);

pub struct Fleet {
    /// For readers, and for everybody else.
    pub crowd: Balancer,
    pub quiet: Balancer,
    /// Directory of the certificates and tokens.
    pub shared: PathBuf,
    /// How long one that is gone stays away.
    pub down: Duration,
    members: Vec<Member>,
    guard: Guard,
    admin: RestConfig,
    etcd: RunningEtcd,
}

struct Member {
    name: &'static str,
    cage: Cage,
    program: PathBuf,
    args: Vec<String>,
    dir: PathBuf,
    port: u16,
    state: State,
    /// Ends that were none of ours.
    deaths: Vec<Death>,
}

/// How a server ended by itself.
#[derive(Clone, Debug)]
pub struct Death {
    /// After its start.
    pub after: Duration,
    /// As the system says it.
    pub status: String,
    /// What it had when it was looked at last.
    pub resident: u64,
}

enum State {
    Serving(Process),
    /// It is asked whether it is ready.
    Starting(Process, JoinHandle<Result<(), Error>>),
    Gone(Instant),
}

impl Fleet {
    /// Starts so many and waits until all are ready.
    pub async fn start(lab: &Lab, who: &Contender, dir: &Path, servers: usize) -> Result<Fleet, Error> {
        let shared = dir.join("shared");
        make(&shared)?;
        pki::write(&shared)?;
        users::write(&shared, lab.overload.nodes.max(lab.overload.readers))?;
        let etcd = match who.etcd() {
            Some(etcd) => etcd.to_owned(),
            None => lab.overload.peers.join("etcd"),
        };
        let etcd = kubernetes::start_etcd(&etcd, dir).await?;
        let ports = (0..servers).map(|_| free_ports::<1>().map(|[port]| port));
        let ports = ports.collect::<Result<Vec<u16>, Error>>()?;
        let mut members = Vec::new();
        for (number, port) in ports.iter().copied().enumerate() {
            let own = dir.join(format!("server-{number}"));
            make(&own)?;
            let (program, args) = who.member(&own, &shared, etcd.port, port);
            let cage = Cage::new(lab.overload.cage);
            let name = if matches!(who, Contender::Forebay(_)) { "forebay" } else { "kube-apiserver" };
            let state = State::Gone(Instant::now());
            members.push(Member { name, cage, program, args, dir: own, port, state, deaths: Vec::new() });
        }
        let admin = RestConfig::local(ports[0], pki::credentials(&shared)?);
        let (crowd, quiet) = (Balancer::start(&ports)?, Balancer::start(&ports)?);
        let guard = Guard::new(servers)?;
        let down = lab.overload.span;
        let mut fleet = Fleet { crowd, quiet, shared, down, members, guard, admin, etcd };
        let began = Instant::now();
        while !fleet.is_whole() {
            fleet.tend()?;
            if began.elapsed() > READY_MAX {
                let answer = format!("not ready after {READY_MAX:?}");
                return Err(Error::Answer { what: "the servers".into(), answer });
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(fleet)
    }

    /// The first of them for an administrator, as the load wants it: without processes of its own.
    pub fn first(&self) -> Instance {
        let name = self.members[0].name;
        let target = self.admin.clone();
        Instance {
            name,
            processes: Vec::new(),
            target,
            ready: Duration::ZERO,
            etcd_port: Some(self.etcd.port),
        }
    }

    /// The first of them for a client without a certificate.
    pub fn direct(&self) -> Result<RestConfig, Error> {
        Ok(RestConfig::local(self.members[0].port, pki::anonymous(&self.shared)?))
    }

    /// A port for a client without a certificate.
    pub fn target(&self, balancer: &Balancer) -> Result<RestConfig, Error> {
        Ok(RestConfig::local(balancer.port, pki::anonymous(&self.shared)?))
    }

    /// Starts those that have been away long enough, and notes who has ended and who is ready.
    ///
    /// # Errors
    /// One cannot be started at all.
    pub fn tend(&mut self) -> Result<(), Error> {
        for number in 0..self.members.len() {
            let member = &mut self.members[number];
            let ended = match &mut member.state {
                State::Serving(process) | State::Starting(process, _) => {
                    process.has_ended().map(|why| (why, process.started.elapsed()))
                }
                State::Gone(_) => None,
            };
            if let Some((why, after)) = ended {
                let status = match why {
                    Error::Died { status, .. } => status,
                    why => why.to_string(),
                };
                let resident = self.guard.places()[number].seen;
                let death = Death { after, status, resident };
                eprintln!("server {number} {death}");
                member.deaths.push(death);
                self.gone(number);
                continue;
            }
            match std::mem::replace(&mut member.state, State::Gone(Instant::now())) {
                State::Gone(until) if until <= Instant::now() => self.run(number)?,
                State::Starting(process, asking) if asking.is_finished() => {
                    member.state = State::Serving(process);
                    self.open(number, true);
                }
                other => member.state = other,
            }
        }
        Ok(())
    }

    /// Ends one by SIGKILL; it is started again when it has been away for a while.
    pub fn kill(&mut self, number: usize) {
        if let State::Serving(process) | State::Starting(process, _) = self.gone(number) {
            process.kill();
        }
    }

    /// Whether all of them serve.
    pub fn is_whole(&self) -> bool {
        self.members.iter().all(|member| matches!(member.state, State::Serving(_)))
    }

    pub fn deaths(&self) -> usize {
        self.died().count()
    }

    /// Those of each server, the first first.
    pub fn died(&self) -> impl Iterator<Item = &Death> {
        self.members.iter().flat_map(|member| &member.deaths)
    }

    /// The one with the most connections of the crowd.
    pub fn fullest(&self) -> usize {
        let held = |number: &usize| self.crowd.backends[*number].connections.load(Ordering::Relaxed);
        (0..self.members.len()).max_by_key(held).unwrap_or(0)
    }

    pub fn begin_peaks(&self) {
        self.guard.begin();
    }

    pub fn memory(&self) -> Vec<Place> {
        self.guard.places()
    }

    /// What bounds each of them.
    pub fn bound(&self) -> &'static str {
        self.members[0].cage.about()
    }

    fn run(&mut self, number: usize) -> Result<(), Error> {
        let member = &mut self.members[number];
        let command = &mut member.cage.command(&member.program, &member.args);
        let log = member.dir.join("server.log");
        let process = Process::start(member.name, command.current_dir(&member.dir), &log)?;
        let ends_at = (!member.cage.is_held()).then_some(member.cage.bytes);
        self.guard.set(number, Some(process.pid()), ends_at);
        let target = RestConfig::local(member.port, self.admin.tls.clone());
        member.state = State::Starting(process, tokio::spawn(ready(target)));
        Ok(())
    }

    /// Sends it no more connections; what it was.
    fn gone(&mut self, number: usize) -> State {
        self.open(number, false);
        self.guard.set(number, None, None);
        std::mem::replace(&mut self.members[number].state, State::Gone(Instant::now() + self.down))
    }

    fn open(&self, number: usize, is_ready: bool) {
        for balancer in [&self.crowd, &self.quiet] {
            balancer.backends[number].is_ready.store(is_ready, Ordering::Relaxed);
        }
    }
}

/// Whoever is killed, and not by who measures, is killed for its memory: by the kernel, or by the guard.
impl std::fmt::Display for Death {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Death { after, status, resident } = self;
        let (seconds, resident) = (after.as_secs_f64(), resident >> 20);
        match status.starts_with("signal: 9") {
            true => write!(f, "died after {seconds:.1} s, killed for its memory at {resident} MiB"),
            false => write!(f, "died after {seconds:.1} s ({status}) at {resident} MiB"),
        }
    }
}

/// Returns when a server says that it is ready.
async fn ready(target: RestConfig) -> Result<(), Error> {
    loop {
        if let Ok(mut client) = Client::connect(&target, Protocol::Http1).await
            && client.get("/readyz").await.is_ok_and(|answer| answer.status == 200)
        {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn make(dir: &Path) -> Result<(), Error> {
    std::fs::create_dir(dir).map_err(Error::file("cannot create", dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_is_told_with_its_time_and_what_it_was_of() {
        let died = |status: &str| {
            let death =
                Death { after: Duration::from_millis(1_500), status: status.into(), resident: 3 << 30 };
            death.to_string()
        };
        assert_eq!(died("signal: 9 (SIGKILL)"), "died after 1.5 s, killed for its memory at 3072 MiB");
        assert_eq!(died("exit status: 1"), "died after 1.5 s (exit status: 1) at 3072 MiB");
    }
}
