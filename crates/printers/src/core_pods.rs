//! Pods: readiness, the status a person wants to see, restarts.
//!
//! In: v1 Pod values. Out: their cells and the condition of pods that are done. Never: a judgement of its
//! own: what STATUS says follows kube-apiserver step by step, odd cases included.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::duration;
use crate::member::Member;
use crate::reads::Reads::{self, All, Only};
use crate::table::{AGE, NAME, Printer, TableRowCondition, cells, string};

pub(crate) static POD: Printer = Printer::new(
    &[
        NAME,
        string("Ready", "Containers that are ready, of all that keep running."),
        string("Status", "What the pod is doing, or why it does not run."),
        string("Restarts", "Restarts of the containers, and when the last one was."),
        AGE,
        string("IP", "First IP address of the pod.").wide(),
        string("Node", "Node the pod is bound to.").wide(),
        string("Nominated Node", "Node the pod preempts others on.").wide(),
        string("Readiness Gates", "Readiness gates that are true, of all.").wide(),
    ],
    pod_cells,
)
.with_conditions(completed)
.reading(READS);

/// Everything that is asked for below.
const READS: Reads = Only(&[
    ("metadata", Only(&[("name", All), ("creationTimestamp", All), ("deletionTimestamp", All)])),
    (
        "spec",
        Only(&[
            ("nodeName", All),
            ("readinessGates", All),
            ("containers", Only(&[])),
            ("initContainers", Only(&[("name", All), ("restartPolicy", All)])),
        ]),
    ),
    (
        "status",
        Only(&[
            ("phase", All),
            ("reason", All),
            ("podIP", All),
            ("podIPs", All),
            ("nominatedNodeName", All),
            ("conditions", Only(&[("type", All), ("status", All), ("reason", All)])),
            ("initContainerStatuses", CONTAINER_STATUS),
            ("containerStatuses", CONTAINER_STATUS),
        ]),
    ),
]);

const CONTAINER_STATUS: Reads = Only(&[
    ("name", All),
    ("state", All),
    ("lastState", All),
    ("ready", All),
    ("started", All),
    ("restartCount", All),
]);

static SUCCEEDED: [TableRowCondition; 1] = [TableRowCondition {
    type_: "Completed",
    status: "True",
    reason: "Succeeded",
    message: "The pod has completed successfully.",
}];

static FAILED: [TableRowCondition; 1] =
    [TableRowCondition { type_: "Completed", status: "True", reason: "Failed", message: "The pod failed." }];

fn completed(pod: Member<'_>) -> &'static [TableRowCondition] {
    match pod.get("status").get("phase").text() {
        "Succeeded" => &SUCCEEDED,
        "Failed" => &FAILED,
        _ => &[],
    }
}

fn pod_cells(pod: Member<'_>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (pod.get("spec"), pod.get("status"));
    let summary = Summary::of(pod);
    cells![
        pod.name(),
        format!("{}/{}", summary.ready, summary.total),
        summary.reason,
        summary.restarts.text(now),
        pod.age(now),
        pod_ip(status).text_or("<none>"),
        spec.get("nodeName").text_or("<none>"),
        status.get("nominatedNodeName").text_or("<none>"),
        readiness_gates(spec, status),
    ]
}

/// The singular field wins when the two differ: kubelets older than dual stack only wrote that one.
fn pod_ip(status: Member<'_>) -> Member<'_> {
    let first = status.get("podIPs").items().next().map(|entry| entry.get("ip"));
    match (status.get("podIP"), first) {
        (single, Some(first)) if single.text().is_empty() => first,
        (single, _) => single,
    }
}

/// Gates whose condition is true, of all gates. Only the first condition of a type counts.
fn readiness_gates(spec: Member<'_>, status: Member<'_>) -> String {
    let gates = spec.get("readinessGates").items();
    if gates.len() == 0 {
        return "<none>".to_owned();
    }
    let conditions = status.get("conditions").items().rev();
    let conditions: HashMap<&str, bool> =
        conditions.map(|condition| (condition.get("type").text(), is_true(condition))).collect();
    let total = gates.len();
    let is_open =
        |gate: &Member<'_>| conditions.get(gate.get("conditionType").text()).copied().unwrap_or_default();
    format!("{}/{total}", gates.filter(is_open).count())
}

fn is_true(condition: Member<'_>) -> bool {
    condition.get("status").text() == "True"
}

/// How often containers were restarted, and when last.
#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, container: Member<'_>) {
        self.count = self.count.saturating_add(container.get("restartCount").int());
        let finished = container.get("lastState").get("terminated").get("finishedAt").time();
        self.last = self.last.max(finished);
    }

    fn text(self, now: Timestamp) -> String {
        match self {
            Restarts { count, last: Some(last) } if count != 0 => {
                format!("{count} ({} ago)", duration::since(Some(last), now))
            }
            Restarts { count, .. } => count.to_string(),
        }
    }
}

/// What the container statuses add up to.
struct Summary {
    ready: i64,
    total: i64,
    reason: String,
    restarts: Restarts,
}

impl Summary {
    fn of(pod: Member<'_>) -> Self {
        let (spec, status) = (pod.get("spec"), pod.get("status"));
        let sidecars = sidecars(spec);
        let restartable = spec.get("initContainers").items().filter(is_restartable).count() as i64;
        let mut summary = Summary {
            ready: 0,
            total: spec.get("containers").items().len() as i64 + restartable,
            reason: pod_reason(status).to_owned(),
            restarts: Restarts::default(),
        };
        let (initializing, sidecar_restarts) = summary.add_init_containers(spec, status, &sidecars);
        if !initializing || is_true(pod.condition("Initialized")) {
            summary.restarts = sidecar_restarts;
            summary.add_containers(pod);
        }
        if let Some(reason) = deletion_reason(pod) {
            summary.reason = reason.to_owned();
        }
        summary
    }

    /// Walks the init containers up to the first that is not done. Returns whether there is one, and the
    /// sidecars' restarts.
    fn add_init_containers(
        &mut self,
        spec: Member<'_>,
        status: Member<'_>,
        sidecars: &HashMap<&str, bool>,
    ) -> (bool, Restarts) {
        let mut sidecar_restarts = Restarts::default();
        for (index, container) in status.get("initContainerStatuses").items().enumerate() {
            self.restarts.add(container);
            let is_sidecar = sidecars.get(container.get("name").text()).copied().unwrap_or_default();
            if is_sidecar {
                sidecar_restarts.add(container);
            }
            let terminated = container.get("state").get("terminated");
            if terminated.is_set() && terminated.get("exitCode").int() == 0 {
                continue;
            }
            if is_sidecar && container.get("started").flag() {
                self.ready += i64::from(container.get("ready").flag());
                continue;
            }
            self.reason = init_reason(container, index, spec.get("initContainers").count());
            return (true, sidecar_restarts);
        }
        (false, sidecar_restarts)
    }

    /// Walks the containers backwards, so that the first one's reason stays.
    fn add_containers(&mut self, pod: Member<'_>) {
        let mut is_running = false;
        let mut error = None;
        for container in pod.get("status").get("containerStatuses").items().rev() {
            self.restarts.add(container);
            let state = container.get("state");
            let (waiting, terminated) = (state.get("waiting").get("reason").text(), state.get("terminated"));
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if terminated.is_set() {
                self.reason = terminated_reason(terminated, "");
                if terminated.get("exitCode").int() != 0 {
                    error = Some(self.reason.clone());
                }
            } else if container.get("ready").flag() && state.get("running").is_set() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            self.reason = match error {
                _ if is_running && is_ready(pod) => "Running".to_owned(),
                Some(error) => error,
                None if is_running => "NotReady".to_owned(),
                None => return,
            };
        }
    }
}

/// Which init containers keep running beside the containers, by name; of two with the same name the last
/// counts.
fn sidecars(spec: Member<'_>) -> HashMap<&str, bool> {
    let containers = spec.get("initContainers").items();
    containers.map(|container| (container.get("name").text(), is_restartable(&container))).collect()
}

fn is_restartable(container: &Member<'_>) -> bool {
    container.get("restartPolicy").text() == "Always"
}

fn is_ready(pod: Member<'_>) -> bool {
    let mut conditions = pod.get("status").get("conditions").items();
    conditions.any(|condition| condition.get("type").text() == "Ready" && is_true(condition))
}

/// What the pod says of itself, before its containers are looked at.
fn pod_reason(status: Member<'_>) -> &str {
    const GATED: &str = "SchedulingGated";
    let is_gated = |condition: Member<'_>| {
        condition.get("type").text() == "PodScheduled" && condition.get("reason").text() == GATED
    };
    match status.get("conditions").items().any(is_gated) {
        true => GATED,
        false => status.get("reason").text_or(status.get("phase").text()),
    }
}

/// Why an init container is not done.
fn init_reason(container: Member<'_>, index: usize, total: i64) -> String {
    let state = container.get("state");
    if state.get("terminated").is_set() {
        return terminated_reason(state.get("terminated"), "Init:");
    }
    match state.get("waiting").get("reason").text() {
        "" | "PodInitializing" => format!("Init:{index}/{total}"),
        reason => format!("Init:{reason}"),
    }
}

fn terminated_reason(terminated: Member<'_>, prefix: &str) -> String {
    match (terminated.get("reason").text(), terminated.get("signal").int()) {
        ("", 0) => format!("{prefix}ExitCode:{}", terminated.get("exitCode").int()),
        ("", signal) => format!("{prefix}Signal:{signal}"),
        (reason, _) => format!("{prefix}{reason}"),
    }
}

/// What a pod that is being deleted shows instead of its own state.
fn deletion_reason(pod: Member<'_>) -> Option<&'static str> {
    let status = pod.get("status");
    match (status.get("reason").text(), status.get("phase").text()) {
        _ if !pod.is_deleting() => None,
        ("NodeLost", _) => Some("Unknown"),
        (_, "Failed" | "Succeeded") => None,
        _ => Some("Terminating"),
    }
}
