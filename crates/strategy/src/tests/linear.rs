//! What judging an object costs is n·log n in its items: steps are counted, never time.
//!
//! In: a list of every kind that rules compare with itself, with another list, or with the one before. Out:
//! nothing. Never: what is wrong with the object, of which there may be much.
//!
//! The bound is the law's, `docs/robustness.md`: at most 32 steps an item and level of a tree of them, and of
//! four times as many items at most five times the steps.

mod filled;
mod pods;

use forebay_apimachinery::{Caller, steps};
use serde_json::{Value, json};

use crate::services::{Family, Pools, Unavailable, allocate_changed, allocate_new};
use crate::{
    Context, GroupKind, Privileged, defaults, prepare_create, prepare_update, validate_create,
    validate_update, warnings,
};

/// Steps for an item and a level.
const STEPS_MAX: f64 = forebay_fuzz::law::STEPS_TIMES as f64;
const FEW: usize = 2_000;
const MANY: usize = 4 * FEW;

/// `make` of each of `count`.
fn list(count: usize, make: impl Fn(usize) -> Value) -> Value {
    Value::Array((0..count).map(make).collect())
}

/// Texts that are all different, the last ones first: who searches from the front finds each late.
fn names(count: usize, prefix: &str) -> Value {
    list(count, |index| Value::from(format!("{prefix}{}", count - index)))
}

/// A member of each of `count` objects.
fn named(count: usize, name: &str, prefix: &str) -> Value {
    list(count, |index| json!({ name: format!("{prefix}{}", count - index) }))
}

/// The list the other way round.
fn turned(list: &Value) -> Value {
    Value::Array(list.as_array().expect("a list").iter().rev().cloned().collect())
}

fn object(spec: Value) -> Value {
    json!({ "metadata": { "name": "x", "namespace": "n", "resourceVersion": "1" }, "spec": spec })
}

fn status(status: Value) -> Value {
    let mut whole = object(json!({}));
    whole["status"] = status;
    whole
}

fn pod(spec: Value) -> Value {
    let mut whole = object(json!({ "containers": [{ "name": "c", "image": "i" }] }));
    for (name, member) in spec.as_object().expect("members") {
        whole["spec"][name] = member.clone();
    }
    whole
}

/// A pod whose only container has these members.
fn container(members: Value) -> Value {
    let mut whole = pod(json!({}));
    for (name, member) in members.as_object().expect("members") {
        whole["spec"]["containers"][0][name] = member.clone();
    }
    whole
}

/// A write of some kind, made of so and so many items.
struct Row {
    what: &'static str,
    kind: GroupKind<'static>,
    subresource: Option<&'static str>,
    /// The object, and the one before when it is an update.
    write: Box<dyn Fn(usize) -> (Value, Option<Value>)>,
}

fn create(
    what: &'static str,
    (group, kind): (&'static str, &'static str),
    make: impl Fn(usize) -> Value + 'static,
) -> Row {
    let write = Box::new(move |count| (make(count), None));
    Row { what, kind: GroupKind::built_in(group, kind), subresource: None, write }
}

fn update(
    what: &'static str,
    (group, kind): (&'static str, &'static str),
    subresource: Option<&'static str>,
    make: impl Fn(usize) -> (Value, Value) + 'static,
) -> Row {
    let write = Box::new(move |count| {
        let (new, old) = make(count);
        (new, Some(old))
    });
    Row { what, kind: GroupKind::built_in(group, kind), subresource, write }
}

impl Row {
    /// All that is done to the object before it is stored.
    fn steps(&self, count: usize) -> u64 {
        let (mut new, old) = (self.write)(count);
        let user = Caller::default();
        let context = Context { now: "2026-01-01T00:00:00Z", user: Some(&user) };
        // Under which more is looked at.
        let privileged = Privileged::Disallowed;
        steps::counted(|| {
            defaults(&self.kind, &mut new);
            match &old {
                None => {
                    prepare_create(&self.kind, &mut new, &context);
                    drop(validate_create(&self.kind, &new, privileged));
                    drop(warnings(&self.kind, &new, None));
                }
                Some(old) => {
                    prepare_update(&self.kind, self.subresource, &mut new, old, &context);
                    drop(validate_update(&self.kind, self.subresource, &new, old, privileged));
                    drop(warnings(&self.kind, &new, Some((self.subresource, old))));
                }
            }
        })
    }
}

/// Prints the rows that take more than the law allows, and fails if there are any.
fn check(rows: &[Row]) {
    let mut over = String::new();
    for row in rows {
        let (few, many) = (row.steps(FEW), row.steps(MANY));
        assert!(few > FEW as u64, "{}: is not looked at: {few}", row.what);
        over.push_str(&verdict(row.what, few, many));
    }
    assert!(over.is_empty(), "{over}");
}

/// Says what is over the bound, if something is.
fn verdict(what: &str, few: u64, many: u64) -> String {
    let allowed = STEPS_MAX * FEW as f64 * (FEW as f64).log2();
    if many > 5 * few || few as f64 > allowed {
        return format!("{what}: {few} steps for {FEW}, {many} for {MANY}\n");
    }
    String::new()
}

const POD: (&str, &str) = ("", "Pod");

#[test]
fn the_lists_of_services_and_networks_cost_what_they_are_long() {
    let ip = |index: usize| format!("10.{}.{}.1", index / 250, index % 250);
    let ips = move |count: usize| list(count, move |index| ip(index).into());
    check(&[
        create("ports", ("", "Service"), |count| {
            let port = |index: usize| json!({ "name": format!("p{index}"), "port": index % 65_000 + 1, "nodePort": index % 65_000 + 1 });
            object(json!({ "type": "NodePort", "ports": list(count, port) }))
        }),
        update("addresses", ("", "Service"), None, move |count| {
            let ranges = list(count, move |index| format!("{}/32", ip(index)).into());
            let of = |ips: Value, ranges: Value| {
                object(json!({
                    "type": "LoadBalancer", "ports": [{ "port": 80 }], "clusterIPs": ips, "externalIPs": ips,
                    "loadBalancerSourceRanges": ranges, "ipFamilies": names(count, "f"),
                }))
            };
            (of(turned(&ips(count)), turned(&ranges)), of(ips(count), ranges))
        }),
        update("node ports that the type had", ("", "Service"), None, |count| {
            let ports = list(count, |index| json!({ "port": index + 1, "nodePort": index + 1 }));
            let of = |kind: &str, ports: Value| object(json!({ "type": kind, "ports": ports }));
            (of("ClusterIP", turned(&ports)), of("NodePort", ports))
        }),
        create("ports of a slice", ("discovery.k8s.io", "EndpointSlice"), |count| {
            json!({ "metadata": { "name": "x", "namespace": "n" }, "addressType": "IPv4",
                "ports": named(count, "name", "p") })
        }),
        update("ranges of a policy", ("networking.k8s.io", "NetworkPolicy"), None, move |count| {
            let blocks =
                list(count, move |index| json!({ "ipBlock": { "cidr": format!("{}/32", ip(index)) } }));
            let of = |from: Value| object(json!({ "podSelector": {}, "ingress": [{ "from": from }] }));
            (of(turned(&blocks)), of(blocks))
        }),
        update("addresses of an ingress", ("networking.k8s.io", "Ingress"), Some("status"), move |count| {
            let points = list(count, move |index| json!({ "ip": ip(index) }));
            let of = |points: Value| status(json!({ "loadBalancer": { "ingress": points } }));
            (of(turned(&points)), of(points))
        }),
    ]);
}

/// As much as anybody asks for.
struct Plenty(i64);

impl Pools for Plenty {
    fn families(&self) -> &[Family] {
        &[Family::V4]
    }

    fn address(&mut self, _: Option<std::net::IpAddr>, _: Family) -> Result<std::net::IpAddr, Unavailable> {
        Ok(std::net::IpAddr::from([10, 0, 0, 1]))
    }

    fn port(&mut self, wanted: Option<i64>) -> Result<i64, Unavailable> {
        self.0 += 1;
        Ok(wanted.unwrap_or(self.0))
    }
}

#[test]
fn the_ports_of_a_service_are_given_out_one_by_one() {
    let service = |count: usize, port: fn(usize) -> Value| {
        object(json!({ "type": "NodePort", "clusterIP": "None", "ports": list(count, port) }))
    };
    let plain = |index: usize| json!({ "name": format!("p{index}"), "port": index + 1, "protocol": "TCP" });
    let taken = |index: usize| json!({ "name": format!("p{index}"), "port": index + 1, "protocol": "TCP", "nodePort": index + 1 });
    let given = |count: usize| {
        let mut new = service(count, plain);
        let new = new.as_object_mut().expect("an object");
        steps::counted(|| allocate_new(new, &mut Plenty(0)).expect("there are enough"))
    };
    let kept = |count: usize| {
        let (mut new, old) = (service(count, plain), service(count, taken));
        let old = old.as_object().expect("an object");
        let new = new.as_object_mut().expect("an object");
        steps::counted(|| allocate_changed(new, old, &mut Plenty(0)).expect("there are enough"))
    };
    let over = verdict("given", given(FEW), given(MANY)) + &verdict("kept", kept(FEW), kept(MANY));
    assert!(over.is_empty(), "{over}");
}

#[test]
fn the_lists_of_controllers_cost_what_they_are_long() {
    check(&[
        create("failure policies", ("batch", "Job"), |count| {
            let rule = |index: usize| {
                let codes = json!({ "containerName": format!("x{index}"), "operator": "In", "values": [1] });
                json!({ "action": "FailJob", "onExitCodes": codes })
            };
            let template =
                json!({ "spec": { "restartPolicy": "Never", "containers": named(count, "name", "c") } });
            object(json!({ "podFailurePolicy": { "rules": list(count, rule) }, "template": template }))
        }),
        create("exit codes", ("batch", "Job"), |count| {
            let codes = json!({ "operator": "In", "values": list(count, |index| index.into()) });
            let rule = json!({ "action": "FailJob", "onExitCodes": codes });
            object(json!({ "podFailurePolicy": { "rules": [rule] }, "template": pod(json!({})) }))
        }),
        update("pods that are not counted yet", ("batch", "Job"), Some("status"), |count| {
            let uncounted = json!({ "succeeded": names(count, "s"), "failed": names(count, "f") });
            (status(json!({ "uncountedTerminatedPods": uncounted })), status(json!({})))
        }),
        create("claims of a set", ("apps", "StatefulSet"), |count| {
            let claims =
                list(count, |index| json!({ "metadata": { "name": format!("v{index}") }, "spec": {} }));
            let mut template = pod(json!({ "volumes": named(count, "name", "v") }));
            template["metadata"]["labels"] = json!({ "a": "b" });
            object(json!({
                "selector": { "matchLabels": { "a": "b" } }, "template": template, "volumeClaimTemplates": claims,
            }))
        }),
        update("conditions", ("policy", "PodDisruptionBudget"), Some("status"), |count| {
            let conditions = named(count, "type", "T");
            (
                status(json!({ "conditions": conditions })),
                status(json!({ "conditions": turned(&conditions) })),
            )
        }),
    ]);
}

#[test]
fn the_lists_of_the_cluster_cost_what_they_are_long() {
    let cluster = |mut object: Value| {
        object["metadata"] = json!({ "name": "x", "resourceVersion": "1" });
        object
    };
    check(&[
        create("taints", ("", "Node"), move |count| {
            cluster(object(json!({ "taints": named(count, "key", "k") })))
        }),
        update("addresses", ("", "Node"), Some("status"), move |count| {
            let addresses =
                list(count, |index| json!({ "type": "InternalIP", "address": format!("a{index}") }));
            let node = cluster(status(json!({ "addresses": addresses })));
            (node.clone(), node)
        }),
        create("limits", ("", "LimitRange"), |count| {
            object(json!({ "limits": named(count, "type", "example.com/t") }))
        }),
        create("scopes of a quota", ("", "ResourceQuota"), |count| {
            let hard = (0..count).map(|index| (format!("hugepages-{index}"), Value::from("1")));
            let scopes = list(count, |_| "BestEffort".into());
            let selected = list(count, |_| json!({ "scopeName": "BestEffort", "operator": "Exists" }));
            object(json!({
                "hard": Value::Object(hard.collect()), "scopes": scopes,
                "scopeSelector": { "matchExpressions": selected },
            }))
        }),
        create("tolerations of a class", ("node.k8s.io", "RuntimeClass"), move |count| {
            let tolerations =
                list(count, |index| json!({ "key": format!("k{index}"), "operator": "Exists" }));
            cluster(json!({ "handler": "h", "scheduling": { "tolerations": tolerations } }))
        }),
        create("topologies", ("storage.k8s.io", "StorageClass"), move |count| {
            let term = |index: usize| json!({ "matchLabelExpressions": [{ "key": "k", "values": [format!("v{index}")] }] });
            cluster(json!({ "provisioner": "p", "allowedTopologies": list(count, term) }))
        }),
        create("topologies that are empty", ("storage.k8s.io", "StorageClass"), move |count| {
            cluster(json!({ "provisioner": "p", "allowedTopologies": list(count, |_| json!({})) }))
        }),
        create("one topology", ("storage.k8s.io", "StorageClass"), move |count| {
            let mut expressions: Vec<Value> =
                (0..count).map(|index| json!({ "key": format!("k{index}"), "values": ["v"] })).collect();
            expressions.push(json!({ "key": "k", "values": names(count, "v") }));
            cluster(
                json!({ "provisioner": "p", "allowedTopologies": [{ "matchLabelExpressions": expressions }] }),
            )
        }),
        create("requests for tokens", ("storage.k8s.io", "CSIDriver"), move |count| {
            cluster(object(json!({ "tokenRequests": named(count, "audience", "a") })))
        }),
        update("drivers of a node", ("storage.k8s.io", "CSINode"), None, move |count| {
            let drivers = list(
                count,
                |index| json!({ "name": format!("d{index}"), "nodeID": "n", "topologyKeys": ["a"] }),
            );
            let of = |drivers: Value| cluster(object(json!({ "drivers": drivers })));
            (of(turned(&drivers)), of(drivers))
        }),
        create("topology keys", ("storage.k8s.io", "CSINode"), move |count| {
            let driver = json!({ "name": "d", "nodeID": "n", "topologyKeys": names(count, "k") });
            cluster(object(json!({ "drivers": [driver] })))
        }),
        update(
            "conditions of a schema",
            ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
            Some("status"),
            move |count| {
                let conditions = named(count, "type", "T");
                let of = |conditions| cluster(status(json!({ "conditions": conditions })));
                (of(turned(&conditions)), of(conditions))
            },
        ),
    ]);
}

#[test]
fn the_lists_of_requests_for_certificates_and_devices_cost_what_they_are_long() {
    const CLAIM: (&str, &str) = ("resource.k8s.io", "ResourceClaim");
    let request = |conditions: Value| {
        json!({
            "metadata": { "name": "x", "resourceVersion": "1" }, "status": { "conditions": conditions },
            "spec": { "signerName": "example.com/s" },
        })
    };
    check(&[
        create(
            "usages",
            ("certificates.k8s.io", "CertificateSigningRequest"),
            |count| json!({ "metadata": { "name": "x" }, "spec": { "usages": names(count, "u") } }),
        ),
        update(
            "conditions",
            ("certificates.k8s.io", "CertificateSigningRequest"),
            Some("status"),
            move |count| {
                let conditions =
                    list(count, |index| json!({ "type": format!("t{index}"), "status": "True" }));
                (request(turned(&conditions)), request(conditions))
            },
        ),
        create("constraints of a claim", CLAIM, |count| {
            let refs = list(32, |_| "r1/a1".into());
            let constraints = list(32, |_| json!({ "requests": refs, "matchAttribute": "a/b" }));
            let mut requests: Vec<Value> = vec![json!({
                "name": "r1", "firstAvailable": named(count, "name", "a"),
            })];
            requests.extend((0..count).map(|index| json!({ "name": format!("q{index}") })));
            object(json!({ "devices": { "requests": requests, "constraints": constraints } }))
        }),
        update("devices of a claim", CLAIM, Some("status"), |count| {
            let device = |index: usize| json!({ "driver": "d", "pool": "p", "device": format!("d{index}") });
            let devices = list(count, device);
            let allocation = json!({ "devices": { "results": devices } });
            let old = status(json!({ "allocation": allocation, "devices": devices }));
            (status(json!({ "allocation": allocation, "devices": turned(&devices) })), old)
        }),
        update("devices that are gone", CLAIM, Some("status"), |count| {
            let device = |index: usize| json!({ "driver": "d", "pool": "p", "device": format!("d{index}") });
            let devices = list(count, device);
            let old =
                status(json!({ "allocation": { "devices": { "results": devices } }, "devices": devices }));
            (status(json!({ "devices": turned(&devices) })), old)
        }),
        update("users of a claim that goes", CLAIM, Some("status"), |count| {
            let users = named(count, "uid", "u");
            let of = |users: Value| {
                let mut claim = status(json!({ "allocation": {}, "reservedFor": users }));
                claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                claim
            };
            (of(turned(&users)), of(users))
        }),
        update("conditions of a binding", CLAIM, Some("status"), |count| {
            let result = json!({
                "request": "r", "bindingConditions": names(count, "b"), "bindingFailureConditions": names(count, "f"),
            });
            (status(json!({ "allocation": { "devices": { "results": [result] } } })), status(json!({})))
        }),
    ]);
}

#[test]
fn the_lists_of_webhooks_and_policies_cost_what_they_are_long() {
    const GROUP: &str = "admissionregistration.k8s.io";
    let meta = || json!({ "name": "x", "resourceVersion": "1" });
    let rules = |count: usize| {
        let mut resources: Vec<Value> = (0..count).map(|index| format!("r{index}/*").into()).collect();
        resources.extend((0..count).map(|index| Value::from(format!("*/s{index}"))));
        json!([{ "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": resources,
            "resourceNames": names(count, "n") }])
    };
    check(&[
        update("webhooks", (GROUP, "ValidatingWebhookConfiguration"), None, move |count| {
            let hooks = named(count, "name", "a.b.c");
            let of = |hooks: Value| json!({ "metadata": meta(), "webhooks": hooks });
            (of(turned(&hooks)), of(hooks))
        }),
        create("one webhook", (GROUP, "MutatingWebhookConfiguration"), move |count| {
            let hook = json!({
                "name": "a.b.c", "rules": rules(count), "admissionReviewVersions": names(count, "v"),
                "matchConditions": named(count, "name", "c"),
            });
            json!({ "metadata": meta(), "webhooks": [hook] })
        }),
        create("a policy", (GROUP, "ValidatingAdmissionPolicy"), move |count| {
            json!({ "metadata": meta(), "spec": {
                "matchConstraints": { "resourceRules": rules(count) }, "auditAnnotations": named(count, "key", "k"),
            } })
        }),
        create(
            "a binding",
            (GROUP, "ValidatingAdmissionPolicyBinding"),
            move |count| json!({ "metadata": meta(), "spec": { "validationActions": names(count, "a") } }),
        ),
    ]);
}

#[test]
fn metadata_costs_what_it_is_long() {
    check(&[
        update("finalizers", ("", "ConfigMap"), None, |count| {
            let of = |finalizers: Value| {
                json!({ "metadata": {
                    "name": "x", "namespace": "n", "resourceVersion": "1", "finalizers": finalizers,
                    "deletionTimestamp": "2026-01-01T00:00:00Z",
                } })
            };
            let finalizers = names(count, "example.com/f");
            (of(turned(&finalizers)), of(finalizers))
        }),
        create("owners", ("", "ConfigMap"), |count| {
            let owner = |index: usize| json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": format!("{index}"), "controller": true });
            json!({ "metadata": { "name": "x", "namespace": "n", "ownerReferences": list(count, owner) } })
        }),
    ]);
}
