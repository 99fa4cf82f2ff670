//! A node for tests: pods that are bound to it run as processes of this machine.
//!
//! In: a server whose pods a scheduler binds, [`Images`]: which program each image stands for. Out: a Node
//! that is ready, and its pods started, probed, restarted and deleted as their objects say, until it is
//! dropped. A container is a process that sees a root directory of its own, with its volumes in it, and the
//! network of the machine, by which pods have an address of the machine's. Never: an isolation beyond that; a
//! kubelet's port (logs, exec); init containers, liveness probes, other volumes than secrets, config maps,
//! empty and projected ones, which a pod is refused for, in its status; what is in a volume followed once it
//! is there.

mod api;
mod container;
mod images;
mod probe;
mod status;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::ControlPlane;
use crate::watchdog::Watchdog;

use api::{Api, each, now, or_gone, text_of};
use container::{Container, Place};
pub use images::Images;

/// Its name.
const NAME: &str = "rig";
/// Between two looks at its pods.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Between two signs of life; the node is taken for dead after 40 seconds without.
const BEAT_EVERY: Duration = Duration::from_secs(10);
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// The node, as long as it is there.
#[derive(Debug)]
pub struct ServingNode {
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ServingNode {
    /// Registers the node at `server`, and begins to run what is bound to it.
    ///
    /// - `address`: of this machine, by which its pods are reached.
    ///
    /// # Errors
    /// Endpoints may not have that address; the server does not take the node.
    pub fn start(server: &ControlPlane, images: Images, address: Ipv4Addr) -> Result<ServingNode, String> {
        if address.is_loopback() || address.is_unspecified() {
            return Err(format!("endpoints may not have the address {address}: pods need another one"));
        }
        let api = Api { port: server.port(), credentials: server.credentials()? };
        let watchdog = Watchdog::new()?;
        let place = Place { api, images, address, dir: watchdog.dir().to_owned() };
        place.api.ask("POST", "/api/v1/nodes", &node(place.address))?;
        let (stop, stopped) = channel();
        let mut keeper = Keeper { place, watchdog, pods: BTreeMap::new(), beat: None, said: BTreeSet::new() };
        let thread = std::thread::Builder::new()
            .name("node".into())
            .spawn(move || keeper.run(&stopped))
            .map_err(|e| format!("no thread for the node: {e}"))?;
        Ok(ServingNode { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for ServingNode {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // It has said itself why it ended.
            let _ = thread.join();
        }
    }
}

/// The Node as it registers itself.
fn node(address: Ipv4Addr) -> Value {
    let room = json!({ "cpu": "16", "memory": "64Gi", "ephemeral-storage": "1000Gi", "pods": "500" });
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({ "type": kind, "status": status, "reason": reason, "message": "",
            "lastHeartbeatTime": now(), "lastTransitionTime": now() })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": NAME, "labels": {
            "kubernetes.io/hostname": NAME, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        } },
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [
                { "type": "InternalIP", "address": address.to_string() },
                { "type": "Hostname", "address": NAME },
            ],
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady"),
            ],
        },
    })
}

/// What the node's thread has.
struct Keeper {
    place: Place,
    watchdog: Watchdog,
    /// By their uids.
    pods: BTreeMap<String, Pod>,
    /// When it last showed that it lives.
    beat: Option<Instant>,
    /// What went wrong, each once.
    said: BTreeSet<String>,
}

/// A pod that was seen.
struct Pod {
    containers: Vec<Container>,
    /// The status that the server has of us.
    told: Value,
}

impl Keeper {
    fn run(&mut self, stopped: &Receiver<()>) {
        while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            // A server that does not answer now may the next time.
            if let Err(why) = self.look() {
                self.say(why);
            }
        }
        for uid in self.pods.keys().cloned().collect::<Vec<_>>() {
            self.end(&uid);
        }
    }

    /// Past the capture of tests' output: whoever waits for a pod sees why it does not come.
    fn say(&mut self, what: String) {
        if self.said.insert(what.clone()) {
            eprintln!("node {NAME}: {what}");
        }
    }

    fn look(&mut self) -> Result<(), String> {
        if self.beat.is_none_or(|beat| beat.elapsed() >= BEAT_EVERY) {
            self.show_life()?;
            self.beat = Some(Instant::now());
        }
        let list = self.place.api.get(&format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{NAME}"))?;
        let mut there = BTreeSet::new();
        for pod in each(&list["items"]) {
            let uid = text_of(&pod["metadata"]["uid"]);
            there.insert(uid.to_owned());
            // One that fails is no reason to forget the others.
            if let Err(why) = self.keep(uid, pod) {
                self.say(why);
            }
        }
        for uid in self.pods.keys().filter(|uid| !there.contains(*uid)).cloned().collect::<Vec<_>>() {
            self.end(&uid);
        }
        Ok(())
    }

    fn show_life(&self) -> Result<(), String> {
        let micros = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let path = format!("{LEASES}/{NAME}");
        match self.place.api.get(&path) {
            Ok(mut lease) => {
                lease["spec"]["renewTime"] = micros.into();
                self.place.api.ask("PUT", &path, &lease).map(drop)
            }
            Err(why) if why.starts_with("404 ") => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": NAME },
                    "spec": { "holderIdentity": NAME, "leaseDurationSeconds": 40, "renewTime": micros },
                });
                self.place.api.ask("POST", LEASES, &lease).map(drop)
            }
            Err(why) => Err(why),
        }
    }

    /// Does for `pod` what is to be done now.
    fn keep(&mut self, uid: &str, pod: &Value) -> Result<(), String> {
        let meta = &pod["metadata"];
        let (namespace, name) = (text_of(&meta["namespace"]), text_of(&meta["name"]));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        if !meta["deletionTimestamp"].is_null() {
            self.end(uid);
            // With no grace left it is no longer the node's: somebody's finalizer keeps it.
            return match meta["deletionGracePeriodSeconds"].as_i64() {
                Some(0) => Ok(()),
                _ => {
                    let now = json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": uid } });
                    or_gone(self.place.api.ask("DELETE", &path, &now).map(drop))
                }
            };
        }
        if matches!(text_of(&pod["status"]["phase"]), "Succeeded" | "Failed") {
            self.end(uid);
            return Ok(());
        }
        let kept = self.pods.entry(uid.to_owned()).or_insert_with(|| Pod {
            containers: each(&pod["spec"]["containers"]).map(Container::new).collect(),
            told: Value::Null,
        });
        let policy = text_of(&pod["spec"]["restartPolicy"]);
        let mut said = Vec::new();
        for container in &mut kept.containers {
            if let Err(why) = container.advance(pod, &self.place, policy, &mut self.watchdog) {
                said.push(format!("{namespace}/{name}: {why}"));
            }
        }
        let seen: Vec<status::Seen<'_>> = kept.containers.iter().map(Container::seen).collect();
        let status = status::of(pod, &seen, policy, self.place.address, &now());
        let result = if status == kept.told {
            Ok(())
        } else {
            let mut whole = pod.clone();
            whole["apiVersion"] = "v1".into();
            whole["kind"] = "Pod".into();
            whole["status"] = status.clone();
            let told = self.place.api.ask("PUT", &format!("{path}/status"), &whole);
            or_gone(told.map(|_| kept.told = status))
        };
        said.into_iter().for_each(|why| self.say(why));
        result
    }

    /// Ends what runs of the pod, and takes its files away.
    fn end(&mut self, uid: &str) {
        let Some(mut pod) = self.pods.remove(uid) else { return };
        for container in &mut pod.containers {
            if let Err(why) = container.kill(&mut self.watchdog) {
                self.say(why);
            }
        }
        // What is left goes with the node.
        let _ = std::fs::remove_dir_all(self.place.pod_dir(uid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_is_ready_and_has_an_address_that_endpoints_may_have() {
        let node = node(Ipv4Addr::new(192, 0, 2, 7));
        let ready = each(&node["status"]["conditions"]).find(|condition| condition["type"] == "Ready");
        assert_eq!(ready.expect("one")["status"], "True");
        assert_eq!(node["status"]["addresses"][0]["address"], "192.0.2.7");
    }
}
