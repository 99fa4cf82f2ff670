//! The smallest object of each built-in kind that kube-apiserver takes.
//!
//! In: a kind. Out: an object without its type and name. What is not here needs nothing but a name.

use serde_json::{Value, json};

/// The members of a minimal object besides its type and `metadata.name`.
pub fn minimal(kind: &str) -> Value {
    let template =
        || json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let selector = || json!({"matchLabels": {"a": "b"}});
    let role = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"});
    let webhook = || {
        json!([{"name": "w.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": "https://w.example.com/"}}])
    };
    let rules = || json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]);
    match kind {
        "ConfigMap" => json!({"data": {"k": "v"}, "binaryData": {"b": "AAEC/w=="}}),
        "Secret" => json!({"data": {"k": "dg=="}, "type": "Opaque"}),
        "Event" => {
            json!({"involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "reason": "R",
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z", "count": 2})
        }
        "LimitRange" => json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "500m"}}]}}),
        "ResourceQuota" => json!({"spec": {"hard": {"pods": "2"}}}),
        "PersistentVolume" => {
            json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/x"}}})
        }
        "PersistentVolumeClaim" => json!({"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}),
        "Pod" => json!({"spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}},
            "livenessProbe": {"httpGet": {"port": "web"}}}]}}),
        "PodTemplate" => json!({"template": template()}),
        "ReplicationController" => json!({"spec": {"selector": {"a": "b"}, "template": template()}}),
        "Service" => json!({"spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]}}),
        "Endpoints" => json!({"subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]}),
        "ControllerRevision" => json!({"data": {"x": [1, "y", null]}, "revision": 3}),
        "DaemonSet" | "Deployment" | "ReplicaSet" => {
            json!({"spec": {"selector": selector(), "template": template()}})
        }
        "StatefulSet" => {
            json!({"spec": {"serviceName": "s", "selector": selector(), "template": template()}})
        }
        "Job" | "CronJob" => {
            let mut template = template();
            template["spec"]["restartPolicy"] = "Never".into();
            let job = json!({"spec": {"template": template}});
            if kind == "Job" { job } else { json!({"spec": {"schedule": "* * * * *", "jobTemplate": job}}) }
        }
        "Lease" => json!({"spec": {"holderIdentity": "h", "renewTime": "2026-01-02T03:04:05.678901Z"}}),
        "EndpointSlice" => json!({"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}]}),
        "ClusterRole" | "Role" => {
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
        }
        "ClusterRoleBinding" => {
            json!({"roleRef": role("ClusterRole"), "subjects": [{"kind": "User", "name": "u"}]})
        }
        "RoleBinding" => json!({"roleRef": role("Role"), "subjects": [{"kind": "Group", "name": "g"}]}),
        "CustomResourceDefinition" => json!({"spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "proto", "singular": "proto", "kind": "Proto", "listKind": "ProtoList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object",
                    "x-kubernetes-preserve-unknown-fields": true}, "n": {"type": "integer", "default": 3}}}}}]}}),
        "HorizontalPodAutoscaler" => json!({"spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}),
        "Ingress" => json!({"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}),
        "IngressClass" => json!({"spec": {"controller": "example.com/c"}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": "web"}]}]}}),
        "IPAddress" => {
            json!({"spec": {"parentRef": {"resource": "services", "namespace": "default", "name": "s"}}})
        }
        "ServiceCIDR" => json!({"spec": {"cidrs": ["192.0.2.0/24"]}}),
        "PodDisruptionBudget" => json!({"spec": {"maxUnavailable": "30%", "selector": selector()}}),
        "PriorityClass" => json!({"value": 10}),
        "RuntimeClass" => json!({"handler": "h"}),
        "StorageClass" => json!({"provisioner": "example.com/p"}),
        "VolumeAttachment" => {
            json!({"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}})
        }
        "VolumeAttributesClass" => json!({"driverName": "d.example.com", "parameters": {"a": "b"}}),
        "CSIDriver" => json!({"spec": {"attachRequired": false}}),
        "CSINode" => json!({"spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["k"]}]}}),
        "CSIStorageCapacity" => json!({"storageClassName": "s", "capacity": "2Gi"}),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => json!({"webhooks": webhook()}),
        "ValidatingAdmissionPolicy" => json!({"spec": {"matchConstraints": {"resourceRules": rules()},
            "validations": [{"expression": "true"}]}}),
        "ValidatingAdmissionPolicyBinding" => {
            json!({"spec": {"policyName": "p", "validationActions": ["Deny"]}})
        }
        "MutatingAdmissionPolicy" => json!({"spec": {"reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": rules()},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'remove', path: '/data'}]"}}]}}),
        "MutatingAdmissionPolicyBinding" => json!({"spec": {"policyName": "p"}}),
        "APIService" => {
            json!({"spec": {"group": "proto.example.com", "version": "v1", "groupPriorityMinimum": 10,
            "versionPriority": 10, "insecureSkipTLSVerify": true, "service": {"namespace": "default", "name": "s"}}})
        }
        "FlowSchema" => {
            json!({"spec": {"priorityLevelConfiguration": {"name": "p"}, "matchingPrecedence": 500}})
        }
        "PriorityLevelConfiguration" => json!({"spec": {"type": "Limited",
            "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}}),
        "CertificateSigningRequest" => {
            json!({"spec": {"request": CERTIFICATE_REQUEST, "signerName": "example.com/s",
            "usages": ["client auth"]}})
        }
        "DeviceClass" => json!({"spec": {}}),
        "ResourceClaim" => json!({"spec": {"devices": {"requests": [device()]}}}),
        "ResourceClaimTemplate" => json!({"spec": {"spec": {"devices": {"requests": [device()]}}}}),
        "ResourceSlice" => json!({"spec": {"driver": "d.example.com", "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0", "attributes": {"a": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}}]}}),
        "Node" => json!({"spec": {"podCIDR": "192.0.2.0/24", "podCIDRs": ["192.0.2.0/24"]}}),
        _ => json!({}),
    }
}

fn device() -> Value {
    json!({"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}})
}

/// A name that the kind takes.
pub fn name(kind: &str) -> &'static str {
    match kind {
        "CustomResourceDefinition" => "proto.example.com",
        "APIService" => "v1.proto.example.com",
        "IPAddress" => "192.0.2.7",
        _ => "proto",
    }
}

/// A PEM of a certificate request, in base64.
const CERTIFICATE_REQUEST: &str = include_str!("request.txt");
