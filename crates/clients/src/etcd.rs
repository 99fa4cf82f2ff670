//! An etcd cluster of our own: one member or three, each a process that can be killed, stopped and started
//! again.
//!
//! In: the etcd that `cargo xtask peers` built. Out: members that answer, and the flags of a server that uses
//! them. Never: synced to disk; these tests kill processes, not machines.

mod series;

use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub use series::{ClusterToken, Security, Series};

use crate::https::plain;
use crate::process::Process;
use crate::relay::{Relay, Trouble};
use crate::wait::until;
use crate::watchdog::Watchdog;
use crate::{needs, pki, ports};

const LISTENS_MAX: Duration = Duration::from_secs(120);

/// One owner; dropping it kills the processes and removes their directory, and so does our death.
#[derive(Debug)]
pub struct Cluster {
    watchdog: Watchdog,
    program: PathBuf,
    security: Security,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: &'static str,
    client_port: u16,
    peer_port: u16,
    process: Option<Process>,
    relays: Option<Relays>,
}

/// Ways to a member that can be broken.
#[derive(Debug)]
pub struct Relays {
    /// For those who are told [`Cluster::flags`].
    pub clients: Relay,
    /// For the other members.
    pub peers: Relay,
}

impl Relays {
    fn start(client_port: u16, peer_port: u16) -> Result<Relays, String> {
        Ok(Relays { clients: Relay::start(client_port)?, peers: Relay::start(peer_port)? })
    }
}

/// The file of a backup.
const BACKUP: &str = "backup.db";

const NAMES: [&str; 3] = ["etcd-0", "etcd-1", "etcd-2"];

impl Cluster {
    /// Starts `size` members, 3 at most, and waits until they listen.
    ///
    /// # Errors
    /// No etcd, no port, or a member that does not start.
    pub fn start(size: usize, security: Security) -> Result<Cluster, String> {
        Cluster::start_of(Series::V3_6, size, security)
    }

    /// The same of another version.
    ///
    /// # Errors
    /// As for [`Cluster::start`].
    pub fn start_of(series: Series, size: usize, security: Security) -> Result<Cluster, String> {
        Cluster::start_from(series.program()?, size, security)
    }

    /// The same, plain, with relays before each member.
    ///
    /// # Errors
    /// As for [`Cluster::start`].
    pub fn start_relayed(series: Series, size: usize) -> Result<Cluster, String> {
        Cluster::start_relayed_of(series, size, Security::Plain)
    }

    /// The same, with relays that carry TLS as well.
    ///
    /// # Errors
    /// As for [`Cluster::start`].
    pub fn start_relayed_of(series: Series, size: usize, security: Security) -> Result<Cluster, String> {
        Cluster::start_as(series.program()?, size, security, true)
    }

    /// The same with the etcd at `program`.
    ///
    /// # Errors
    /// As for [`Cluster::start`].
    pub fn start_from(program: &Path, size: usize, security: Security) -> Result<Cluster, String> {
        Cluster::start_as(program, size, security, false)
    }

    fn start_as(
        program: &Path,
        size: usize,
        security: Security,
        is_relayed: bool,
    ) -> Result<Cluster, String> {
        let watchdog = Watchdog::new()?;
        if security == Security::Mutual {
            pki::write_etcd(watchdog.dir())?;
        }
        let member = |name| {
            let [client_port, peer_port] = ports::free()?;
            let relays = is_relayed.then(|| Relays::start(client_port, peer_port)).transpose()?;
            Ok(Member { name, client_port, peer_port, process: None, relays })
        };
        let members = NAMES.into_iter().take(size).map(member).collect::<Result<_, String>>()?;
        let mut cluster = Cluster { watchdog, program: program.to_owned(), security, members };
        for number in 0..cluster.members.len() {
            cluster.launch(number)?;
        }
        for number in 0..cluster.members.len() {
            cluster.wait(number)?;
        }
        Ok(cluster)
    }

    /// Where the members' files and the certificates are.
    pub fn dir(&self) -> &Path {
        self.watchdog.dir()
    }

    /// The URL of each member; of its relay, where there is one.
    pub fn endpoints(&self) -> Vec<String> {
        let port = |member: &Member| match &member.relays {
            Some(relays) => relays.clients.port(),
            None => member.client_port,
        };
        self.members.iter().map(|member| self.url(port(member))).collect()
    }

    /// The URL of each member itself.
    pub fn direct_endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| self.url(member.client_port)).collect()
    }

    fn url(&self, port: u16) -> String {
        let scheme = if self.security == Security::Mutual { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{port}")
    }

    /// The relays before a member.
    ///
    /// # Errors
    /// It has none.
    pub fn relays(&self, number: usize) -> Result<&Relays, String> {
        self.members[number].relays.as_ref().ok_or_else(|| "the member has no relays".to_owned())
    }

    /// What `forebay serve` and kube-apiserver are told of it.
    pub fn flags(&self) -> Vec<String> {
        self.flags_for(&self.endpoints())
    }

    /// The same, past the relays.
    pub fn direct_flags(&self) -> Vec<String> {
        self.flags_for(&self.direct_endpoints())
    }

    fn flags_for(&self, endpoints: &[String]) -> Vec<String> {
        let mut flags = vec![format!("--etcd-servers={}", endpoints.join(","))];
        if self.security == Security::Mutual {
            let file = |flag: &str, name: &str| format!("--etcd-{flag}={}", self.dir().join(name).display());
            flags.extend([
                file("cafile", "ca.crt"),
                file("certfile", "client.crt"),
                file("keyfile", "client.key"),
            ]);
        }
        flags
    }

    /// Kills a member by SIGKILL; its data stays.
    ///
    /// # Errors
    /// It does not run.
    pub fn kill(&mut self, number: usize) -> Result<(), String> {
        let mut process = self.members[number].process.take().ok_or("the member does not run")?;
        process.kill(&mut self.watchdog)
    }

    /// Kills a member, and starts it again as one of another version; the last one waits until all act as
    /// that version.
    ///
    /// # Errors
    /// It was not built, or the members do not get along.
    pub fn change(&mut self, number: usize, series: Series) -> Result<(), String> {
        self.kill(number)?;
        self.program = series.program()?.to_owned();
        self.restart(number)?;
        until("it takes part", LISTENS_MAX, || {
            if let Some(process) = &mut self.members[number].process {
                process.alive()?;
            }
            self.gateway_of(number, "kv/range", r#"{"key":"AA=="}"#)
        })?;
        if number + 1 < self.members.len() {
            return Ok(());
        }
        let wanted = format!(r#""etcdcluster":"{}."#, series.name());
        until("all members act as the new version", LISTENS_MAX, || {
            let told = self.get(0, "/version")?;
            if told.contains(&wanted) { Ok(()) } else { Err(told) }
        })
    }

    /// Starts a member that was killed, and waits until it listens.
    ///
    /// # Errors
    /// It does not start.
    pub fn restart(&mut self, number: usize) -> Result<(), String> {
        self.launch(number)?;
        self.wait(number)
    }

    /// Lets a member do nothing from now on, its connections standing.
    ///
    /// # Errors
    /// It does not run.
    pub fn pause(&mut self, number: usize) -> Result<(), String> {
        self.members[number].process.as_mut().ok_or("the member does not run")?.pause()
    }

    /// Ends [`Cluster::pause`].
    ///
    /// # Errors
    /// It does not run.
    pub fn resume(&mut self, number: usize) -> Result<(), String> {
        self.members[number].process.as_mut().ok_or("the member does not run")?.resume()
    }

    /// Gives up history before `revision`. A plain cluster only.
    ///
    /// # Errors
    /// etcd says no.
    pub fn compact(&self, revision: u64) -> Result<(), String> {
        let body = format!(r#"{{"revision":"{revision}","physical":true}}"#);
        self.gateway("kv/compaction", &body).map(drop)
    }

    /// A request to the first member's JSON gateway. A plain cluster only.
    ///
    /// # Errors
    /// etcd says no.
    pub fn gateway(&self, call: &str, body: &str) -> Result<serde_json::Value, String> {
        self.gateway_of(0, call, body)
    }

    /// A request to a member's JSON gateway. A plain cluster only.
    ///
    /// # Errors
    /// etcd says no.
    pub fn gateway_of(&self, number: usize, call: &str, body: &str) -> Result<serde_json::Value, String> {
        gateway(self.members[number].client_port, call, body)
    }

    /// Puts a value past every server. A plain cluster only.
    ///
    /// # Errors
    /// etcd says no.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<(), String> {
        let body = serde_json::json!({ "key": STANDARD.encode(key), "value": STANDARD.encode(value) });
        self.gateway("kv/put", &body.to_string()).map(drop)
    }

    /// Whether there is a value at `key`. A plain cluster only.
    ///
    /// # Errors
    /// etcd says no.
    pub fn has(&self, key: &str) -> Result<bool, String> {
        let body = serde_json::json!({ "key": STANDARD.encode(key), "count_only": true });
        Ok(self.gateway("kv/range", &body.to_string())?["count"] == "1")
    }

    /// The member that leads, as soon as one does.
    ///
    /// # Errors
    /// None does in time.
    pub fn leader(&self) -> Result<usize, String> {
        until("etcd has a leader", LISTENS_MAX, || {
            let running = (0..self.members.len()).filter(|n| self.members[*n].process.is_some());
            let leads = |number: &usize| {
                let status = self.gateway_of(*number, "maintenance/status", "{}");
                status.is_ok_and(|status| status["leader"] == status["header"]["member_id"])
            };
            running.into_iter().find(leads).ok_or_else(|| "none leads".to_owned())
        })
    }

    /// Cuts a member off from the others, both ways, and from nobody else.
    ///
    /// # Errors
    /// No relays, or etcd says no.
    pub fn part(&self, number: usize) -> Result<(), String> {
        let status = self.gateway_of(number, "maintenance/status", "{}")?;
        let id = status["header"]["member_id"].as_str().and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| format!("no id in {status}"))?;
        for other in 0..self.members.len() {
            let trouble = if other == number { Trouble::Hold } else { Trouble::HoldFrom(id) };
            self.relays(other)?.peers.set(trouble);
        }
        Ok(())
    }

    /// The member that most watches are at.
    ///
    /// # Errors
    /// There are none.
    pub fn most_watched(&self) -> Result<usize, String> {
        let mut most = (0, 0);
        for number in 0..self.members.len() {
            let watchers =
                self.metric(number, |line| line.starts_with("etcd_debugging_mvcc_watcher_total "))?;
            most = most.max((watchers, number));
        }
        if most.0 > 0 { Ok(most.1) } else { Err("nobody watches".to_owned()) }
    }

    /// Kills all members but one, and waits until that one has ended watches because it has no leader. They
    /// have to be there: one that is opened later is refused, which is not counted.
    ///
    /// # Errors
    /// It ends none in time.
    pub fn leave_alone(&mut self, number: usize) -> Result<(), String> {
        let is_ended = |line: &str| {
            line.starts_with("grpc_server_handled_total{")
                && line.contains(r#"grpc_code="Unavailable""#)
                && line.contains(r#"grpc_method="Watch""#)
        };
        let before = self.metric(number, is_ended)?;
        for other in (0..self.members.len()).filter(|other| *other != number) {
            self.kill(other)?;
        }
        until("etcd ends watches for want of a leader", LISTENS_MAX, || {
            match self.metric(number, is_ended)? > before {
                true => Ok(()),
                false => Err(format!("{before} were ended before, and no more")),
            }
        })
    }

    /// The sum of a member's metrics that `is_wanted` chooses by their lines.
    fn metric(&self, number: usize, is_wanted: impl Fn(&str) -> bool) -> Result<u64, String> {
        let told = self.get(number, "/metrics")?;
        let values = told.lines().filter(|line| is_wanted(line)).filter_map(|line| line.rsplit_once(' '));
        // Counts are written as floats.
        Ok(values.filter_map(|(_, value)| value.parse::<f64>().ok()).sum::<f64>() as u64)
    }

    /// Starts all members that were killed, and waits until they listen.
    ///
    /// # Errors
    /// One does not start.
    pub fn restart_all(&mut self) -> Result<(), String> {
        let gone: Vec<_> = (0..self.members.len()).filter(|n| self.members[*n].process.is_none()).collect();
        gone.iter().try_for_each(|number| self.launch(*number))?;
        gone.iter().try_for_each(|number| self.wait(*number))
    }

    /// Calls of the keys' service that members have begun to answer since they were started, by their own
    /// count. A plain cluster only.
    ///
    /// # Errors
    /// A member does not say.
    pub fn calls(&self) -> Result<u64, String> {
        let is_call = |line: &&str| {
            line.starts_with("grpc_server_started_total{")
                && line.contains(r#"grpc_service="etcdserverpb.KV""#)
        };
        let mut calls = 0;
        for number in 0..self.members.len() {
            let metrics = self.get(number, "/metrics")?;
            for line in metrics.lines().filter(is_call) {
                let count = line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok());
                calls += count.ok_or_else(|| format!("no number: {line}"))?;
            }
        }
        Ok(calls)
    }

    /// GETs `path` of a member.
    fn get(&self, number: usize, path: &str) -> Result<String, String> {
        let request = format!("GET {path} HTTP/1.0\r\nHost: etcd\r\n\r\n");
        plain(self.members[number].client_port, &request).map_err(|why| format!("etcd: {why}"))
    }

    /// Copies the state of a cluster of one, as a backup. The member is not there meanwhile.
    ///
    /// # Errors
    /// It does not stop, or start again.
    pub fn back_up(&mut self) -> Result<(), String> {
        self.kill(0)?;
        let state = self.dir().join(NAMES[0]).join("member/snap/db");
        fs::copy(&state, self.dir().join(BACKUP)).map_err(|e| format!("{}: {e}", state.display()))?;
        self.restart(0)
    }

    /// Restores the backup in place of what is there, by etcdutl.
    ///
    /// - `bump`: by how much the revision is raised; what was before it is marked as compacted then.
    /// - `identity`: which cluster it is then.
    ///
    /// # Errors
    /// There is no backup, or etcdutl says no.
    pub fn restore(&mut self, bump: Option<u64>, identity: ClusterToken) -> Result<(), String> {
        self.kill(0)?;
        let peers = format!("http://127.0.0.1:{}", self.members[0].peer_port);
        let mut command = Command::new(&needs::peers()?.etcdutl);
        command.current_dir(self.dir()).args(["snapshot", "restore", BACKUP, "--skip-hash-check"]).args([
            "--data-dir=restored".to_owned(),
            format!("--name={}", NAMES[0]),
            format!("--initial-cluster={}={peers}", NAMES[0]),
            format!("--initial-advertise-peer-urls={peers}"),
        ]);
        if let Some(by) = bump {
            command.arg(format!("--bump-revision={by}")).arg("--mark-compacted");
        }
        if identity == ClusterToken::New {
            command.arg("--initial-cluster-token=restored");
        }
        needs::output(&mut command)?;
        let (restored, home) = (self.dir().join("restored"), self.dir().join(NAMES[0]));
        let shown = |e: std::io::Error| format!("{}: {e}", home.display());
        fs::remove_dir_all(&home).map_err(shown)?;
        fs::rename(restored, &home).map_err(shown)?;
        self.restart(0)
    }

    /// Has another member lead.
    ///
    /// # Errors
    /// etcd says no.
    pub fn move_leader(&self) -> Result<(), String> {
        let from = self.leader()?;
        let to = self.gateway_of((from + 1) % self.members.len(), "maintenance/status", "{}")?;
        let body = serde_json::json!({ "targetID": to["header"]["member_id"] });
        self.gateway_of(from, "maintenance/transfer-leadership", &body.to_string()).map(drop)
    }

    /// Has each member copy its file, which holds it up.
    ///
    /// # Errors
    /// etcd says no.
    pub fn defragment(&self) -> Result<(), String> {
        (0..self.members.len())
            .try_for_each(|number| self.gateway_of(number, "maintenance/defragment", "{}").map(drop))
    }

    /// Raises or takes back the alarm that there is no space left.
    ///
    /// # Errors
    /// etcd says no.
    pub fn alarm(&self, is_full: bool) -> Result<(), String> {
        let action = if is_full { "ACTIVATE" } else { "DEACTIVATE" };
        let id = &self.gateway("maintenance/status", "{}")?["header"]["member_id"];
        let body = serde_json::json!({ "action": action, "memberID": id, "alarm": "NOSPACE" });
        self.gateway("maintenance/alarm", &body.to_string()).map(drop)
    }

    /// The revision that is current.
    ///
    /// # Errors
    /// etcd says no.
    pub fn revision(&self) -> Result<u64, String> {
        let read = self.gateway("kv/range", r#"{"key":"AA=="}"#)?;
        let revision = read["header"]["revision"].as_str().and_then(|text| text.parse().ok());
        revision.ok_or_else(|| format!("no revision in {read}"))
    }

    fn launch(&mut self, number: usize) -> Result<(), String> {
        let args = self.args(number);
        let member = &mut self.members[number];
        let process =
            Process::start(member.name, Command::new(&self.program).args(args), &mut self.watchdog)?;
        member.process = Some(process);
        Ok(())
    }

    fn wait(&mut self, number: usize) -> Result<(), String> {
        let member = &mut self.members[number];
        let process = member.process.as_mut().ok_or("the member does not run")?;
        until("etcd listens", LISTENS_MAX, || {
            process.alive()?;
            TcpStream::connect(("127.0.0.1", member.client_port)).map_err(|e| e.to_string())
        })?;
        Ok(())
    }

    fn args(&self, number: usize) -> Vec<String> {
        let member = &self.members[number];
        let url = self.url(member.client_port);
        let peer = |member: &Member| match &member.relays {
            Some(relays) => format!("http://127.0.0.1:{}", relays.peers.port()),
            None => format!("http://127.0.0.1:{}", member.peer_port),
        };
        let all: Vec<String> =
            self.members.iter().map(|member| format!("{}={}", member.name, peer(member))).collect();
        let mut args = vec![
            format!("--name={}", member.name),
            format!("--data-dir={}", member.name),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls=http://127.0.0.1:{}", member.peer_port),
            format!("--initial-advertise-peer-urls={}", peer(member)),
            format!("--initial-cluster={}", all.join(",")),
        ];
        if self.security == Security::Mutual {
            args.extend(
                [
                    "--cert-file=etcd.crt",
                    "--key-file=etcd.key",
                    "--trusted-ca-file=ca.crt",
                    "--client-cert-auth",
                    "--enable-grpc-gateway=false",
                ]
                .map(str::to_owned),
            );
        }
        args
    }
}

/// A request to the JSON gateway of the member at `port`.
pub(crate) fn gateway(port: u16, call: &str, body: &str) -> Result<serde_json::Value, String> {
    let head = format!(
        "POST /v3/{call} HTTP/1.0\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let answer = plain(port, &format!("{head}{body}")).map_err(|why| format!("etcd: {why}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.split(' ').nth(1) != Some("200") {
        return Err(format!("etcd refuses {call}: {answer}"));
    }
    serde_json::from_str(body).map_err(|e| format!("etcd answers {call} with {body:?}: {e}"))
}
