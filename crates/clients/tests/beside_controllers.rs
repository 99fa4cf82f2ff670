//! Our controllers beside the real kube-controller-manager: the same objects on two servers of ours, one with
//! controllers of its own, one without, on which the real ones work.
//!
//! In: the peers, built. Out: every object that a controller made or changed in another way, but for names,
//! uids, revisions and times. Never: kube-apiserver, which is what other tests are about.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use forebay_clients::https::Call;
use forebay_clients::wait::until;
use forebay_clients::{ControlPlane, needs, ports};
use serde_json::{Value, json};

/// As both have them.
const CONTROLLERS: &str = "garbage-collector-controller,endpoints-controller,endpointslice-controller,endpointslice-mirroring-controller,\
                           ttl-after-finished-controller,clusterrole-aggregation-controller,resourcequota-controller";
/// Anything that takes longer than this does not come. Generous, as machines that build are busy.
const WAIT: Duration = Duration::from_secs(180);

const NAMESPACED: &str = "/api/v1/namespaces/work";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/work/endpointslices";
const JOBS: &str = "/apis/batch/v1/namespaces/work/jobs";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// What is read of both, and compared.
const COMPARED: [(&str, &str); 5] = [
    ("Endpoints", "/api/v1/namespaces/work/endpoints"),
    ("EndpointSlice", SLICES),
    ("Job", JOBS),
    ("ClusterRole", ROLES),
    ("ResourceQuota", "/api/v1/namespaces/work/resourcequotas"),
];

struct Side {
    server: ControlPlane,
}

impl Side {
    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let answer =
            self.server.ask(Call { method, path, body: &text }).unwrap_or_else(|why| panic!("{why}"));
        (answer.code, serde_json::from_str(&answer.body).unwrap_or_default())
    }

    /// Makes an object; its status, too, if it has one.
    fn make(&self, path: &str, object: &Value) {
        let (code, made) = self.ask("POST", path, object);
        assert_eq!(code, 201, "{path}: {made}");
        if object.get("status").is_some() {
            let mut with_status = made;
            with_status["status"] = object["status"].clone();
            self.put(&format!("{path}/{}/status", name_of(object)), &with_status);
        }
    }

    fn put(&self, path: &str, object: &Value) {
        let (code, answer) = self.ask("PUT", path, object);
        assert_eq!(code, 200, "{path}: {answer}");
    }

    /// Changes one that is there.
    fn change(&self, path: &str, change: &dyn Fn(&mut Value)) {
        // Somebody else may write it meanwhile.
        until(path, WAIT, || {
            let (_, mut object) = self.ask("GET", path, &Value::Null);
            change(&mut object);
            match self.ask("PUT", path, &object) {
                (200, _) => Ok(()),
                (code, answer) => Err(format!("{code} {answer}")),
            }
        })
        .unwrap_or_else(|why| panic!("{why}"));
    }

    fn delete(&self, path: &str) {
        let (code, answer) = self.ask("DELETE", path, &json!({ "gracePeriodSeconds": 0 }));
        assert_eq!(code, 200, "{path}: {answer}");
    }

    /// All that is compared, by what it is.
    fn read(&self) -> BTreeMap<String, Value> {
        let mut read = BTreeMap::new();
        for (kind, path) in COMPARED {
            let (code, list) = self.ask("GET", path, &Value::Null);
            assert_eq!(code, 200, "{path}: {list}");
            for object in list["items"].as_array().into_iter().flatten() {
                let (name, object) = normal(kind, object.clone());
                read.entry(format!("{kind} {name}"))
                    .or_insert_with(|| json!([]))
                    .as_array_mut()
                    .expect("a list")
                    .push(object);
            }
        }
        read.values_mut().filter_map(Value::as_array_mut).for_each(|all| all.sort_by_key(Value::to_string));
        read
    }
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// An object without what differs from server to server; slices go by their service.
fn normal(kind: &str, mut object: Value) -> (String, Value) {
    let mut name = name_of(&object).to_owned();
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for member in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        metadata.remove(member);
    }
    if kind == "EndpointSlice" {
        let of = metadata["labels"]["kubernetes.io/service-name"].as_str().unwrap_or_default();
        name = format!("of {of}");
        metadata.insert("name".into(), "<name>".into());
        // Who makes a name of a prefix says which; ours is made of the service.
        metadata.remove("generateName");
    }
    let mut values = vec![&mut object];
    while let Some(value) = values.pop() {
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    let is_time = name.ends_with("last-change-trigger-time") || name.ends_with("Time");
                    match member {
                        Value::String(text) if is_time => *text = "<time>".into(),
                        Value::String(text) if name == "uid" => *text = "<uid>".into(),
                        Value::String(text) if name.ends_with("controller-uid") => *text = "<uid>".into(),
                        member => values.push(member),
                    }
                }
            }
            Value::Array(all) => values.extend(all),
            _ => {}
        }
    }
    for list in ["endpoints", "ports"] {
        if let Some(all) = object.get_mut(list).and_then(Value::as_array_mut) {
            all.sort_by_key(Value::to_string);
        }
    }
    (name, object)
}

/// What differs, a line each.
fn differences(ours: &BTreeMap<String, Value>, theirs: &BTreeMap<String, Value>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let differ = names.into_iter().filter(|name| ours.get(*name) != theirs.get(*name));
    let shown = |side: &BTreeMap<String, Value>, name: &String| {
        side.get(name).map_or_else(|| "none".to_owned(), Value::to_string)
    };
    differ
        .map(|name| format!("{name}\n  ours   {}\n  theirs {}", shown(ours, name), shown(theirs, name)))
        .collect()
}

/// Waits until both have come to the same, and shows what differs if they do not.
fn same(what: &str, ours: &Side, theirs: &Side, is_there: &dyn Fn(&BTreeMap<String, Value>) -> bool) {
    let compared = until(what, WAIT, || {
        let (ours, theirs) = (ours.read(), theirs.read());
        let different = differences(&ours, &theirs);
        match different.is_empty() && is_there(&theirs) {
            true => Ok(()),
            false if different.is_empty() => Err(format!("neither has come so far: {:?}", theirs.keys())),
            false => Err(different.join("\n")),
        }
    });
    compared.unwrap_or_else(|why| panic!("{why}"));
}

fn pod(name: &str, ip: &str, labels: &Value, node: &str, is_ready: bool) -> Value {
    let condition = |sort: &str| json!({ "type": sort, "status": if is_ready { "True" } else { "False" } });
    json!({
        "metadata": { "name": name, "labels": labels },
        "spec": { "nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [{
            "name": "c", "image": "i", "ports": [{ "name": "web", "containerPort": 8080 }] }] },
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }],
            "conditions": [condition("Ready"), condition("ContainersReady")],
        },
    })
}

fn service(name: &str, more: &Value) -> Value {
    let mut spec = json!({
        "selector": { "app": "web" },
        "ports": [{ "name": "web", "port": 80, "targetPort": "web" }, { "name": "n", "port": 81, "targetPort": 9090 }],
    });
    for (member, value) in more.as_object().into_iter().flatten() {
        spec[member] = value.clone();
    }
    json!({ "metadata": { "name": name, "labels": { "of": name } }, "spec": spec })
}

fn role(name: &str, labels: &Value, rules: &Value) -> Value {
    json!({ "metadata": { "name": name, "labels": labels }, "rules": rules })
}

/// Makes what controllers work on.
fn furnish(side: &Side) {
    side.make("/api/v1/namespaces", &json!({ "metadata": { "name": "work" } }));
    for (name, zone) in [("one", "a"), ("two", "b")] {
        let labels = json!({ "topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name });
        side.make("/api/v1/nodes", &json!({ "metadata": { "name": name, "labels": labels } }));
    }
    let (services, pods) = (format!("{NAMESPACED}/services"), format!("{NAMESPACED}/pods"));
    let quota = json!({
        "metadata": { "name": "q" },
        "spec": { "hard": { "pods": "20", "services": "20", "count/jobs.batch": "9", "requests.cpu": "4" } },
    });
    // What is there before the quota is counted by the controller, what comes later by admission.
    side.make(&services, &service("web", &json!({})));
    side.make(&services, &service("headless", &json!({ "clusterIP": "None" })));
    side.make(&services, &service("early", &json!({ "publishNotReadyAddresses": true })));
    side.make(&services, &service("nobody", &json!({ "selector": { "app": "none" } })));
    side.make(&services, &service("by-hand", &json!({ "selector": null, "ports": [{ "port": 80 }] })));
    side.make(
        &services,
        &json!({
        "metadata": { "name": "away" }, "spec": { "type": "ExternalName", "externalName": "example.com" } }),
    );
    let web = json!({ "app": "web" });
    side.make(&pods, &pod("a", "10.1.0.1", &web, "one", true));
    side.make(&pods, &pod("b", "10.1.0.2", &web, "two", true));
    side.make(&pods, &pod("c", "10.1.0.3", &web, "two", false));
    side.make(&pods, &pod("other", "10.1.0.4", &json!({ "app": "other" }), "one", true));
    let by_hand = json!({
        "metadata": { "name": "by-hand", "labels": { "x": "y" } },
        "subsets": [{ "addresses": [{ "ip": "192.0.2.1" }, { "ip": "192.0.2.2" }], "ports": [{ "port": 8080 }] }],
    });
    side.make(&format!("{NAMESPACED}/endpoints"), &by_hand);
    side.make(&format!("{NAMESPACED}/resourcequotas"), &quota);
    let job = |name: &str, ttl: Value| {
        let template =
            json!({ "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } });
        json!({
            "metadata": { "name": name }, "spec": { "template": template, "ttlSecondsAfterFinished": ttl },
            "status": {
                "startTime": "2024-01-01T00:00:00Z", "completionTime": "2024-01-01T00:00:01Z", "succeeded": 1,
                "uncountedTerminatedPods": {},
                "conditions": [
                    { "type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": "2024-01-01T00:00:01Z" },
                    { "type": "Complete", "status": "True", "lastTransitionTime": "2024-01-01T00:00:01Z" },
                ],
            },
        })
    };
    side.make(JOBS, &job("over", json!(1)));
    side.make(JOBS, &job("kept", Value::Null));
    let selector = json!([{ "matchLabels": { "aggregate": "yes" } }, { "matchLabels": { "also": "yes" } }]);
    let mut all = role("all", &json!({}), &Value::Null);
    all["aggregationRule"] = json!({ "clusterRoleSelectors": selector });
    side.make(ROLES, &all);
    let rule = |verb: &str| json!([{ "apiGroups": ["x.io"], "resources": ["things"], "verbs": [verb] }]);
    side.make(ROLES, &role("z-get", &json!({ "aggregate": "yes" }), &rule("get")));
    side.make(ROLES, &role("a-list", &json!({ "also": "yes" }), &rule("list")));
    side.make(ROLES, &role("neither", &json!({}), &rule("watch")));
}

/// Changes some of it.
fn shake(side: &Side) {
    side.delete(&format!("{NAMESPACED}/pods/a"));
    side.change(&format!("{NAMESPACED}/pods/c/status"), &|pod| {
        for condition in pod["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition["status"] = "True".into();
        }
    });
    side.change(&format!("{NAMESPACED}/pods/other"), &|pod| pod["metadata"]["labels"]["app"] = "web".into());
    side.change(&format!("{NAMESPACED}/services/headless"), &|service| {
        service["metadata"]["labels"]["more"] = "labels".into();
    });
    side.change(&format!("{NAMESPACED}/services/nobody"), &|service| {
        service["spec"]["selector"] = json!({ "app": "web" });
        service["spec"]["ports"] = json!([{ "name": "web", "port": 80, "targetPort": 1234 }]);
    });
    side.change(&format!("{NAMESPACED}/endpoints/by-hand"), &|endpoints| {
        endpoints["subsets"][0]["addresses"] = json!([{ "ip": "192.0.2.3" }]);
    });
    side.delete(&format!("{NAMESPACED}/services/early"));
    side.delete(&format!("{ROLES}/z-get"));
    side.change(&format!("{ROLES}/neither"), &|role| role["metadata"]["labels"] = json!({ "also": "yes" }));
}

#[test]
fn the_same_objects_come_to_the_same_as_on_the_real_controllers() {
    let Some(peers) = needs::built_peers() else { return };
    let started = |flags: Vec<String>| ControlPlane::start_told(flags).unwrap_or_else(|why| panic!("{why}"));
    let ours = Side { server: started(vec![format!("--controllers={CONTROLLERS}")]) };
    let mut theirs = Side { server: started(Vec::new()) };
    let [port] = ports::free().unwrap_or_else(|why| panic!("{why}"));
    let kubeconfig = theirs.server.kubeconfig().display().to_string();
    let mut manager = Command::new(&peers.controller_manager);
    manager.args([
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--cert-dir=serving".to_owned(),
        "--leader-elect=false".to_owned(),
        format!("--controllers={CONTROLLERS}"),
    ]);
    theirs.server.start_beside("kube-controller-manager", &mut manager).unwrap_or_else(|why| panic!("{why}"));
    for side in [&ours, &theirs] {
        furnish(side);
    }
    let has = |name: &str, part: &str| {
        let (name, part) = (name.to_owned(), part.to_owned());
        move |read: &BTreeMap<String, Value>| {
            read.get(&name).is_some_and(|all| all.to_string().contains(&part))
        }
    };
    let (web, quota) = (has("EndpointSlice of web", "10.1.0.2"), has("ResourceQuota q", "\"used\":{"));
    let (role, mirrored) = (has("ClusterRole all", "\"list\""), has("EndpointSlice of by-hand", "192.0.2.2"));
    same("what was made", &ours, &theirs, &|read| {
        let is_over = !read.contains_key("Job over");
        web(read) && quota(read) && role(read) && mirrored(read) && is_over
    });
    for side in [&ours, &theirs] {
        shake(side);
    }
    let (web, role) = (has("EndpointSlice of nobody", "1234"), has("ClusterRole all", "\"watch\""));
    let mirrored = has("EndpointSlice of by-hand", "192.0.2.3");
    same("what was changed", &ours, &theirs, &|read| {
        let is_gone = !read.contains_key("EndpointSlice of early") && !read.contains_key("Endpoints early");
        web(read) && role(read) && mirrored(read) && is_gone
    });
    theirs.server.beside_alive().unwrap_or_else(|why| panic!("{why}"));
}
