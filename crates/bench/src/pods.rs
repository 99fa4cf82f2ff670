//! The pods that scenarios write: about 4 KB of JSON, a pure function of an index and of the uid of the owner.
//!
//! In: an index. Out: namespace, name and body, the same on every run and for every server but for that uid; and the
//! ReplicaSets that own them, which have to exist: a garbage collector deletes what has no living owner.
//! Never: a field that the server would have to default; both then store the same pod, but for what they add themselves.

use bytes::Bytes;

/// Namespaces that pods are spread over: `bench-0` to `bench-9`.
pub const NAMESPACES: usize = 10;
/// Pods of one workload share labels, image and volumes, as the replicas of a Deployment do.
const REPLICAS: usize = 50;
/// Environment variables of the container. Few and long: managedFields grow with the number of names, not with the values.
const VARIABLES: usize = 6;

/// A pod to create.
#[derive(Debug)]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    pub body: Bytes,
}

/// Name of the namespace of the pod at `index`.
pub fn namespace(index: usize) -> String {
    format!("bench-{}", index % NAMESPACES)
}

/// How many ReplicaSets own the first `pods` pods.
pub fn owners(pods: usize) -> usize {
    pods.div_ceil(NAMESPACES * REPLICAS) * NAMESPACES
}

/// Which ReplicaSet owns the pod at `index`.
pub fn owner_of(index: usize) -> usize {
    workload(index) * NAMESPACES + index % NAMESPACES
}

/// Namespace and body of the ReplicaSet at `owner`.
pub fn replica_set(owner: usize) -> (String, Bytes) {
    let app = app(owner / NAMESPACES);
    let body = format!(
        concat!(
            r#"{{"kind":"ReplicaSet","apiVersion":"apps/v1","metadata":{{"name":"{name}"}},"spec":{{"replicas":{replicas},"#,
            r#""selector":{{"matchLabels":{{"app":"{app}"}}}},"template":{{"metadata":{{"labels":{{"app":"{app}"}}}},"#,
            r#""spec":{{"containers":[{{"name":"server","image":"registry.example.com/team/{app}"}}]}}}}}}}}"#,
        ),
        name = owner_name(owner / NAMESPACES),
        replicas = REPLICAS,
        app = app,
    );
    (namespace(owner), Bytes::from(body))
}

/// The pod at `index`, owned by the ReplicaSet whose uid is `owner`.
pub fn pod(index: usize, owner: &str) -> Pod {
    let namespace = namespace(index);
    let name = format!("{}-{index:05}", owner_name(workload(index)));
    let body = body(index, &namespace, &name, owner);
    Pod { namespace, name, body: Bytes::from(body) }
}

fn workload(index: usize) -> usize {
    index / NAMESPACES / REPLICAS
}

fn app(workload: usize) -> String {
    format!("app-{workload:04}")
}

fn owner_name(workload: usize) -> String {
    format!("{}-{}", app(workload), hex(workload, 10))
}

fn body(index: usize, namespace: &str, name: &str, owner: &str) -> String {
    let (workload, app) = (workload(index), app(workload(index)));
    let mut json = String::with_capacity(5 * 1024);
    json += &metadata(index, namespace, name, owner);
    json += r#","spec":{"volumes":["#;
    json += &volumes(&app);
    json += r#"],"containers":["#;
    json += &container(&format!("registry.example.com/team/{app}:v1.{}.0", workload % 90), index);
    json += r#"],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","#;
    json +=
        r#""serviceAccountName":"default","serviceAccount":"default","automountServiceAccountToken":false,"#;
    json += &format!(r#""nodeName":"node-{:04}","#, number(index) % 500);
    json += r#""securityContext":{"runAsUser":1000,"fsGroup":2000},"schedulerName":"default-scheduler","#;
    json +=
        r#""tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","#;
    json += r#""tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","#;
    json += r#""effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"#;
    json += r#""preemptionPolicy":"PreemptLowerPriority"}}"#;
    json
}

fn metadata(index: usize, namespace: &str, name: &str, owner: &str) -> String {
    let (version, zone) = (index % 7, ["a", "b", "c"][index % 3]);
    let workload = workload(index);
    format!(
        concat!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"{namespace}","#,
            r#""labels":{{"app.kubernetes.io/name":"{app}","app.kubernetes.io/version":"v1.{version}","#,
            r#""pod-template-hash":"{hash}","topology.example.com/zone":"zone-{zone}","tier":"backend"}},"#,
            r#""annotations":{{"checksum/config":"{checksum}","prometheus.io/scrape":"true","prometheus.io/port":"9090","#,
            r#""team.example.com/owner":"platform-{version}@example.com","#,
            r#""mesh.example.com/status":"{{\"template\":\"{template}\",\"containers\":[\"server\"],\"volumes\":"#,
            r#"[\"config\",\"secrets\",\"scratch\"]}}","deploy.example.com/trace":"{trace}"}},"#,
            r#""ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{owner_name}","uid":"{owner}","#,
            r#""controller":true,"blockOwnerDeletion":true}}]}}"#,
        ),
        name = name,
        namespace = namespace,
        app = app(workload),
        version = version,
        zone = zone,
        hash = hex(workload, 10),
        checksum = hex(index, 64),
        owner_name = owner_name(workload),
        owner = owner,
        template = hex(workload, 64),
        trace = hex(index + 1, 600),
    )
}

fn volumes(app: &str) -> String {
    format!(
        concat!(
            r#"{{"name":"config","configMap":{{"name":"{app}-config","defaultMode":420}}}},"#,
            r#"{{"name":"secrets","secret":{{"secretName":"{app}-secrets","defaultMode":420}}}},"#,
            r#"{{"name":"scratch","emptyDir":{{"sizeLimit":"256Mi"}}}}"#,
        ),
        app = app,
    )
}

fn container(image: &str, index: usize) -> String {
    let env: Vec<String> = (0..VARIABLES).map(|at| variable(index, at)).collect();
    format!(
        concat!(
            r#"{{"name":"server","image":"{image}","args":["--config=/etc/server/config.yaml","--v=2"],"#,
            r#""ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],"#,
            r#""env":[{env},{{"name":"POD_IP","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"status.podIP"}}}}}}],"#,
            r#""resources":{{"limits":{{"cpu":"500m","memory":"256Mi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}},"#,
            r#""volumeMounts":[{{"name":"config","readOnly":true,"mountPath":"/etc/server"}},"#,
            r#"{{"name":"secrets","readOnly":true,"mountPath":"/var/secrets"}},{{"name":"scratch","mountPath":"/tmp"}}],"#,
            r#""readinessProbe":{{"httpGet":{{"path":"/ready","port":8080,"scheme":"HTTP"}},"timeoutSeconds":1,"#,
            r#""periodSeconds":10,"successThreshold":1,"failureThreshold":3}},"#,
            r#""terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","#,
            r#""imagePullPolicy":"IfNotPresent","securityContext":{{"allowPrivilegeEscalation":false,"#,
            r#""capabilities":{{"drop":["ALL"]}}}}}}"#,
        ),
        image = image,
        env = env.join(","),
    )
}

/// The same address in every pod, with a token of its own.
fn variable(index: usize, at: usize) -> String {
    let (service, token) = (hex(at, 6), hex(index * VARIABLES + at, 40));
    format!(
        r#"{{"name":"SETTING_{at:02}","value":"https://svc-{service}.bench.svc.cluster.local:8443/v1?token={token}"}}"#
    )
}

/// `digits` hexadecimal digits that look random and are always the same for `seed`.
fn hex(seed: usize, digits: usize) -> String {
    let words = digits.div_ceil(16);
    let mut text: String = (0..words).map(|word| format!("{:016x}", number(seed * 8 + word))).collect();
    text.truncate(digits);
    text
}

/// splitmix64: one round, enough to make neighbours differ in every digit.
fn number(seed: usize) -> u64 {
    let mut x = (seed as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    const OWNER: &str = "11111111-2222-4333-8444-555555555555";

    #[test]
    fn a_pod_names_the_replica_set_that_owns_it() {
        for index in [0, 1, 499, 500, 19_999] {
            let (namespace, body) = replica_set(owner_of(index));
            let (set, pod): (Value, Value) = (
                serde_json::from_slice(&body).unwrap(),
                serde_json::from_slice(&pod(index, OWNER).body).unwrap(),
            );
            let named = &pod["metadata"]["ownerReferences"][0];
            assert_eq!((&named["kind"], &named["name"]), (&set["kind"], &set["metadata"]["name"]));
            assert_eq!((&named["uid"], &pod["metadata"]["namespace"]), (&OWNER.into(), &namespace.into()));
            assert!(owner_of(index) < owners(index + 1));
        }
    }

    #[test]
    fn a_pod_is_valid_json_of_about_four_kilobytes() {
        for index in [0, 1, 499, 19_999] {
            let pod = pod(index, OWNER);
            let json: Value = serde_json::from_slice(&pod.body).unwrap();
            assert_eq!(json["metadata"]["name"], pod.name.as_str());
            assert_eq!(json["metadata"]["namespace"], pod.namespace.as_str());
            assert!((3_600..4_500).contains(&pod.body.len()), "{} bytes", pod.body.len());
        }
    }

    #[test]
    fn names_are_unique_and_namespaces_evenly_used() {
        let names: BTreeSet<String> = (0..2_000).map(|index| pod(index, OWNER).name).collect();
        assert_eq!(names.len(), 2_000);
        let namespaces: BTreeSet<String> = (0..2_000).map(namespace).collect();
        assert_eq!(namespaces.len(), NAMESPACES);
    }

    #[test]
    fn the_same_index_gives_the_same_bytes() {
        assert_eq!(pod(77, OWNER).body, pod(77, OWNER).body);
        assert_ne!(pod(77, OWNER).body, pod(78, OWNER).body);
    }
}
