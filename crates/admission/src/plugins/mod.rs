//! The plugins that are carried out, a file for each kind of them: who adds one adds a file, and here its
//! `mod` and its place in [`PLUGINS`].

mod certificate_signers;
mod certificate_subject;
mod claim_resize;
mod default_class;
mod default_tolerations;
mod device_admin_access;
mod fill;
mod in_use_protection;
mod limit_ranger;
mod namespace_lifecycle;
mod node_features;
mod node_objects;
mod node_restriction;
mod node_taint;
mod node_tokens;
mod pod_resize;
mod pod_secrets;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod protected_objects;
mod runtime_class;
mod service_account;

use crate::plugin::Plugin;

/// In kube-apiserver's order, behind what it does in its registry. What it has not comes last.
pub static PLUGINS: &[&dyn Plugin] = &[
    &protected_objects::ProtectedObjects,
    &device_admin_access::DeviceAdminAccess,
    &namespace_lifecycle::NamespaceLifecycle,
    &limit_ranger::LimitRanger,
    &service_account::ServiceAccount,
    &node_restriction::NodeRestriction,
    &node_taint::TaintNodesByCondition,
    &pod_security::PodSecurity,
    &priority::Priority,
    &default_tolerations::DefaultTolerationSeconds,
    &default_class::STORAGE,
    &in_use_protection::StorageObjectInUseProtection,
    &claim_resize::PersistentVolumeClaimResize,
    &runtime_class::RuntimeClass,
    &certificate_signers::CertificateApproval,
    &certificate_signers::CertificateSigning,
    &certificate_subject::CertificateSubjectRestriction,
    &default_class::INGRESS,
    &pod_topology_labels::PodTopologyLabels,
    &node_features::NodeDeclaredFeatureValidator,
    &pod_resize::PodResizeValidator,
];
