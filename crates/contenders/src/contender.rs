//! Who is measured: forebay, or kube-apiserver on etcd.
//!
//! In: where the programs are. Out: a ready [`Instance`] on a directory, new or used before.
//! Never: a difference between the two beyond what they need to start.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;
use crate::forebay::Forebay;
use crate::kubernetes::Kubernetes;
use crate::server::Instance;

#[derive(Clone, Debug)]
pub enum Contender {
    Forebay(Forebay),
    Kubernetes(Kubernetes),
}

impl Contender {
    pub fn name(&self) -> &'static str {
        match self {
            Contender::Forebay(forebay) => forebay.name(),
            Contender::Kubernetes(_) => "kube-apiserver + etcd",
        }
    }

    /// The same with further flags for the API server.
    pub fn with_flags(&self, flags: Vec<String>) -> Contender {
        let mut who = self.clone();
        match &mut who {
            Contender::Forebay(forebay) => forebay.flags = flags,
            Contender::Kubernetes(kubernetes) => kubernetes.flags = flags,
        }
        who
    }

    /// The same that counts as ready once it says so there: `/readyz` without some of its checks.
    pub fn ready_at(mut self, path: &'static str) -> Contender {
        match &mut self {
            Contender::Forebay(forebay) => forebay.ready = path,
            Contender::Kubernetes(kubernetes) => kubernetes.ready = path,
        }
        self
    }

    /// Starts on `dir` and waits until it is ready.
    pub async fn start(&self, dir: &Path) -> Result<Instance, Error> {
        match self {
            Contender::Forebay(forebay) => forebay.start(dir).await,
            Contender::Kubernetes(kubernetes) => kubernetes.start(dir).await,
        }
    }

    /// Ends the API server by SIGTERM and starts it again on `dir`; an etcd below goes on. It is ready since
    /// its own start.
    pub async fn restart(&self, dir: &Path, server: Instance) -> Result<Instance, Error> {
        let etcd = server.stop_apiserver().await?;
        match (self, etcd) {
            (Contender::Forebay(forebay), etcd) => forebay.serve(dir, etcd).await,
            (Contender::Kubernetes(kubernetes), Some(etcd)) => kubernetes.serve(dir, etcd).await,
            (Contender::Kubernetes(kubernetes), None) => kubernetes.start(dir).await,
        }
    }

    /// What is run as one of several servers on one etcd, which have the certificates and keys of
    /// [`pki::write`](crate::pki::write) and the users of a file of tokens in common.
    pub fn member(&self, dir: &Path, shared: &Path, etcd: u16, port: u16) -> (PathBuf, Vec<String>) {
        let file = |name: &str| shared.join(name).to_string_lossy().into_owned();
        let mut args = vec![
            format!("--etcd-servers=http://127.0.0.1:{etcd}"),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--service-account-key-file={}", file("sa.pub")),
            format!("--service-account-signing-key-file={}", file("sa.key")),
        ];
        match self {
            Contender::Forebay(forebay) => {
                args.insert(0, "serve".into());
                args.push(format!("--data-dir={}", dir.join("data").display()));
                args.extend(forebay.flags());
                (forebay.program.clone(), args)
            }
            Contender::Kubernetes(kubernetes) => {
                args.push(format!("--cert-dir={}", dir.display()));
                args.extend_from_slice(&kubernetes.flags);
                (kubernetes.apiserver.clone(), args)
            }
        }
    }

    /// The etcd that it stands on, if it does.
    pub fn etcd(&self) -> Option<&Path> {
        match self {
            Contender::Forebay(forebay) => forebay.etcd.as_deref(),
            Contender::Kubernetes(kubernetes) => Some(&kubernetes.etcd),
        }
    }

    /// The command lines as they are run, with `$DIR` for the directory and `$PORT`s for the ports.
    pub fn commands(&self) -> Vec<String> {
        match self {
            Contender::Forebay(forebay) => forebay.commands(),
            Contender::Kubernetes(kubernetes) => kubernetes.commands(),
        }
    }

    /// What the programs say of their own version.
    pub fn versions(&self) -> Vec<String> {
        match self {
            Contender::Forebay(forebay) => vec![version(&forebay.program, "version")],
            Contender::Kubernetes(kubernetes) => {
                vec![version(&kubernetes.apiserver, "--version"), version(&kubernetes.etcd, "--version")]
            }
        }
    }
}

/// Returns an error unless there is a file at `path`.
pub fn present(program: &'static str, path: &Path, how: &'static str) -> Result<(), Error> {
    match path.is_file() {
        true => Ok(()),
        false => Err(Error::Missing { program, path: path.to_owned(), how }),
    }
}

/// The first line that `program` says when asked for its version.
fn version(program: &Path, ask: &str) -> String {
    let said = Command::new(program).arg(ask).output();
    let line =
        said.ok().and_then(|said| String::from_utf8_lossy(&said.stdout).lines().next().map(str::to_owned));
    line.unwrap_or_else(|| format!("{} (says no version)", name(program)))
}

/// A command line as it is printed: the program without its directory.
pub fn shown(program: &Path, args: &[String]) -> String {
    std::iter::once(name(program)).chain(args.iter().cloned()).collect::<Vec<_>>().join(" ")
}

fn name(program: &Path) -> String {
    program.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
