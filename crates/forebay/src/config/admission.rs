//! Which admission plugins run, as `--enable-admission-plugins` and `--disable-admission-plugins` say it.
//!
//! Every plugin of kube-apiserver is known. One that is served is on unless it is turned off, but for
//! ServiceAccount, which has to be asked for; asking for one that is not served is an error, and turning it
//! off is nothing.

use forebay_registry::{Admission, ServiceAccountAdmission};

use super::reader::Reader;
use crate::error::Error;

const SERVICE_ACCOUNT: &str = "ServiceAccount";
const NOT_SERVED: &[&str] = &[
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NodeDeclaredFeatureValidator",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PodNodeSelector",
    "PodTolerationRestriction",
];

const ENABLE: &str = "enable-admission-plugins";
const DISABLE: &str = "disable-admission-plugins";

/// Whether pods have to have a service account, and which of the other plugins are on.
///
/// # Errors
/// A plugin that there is not, or that cannot be asked for.
pub(super) fn decide(read: &Reader) -> Result<(ServiceAccountAdmission, Admission), Error> {
    let (enabled, disabled) = (read.list(ENABLE), read.list(DISABLE));
    for (flag, names) in [(ENABLE, &enabled), (DISABLE, &disabled)] {
        let is_known = |name: &str| {
            name == SERVICE_ACCOUNT || Admission::carries_out(name) || NOT_SERVED.contains(&name)
        };
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            return Err(read.refuse(flag, format!("plugin {unknown:?} is unknown")));
        }
    }
    if let Some(both) = enabled.iter().find(|name| disabled.contains(name)) {
        return Err(read.refuse(ENABLE, format!("{both:?} is in --{DISABLE} too")));
    }
    if let Some(missing) = enabled.iter().find(|name| NOT_SERVED.contains(&name.as_str())) {
        return Err(read.refuse(ENABLE, format!("plugin {missing:?} is not served yet")));
    }
    let service_account = match enabled.iter().any(|name| name == SERVICE_ACCOUNT) {
        true => ServiceAccountAdmission::On,
        false => ServiceAccountAdmission::Off,
    };
    Ok((service_account, Admission::without(disabled.iter().map(String::as_str))))
}
