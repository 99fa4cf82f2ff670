//! Starts the rival: kube-apiserver on etcd, both at default flags.
//!
//! In: the binaries and a directory. Out: a ready [`Instance`] of two processes. Never: a flag that is not
//! needed to start at all, unless a scenario is about flags. Between the two is plain HTTP, which costs them
//! less than the TLS of a real cluster, and authorization is at its default, AlwaysAllow, which costs them
//! less than RBAC.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::contender::{present, shown};
use crate::server::{Instance, Process, READY, RunningEtcd, free_ports};
use crate::{Error, pki};

pub const HOW: &str = "build it with `cargo xtask peers`";

#[derive(Clone, Debug)]
pub struct Kubernetes {
    pub etcd: PathBuf,
    pub apiserver: PathBuf,
    /// Further flags, of a scenario that is about them.
    pub flags: Vec<String>,
    /// Where it says whether it is ready.
    pub ready: &'static str,
}

impl Kubernetes {
    /// The binaries in `bin`, where `cargo xtask peers` puts them.
    ///
    /// # Errors
    /// [`Error::Missing`] when one is not there.
    pub fn in_dir(bin: &Path) -> Result<Kubernetes, Error> {
        let (etcd, apiserver) = (bin.join("etcd"), bin.join("kube-apiserver"));
        present("etcd", &etcd, HOW)?;
        present("kube-apiserver", &apiserver, HOW)?;
        Ok(Kubernetes { etcd, apiserver, flags: Vec::new(), ready: READY })
    }

    pub async fn start(&self, dir: &Path) -> Result<Instance, Error> {
        let etcd = start_etcd(&self.etcd, dir).await?;
        let since = etcd.process.started;
        Ok(self.serve(dir, etcd).await?.since(since))
    }

    /// Starts kube-apiserver on an etcd that is running.
    pub async fn serve(&self, dir: &Path, etcd: RunningEtcd) -> Result<Instance, Error> {
        let certificates = dir.join("pki");
        if !certificates.exists() {
            fs::create_dir(&certificates).map_err(Error::file("cannot create", &certificates))?;
            pki::write(&certificates)?;
        }
        let [port] = free_ports()?;
        let mut args = apiserver_args(&dir.to_string_lossy(), &etcd.port.to_string(), &port.to_string());
        if self.flags.iter().any(|flag| flag.starts_with("--service-account-signing-endpoint=")) {
            // Who signs elsewhere has no keys here.
            args.retain(|flag| !KEY_FLAGS.iter().any(|key| flag.starts_with(key)));
        }
        args.extend_from_slice(&self.flags);
        let command = &mut Command::new(&self.apiserver);
        let log = dir.join("kube-apiserver.log");
        let mut apiserver = Process::start("kube-apiserver", command.args(args).current_dir(dir), &log)?;
        let (target, ready) = apiserver
            .ready_at(self.ready, apiserver.started, port, || pki::credentials(&certificates))
            .await?;
        let processes = vec![etcd.process, apiserver];
        Ok(Instance { name: "kube-apiserver + etcd", processes, target, ready, etcd_port: Some(etcd.port) })
    }

    pub fn commands(&self) -> Vec<String> {
        vec![
            shown(&self.etcd, &etcd_args("$DIR", "$PORT1", "$PORT2")),
            shown(&self.apiserver, &apiserver_args("$DIR", "$PORT1", "$PORT3")),
        ]
    }
}

/// Starts etcd on `dir` and waits until it listens.
pub async fn start_etcd(program: &Path, dir: &Path) -> Result<RunningEtcd, Error> {
    let [port, peer_port] = free_ports()?;
    let args = etcd_args(&dir.to_string_lossy(), &port.to_string(), &peer_port.to_string());
    let command = &mut Command::new(program);
    let mut process = Process::start("etcd", command.args(args).current_dir(dir), &dir.join("etcd.log"))?;
    process.listening(port).await?;
    Ok(RunningEtcd { process, port })
}

pub fn etcd_args(dir: &str, client: &str, peer: &str) -> Vec<String> {
    vec![
        format!("--data-dir={dir}/etcd"),
        format!("--listen-client-urls=http://127.0.0.1:{client}"),
        format!("--advertise-client-urls=http://127.0.0.1:{client}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-cluster=default=http://127.0.0.1:{peer}"),
    ]
}

/// What says the keys of service accounts' tokens.
const KEY_FLAGS: [&str; 2] = ["--service-account-key-file=", "--service-account-signing-key-file="];

fn apiserver_args(dir: &str, etcd: &str, secure: &str) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={secure}"),
        format!("--tls-cert-file={dir}/pki/server.crt"),
        format!("--tls-private-key-file={dir}/pki/server.key"),
        format!("--client-ca-file={dir}/pki/ca.crt"),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        format!("--service-account-key-file={dir}/pki/sa.pub"),
        format!("--service-account-signing-key-file={dir}/pki/sa.key"),
    ]
}
