//! What a pod's spec is when the client does not say.
//!
//! In: a pod, or the spec of a pod template. Out: the same, filled in. Never: looks at feature gates; those
//! that are on in v1.36 are on.
//!
//! This runs for every pod created, so each member is looked up once and nothing is built that is not kept.
//!
//! Source: kubernetes v1.36.3 `apis/core/v1/{defaults,zz_generated.defaults,conversion}.go`.

use forebay_apimachinery::quantity;
use serde_json::{Value, json};

use super::{image, totals};
use crate::value::{
    Members, child, child_made, child_mut, default, default_int, default_object, default_text, int, is_true,
    list, objects_mut, set, text,
};

const MODE: i64 = 0o644;
const TOKEN_SECONDS: i64 = 3600;

/// A pod.
pub fn pod(pod: &mut Members) {
    if let Some(status) = child_mut(pod, "status") {
        addresses(status);
    }
    let spec = child_made(pod, "spec");
    for list in ["containers", "initContainers"] {
        for container in objects_mut(spec, list) {
            requests_from_limits(container);
        }
    }
    totals::default_requests(spec);
    default(spec, "enableServiceLinks", true);
    if is_true(spec, "hostNetwork") {
        for list in ["containers", "initContainers"] {
            for container in objects_mut(spec, list) {
                host_ports(container);
            }
        }
    }
    pod_spec(spec);
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds".into(), 1.into());
    }
}

/// The template that a controller makes pods from.
pub fn template(template: &mut Members) {
    pod_spec(child_made(template, "spec"));
}

fn pod_spec(spec: &mut Members) {
    spec.remove("schedulingGroup"); // its feature is off
    default_text(spec, "dnsPolicy", "ClusterFirst");
    default_text(spec, "restartPolicy", "Always");
    default_object(spec, "securityContext");
    default(spec, "terminationGracePeriodSeconds", 30);
    default_text(spec, "schedulerName", "default-scheduler");
    service_account(spec);
    for volume in objects_mut(spec, "volumes") {
        volume_source(volume);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for member in objects_mut(spec, list) {
            container(member);
        }
    }
    for name in ["overhead", "resources"] {
        if let Some(resources) = child_mut(spec, name) {
            if name == "overhead" {
                round_up(resources);
            } else {
                resource_lists(resources);
            }
        }
    }
}

/// The old name of the field says what the new one says.
fn service_account(spec: &mut Members) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if name.is_empty() || (name == text(spec, "serviceAccountName") && name == text(spec, "serviceAccount")) {
        return;
    }
    let name = name.to_string();
    spec.insert("serviceAccountName".into(), name.clone().into());
    spec.insert("serviceAccount".into(), name.into());
}

fn container(container: &mut Members) {
    if text(container, "imagePullPolicy").is_empty() {
        let policy = image::pull_policy(text(container, "image"));
        container.insert("imagePullPolicy".into(), policy.into());
    }
    default_text(container, "terminationMessagePath", "/dev/termination-log");
    default_text(container, "terminationMessagePolicy", "File");
    for port in objects_mut(container, "ports") {
        default_text(port, "protocol", "TCP");
    }
    for variable in objects_mut(container, "env") {
        if let Some(source) = child_mut(variable, "valueFrom") {
            field_ref(source);
            if let Some(key) = child_mut(source, "fileKeyRef") {
                default(key, "optional", false);
            }
        }
    }
    if let Some(resources) = child_mut(container, "resources") {
        resource_lists(resources);
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = child_mut(container, name) {
            default_probe(probe);
        }
    }
    if let Some(hooks) = child_mut(container, "lifecycle") {
        // Its feature is off.
        if hooks.remove("stopSignal").is_some() && hooks.is_empty() {
            container.remove("lifecycle");
        }
    }
    if let Some(hooks) = child_mut(container, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(hook) = child_mut(hooks, name) {
                http_get(hook);
            }
        }
    }
}

fn default_probe(probe: &mut Members) {
    default_int(probe, "timeoutSeconds", 1);
    default_int(probe, "periodSeconds", 10);
    default_int(probe, "successThreshold", 1);
    default_int(probe, "failureThreshold", 3);
    http_get(probe);
    if let Some(grpc) = child_mut(probe, "grpc") {
        default(grpc, "service", "");
    }
}

fn http_get(handler: &mut Members) {
    if let Some(get) = child_mut(handler, "httpGet") {
        default_text(get, "path", "/");
        default_text(get, "scheme", "HTTP");
    }
}

fn field_ref(source: &mut Members) {
    if let Some(field) = child_mut(source, "fieldRef") {
        default_text(field, "apiVersion", "v1");
    }
}

/// A volume, or the source of a persistent one.
fn volume_source(volume: &mut Members) {
    if volume.len() == usize::from(volume.contains_key("name")) {
        volume.insert("emptyDir".into(), Value::Object(Members::new()));
        return;
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = child_mut(volume, name) {
            default(source, "defaultMode", MODE);
        }
    }
    if let Some(source) = child_mut(volume, "downwardAPI") {
        objects_mut(source, "items").for_each(field_ref);
    }
    if let Some(source) = child_mut(volume, "projected") {
        objects_mut(source, "sources").for_each(projection);
    }
    if let Some(claim) =
        child_mut(volume, "ephemeral").and_then(|source| child_mut(source, "volumeClaimTemplate"))
    {
        claim_spec(child_made(claim, "spec"));
    }
    if let Some(source) = child_mut(volume, "image")
        && text(source, "pullPolicy").is_empty()
    {
        let policy = image::pull_policy(text(source, "reference"));
        source.insert("pullPolicy".into(), policy.into());
    }
    network_source(volume);
}

/// Sources that persistent volumes have, too.
pub fn network_source(volume: &mut Members) {
    if let Some(source) = child_mut(volume, "hostPath") {
        default(source, "type", "");
    }
    if let Some(source) = child_mut(volume, "iscsi") {
        default_text(source, "iscsiInterface", "default");
    }
    if let Some(source) = child_mut(volume, "rbd") {
        default_text(source, "pool", "rbd");
        default_text(source, "user", "admin");
        default_text(source, "keyring", "/etc/ceph/keyring");
    }
    if let Some(source) = child_mut(volume, "azureDisk") {
        default(source, "cachingMode", "ReadWrite");
        default(source, "kind", "Shared");
        default(source, "fsType", "ext4");
        default(source, "readOnly", false);
    }
    if let Some(source) = child_mut(volume, "scaleIO") {
        default_text(source, "storageMode", "ThinProvisioned");
        default_text(source, "fsType", "xfs");
    }
}

fn projection(source: &mut Members) {
    // Their features are off.
    source.remove("clusterTrustBundle");
    source.remove("podCertificate");
    if let Some(fields) = child_mut(source, "downwardAPI") {
        objects_mut(fields, "items").for_each(field_ref);
    }
    if let Some(token) = child_mut(source, "serviceAccountToken") {
        default(token, "expirationSeconds", TOKEN_SECONDS);
    }
}

/// The spec of a claim to a volume.
pub fn claim_spec(spec: &mut Members) {
    default(spec, "volumeMode", "Filesystem");
    if let Some(resources) = child_mut(spec, "resources") {
        resource_lists(resources);
    }
}

/// Brings the pod's one address and the list, of which it is the first, into line: where they differ the one
/// counts. Those of its host are what the client says.
fn addresses(status: &mut Members) {
    let (one, all) = ("podIP", "podIPs");
    let first =
        list(status, all).first().and_then(|address| address["ip"].as_str()).unwrap_or("").to_string();
    let only = text(status, one).to_string();
    if only.is_empty() {
        set(status, one, (!first.is_empty()).then(|| first.into()));
    } else if only != first {
        set(status, all, Some(json!([{ "ip": only }])));
    }
}

fn requests_from_limits(container: &mut Members) {
    let Some(resources) = child_mut(container, "resources") else { return };
    let Some(limits) = child(resources, "limits").cloned() else { return };
    let requests = child_made(resources, "requests");
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

fn host_ports(container: &mut Members) {
    for port in objects_mut(container, "ports") {
        if let Some(number) = port.get("containerPort").cloned()
            && port.get("hostPort").and_then(Value::as_i64).unwrap_or(0) == 0
        {
            port.insert("hostPort".into(), number);
        }
    }
}

/// Requests and limits, in thousandths.
pub fn resource_lists(resources: &mut Members) {
    for name in ["limits", "requests"] {
        if let Some(list) = child_mut(resources, name) {
            round_up(list);
        }
    }
}

/// Quantities of one list of resources, in thousandths.
pub fn round_up(list: &mut Members) {
    for value in list.values_mut() {
        if let Value::String(text) = value
            && let Some(rounded) = quantity::rounded_to_milli(text)
        {
            *text = rounded;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_and_the_list_agree() {
        for (sent, want) in [
            (json!({"podIP": "10.0.0.9"}), json!({"podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]})),
            (
                json!({"podIPs": [{"ip": "1.1.1.1"}]}),
                json!({"podIP": "1.1.1.1", "podIPs": [{"ip": "1.1.1.1"}]}),
            ),
            (json!({"hostIP": "1.1.1.1"}), json!({"hostIP": "1.1.1.1"})),
            (json!({"hostIPs": [{"ip": "1.1.1.1"}]}), json!({"hostIPs": [{"ip": "1.1.1.1"}]})),
            (
                json!({"podIP": "1.1.1.2", "podIPs": [{"ip": "1.1.1.1"}, {"ip": "::1"}]}),
                json!({"podIP": "1.1.1.2", "podIPs": [{"ip": "1.1.1.2"}]}),
            ),
            (json!({}), json!({})),
        ] {
            let mut object = json!({"status": sent});
            pod(object.as_object_mut().expect("an object"));
            assert_eq!(object["status"], want);
        }
    }
}
