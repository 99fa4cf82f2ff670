//! One container of a pod: a process with a root directory of its own.
//!
//! In: the container as its pod has it, where pods are kept. Out: its state from one look to the next:
//! started once its ports are free and its volumes there, probed, started anew as the pod's policy says.
//! Never: a wait for it.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::api::{Api, each, now, text_of};
use super::images::{Images, Program};
use super::probe::Probe;
use super::status::{Seen, begins_anew};
use super::volumes;
use crate::process::Process;
use crate::watchdog::Watchdog;

/// Before what could not be started, or has ended, is started anew.
const ANEW_AFTER: Duration = Duration::from_secs(1);

/// Where pods are kept, and what they are made from.
pub(super) struct Place {
    pub api: Api,
    pub images: Images,
    pub address: Ipv4Addr,
    pub dir: PathBuf,
}

impl Place {
    pub(super) fn pod_dir(&self, uid: &str) -> PathBuf {
        self.dir.join("pods").join(uid)
    }

    /// A copy of a program beside the pods, made once, which their directories link to.
    fn kept(&self, file: &Path) -> Result<PathBuf, String> {
        let name = file.file_name().ok_or_else(|| format!("{} names no program", file.display()))?;
        let kept = self.dir.join(name);
        if !kept.is_file() {
            fs::copy(file, &kept).map_err(|e| format!("cannot copy {}: {e}", file.display()))?;
        }
        Ok(kept)
    }
}

pub(super) struct Container {
    spec: Value,
    state: State,
    last: Value,
    restarts: u64,
    probe: Option<Probe>,
    is_ready: bool,
    probe_failures: u64,
    probed: Option<Instant>,
}

enum State {
    Waiting { reason: &'static str, message: String, looked: Option<Instant> },
    Running { since: String, begun: Instant, process: Option<Process> },
    Ended { since: String, at: String, code: i64, seen: Instant },
}

impl Container {
    pub(super) fn new(spec: &Value) -> Container {
        Container {
            spec: spec.clone(),
            state: State::Waiting { reason: "ContainerCreating", message: String::new(), looked: None },
            last: json!({}),
            restarts: 0,
            probe: None,
            is_ready: false,
            probe_failures: 0,
            probed: None,
        }
    }

    pub(super) fn seen(&self) -> Seen<'_> {
        let state = match &self.state {
            State::Waiting { reason, message, .. } if message.is_empty() => {
                json!({ "waiting": { "reason": reason } })
            }
            State::Waiting { reason, message, .. } => {
                json!({ "waiting": { "reason": reason, "message": message } })
            }
            State::Running { since, .. } => json!({ "running": { "startedAt": since } }),
            State::Ended { since, at, code, .. } => ended(since, at, *code),
        };
        Seen {
            name: text_of(&self.spec["name"]),
            image: text_of(&self.spec["image"]),
            is_ready: self.is_ready,
            restarts: self.restarts,
            state,
            last: &self.last,
        }
    }

    /// Does what is to be done now.
    ///
    /// # Errors
    /// What keeps it from running, for whoever waits for it.
    pub(super) fn advance(
        &mut self,
        pod: &Value,
        place: &Place,
        policy: &str,
        watchdog: &mut Watchdog,
    ) -> Result<(), String> {
        match &mut self.state {
            State::Waiting { looked, .. } if looked.is_some_and(|looked| looked.elapsed() < ANEW_AFTER) => {
                Ok(())
            }
            State::Waiting { .. } => self.begin(pod, place, watchdog),
            State::Running { since, process: Some(process), .. } => match process.exit_code(watchdog)? {
                Some(code) => {
                    let (code, end) = (i64::from(code), process.log_end());
                    let since = std::mem::take(since);
                    self.is_ready = false;
                    self.state = State::Ended { since, at: now(), code, seen: Instant::now() };
                    let name = text_of(&self.spec["name"]);
                    Err(format!("{name} ended with {code}, {} restarts before\n{end}", self.restarts))
                }
                None => {
                    self.ask(place);
                    Ok(())
                }
            },
            State::Running { process: None, .. } => {
                self.is_ready = true;
                Ok(())
            }
            State::Ended { since, at, code, seen } => {
                if !begins_anew(policy, *code) || seen.elapsed() < ANEW_AFTER {
                    return Ok(());
                }
                self.last = ended(since, at, *code);
                self.restarts += 1;
                self.begin(pod, place, watchdog)
            }
        }
    }

    /// Starts it, or has it wait.
    fn begin(&mut self, pod: &Value, place: &Place, watchdog: &mut Watchdog) -> Result<(), String> {
        let program = place.images.program(text_of(&self.spec["image"]));
        let (reason, why) = match program.map(|program| self.start(pod, &program, place, watchdog)) {
            Ok(Ok(process)) => {
                self.state = State::Running { since: now(), begun: Instant::now(), process };
                (self.probed, self.probe_failures, self.is_ready) = (None, 0, self.probe.is_none());
                return Ok(());
            }
            Ok(Err(why)) => ("CreateContainerError", why),
            Err(why) => ("ErrImagePull", why),
        };
        self.state = State::Waiting { reason, message: why.clone(), looked: Some(Instant::now()) };
        Err(format!("{}: {why}", text_of(&self.spec["name"])))
    }

    fn start(
        &mut self,
        pod: &Value,
        program: &Program,
        place: &Place,
        watchdog: &mut Watchdog,
    ) -> Result<Option<Process>, String> {
        if each(&pod["spec"]["initContainers"]).next().is_some() {
            return Err("init containers are not run here".to_owned());
        }
        let Program::Binary { file, at, args } = program else { return Ok(None) };
        self.probe = Probe::of(&self.spec)?;
        let [name, uid] = [&self.spec["name"], &pod["metadata"]["uid"]].map(text_of);
        if let Some(port) = self.ports().into_iter().find(|port| !is_free(*port)) {
            return Err(format!("port {port} is taken by another process of this machine"));
        }
        let root = place.pod_dir(uid).join(name);
        // What a container wrote is gone when it begins anew.
        let _ = fs::remove_dir_all(&root);
        let inside = root.join(at.trim_start_matches('/'));
        let hosts = format!("127.0.0.1 localhost\n{} {}\n", place.address, text_of(&pod["metadata"]["name"]));
        volumes::write_file(&root.join("etc/hosts"), hosts.as_bytes())?;
        fs::create_dir_all(root.join("tmp")).map_err(|e| format!("{}: {e}", root.display()))?;
        volumes::write(&place.api, pod, &self.spec, &root)?;
        let dir = inside.parent().unwrap_or(&root);
        fs::create_dir_all(dir)
            .and_then(|()| fs::hard_link(place.kept(file).map_err(std::io::Error::other)?, &inside))
            .map_err(|e| format!("{}: {e}", inside.display()))?;
        let environment = self.environment(pod, place)?;
        let mut command = Command::new("chroot");
        command.arg(&root).args(arguments(&self.spec, at, args, &environment)?).env_clear();
        // Where chroot itself is found; the program starts no others.
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).envs(environment);
        Process::start(&format!("{name}-{uid}"), &mut command, watchdog).map(Some)
    }

    /// Those that it says it listens on.
    fn ports(&self) -> Vec<u16> {
        let said =
            each(&self.spec["ports"]).filter_map(|port| port["containerPort"].as_u64()?.try_into().ok());
        said.chain(self.probe.as_ref().map(|probe| probe.port)).collect()
    }

    fn environment(&self, pod: &Value, place: &Place) -> Result<Vec<(String, String)>, String> {
        let port = place.api.port.to_string();
        let server = [("HOST", "127.0.0.1"), ("PORT", port.as_str()), ("PORT_HTTPS", port.as_str())];
        let server = server.map(|(key, value)| (format!("KUBERNETES_SERVICE_{key}"), value.to_owned()));
        let own = each(&self.spec["env"]).map(|variable| {
            let (name, from) = (text_of(&variable["name"]).to_owned(), &variable["valueFrom"]);
            let value = match from["fieldRef"]["fieldPath"].as_str() {
                Some("status.podIP" | "status.hostIP") => place.address.to_string(),
                Some(path) => volumes::field(pod, path)?,
                None if from.is_null() => text_of(&variable["value"]).to_owned(),
                None => return Err(format!("the variable {name} is from where this node does not look")),
            };
            Ok((name, value))
        });
        server.into_iter().map(Ok).chain(own).collect()
    }

    /// Asks it whether it is ready, when it is time.
    fn ask(&mut self, place: &Place) {
        let (Some(probe), State::Running { begun, .. }) = (&self.probe, &self.state) else { return };
        let is_time = self.probed.is_none_or(|probed| probed.elapsed() >= probe.period);
        if begun.elapsed() < probe.delay || !is_time {
            return;
        }
        self.probed = Some(Instant::now());
        if probe.succeeds(place.address.into()) {
            (self.is_ready, self.probe_failures) = (true, 0);
        } else {
            self.probe_failures += 1;
            self.is_ready &= self.probe_failures < probe.failures_max;
        }
    }

    /// Ends it.
    pub(super) fn kill(&mut self, watchdog: &mut Watchdog) -> Result<(), String> {
        match &mut self.state {
            State::Running { process: Some(process), .. } => process.kill(watchdog),
            _ => Ok(()),
        }
    }
}

fn ended(since: &str, at: &str, code: i64) -> Value {
    let reason = if code == 0 { "Completed" } else { "Error" };
    json!({ "terminated": { "exitCode": code, "reason": reason, "startedAt": since, "finishedAt": at } })
}

/// Whether nobody listens on it, on any address.
fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
}

/// The program and its arguments.
///
/// - `at`: the program's path in its image.
/// - `args`: the image's own.
fn arguments(
    spec: &Value,
    at: &str,
    args: &[&str],
    environment: &[(String, String)],
) -> Result<Vec<String>, String> {
    let given = |key: &str| -> Option<Vec<String>> {
        Some(spec[key].as_array()?.iter().map(|word| text_of(word).to_owned()).collect())
    };
    let command = given("command");
    // The image's arguments are its own program's.
    let args = given("args").unwrap_or_else(|| match command {
        Some(_) => Vec::new(),
        None => args.iter().map(|word| (*word).to_owned()).collect(),
    });
    let command = command.unwrap_or_else(|| vec![at.to_owned()]);
    match command.first() {
        Some(program) if program == at => {}
        other => return Err(format!("all that its image has here is {at}, not {other:?}")),
    }
    let told = |word: String| {
        environment.iter().fold(word, |word, (name, value)| word.replace(&format!("$({name})"), value))
    };
    Ok(command.into_iter().chain(args).map(told).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_the_containers_or_the_images_with_variables_told() {
        let environment = [("A".to_owned(), "x".to_owned())];
        let of = |spec: Value| arguments(&spec, "/agnhost", &["pause"], &environment);
        assert_eq!(of(json!({})), Ok(vec!["/agnhost".to_owned(), "pause".to_owned()]));
        assert_eq!(of(json!({ "args": ["a=$(A)"] })), Ok(vec!["/agnhost".to_owned(), "a=x".to_owned()]));
        assert_eq!(of(json!({ "command": ["/agnhost"] })), Ok(vec!["/agnhost".to_owned()]));
        assert!(of(json!({ "command": ["sh"] })).is_err());
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_not_free() {
        let [port] = crate::ports::free().expect("a port");
        assert!(is_free(port));
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("it is free");
        assert!(!is_free(port));
        drop(held);
    }
}
