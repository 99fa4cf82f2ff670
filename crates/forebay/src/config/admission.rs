//! Which admission plugins run, as `--enable-admission-plugins` and `--disable-admission-plugins` say it.
//!
//! Every plugin of kube-apiserver is known. One that is on by default is on unless it is turned off; asking
//! for one that is not served is an error, and turning it off is nothing.

use forebay_registry::Admission;

use super::reader::Reader;
use crate::error::Error;

const NOT_SERVED: &[&str] = &[
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "OwnerReferencesPermissionEnforcement",
    "PodNodeSelector",
    "PodTolerationRestriction",
];

const ENABLE: &str = "enable-admission-plugins";
const DISABLE: &str = "disable-admission-plugins";

/// Which plugins are on.
///
/// # Errors
/// A plugin that there is not, or that cannot be asked for.
pub(super) fn decide(read: &Reader) -> Result<Admission, Error> {
    let (enabled, disabled) = (read.list(ENABLE), read.list(DISABLE));
    for (flag, names) in [(ENABLE, &enabled), (DISABLE, &disabled)] {
        let is_known = |name: &str| Admission::carries_out(name) || NOT_SERVED.contains(&name);
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
    let without = Admission::without(disabled.iter().map(String::as_str));
    Ok(without.with(enabled.iter().map(String::as_str)))
}
