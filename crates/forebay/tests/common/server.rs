//! The real binary, as a child process.
//!
//! In: a directory and flags. Out: a server that answers, or what it said when it would not start. Killed on
//! drop.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::client::{Client, Identity, Protocol};
use super::{Scratch, WAIT, text};

/// A running `forebay serve`.
pub struct Server {
    child: Child,
    pub port: u16,
    /// PEM, from the kubeconfig that it wrote.
    pub authority: String,
    pub certificate: String,
    pub key: String,
}

/// It ended instead of serving.
#[derive(Debug)]
pub struct Refused {
    pub code: Option<i32>,
    pub stderr: String,
}

impl Server {
    /// Serves what is in `scratch` on a free port.
    pub async fn start(scratch: &Scratch, flags: &[&str]) -> Server {
        match Server::try_start(scratch, flags).await {
            Ok(server) => server,
            Err(refused) => panic!("it did not start ({:?}): {}", refused.code, refused.stderr),
        }
    }

    /// The same, in the control group whose directory that is.
    pub async fn start_in(scratch: &Scratch, flags: &[&str], group: &Path) -> Server {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec "$@""#]).arg(group);
        shell.arg(env!("CARGO_BIN_EXE_forebay"));
        match Server::run(scratch, flags, shell).await {
            Ok(server) => server,
            Err(refused) => panic!("it did not start ({:?}): {}", refused.code, refused.stderr),
        }
    }

    /// # Errors
    /// It ended with an error.
    pub async fn try_start(scratch: &Scratch, flags: &[&str]) -> Result<Server, Refused> {
        Server::run(scratch, flags, Command::new(env!("CARGO_BIN_EXE_forebay"))).await
    }

    async fn run(scratch: &Scratch, flags: &[&str], command: Command) -> Result<Server, Refused> {
        let data = scratch.path().join("data");
        let log = scratch.new_path("stderr");
        let mut child = spawn(command, &data, &log, flags);
        let stdout = child.stdout.take().expect("its stdout");
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(WAIT, lines.next_line()).await.expect("no word from it").expect("its stdout");
        if line.is_none() {
            let status = timeout(WAIT, child.wait()).await.expect("it does not end").expect("its end");
            let stderr = fs::read_to_string(&log).expect("its stderr");
            return Err(Refused { code: status.code(), stderr });
        }
        let kubeconfig = fs::read_to_string(data.join("admin.kubeconfig")).expect("a kubeconfig");
        Ok(Server::of(child, &serde_saphyr::from_str(&kubeconfig).expect("YAML")))
    }

    fn of(child: Child, kubeconfig: &Value) -> Server {
        let data = |pointer: &str| {
            let bytes = STANDARD.decode(text(kubeconfig, pointer)).expect("base64");
            String::from_utf8(bytes).expect("PEM")
        };
        let url = text(kubeconfig, "/clusters/0/cluster/server");
        let port = url.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        Server {
            child,
            port: port.unwrap_or_else(|| panic!("no port: {url}")),
            authority: data("/clusters/0/cluster/certificate-authority-data"),
            certificate: data("/users/0/user/client-certificate-data"),
            key: data("/users/0/user/client-key-data"),
        }
    }

    /// The administrator, over HTTP/2.
    pub async fn admin(&self) -> Client {
        self.admin_over(Protocol::Http2).await
    }

    pub async fn admin_over(&self, protocol: Protocol) -> Client {
        let admin = Identity::Certificate { chain: &self.certificate, key: &self.key };
        self.client(protocol, admin).await
    }

    pub async fn client(&self, protocol: Protocol, identity: Identity<'_>) -> Client {
        Client::connect(self.port, &self.authority, protocol, identity).await.expect("a connection")
    }

    /// Ends it at once, and waits until it is gone.
    pub async fn kill(mut self) {
        timeout(WAIT, self.child.kill()).await.expect("it does not end").expect("it was there");
    }

    /// Of its process.
    pub fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Asks for an orderly end.
    pub fn terminate(&self) {
        let pid = self.id().try_into().ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::TERM).expect("a signal");
    }

    /// Waits for its end.
    pub async fn ended(mut self) -> ExitStatus {
        timeout(WAIT, self.child.wait()).await.expect("it does not end").expect("its end")
    }
}

fn spawn(mut command: Command, data: &Path, log: &PathBuf, flags: &[&str]) -> Child {
    // Nobody makes service accounts where no controllers are; who wants either says so.
    let says = |flag: &&str| flag.contains("admission-plugins") || flag.starts_with("--controllers");
    let accounts = ["--disable-admission-plugins=ServiceAccount"];
    let accounts = if flags.iter().any(says) { &[] } else { &accounts[..] };
    command
        // What controllers write comes when it comes.
        .args(["serve", "--controllers=", "--secure-port=0", "--data-dir"])
        .arg(data)
        .args(accounts)
        .args(flags)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(log).expect("a log"))
        .kill_on_drop(true)
        .spawn()
        .expect("the binary")
}
