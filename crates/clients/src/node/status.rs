//! What a pod's status says of its containers.
//!
//! In: the pod as the server has it, how each container is. Out: the status that it is to have. Never: a
//! word on conditions of others, or a time that moves while nothing changes.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::api::each;

/// A container, as its pod's status shows it.
pub(super) struct Seen<'a> {
    pub name: &'a str,
    pub image: &'a str,
    pub is_ready: bool,
    pub restarts: u64,
    /// Its `state`, and the one before.
    pub state: Value,
    pub last: &'a Value,
}

impl Seen<'_> {
    fn is_running(&self) -> bool {
        !self.state["running"].is_null()
    }

    fn exit_code(&self) -> Option<i64> {
        self.state["terminated"]["exitCode"].as_i64()
    }

    /// Whether it has begun, now or before.
    fn has_begun(&self) -> bool {
        self.is_running() || self.exit_code().is_some() || self.restarts > 0
    }
}

/// - `policy`: when containers are begun anew.
pub(super) fn of(pod: &Value, containers: &[Seen<'_>], policy: &str, address: Ipv4Addr, now: &str) -> Value {
    let (mut status, phase) = (pod["status"].clone(), phase(containers, policy));
    let own = address.to_string();
    status["phase"] = phase.into();
    status["hostIP"] = own.clone().into();
    status["hostIPs"] = json!([{ "ip": own }]);
    status["podIP"] = own.clone().into();
    status["podIPs"] = json!([{ "ip": own }]);
    if status["startTime"].is_null() {
        status["startTime"] = now.into();
    }
    let is_ready = phase == "Running" && containers.iter().all(|container| container.is_ready);
    for (kind, is_true) in [
        ("PodReadyToStartContainers", true),
        ("Initialized", true),
        ("ContainersReady", is_ready),
        ("Ready", is_ready),
    ] {
        set(&mut status, kind, is_true, now);
    }
    let shown = containers.iter().map(|container| {
        json!({
            "name": container.name, "image": container.image, "imageID": container.image,
            "ready": container.is_ready, "started": container.is_running(),
            "restartCount": container.restarts, "state": container.state, "lastState": container.last,
        })
    });
    status["containerStatuses"] = shown.collect();
    status
}

fn phase(containers: &[Seen<'_>], policy: &str) -> &'static str {
    if !containers.iter().all(Seen::has_begun) {
        return "Pending";
    }
    let is_over = |container: &Seen<'_>| match container.exit_code() {
        Some(code) => !begins_anew(policy, code),
        None => false,
    };
    match containers.iter().all(is_over) {
        false => "Running",
        true if containers.iter().all(|container| container.exit_code() == Some(0)) => "Succeeded",
        true => "Failed",
    }
}

/// Whether a container that ended so is started once more.
pub(super) fn begins_anew(policy: &str, code: i64) -> bool {
    match policy {
        "Never" => false,
        "OnFailure" => code != 0,
        _ => true,
    }
}

/// Sets a condition, whose time stays while it is what it was.
fn set(status: &mut Value, kind: &str, is_true: bool, now: &str) {
    let value = if is_true { "True" } else { "False" };
    let before = each(&status["conditions"]).find(|condition| condition["type"] == kind);
    if before.is_some_and(|condition| condition["status"] == value) {
        return;
    }
    let mut condition = json!({ "type": kind, "status": value, "lastTransitionTime": now });
    if !is_true {
        condition["reason"] = "ContainersNotReady".into();
        condition["message"] = "containers are not ready".into();
    }
    let others = each(&status["conditions"]).filter(|other| other["type"] != kind).cloned();
    status["conditions"] = others.chain([condition]).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

    fn seen(state: Value, is_ready: bool) -> Seen<'static> {
        Seen { name: "c", image: "i", is_ready, restarts: 0, state, last: &Value::Null }
    }

    fn condition(status: &Value, kind: &str) -> Value {
        each(&status["conditions"])
            .find(|condition| condition["type"] == kind)
            .cloned()
            .unwrap_or(Value::Null)
    }

    #[test]
    fn a_pod_runs_once_all_begun_and_is_ready_once_all_are_and_times_stay_while_nothing_changes() {
        let running = || json!({ "running": { "startedAt": "t" } });
        let pod = json!({ "status": { "conditions": [{ "type": "PodScheduled", "status": "True" }] } });
        let waits =
            of(&pod, &[seen(running(), true), seen(json!({ "waiting": {} }), false)], "Always", ADDRESS, "1");
        assert_eq!((&waits["phase"], &waits["podIP"]), (&json!("Pending"), &json!("192.0.2.7")));
        assert_eq!(condition(&waits, "Ready")["status"], "False");
        assert_eq!(condition(&waits, "PodScheduled")["status"], "True", "others' stay");

        let pod = json!({ "status": waits });
        let runs = of(&pod, &[seen(running(), true), seen(running(), true)], "Always", ADDRESS, "2");
        let ready = condition(&runs, "Ready");
        assert_eq!((&runs["phase"], &ready["status"]), (&json!("Running"), &json!("True")));
        assert_eq!((&ready["lastTransitionTime"], &runs["startTime"]), (&json!("2"), &json!("1")));

        let pod = json!({ "status": runs });
        assert_eq!(of(&pod, &[seen(running(), true), seen(running(), true)], "Always", ADDRESS, "3"), runs);
    }

    #[test]
    fn a_pod_is_over_when_none_of_its_containers_begins_anew() {
        let ended = |code: i64| seen(json!({ "terminated": { "exitCode": code } }), false);
        let phase = |codes: &[i64], policy: &str| {
            phase(&codes.iter().map(|code| ended(*code)).collect::<Vec<_>>(), policy)
        };
        assert_eq!(phase(&[0, 0], "Never"), "Succeeded");
        assert_eq!(phase(&[0, 1], "Never"), "Failed");
        assert_eq!(phase(&[0, 1], "OnFailure"), "Running");
        assert_eq!(phase(&[0], "Always"), "Running");
    }
}
