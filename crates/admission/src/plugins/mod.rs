//! The plugins that are carried out, a file for each kind of them: who adds one adds a file, and here its
//! `mod` and its place in [`PLUGINS`].

mod always;
mod always_pull_images;
mod anti_affinity;
mod certificate_signers;
mod certificate_subject;
mod claim_resize;
mod claim_status;
mod default_class;
mod default_tolerations;
mod device_admin_access;
pub(crate) mod event_rates;
mod existing_pods;
mod extended_resource_toleration;
mod external_ips;
mod fill;
mod in_use_protection;
mod limit_ranger;
pub(crate) mod namespace_lifecycle;
mod namespaces;
mod node_features;
mod node_objects;
mod node_restriction;
mod node_taint;
mod node_tokens;
mod owner_permissions;
mod pod_node_selector;
mod pod_resize;
mod pod_secrets;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod protected_objects;
mod runtime_class;
mod service_account;
mod toleration_restriction;

use crate::plugin::Plugin;

/// In kube-apiserver's order, behind what it does in its registry. What it has not comes last.
pub static PLUGINS: &[&dyn Plugin] = &[
    &protected_objects::ProtectedObjects,
    &device_admin_access::DeviceAdminAccess,
    &claim_status::ClaimStatus,
    &always::AlwaysAdmit,
    &namespaces::NamespaceAutoProvision,
    &namespace_lifecycle::NamespaceLifecycle,
    &namespaces::NamespaceExists,
    &anti_affinity::LimitPodHardAntiAffinityTopology,
    &limit_ranger::LimitRanger,
    &service_account::ServiceAccount,
    &node_restriction::NodeRestriction,
    &node_taint::TaintNodesByCondition,
    &always_pull_images::AlwaysPullImages,
    &pod_security::PodSecurity,
    &pod_node_selector::PodNodeSelector,
    &priority::Priority,
    &default_tolerations::DefaultTolerationSeconds,
    &toleration_restriction::PodTolerationRestriction,
    &event_rates::EventRateLimit,
    &extended_resource_toleration::ExtendedResourceToleration,
    &default_class::STORAGE,
    &in_use_protection::StorageObjectInUseProtection,
    &owner_permissions::OwnerReferencesPermissionEnforcement,
    &claim_resize::PersistentVolumeClaimResize,
    &runtime_class::RuntimeClass,
    &certificate_signers::CertificateApproval,
    &certificate_signers::CertificateSigning,
    &certificate_subject::CertificateSubjectRestriction,
    &default_class::INGRESS,
    &external_ips::DenyServiceExternalIps,
    &pod_topology_labels::PodTopologyLabels,
    &node_features::NodeDeclaredFeatureValidator,
    &pod_resize::PodResizeValidator,
    &always::AlwaysDeny,
];
