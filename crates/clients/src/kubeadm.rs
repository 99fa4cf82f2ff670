//! A control plane as kubeadm sets it up, with our server where its manifest says `kube-apiserver`.
//!
//! In: the peers, kubeadm among them. Out: etcd, our server and kube-controller-manager, each started by the
//! command of the manifest that kubeadm writes, on the certificates and kubeconfigs that it makes. One owner;
//! dropping it ends the processes and removes the directory, and so does our death. Never: a file of
//! kubeadm's outside of that directory; a kubelet, whose part the test plays.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::needs::Peers;
use crate::process::Process;
use crate::wait::until;
use crate::watchdog::Watchdog;
use crate::{needs, ports};

const READY_MAX: Duration = Duration::from_secs(120);

/// The token that nodes join with.
pub const TOKEN: &str = "abcdef.0123456789abcdef";

/// See the module's doc.
#[derive(Debug)]
pub struct Kubeadm {
    watchdog: Watchdog,
    peers: &'static Peers,
    /// Where clients reach the server: `address:port`.
    endpoint: String,
    // In the order they were started.
    processes: Vec<Process>,
}

/// How the kubelet asks whether a container is well.
#[derive(Debug, PartialEq, Eq)]
pub struct Probe {
    pub host: String,
    pub path: String,
    /// As the manifest has it: a number, or the name of one of the container's ports.
    pub port: String,
    pub scheme: String,
}

impl Kubeadm {
    /// Has kubeadm make everything that comes before the control plane, and starts that.
    ///
    /// # Errors
    /// What does not start, and its log.
    pub fn start(peers: &'static Peers) -> Result<Kubeadm, String> {
        let watchdog = Watchdog::new()?;
        let [port, etcd, peer, metrics, manager] = ports::free()?;
        let address = address()?;
        let dir = watchdog.dir().display().to_string();
        write(
            &watchdog.dir().join("init.yaml"),
            &config(&dir, address, [port, etcd, peer, metrics, manager]),
        )?;
        write(&watchdog.dir().join("nobody.conf"), "{apiVersion: v1, kind: Config}\n")?;
        let endpoint = format!("{address}:{port}");
        let mut cluster = Kubeadm { watchdog, peers, endpoint, processes: Vec::new() };
        cluster.run("init phase certs all --config init.yaml")?;
        cluster.run(&format!("init phase kubeconfig all --config init.yaml --kubeconfig-dir {dir}"))?;
        // Only so are manifests written elsewhere than where a kubelet may look for them.
        cluster.run("init phase etcd local --config init.yaml --dry-run")?;
        cluster.run("init phase control-plane all --config init.yaml --dry-run")?;
        let apiserver = cluster.dir().join("kube-apiserver");
        symlink(needs::forebay()?, &apiserver).map_err(|e| e.to_string())?;
        for (name, program) in [
            ("etcd", &peers.etcd),
            ("kube-apiserver", &apiserver),
            ("kube-controller-manager", &peers.controller_manager),
        ] {
            cluster.launch(name, program)?;
        }
        until("the server is ready", READY_MAX, || {
            cluster.processes.iter_mut().try_for_each(Process::alive)?;
            needs::output(&mut kubectl(
                peers,
                cluster.watchdog.dir(),
                "super-admin.conf",
                &["get", "--raw", "/readyz"],
            ))
        })
        .map_err(|why| format!("{why}\n{}", cluster.log_end()))?;
        Ok(cluster)
    }

    pub fn dir(&self) -> &Path {
        self.watchdog.dir()
    }

    /// Where clients reach the server: `address:port`.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Runs kubeadm, and returns its standard output.
    ///
    /// # Errors
    /// All that it said, if it fails.
    pub fn run(&self, line: &str) -> Result<String, String> {
        let mut command = Command::new(&self.peers.kubeadm);
        command.args(line.split_whitespace());
        self.at_home(&mut command);
        needs::output(&mut command)
    }

    /// Runs kubectl as whom a kubeconfig of the directory says.
    ///
    /// # Errors
    /// All that it said, if it fails.
    pub fn kubectl(&self, kubeconfig: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = kubectl(self.peers, self.dir(), kubeconfig, arguments);
        self.at_home(&mut command);
        needs::output(&mut command)
    }

    /// Asks as nobody, and believes whoever answers, as a probe.
    ///
    /// # Errors
    /// All that kubectl said, if it fails.
    pub fn anonymous(&self, server: &str, path: &str) -> Result<String, String> {
        // kubectl asks a person for a name where it has none; what it makes of this one means nothing to
        // servers.
        let nobody = ["--username=nobody", "--password=none", "--insecure-skip-tls-verify", "--server"];
        self.kubectl("nobody.conf", &[&nobody[..], &[server, "get", "--raw", path]].concat())
    }

    /// The probe of that name in the manifest of kube-apiserver, such as `livenessProbe`.
    ///
    /// # Errors
    /// There is none.
    pub fn probe(&self, name: &str) -> Result<Probe, String> {
        let manifest = read(&self.dir().join("manifests/kube-apiserver.yaml"))?;
        let (_, behind) =
            manifest.split_once(&format!("\n    {name}:\n")).ok_or_else(|| format!("no {name}"))?;
        let value = |key: &str| {
            let found = behind.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "));
            found
                .map(|value| value.trim_matches(['"', '\'']).to_owned())
                .ok_or_else(|| format!("{name}: no {key}"))
        };
        Ok(Probe {
            host: value("host")?,
            path: value("path")?,
            port: value("port")?,
            scheme: value("scheme")?,
        })
    }

    /// What the manifest of a component says is run.
    ///
    /// # Errors
    /// There is no such manifest.
    pub fn command(&self, name: &str) -> Result<Vec<String>, String> {
        let manifest = read(&self.dir().join(format!("manifests/{name}.yaml")))?;
        let (_, behind) = manifest.split_once("- command:\n").ok_or_else(|| format!("{name}: no command"))?;
        let words = behind.lines().map_while(|line| line.strip_prefix("    - "));
        Ok(words.map(|word| word.trim_matches(['"', '\'']).to_owned()).collect())
    }

    fn launch(&mut self, name: &'static str, program: &Path) -> Result<(), String> {
        let command = self.command(name)?;
        if command.first().is_none_or(|first| first != name) {
            return Err(format!("the manifest of {name} begins with {:?}", command.first()));
        }
        // kubeadm keeps the kubeconfigs of components at one place, whatever it is told.
        let here = format!("{}/", self.dir().display());
        let arguments =
            command[1..].iter().map(|word| word.replace("=/etc/kubernetes/", &format!("={here}")));
        let mut process = Command::new(program);
        process.args(arguments).env_clear();
        self.processes.push(Process::start(name, &mut process, &mut self.watchdog)?);
        Ok(())
    }

    /// kubeadm and kubectl find no home, no proxy and no cluster of somebody's.
    fn at_home(&self, command: &mut Command) {
        let dir = self.dir();
        command.current_dir(dir).env_clear().env("HOME", dir).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.env("KUBEADM_INIT_DRYRUN_DIR", dir.join("manifests"));
        command.env("KUBEADM_JOIN_DRYRUN_DIR", dir.join("joining"));
    }

    /// The last lines that the processes logged.
    pub fn log_end(&self) -> String {
        self.processes.iter().map(Process::log_end).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Kubeadm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_end());
        }
        // What could not be killed and reaped here is left to the watchdog.
        for process in self.processes.iter_mut().rev() {
            let _ = process.kill(&mut self.watchdog);
        }
    }
}

fn kubectl(peers: &Peers, dir: &Path, kubeconfig: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(&peers.kubectl);
    command.arg("--kubeconfig").arg(dir.join(kubeconfig)).args(arguments);
    command
}

/// What kubeadm is told: where everything is, and ports that nobody has.
fn config(dir: &str, address: IpAddr, [port, etcd, peer, metrics, manager]: [u16; 5]) -> String {
    let (client, peer) = (format!("https://127.0.0.1:{etcd}"), format!("https://127.0.0.1:{peer}"));
    format!(
        r#"apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {{advertiseAddress: "{address}", bindPort: {port}}}
nodeRegistration: {{name: node-1, criSocket: "unix:///run/none.sock"}}
bootstrapTokens:
- token: {TOKEN}
  groups: ["system:bootstrappers:kubeadm:default-node-token"]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
certificatesDir: {dir}/pki
controlPlaneEndpoint: "{address}:{port}"
controllerManager: {{extraArgs: [{{name: secure-port, value: "{manager}"}}]}}
etcd:
  local:
    dataDir: {dir}/etcd-data
    extraArgs:
    - {{name: listen-client-urls, value: "{client}"}}
    - {{name: advertise-client-urls, value: "{client}"}}
    - {{name: listen-peer-urls, value: "{peer}"}}
    - {{name: initial-advertise-peer-urls, value: "{peer}"}}
    - {{name: initial-cluster, value: "node-1={peer}"}}
    - {{name: listen-metrics-urls, value: "http://127.0.0.1:{metrics}"}}
"#
    )
}

/// kubeadm takes no address of loopback for one at which others reach the server. No packet leaves.
fn address() -> Result<IpAddr, String> {
    let found = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| {
        socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9))?;
        socket.local_addr()
    });
    found
        .map(|address| address.ip())
        .map_err(|why| format!("this machine has no address but loopback: {why}"))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
