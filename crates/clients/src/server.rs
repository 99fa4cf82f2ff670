//! A running API server: ours, or the rival.
//!
//! In: `FOREBAY_TEST_SERVER`, which is `forebay` unless it says `kube-apiserver`. Out: a ready server and its
//! kubeconfig. One owner; dropping it kills the processes and removes the directory, and so does our death.
//! Never: another port or other data after a restart.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::etcd::Cluster;
use crate::https::{Call, Credentials, Response};
use crate::process::Process;
use crate::rival::Rival;
use crate::wait::until;
use crate::watchdog::Watchdog;
use crate::{https, needs, pki, ports};

const READY_MAX: Duration = Duration::from_secs(120);

/// Which server it is; the few tests that go beyond kube-apiserver ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Implementation {
    Forebay,
    KubeApiserver,
}

/// The server under test and the processes that it needs: Forebay alone, or kube-apiserver with its etcd.
#[derive(Debug)]
pub struct ControlPlane {
    watchdog: Watchdog,
    kubeconfig: PathBuf,
    port: u16,
    /// In the order they were started.
    processes: Vec<Process>,
    /// Programs that use the server; they stay when it goes.
    beside: Vec<Process>,
    /// What a scenario is told of them, as variables of its environment.
    told: Vec<(&'static str, String)>,
    engine: Engine,
}

#[derive(Debug)]
enum Engine {
    Forebay { binary: PathBuf, flags: Vec<String> },
    Rival(Rival),
}

impl Implementation {
    /// The one that `FOREBAY_TEST_SERVER` asks for.
    pub fn asked() -> Result<Implementation, String> {
        match std::env::var("FOREBAY_TEST_SERVER").as_deref() {
            Err(_) | Ok("" | "forebay") => Ok(Implementation::Forebay),
            Ok("kube-apiserver") => Ok(Implementation::KubeApiserver),
            Ok(other) => Err(format!("FOREBAY_TEST_SERVER is {other:?}, not forebay or kube-apiserver")),
        }
    }
}

impl ControlPlane {
    /// Starts the server that was asked for in a directory of its own, and waits for `/readyz`.
    pub fn start() -> Result<ControlPlane, String> {
        ControlPlane::start_as(Implementation::asked()?)
    }

    /// Starts a server of that implementation in a directory of its own, and waits for `/readyz`.
    pub fn start_as(implementation: Implementation) -> Result<ControlPlane, String> {
        ControlPlane::start_with(implementation, &[])
    }

    /// As [`ControlPlane::start_as`], with flags of our own server; the rival gets none of them.
    pub(crate) fn start_with(implementation: Implementation, flags: &[&str]) -> Result<ControlPlane, String> {
        let is_ours = implementation == Implementation::Forebay;
        let flags = flags.iter().filter(|_| is_ours).map(|flag| (*flag).to_owned()).collect();
        ControlPlane::start_from(implementation, flags, None)
    }

    /// Starts a server of that implementation on `cluster`, which outlives it, and waits for `/readyz`.
    ///
    /// # Errors
    /// As for [`ControlPlane::start`].
    pub fn start_on(implementation: Implementation, cluster: &Cluster) -> Result<ControlPlane, String> {
        match implementation {
            Implementation::Forebay => ControlPlane::start_from(implementation, cluster.flags(), None),
            Implementation::KubeApiserver => {
                ControlPlane::start_from(implementation, Vec::new(), Some(cluster.flags()))
            }
        }
    }

    /// Starts a real kube-apiserver on `cluster` with `flags`, and waits for `/readyz`.
    ///
    /// # Errors
    /// As for [`ControlPlane::start`].
    pub fn start_rival_told(cluster: &Cluster, flags: &[&str]) -> Result<ControlPlane, String> {
        let all = cluster.flags().into_iter().chain(flags.iter().map(|flag| (*flag).to_owned())).collect();
        ControlPlane::start_from(Implementation::KubeApiserver, Vec::new(), Some(all))
    }

    /// Starts a real kube-apiserver on `cluster` that stands before others, and waits for `/readyz`.
    ///
    /// - `dir`: where the certificates are kept by which it is known to them.
    ///
    /// # Errors
    /// As for [`ControlPlane::start`].
    pub fn start_rival_before_others(cluster: &Cluster, dir: &Path) -> Result<ControlPlane, String> {
        let flags = front_proxy(dir)?;
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        ControlPlane::start_rival_told(cluster, &flags)
    }

    /// Starts a real kube-apiserver with `flags` on an etcd of its own, and waits for `/readyz`.
    ///
    /// # Errors
    /// As for [`ControlPlane::start`].
    pub fn start_rival_with(flags: Vec<String>) -> Result<ControlPlane, String> {
        ControlPlane::start_from(Implementation::KubeApiserver, flags, None)
    }

    /// Starts a server of ours with `flags`, and waits for `/readyz`.
    ///
    /// # Errors
    /// As for [`ControlPlane::start`].
    pub fn start_told(flags: Vec<String>) -> Result<ControlPlane, String> {
        ControlPlane::start_from(Implementation::Forebay, flags, None)
    }

    fn start_from(
        implementation: Implementation,
        flags: Vec<String>,
        etcd: Option<Vec<String>>,
    ) -> Result<ControlPlane, String> {
        let watchdog = Watchdog::new()?;
        let (engine, kubeconfig) = match implementation {
            Implementation::Forebay => (
                Engine::Forebay { binary: needs::forebay()?, flags },
                watchdog.dir().join("data/admin.kubeconfig"),
            ),
            Implementation::KubeApiserver => {
                (Engine::Rival(Rival::new(&watchdog, etcd, flags)?), watchdog.dir().join("admin.kubeconfig"))
            }
        };
        // Known beforehand, so that nothing takes it while the server is down.
        let [port] = ports::free()?;
        let mut server = ControlPlane {
            watchdog,
            kubeconfig,
            port,
            processes: Vec::new(),
            beside: Vec::new(),
            told: Vec::new(),
            engine,
        };
        server.launch()?;
        Ok(server)
    }

    pub fn implementation(&self) -> Implementation {
        match self.engine {
            Engine::Forebay { .. } => Implementation::Forebay,
            Engine::Rival(_) => Implementation::KubeApiserver,
        }
    }

    /// The administrator's.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A place for a test's own files; it goes with the server.
    pub fn dir(&self) -> &Path {
        self.watchdog.dir()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts a program that uses the server, and ends with this value.
    pub fn start_beside(&mut self, name: &'static str, command: &mut Command) -> Result<(), String> {
        self.beside.push(Process::start(name, command, &mut self.watchdog)?);
        Ok(())
    }

    /// Kills the programs beside the server that are called `name`.
    pub fn kill_beside(&mut self, name: &str) -> Result<(), String> {
        let (gone, stay) = std::mem::take(&mut self.beside).into_iter().partition(|one| one.name() == name);
        self.beside = stay;
        let gone: Vec<Process> = gone;
        gone.into_iter().try_for_each(|mut one| one.kill(&mut self.watchdog))
    }

    /// Tells scenarios of a program beside the server.
    pub fn tell(&mut self, variable: &'static str, value: String) {
        self.told.push((variable, value));
    }

    pub(crate) fn told(&self) -> &[(&'static str, String)] {
        &self.told
    }

    /// Whether every program beside the server still runs.
    pub fn beside_alive(&mut self) -> Result<(), String> {
        self.beside.iter_mut().try_for_each(Process::alive)
    }

    /// The certificates that sign those of clients and of the server, in PEM.
    pub fn authority(&self) -> PathBuf {
        self.dir().join(match self.implementation() {
            Implementation::Forebay => "data/pki/ca.crt",
            Implementation::KubeApiserver => "ca.crt",
        })
    }

    /// Asks it as its administrator.
    ///
    /// # Errors
    /// It does not answer.
    pub fn ask(&self, call: Call<'_>) -> Result<Response, String> {
        let (port, credentials) = reach(&self.kubeconfig)?;
        https::call(port, &credentials, &call)
    }

    /// What its administrator shows, and believes it by.
    ///
    /// # Errors
    /// Its kubeconfig cannot be read.
    pub fn credentials(&self) -> Result<Credentials, String> {
        reach(&self.kubeconfig).map(|(_, credentials)| credentials)
    }

    /// What the server wrote to its standard output.
    pub fn stdout(&self) -> String {
        self.processes.last().map(Process::stdout).unwrap_or_default()
    }

    /// Ends it by SIGKILL. `start_again` brings it back.
    pub fn kill(&mut self) -> Result<(), String> {
        while let Some(mut process) = self.processes.pop() {
            process.kill(&mut self.watchdog)?;
        }
        Ok(())
    }

    /// Ends it by SIGTERM, and what it stands on after it. `start_again` brings it back.
    pub fn terminate(&mut self) -> Result<(), String> {
        while let Some(mut process) = self.processes.pop() {
            process.terminate(&mut self.watchdog)?;
        }
        Ok(())
    }

    /// Starts it on the data and the port of before.
    pub fn start_again(&mut self) -> Result<(), String> {
        self.launch()
    }

    /// Gives up the history of the rival's store before `revision`. Its server still has what it has in
    /// memory; one that is started again has not.
    ///
    /// # Errors
    /// Ours has no store beside it.
    pub fn compact_store(&self, revision: u64) -> Result<(), String> {
        match &self.engine {
            Engine::Rival(rival) => rival.compact(revision),
            Engine::Forebay { .. } => Err("its store is its own".to_owned()),
        }
    }

    fn launch(&mut self) -> Result<(), String> {
        self.processes = match &self.engine {
            Engine::Forebay { binary, flags } => {
                vec![forebay(binary, flags, self.port, &mut self.watchdog)?]
            }
            Engine::Rival(rival) => rival.start(&mut self.watchdog)?,
        };
        let (kubeconfig, processes) = (&self.kubeconfig, &mut self.processes);
        self.port = until("the server is ready", READY_MAX, || {
            processes.iter_mut().try_for_each(Process::alive)?;
            let (port, credentials) = reach(kubeconfig)?;
            match https::get(port, &credentials, "/readyz")? {
                (200, _) => Ok(port),
                (code, body) => Err(format!("/readyz: {code}: {body}")),
            }
        })
        .map_err(|why| format!("{why}\n{}", self.log_end()))?;
        Ok(())
    }

    /// The last lines that the processes logged.
    pub fn log_end(&self) -> String {
        let all = self.processes.iter().chain(&self.beside);
        all.map(Process::log_end).collect::<Vec<_>>().join("\n")
    }

    /// Prints the end of the log if the calling test is failing.
    pub fn show_log_on_failure(&self) {
        if std::thread::panicking() {
            eprintln!("{}", self.log_end());
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.show_log_on_failure();
        // What could not be killed and reaped here is left to the watchdog.
        for process in &mut self.beside {
            let _ = process.kill(&mut self.watchdog);
        }
        let _ = self.kill();
    }
}

/// Makes the certificates in `dir` by which a kube-apiserver is known to the servers behind it, and returns
/// the flags that name them.
///
/// # Errors
/// They cannot be made or written.
pub fn front_proxy(dir: &Path) -> Result<[String; 8], String> {
    pki::write_front_proxy(dir)?;
    let file = |flag: &str, name: &str| format!("--{flag}={}", dir.join(name).display());
    Ok([
        file("requestheader-client-ca-file", "front-proxy-ca.crt"),
        file("proxy-client-cert-file", "front-proxy-client.crt"),
        file("proxy-client-key-file", "front-proxy-client.key"),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-uid-headers=X-Remote-Uid".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
    ])
}

/// `FOREBAY_*` variables are the server's flags, so it gets no environment of ours but where programs are.
fn forebay(binary: &Path, flags: &[String], port: u16, watchdog: &mut Watchdog) -> Result<Process, String> {
    let mut command = Command::new(binary);
    // Without controllers, as kube-apiserver is: the sessions say the same to both. So nobody makes service
    // accounts, and pods are to need none, there and here.
    command.args(["serve", "--controllers=", "--data-dir", "data", "--secure-port", &port.to_string()]);
    let says = |flag: &str| flags.iter().any(|said| said.starts_with(flag));
    if !says("--disable-admission-plugins") {
        command.arg("--disable-admission-plugins=ServiceAccount");
    }
    if !says("--authorization-mode") {
        // As kube-apiserver, which is told nothing of it either.
        command.arg("--authorization-mode=AlwaysAllow");
    }
    command.args(flags);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    Process::start("forebay", &mut command, watchdog)
}

/// The port and the credentials that `kubeconfig` names.
fn reach(kubeconfig: &Path) -> Result<(u16, Credentials), String> {
    let text = fs::read_to_string(kubeconfig).map_err(|e| format!("{}: {e}", kubeconfig.display()))?;
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(key)?.strip_prefix(": "));
        line.map(|value| value.trim().trim_matches('"')).ok_or_else(|| format!("the kubeconfig has no {key}"))
    };
    let data = |key| STANDARD.decode(value(key)?).map_err(|e| format!("{key}: {e}"));
    let server = value("server")?;
    let port = server.rsplit(':').next().and_then(|port| port.parse().ok());
    let credentials = Credentials {
        authority: data("certificate-authority-data")?,
        certificate: data("client-certificate-data")?,
        key: data("client-key-data")?,
    };
    Ok((port.ok_or_else(|| format!("no port in {server}"))?, credentials))
}
