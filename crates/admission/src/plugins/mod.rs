//! The plugins that are carried out, one file each: who adds one adds a file and its line in [`PLUGINS`].

mod certificate_subject;
mod default_ingress_class;
mod default_storage_class;
mod default_tolerations;
mod device_admin_access;
mod fill;
mod namespace_lifecycle;
mod node_taint;
mod pod_secrets;
mod priority;
mod protected_objects;
mod runtime_class;
mod service_account;

use crate::plugin::Plugin;

/// In kube-apiserver's order, behind what it does in its registry.
pub static PLUGINS: [&dyn Plugin; 11] = [
    &protected_objects::ProtectedObjects,
    &device_admin_access::DeviceAdminAccess,
    &namespace_lifecycle::NamespaceLifecycle,
    &service_account::ServiceAccount,
    &node_taint::TaintNodesByCondition,
    &priority::Priority,
    &default_tolerations::DefaultTolerationSeconds,
    &default_storage_class::DefaultStorageClass,
    &runtime_class::RuntimeClass,
    &certificate_subject::CertificateSubjectRestriction,
    &default_ingress_class::DefaultIngressClass,
];
