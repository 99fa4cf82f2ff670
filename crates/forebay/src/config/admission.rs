//! Which admission plugins run, as `--enable-admission-plugins` and `--disable-admission-plugins` say it.
//!
//! Every plugin of kube-apiserver is known. One that is on by default is on unless it is turned off; asking
//! for one that is not served is an error, and turning it off is nothing.

use forebay_registry::Admission;

use super::reader::Reader;
use crate::error::Error;

/// Plugins that are not carried out, and why they cannot be turned on.
const NOT_SERVED: &[(&str, &str)] =
    &[("ImagePolicyWebhook", "no image would be asked about: let an admission webhook judge pods")];

const ENABLE: &str = "enable-admission-plugins";
/// kube-apiserver's older flag: these, and no others.
const ONLY: &str = "admission-control";
const DISABLE: &str = "disable-admission-plugins";

/// Which plugins are on.
///
/// # Errors
/// A plugin that there is not, or that cannot be asked for.
pub(super) fn decide(read: &Reader) -> Result<Admission, Error> {
    let (mut enabled, mut disabled) = (read.list(ENABLE), read.list(DISABLE));
    let only = read.list(ONLY);
    if !only.is_empty() {
        if !enabled.is_empty() || !disabled.is_empty() {
            let why = "--admission-control and --enable-admission-plugins/--disable-admission-plugins are mutually exclusive";
            return Err(Error::Conflict(why.to_owned()));
        }
        // Few: the names of plugins.
        let others = Admission::names().filter(|name| !only.iter().any(|one| one == name));
        (disabled, enabled) = (others.map(str::to_owned).collect(), only);
    }
    for (flag, names) in [(ENABLE, &enabled), (DISABLE, &disabled)] {
        let is_known = |name: &str| Admission::carries_out(name) || why_not(name).is_some();
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            return Err(read.refuse(flag, format!("plugin {unknown:?} is unknown")));
        }
    }
    if let Some(both) = enabled.iter().find(|name| disabled.contains(name)) {
        return Err(read.refuse(ENABLE, format!("{both:?} is in --{DISABLE} too")));
    }
    if let Some((missing, why)) = enabled.iter().find_map(|name| Some((name, why_not(name)?))) {
        return Err(read.refuse(ENABLE, format!("plugin {missing:?} cannot be turned on: {why}")));
    }
    let without = Admission::without(disabled.iter().map(String::as_str));
    Ok(without.with(enabled.iter().map(String::as_str)))
}

/// Why a plugin that Kubernetes has cannot be turned on.
fn why_not(name: &str) -> Option<&'static str> {
    NOT_SERVED.iter().find(|(known, _)| *known == name).map(|(_, why)| *why)
}
