//! Which printer prints which kind.
//!
//! In: group and kind. Out: a printer, always: kinds without one of their own get name and time of creation.
//! Never: versions; a kind has the same columns in all of them.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use crate::member::Member;
use crate::table::{NAME, Printer, cells, string};
use crate::{
    admission, apiserver, apps, autoscaling, batch, certificates, coordination, core_config, core_nodes,
    core_pods, core_services, core_volumes, discovery, events, flowcontrol, networking, rbac, resource,
    scheduling, storage,
};

/// What kube-apiserver prints for a kind that has no printer.
static DEFAULT: Printer =
    Printer::new(&[NAME, string("Created At", "When the object was created.").type_("date")], default_cells);

fn default_cells(object: Member<'_>, _now: Timestamp) -> Vec<Value> {
    let created = object.get("metadata").get("creationTimestamp").time();
    let created = created.and_then(|created| Timestamp::from_second(created.as_second()).ok());
    let created = created.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |created| created.to_string());
    cells![object.name(), created]
}

/// The order in which a Table lists a kind, where it is not the order of the list itself.
pub(crate) fn list_order(group: &str, kind: &str) -> Option<fn(&Value, &Value) -> Ordering> {
    match (group, kind) {
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => Some(flowcontrol::flow_schema_order),
        _ => None,
    }
}

pub(crate) fn printer(group: &str, kind: &str) -> &'static Printer {
    let printer = match group {
        "" => core(kind),
        "admissionregistration.k8s.io" => admission(kind),
        "apps" => apps(kind),
        "certificates.k8s.io" => certificates(kind),
        "networking.k8s.io" => networking(kind),
        "resource.k8s.io" => resource(kind),
        "storage.k8s.io" => storage(kind),
        _ => other(group, kind),
    };
    printer.unwrap_or(&DEFAULT)
}

fn core(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "ComponentStatus" => &core_nodes::COMPONENT_STATUS,
        "ConfigMap" => &core_config::CONFIG_MAP,
        "Endpoints" => &core_services::ENDPOINTS,
        "Event" => &events::CORE_EVENT,
        "Namespace" => &core_nodes::NAMESPACE,
        "Node" => &core_nodes::NODE,
        "PersistentVolume" => &core_volumes::PERSISTENT_VOLUME,
        "PersistentVolumeClaim" => &core_volumes::PERSISTENT_VOLUME_CLAIM,
        "Pod" => &core_pods::POD,
        "PodTemplate" => &core_config::POD_TEMPLATE,
        "ReplicationController" => &apps::REPLICATION_CONTROLLER,
        "ResourceQuota" => &core_config::RESOURCE_QUOTA,
        "Secret" => &core_config::SECRET,
        "Service" => &core_services::SERVICE,
        "ServiceAccount" => &core_config::SERVICE_ACCOUNT,
        "Status" => &core_config::STATUS,
        _ => return None,
    })
}

fn admission(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "MutatingAdmissionPolicy" => &admission::MUTATING_ADMISSION_POLICY,
        "ValidatingAdmissionPolicy" => &admission::VALIDATING_ADMISSION_POLICY,
        "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding" => {
            &admission::ADMISSION_POLICY_BINDING
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            &admission::WEBHOOK_CONFIGURATION
        }
        _ => return None,
    })
}

fn apps(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "ControllerRevision" => &apps::CONTROLLER_REVISION,
        "DaemonSet" => &apps::DAEMON_SET,
        "Deployment" => &apps::DEPLOYMENT,
        "ReplicaSet" => &apps::REPLICA_SET,
        "StatefulSet" => &apps::STATEFUL_SET,
        _ => return None,
    })
}

fn certificates(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "CertificateSigningRequest" => &certificates::CERTIFICATE_SIGNING_REQUEST,
        "ClusterTrustBundle" => &certificates::CLUSTER_TRUST_BUNDLE,
        "PodCertificateRequest" => &certificates::POD_CERTIFICATE_REQUEST,
        _ => return None,
    })
}

fn networking(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "IPAddress" => &networking::IP_ADDRESS,
        "Ingress" => &networking::INGRESS,
        "IngressClass" => &networking::INGRESS_CLASS,
        "NetworkPolicy" => &networking::NETWORK_POLICY,
        "ServiceCIDR" => &networking::SERVICE_CIDR,
        _ => return None,
    })
}

fn resource(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "DeviceClass" | "ResourceClaimTemplate" => &resource::NAME_AND_AGE,
        "DeviceTaintRule" => &resource::DEVICE_TAINT_RULE,
        "ResourceClaim" => &resource::RESOURCE_CLAIM,
        "ResourcePoolStatusRequest" => &resource::RESOURCE_POOL_STATUS_REQUEST,
        "ResourceSlice" => &resource::RESOURCE_SLICE,
        _ => return None,
    })
}

fn storage(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "CSIDriver" => &storage::CSI_DRIVER,
        "CSINode" => &storage::CSI_NODE,
        "StorageClass" => &storage::STORAGE_CLASS,
        "VolumeAttachment" => &storage::VOLUME_ATTACHMENT,
        "VolumeAttributesClass" => &storage::VOLUME_ATTRIBUTES_CLASS,
        _ => return None,
    })
}

/// Groups with no more than a few kinds.
fn other(group: &str, kind: &str) -> Option<&'static Printer> {
    Some(match (group, kind) {
        ("apiregistration.k8s.io", "APIService") => &apiserver::API_SERVICE,
        ("autoscaling", "HorizontalPodAutoscaler") => &autoscaling::HORIZONTAL_POD_AUTOSCALER,
        ("autoscaling", "Scale") => &autoscaling::SCALE,
        ("batch", "CronJob") => &batch::CRON_JOB,
        ("batch", "Job") => &batch::JOB,
        ("coordination.k8s.io", "Lease") => &coordination::LEASE,
        ("coordination.k8s.io", "LeaseCandidate") => &coordination::LEASE_CANDIDATE,
        ("discovery.k8s.io", "EndpointSlice") => &discovery::ENDPOINT_SLICE,
        ("events.k8s.io", "Event") => &events::EVENT,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => &flowcontrol::FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            &flowcontrol::PRIORITY_LEVEL_CONFIGURATION
        }
        ("internal.apiserver.k8s.io", "StorageVersion") => &apiserver::STORAGE_VERSION,
        ("node.k8s.io", "RuntimeClass") => &scheduling::RUNTIME_CLASS,
        ("policy", "PodDisruptionBudget") => &scheduling::POD_DISRUPTION_BUDGET,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => &rbac::ROLE_BINDING,
        ("scheduling.k8s.io", "PodGroup") => &scheduling::POD_GROUP,
        ("scheduling.k8s.io", "PriorityClass") => &scheduling::PRIORITY_CLASS,
        ("scheduling.k8s.io", "Workload") => &scheduling::WORKLOAD,
        ("storagemigration.k8s.io", "StorageVersionMigration") => &apiserver::STORAGE_VERSION_MIGRATION,
        _ => return None,
    })
}
