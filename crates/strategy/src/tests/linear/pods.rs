//! The lists of pods, new ones and those before an update.
//!
//! In: pods of as many items as the table asks for. Out: nothing. Never: more than steps.

use super::*;

#[test]
fn the_lists_of_a_pod_cost_what_they_are_long() {
    check(&[
        create("scheduling gates", POD, |count| pod(json!({ "schedulingGates": named(count, "name", "g") }))),
        create("scheduling gates, all the same", POD, |count| {
            pod(json!({ "schedulingGates": list(count, |_| json!({ "name": "g" })) }))
        }),
        create("containers", POD, |count| {
            pod(
                json!({ "containers": named(count, "name", "c"), "initContainers": named(count, "name", "i") }),
            )
        }),
        create("containers, all the same", POD, |count| {
            let same = list(count, |_| json!({ "name": "c" }));
            pod(json!({ "containers": same, "initContainers": same }))
        }),
        create("sidecars, each with a resource of its own", POD, |count| {
            let sidecar = |index: usize| {
                let asked = json!({ format!("example.com/r{index}"): "1" });
                json!({ "name": format!("i{index}"), "restartPolicy": "Always",
                    "resources": { "requests": asked, "limits": asked } })
            };
            let all = json!({ "limits": { "cpu": "1" }, "requests": { "cpu": "1" } });
            pod(json!({ "initContainers": list(count, sidecar), "resources": all }))
        }),
        create("ports", POD, |count| {
            let port = |index: usize| {
                json!({ "name": format!("p{index}"), "containerPort": 80, "hostPort": index % 60_000 + 1,
                    "protocol": "TCP", "hostIP": format!("10.0.{}.{}", index / 250, index % 250) })
            };
            container(json!({ "ports": list(count, port) }))
        }),
        create("ports of one host port", POD, |count| {
            let port = |index: usize| {
                json!({ "containerPort": 80, "hostPort": 80, "protocol": "TCP",
                    "hostIP": format!("10.0.{}.{}", index / 250, index % 250) })
            };
            container(json!({ "ports": list(count, port) }))
        }),
        create("ports, all the same", POD, |count| {
            container(json!({ "ports": list(count, |_| json!({ "containerPort": 80, "protocol": "TCP" })) }))
        }),
        create("environment", POD, |count| container(json!({ "env": named(count, "name", "E") }))),
        create("resize policies", POD, |count| {
            container(json!({ "resizePolicy": named(count, "resourceName", "r") }))
        }),
        create("volumes and where they are mounted", POD, |count| {
            let mount =
                |index: usize| json!({ "name": format!("v{index}"), "mountPath": format!("/m{index}") });
            let mut pod = container(json!({ "volumeMounts": list(count, mount) }));
            pod["spec"]["volumes"] = named(count, "name", "v");
            pod
        }),
        create("volumes and their devices", POD, |count| {
            let volume = |index: usize| json!({ "name": format!("v{index}"), "persistentVolumeClaim": { "claimName": format!("x-e{index}") } });
            let made = |index: usize| json!({ "name": format!("e{index}"), "ephemeral": { "volumeClaimTemplate": { "spec": {} } } });
            let device =
                |index: usize| json!({ "name": format!("v{index}"), "devicePath": format!("/d{index}") });
            let mount =
                |index: usize| json!({ "name": format!("e{index}"), "mountPath": format!("/m{index}") });
            let mut pod = container(json!({
                "volumeDevices": list(count, device), "volumeMounts": list(count, mount),
            }));
            let mut volumes: Vec<Value> = (0..count).map(volume).collect();
            volumes.extend((0..count).map(made));
            pod["spec"]["volumes"] = volumes.into();
            pod
        }),
        create("projected paths", POD, |count| {
            let source = |index: usize| json!({ "secret": { "name": "s", "items": [{ "key": "k", "path": format!("p{index}") }] } });
            let projected = json!({ "name": "v", "projected": { "sources": list(count, source) } });
            pod(json!({ "volumes": [projected] }))
        }),
        create("paths below each other", POD, |count| {
            let item = |index: usize| json!({ "key": "k", "path": format!("d{}/f{index}", index % 7) });
            let mut items: Vec<Value> = (0..count).map(item).collect();
            items.push(json!({ "key": "k", "path": "d1" }));
            pod(json!({ "volumes": [{ "name": "v", "configMap": { "name": "m", "items": items } }] }))
        }),
        create("paths, all the same", POD, |count| {
            let items = list(count, |_| json!({ "key": "k", "path": "p" }));
            pod(json!({ "volumes": [{ "name": "v", "configMap": { "name": "m", "items": items } }] }))
        }),
        create("host aliases and pull secrets", POD, |count| {
            pod(json!({
                "hostAliases": named(count, "ip", "10.0.0."), "imagePullSecrets": named(count, "name", "s"),
            }))
        }),
        create("topology spread", POD, |count| {
            let one = |index: usize| json!({ "maxSkew": 1, "topologyKey": format!("t{index}"), "whenUnsatisfiable": "DoNotSchedule" });
            pod(json!({ "topologySpreadConstraints": list(count, one) }))
        }),
        create("label keys of a term", POD, |count| {
            let expressions =
                list(count, |index| json!({ "key": format!("k{index}"), "operator": "Exists" }));
            let term = json!({
                "topologyKey": "t", "matchLabelKeys": names(count, "k"), "mismatchLabelKeys": names(count, "m"),
                "labelSelector": { "matchExpressions": expressions },
            });
            let required = "requiredDuringSchedulingIgnoredDuringExecution";
            let mut pod = pod(json!({ "affinity": { "podAffinity": { required: [term] } } }));
            let labels = (0..count).map(|index| (format!("k{index}"), Value::from("v")));
            pod["metadata"]["labels"] = Value::Object(labels.collect());
            pod
        }),
        create("resource claims that there are not", POD, |count| {
            let mut pod = container(json!({ "resources": { "claims": named(count, "name", "other") } }));
            pod["spec"]["resourceClaims"] = named(count, "name", "claim");
            pod
        }),
        create("sysctls", POD, |count| {
            pod(json!({ "securityContext": { "sysctls": named(count, "name", "kernel.s") } }))
        }),
    ]);
}

#[test]
fn what_a_pod_was_before_is_looked_up_and_not_searched() {
    let before = |spec: Value| {
        let mut old = pod(spec);
        defaults(&GroupKind::built_in("", "Pod"), &mut old);
        old
    };
    check(&[
        update("tolerations", POD, None, move |count| {
            let all = list(count, |index| json!({ "key": format!("k{index}"), "operator": "Exists" }));
            (pod(json!({ "tolerations": turned(&all) })), before(json!({ "tolerations": all })))
        }),
        update("scheduling gates", POD, None, move |count| {
            let all = named(count, "name", "g");
            (pod(json!({ "schedulingGates": turned(&all) })), before(json!({ "schedulingGates": all })))
        }),
        update("ephemeral containers", POD, Some("ephemeralcontainers"), move |count| {
            let all = named(count, "name", "e");
            (
                pod(json!({ "ephemeralContainers": turned(&all) })),
                before(json!({ "ephemeralContainers": all })),
            )
        }),
        update("ephemeral containers that change", POD, Some("ephemeralcontainers"), move |count| {
            let image = |image: &'static str| {
                list(count, move |index| json!({ "name": format!("e{index}"), "image": image }))
            };
            (
                pod(json!({ "ephemeralContainers": image("a") })),
                before(json!({ "ephemeralContainers": image("b") })),
            )
        }),
        update("conditions and statuses", POD, Some("status"), move |count| {
            let ended = |state: &'static str| {
                list(
                    count,
                    move |index| json!({ "name": format!("c{index}"), "state": { state: { "exitCode": 1 } } }),
                )
            };
            let conditions = named(count, "type", "example.com/t");
            let ips = list(count, |index| json!({ "ip": format!("10.0.{}.{}", index / 250, index % 250) }));
            let spec = json!({ "containers": turned(&named(count, "name", "c")), "restartPolicy": "Always" });
            let (mut new, mut old) = (pod(spec.clone()), before(spec));
            new["status"] = json!({
                "conditions": conditions, "containerStatuses": turned(&ended("running")), "podIPs": turned(&ips),
            });
            old["status"] = json!({
                "conditions": turned(&conditions), "containerStatuses": ended("terminated"), "podIPs": ips,
            });
            (new, old)
        }),
    ]);
}
