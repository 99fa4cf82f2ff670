//! Starts the rival: kube-apiserver on etcd.
//!
//! In: a directory and the programs that `cargo xtask peers` built. Out: their processes, kube-apiserver
//! last. Never: synced to disk; these tests kill processes, not machines.
//!
//! Of the admission plugins ServiceAccount is off: without kube-controller-manager no namespace has a default
//! account, and no pod could be made.

use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::etcd;
use crate::needs;
use crate::pki;
use crate::ports;
use crate::process::Process;
use crate::wait::until;
use crate::watchdog::Watchdog;

const LISTENS_MAX: Duration = Duration::from_secs(120);

/// The plugins of kube-apiserver's default set that are off, there and in ours.
const PLUGINS_OFF: [&str; 1] = ["ServiceAccount"];

#[derive(Debug)]
pub struct Rival {
    /// What it is told of an etcd that is not its own.
    etcd_flags: Option<Vec<String>>,
    /// What else it is told.
    flags: Vec<String>,
    etcd_port: u16,
    peer_port: u16,
    pub port: u16,
}

impl Rival {
    /// Makes certificates and picks ports.
    ///
    /// - `etcd_flags`: of an etcd that runs already; its own if there is none.
    /// - `flags`: what else it is told.
    pub fn new(
        watchdog: &Watchdog,
        etcd_flags: Option<Vec<String>>,
        flags: Vec<String>,
    ) -> Result<Rival, String> {
        let [etcd_port, peer_port, port] = ports::free()?;
        pki::write(watchdog.dir(), port)?;
        Ok(Rival { etcd_flags, flags, etcd_port, peer_port, port })
    }

    /// Starts both on the state they left, if they ran before.
    pub fn start(&self, watchdog: &mut Watchdog) -> Result<Vec<Process>, String> {
        let peers = needs::peers()?;
        let mut processes = Vec::new();
        if self.etcd_flags.is_none() {
            let mut etcd =
                Process::start("etcd", Command::new(&peers.etcd).args(self.etcd_args()), watchdog)?;
            until("etcd listens", LISTENS_MAX, || {
                etcd.alive()?;
                TcpStream::connect(("127.0.0.1", self.etcd_port)).map_err(|e| e.to_string())
            })?;
            processes.push(etcd);
        }
        let command = &mut Command::new(&peers.apiserver);
        processes.push(Process::start("kube-apiserver", command.args(self.apiserver_args()), watchdog)?);
        Ok(processes)
    }

    /// Gives up etcd's history before `revision`.
    pub fn compact(&self, revision: u64) -> Result<(), String> {
        let body = format!(r#"{{"revision":"{revision}","physical":true}}"#);
        etcd::gateway(self.etcd_port, "kv/compaction", &body).map(drop)
    }

    fn etcd_args(&self) -> Vec<String> {
        let (client, peer) = (self.etcd_port, self.peer_port);
        vec![
            "--data-dir=etcd".to_owned(),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
            format!("--listen-client-urls=http://127.0.0.1:{client}"),
            format!("--advertise-client-urls=http://127.0.0.1:{client}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-cluster=default=http://127.0.0.1:{peer}"),
        ]
    }

    fn apiserver_args(&self) -> Vec<String> {
        let own = || vec![format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port)];
        let mut args = self.etcd_flags.clone().unwrap_or_else(own);
        args.extend([
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port),
            "--tls-cert-file=server.crt".to_owned(),
            "--tls-private-key-file=server.key".to_owned(),
            "--client-ca-file=ca.crt".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-account-key-file=sa.pub".to_owned(),
            "--service-account-signing-key-file=sa.key".to_owned(),
        ]);
        if !args.iter().chain(&self.flags).any(|flag| flag.starts_with("--allow-privileged")) {
            // As ours, and as kubeadm has it.
            args.push("--allow-privileged".to_owned());
        }
        if !self.flags.iter().any(|flag| flag.starts_with("--disable-admission-plugins")) {
            args.push(format!("--disable-admission-plugins={}", PLUGINS_OFF.join(",")));
        }
        args.extend(self.flags.iter().cloned());
        args
    }
}
