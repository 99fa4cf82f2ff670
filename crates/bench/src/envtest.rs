//! Starts a control plane as envtest of controller-runtime does: an etcd, waited for, then a kube-apiserver.
//!
//! In: who is measured, and a directory. Out: a ready [`Instance`] of two processes. Forebay is started by
//! the same names and the same arguments, through links. Never: an argument that envtest does not give.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::contender::{Contender, shown};
use crate::server::{Instance, Process, free_ports};
use crate::{Error, pki};

/// The two programs.
#[derive(Debug)]
pub struct Assets {
    etcd: PathBuf,
    apiserver: PathBuf,
}

impl Assets {
    /// What envtest finds; links for forebay are made in `dir`.
    pub fn of(who: &Contender, dir: &Path) -> Result<Assets, Error> {
        let program = match who {
            Contender::Kubernetes(kubernetes) => {
                return Ok(Assets { etcd: kubernetes.etcd.clone(), apiserver: kubernetes.apiserver.clone() });
            }
            Contender::Forebay(forebay) => &forebay.program,
        };
        let program = std::path::absolute(program).map_err(Error::file("cannot find", program))?;
        let link = |name: &str| {
            let path = dir.join(name);
            symlink(&program, &path).map_err(Error::file("cannot link", &path))?;
            Ok(path)
        };
        Ok(Assets { etcd: link("etcd")?, apiserver: link("kube-apiserver")? })
    }

    /// Starts both on `dir`, which is new.
    pub async fn start(&self, dir: &Path) -> Result<Instance, Error> {
        fs::create_dir(dir).map_err(Error::file("cannot create", dir))?;
        pki::write(dir)?;
        for end in ["crt", "key"] {
            // kube-apiserver serves what has this name below --cert-dir.
            let (from, to) = (dir.join(format!("server.{end}")), dir.join(format!("apiserver.{end}")));
            fs::copy(from, &to).map_err(Error::file("cannot write", &to))?;
        }
        let [client_port, peer_port, secure_port] = free_ports()?;
        let place = dir.to_string_lossy();

        let args = etcd_args(&place, &client_port.to_string(), &peer_port.to_string());
        let log = dir.join("etcd.log");
        let mut etcd = Process::start("etcd", Command::new(&self.etcd).args(args).current_dir(dir), &log)?;
        etcd.listening(client_port).await?;
        healthy(&mut etcd, client_port).await?;

        let args = apiserver_args(&place, &client_port.to_string(), &secure_port.to_string());
        let command = &mut Command::new(&self.apiserver);
        let log = dir.join("kube-apiserver.log");
        let mut apiserver = Process::start("kube-apiserver", command.args(args).current_dir(dir), &log)?;
        let (target, ready) = apiserver.ready(etcd.started, secure_port, || pki::credentials(dir)).await?;
        Ok(Instance {
            name: "control plane",
            processes: vec![etcd, apiserver],
            target,
            ready,
            etcd_port: Some(client_port),
        })
    }
}

/// The command lines, with `$DIR` for the directory of one control plane and `$PORT`s for its ports.
pub fn commands() -> String {
    let etcd = shown(Path::new("etcd"), &etcd_args("$DIR", "$PORT1", "$PORT2"));
    let apiserver = shown(Path::new("kube-apiserver"), &apiserver_args("$DIR", "$PORT1", "$PORT3"));
    format!("{etcd}; {apiserver}")
}

fn etcd_args(dir: &str, client: &str, peer: &str) -> Vec<String> {
    vec![
        format!("--advertise-client-urls=http://127.0.0.1:{client}"),
        format!("--data-dir={dir}/etcd"),
        format!("--listen-client-urls=http://127.0.0.1:{client}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
        "--unsafe-no-fsync=true".into(),
    ]
}

fn apiserver_args(dir: &str, etcd: &str, secure: &str) -> Vec<String> {
    vec![
        "--allow-privileged=true".into(),
        "--authorization-mode=RBAC".into(),
        "--bind-address=127.0.0.1".into(),
        format!("--cert-dir={dir}"),
        format!("--client-ca-file={dir}/ca.crt"),
        "--disable-admission-plugins=ServiceAccount".into(),
        format!("--etcd-servers=http://127.0.0.1:{etcd}"),
        format!("--secure-port={secure}"),
        format!("--service-account-issuer=https://127.0.0.1:{secure}/"),
        format!("--service-account-key-file={dir}/sa.pub"),
        format!("--service-account-signing-key-file={dir}/sa.key"),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
    ]
}

/// Waits for 200 on etcd's `/health`.
async fn healthy(etcd: &mut Process, port: u16) -> Result<(), Error> {
    let since = Instant::now();
    loop {
        let last = match health(port).await {
            Ok(answer) if answer.starts_with("HTTP/1.1 200 ") => return Ok(()),
            Ok(answer) => answer,
            Err(why) => why.to_string(),
        };
        etcd.again("become healthy", since, &last).await?;
    }
}

async fn health(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
