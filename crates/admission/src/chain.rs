//! Which plugins are on, and a write's way through them in kube-apiserver's order.
//!
//! Source: kubernetes v1.36.3 `kubeapiserver/options/plugins.go`; apiserver v0.36.3 `admission/chain.go`.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use forebay_api::Eventual;
use forebay_apimachinery::{Cause, Status};
use forebay_pod_security::SecurityConfiguration;
use forebay_quota::LimitedResources;
use forebay_rt::Instant;
use serde_json::Value;

use crate::elsewhere::KindsElsewhere;
use crate::plugin::{AdmissionStep, KindServed, Plugin, Switch, Tools, WriteAttributes};
use crate::plugins::PLUGINS;
use crate::settings::PluginSettings;

/// Carried out where the whole write is known, which no plugin sees: by the registry.
const BY_REGISTRY: [&str; 5] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ResourceQuota",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
];

/// On by default in kube-apiserver, and about what only gates serve that are off by default there and here:
/// nobody is asked for anything.
const IDLE: [&str; 4] =
    ["ClusterTrustBundleAttest", "JobValidation", "PodGroupProtection", "PodGroupWorkloadExists"];

/// Those that fill in upstream, by which their time is counted.
const MUTATING: &[&str] = &[
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "ExtendedResourceToleration",
    "LimitRanger",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NodeRestriction",
    "PodNodeSelector",
    "PodTolerationRestriction",
    "PodTopologyLabels",
    "Priority",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
];

/// Those that refuse what is valid upstream. Some do both.
const VALIDATING: &[&str] = &[
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "NamespaceExists",
    "NodeDeclaredFeatureValidator",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodNodeSelector",
    "PodResizeValidator",
    "PodSecurity",
    "PodTolerationRestriction",
    "Priority",
    "RuntimeClass",
    "ServiceAccount",
];

/// Which plugins are on: those that are on by default but for those turned off, and those turned on.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    off: BTreeSet<String>,
    on: BTreeSet<String>,
    security: Arc<SecurityConfiguration>,
    limited: Arc<LimitedResources>,
    settings: Arc<PluginSettings>,
    elsewhere: KindsElsewhere,
}

impl Admission {
    /// Whether the plugin `name` is carried out, if it is on.
    pub fn carries_out(name: &str) -> bool {
        matches!(switch(name), Some(Switch::ByName | Switch::IfEnabled))
    }

    /// Whether one of those is on that the registry carries out.
    pub fn has(&self, name: &str) -> bool {
        BY_REGISTRY.contains(&name) && !self.off.contains(name)
    }

    /// All but `names`; a name of none of them turns nothing off.
    pub fn without<'n>(names: impl IntoIterator<Item = &'n str>) -> Admission {
        let by_default = names.into_iter().filter(|name| switch(name) == Some(Switch::ByName));
        Admission { off: by_default.map(String::from).collect(), ..Admission::default() }
    }

    /// The same, and those of `names` that are off by default.
    pub fn with<'n>(self, names: impl IntoIterator<Item = &'n str>) -> Admission {
        let others = names.into_iter().filter(|name| switch(name) == Some(Switch::IfEnabled));
        Admission { on: others.map(String::from).collect(), ..self }
    }

    /// All that can be turned on or off.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let plugins = PLUGINS.iter().filter(|plugin| plugin.switch() != Switch::None);
        plugins.map(|plugin| plugin.name()).chain(BY_REGISTRY).chain(IDLE)
    }

    /// Whether `name` was turned on that is off by default.
    pub fn is_turned_on(&self, name: &str) -> bool {
        self.on.contains(name)
    }

    /// The same, with what an administrator says of pod security.
    pub fn with_security(self, security: SecurityConfiguration) -> Admission {
        Admission { security: Arc::new(security), ..self }
    }

    /// The same, with what may be used only where a quota limits it.
    pub fn with_limited(self, limited: LimitedResources) -> Admission {
        Admission { limited: Arc::new(limited), ..self }
    }

    /// The same, with what an administrator says of other plugins.
    pub fn with_settings(self, settings: PluginSettings) -> Admission {
        Admission { settings: Arc::new(settings), ..self }
    }

    /// The same, beside other servers.
    pub fn with_elsewhere(self, elsewhere: KindsElsewhere) -> Admission {
        Admission { elsewhere, ..self }
    }

    /// What another server serves of a kind.
    pub fn kind_elsewhere(&self, api_version: &str, kind: &str) -> Option<KindServed> {
        self.elsewhere.kind(api_version, kind)
    }

    /// What an administrator says of other plugins.
    pub fn settings(&self) -> &PluginSettings {
        &self.settings
    }

    /// What may be used only where a quota limits it.
    pub fn limited(&self) -> &LimitedResources {
        &self.limited
    }

    /// What an administrator says of pod security.
    pub fn security(&self) -> &SecurityConfiguration {
        &self.security
    }

    /// Fills in what plugins fill in.
    ///
    /// # Errors
    /// What the first of them has against it.
    pub async fn mutate(
        &self,
        write: &WriteAttributes<'_>,
        object: &mut Value,
        tools: &Tools<'_>,
    ) -> Result<(), Status> {
        let mut stopwatch = Stopwatch::begin(AdmissionStep::Mutate, write, tools);
        for (place, plugin) in self.plugins(write) {
            let mut filled = plugin.mutate(write, object, tools).wait().await;
            if filled.is_err() && is_renewed(plugin, tools).await? {
                filled = plugin.mutate(write, object, tools).wait().await;
            }
            stopwatch.lap((place, plugin.name()), filled.is_err());
            filled?;
        }
        Ok(())
    }

    /// What plugins add to that which validation finds: now, unless one of them has to ask somebody.
    pub fn causes<'a>(
        &self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Eventual<'a, Vec<Cause>> {
        let (mut now, mut later) = (Vec::new(), Vec::new());
        for (_, plugin) in self.plugins(write) {
            match plugin.causes(write, object, tools) {
                Eventual::Now(causes) => now.extend(causes),
                Eventual::Later(causes) => later.push(causes),
            }
        }
        if later.is_empty() {
            return Eventual::Now(now);
        }
        Eventual::later(async move {
            for causes in later {
                now.extend(causes.await);
            }
            now
        })
    }

    /// Refuses what is valid and yet may not be.
    ///
    /// # Errors
    /// What the first of them has against it.
    pub async fn validate_by_policy(
        &self,
        write: &WriteAttributes<'_>,
        object: &Value,
        tools: &Tools<'_>,
    ) -> Result<(), Status> {
        let mut stopwatch = Stopwatch::begin(AdmissionStep::Validate, write, tools);
        for (place, plugin) in self.plugins(write) {
            let mut judged = plugin.validate_by_policy(write, object, tools).wait().await;
            if judged.is_err() && is_renewed(plugin, tools).await? {
                judged = plugin.validate_by_policy(write, object, tools).wait().await;
            }
            stopwatch.lap((place, plugin.name()), judged.is_err());
            judged?;
        }
        Ok(())
    }

    /// What plugins tell the client of a write that nobody refused.
    pub async fn warnings(
        &self,
        write: &WriteAttributes<'_>,
        object: &Value,
        tools: &Tools<'_>,
    ) -> Vec<String> {
        let mut told = Vec::new();
        for (_, plugin) in self.plugins(write) {
            told.append(&mut plugin.warnings(write, object, tools).wait().await);
        }
        told
    }

    /// Those that have to do with the write, with their places.
    fn plugins(&self, write: &WriteAttributes<'_>) -> impl Iterator<Item = (usize, &'static dyn Plugin)> {
        let all = PLUGINS.iter().copied().enumerate();
        all.filter(move |(_, plugin)| plugin.handles(write) && self.is_on(*plugin))
    }

    fn is_on(&self, plugin: &dyn Plugin) -> bool {
        match plugin.switch() {
            Switch::None => true,
            Switch::ByName => !self.off.contains(plugin.name()),
            Switch::IfEnabled => self.on.contains(plugin.name()),
        }
    }
}

/// Whether a plugin that has refused may say otherwise now: its caches have what was acknowledged before.
///
/// # Errors
/// 429 and 504 where a cache cannot say.
async fn is_renewed(plugin: &dyn Plugin, tools: &Tools<'_>) -> Result<bool, Status> {
    for from in plugin.decides_by() {
        tools.lookup.fresh(*from).wait().await?;
    }
    Ok(!plugin.decides_by().is_empty())
}

/// How long plugins take, one after the other.
struct Stopwatch<'a> {
    step: AdmissionStep,
    write: &'a WriteAttributes<'a>,
    tools: &'a Tools<'a>,
    since: Instant,
}

impl<'a> Stopwatch<'a> {
    fn begin(step: AdmissionStep, write: &'a WriteAttributes<'a>, tools: &'a Tools<'a>) -> Stopwatch<'a> {
        Stopwatch { step, write, tools, since: tools.clock.now() }
    }

    /// A plugin is done, and the next one begins. What does nothing in a step upstream is not counted in it.
    fn lap(&mut self, (place, name): (usize, &'static str), is_refused: bool) {
        if !steps_of()[place][self.step as usize] {
            return;
        }
        let now = self.tools.clock.now();
        let took = now - std::mem::replace(&mut self.since, now);
        self.tools.times.took((place, name), (self.step, self.write.verb), is_refused, took);
    }
}

/// By place, in which steps a plugin does something upstream.
fn steps_of() -> &'static [[bool; 2]] {
    static STEPS: LazyLock<Vec<[bool; 2]>> = LazyLock::new(|| {
        // Once: for all plugins there are.
        let steps = |plugin: &&dyn Plugin| [MUTATING, VALIDATING].map(|all| all.contains(&plugin.name()));
        PLUGINS.iter().map(steps).collect()
    });
    &STEPS
}

/// What turns the plugin `name` on and off, if there is one.
fn switch(name: &str) -> Option<Switch> {
    match BY_REGISTRY.contains(&name) || IDLE.contains(&name) {
        true => Some(Switch::ByName),
        false => PLUGINS.iter().find(|plugin| plugin.name() == name).map(|plugin| plugin.switch()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_turned_off_by_name() {
        let without = Admission::without(["Priority", "ServiceAccount", "NamespaceLifecycle"]);
        let is_on = |name: &str| {
            let named = PLUGINS.iter().filter(|plugin| plugin.name() == name);
            named.copied().all(|plugin| without.is_on(plugin))
        };
        assert!(!is_on("Priority") && !is_on("NamespaceLifecycle") && is_on("RuntimeClass"));
        assert!(!is_on("ServiceAccount") && Admission::default().off.is_empty());
        assert!(Admission::carries_out("Priority") && !Admission::carries_out("priority"));
    }

    #[test]
    fn every_plugin_that_has_a_name_upstream_is_timed_in_a_step() {
        for (plugin, steps) in PLUGINS.iter().zip(steps_of()) {
            assert_eq!(steps.contains(&true), plugin.switch() != Switch::None, "{}", plugin.name());
        }
    }

    #[test]
    fn what_is_off_by_default_is_turned_on_by_name() {
        let is_on = |admission: &Admission, name: &str| {
            let plugin = PLUGINS.iter().find(|plugin| plugin.name() == name).expect("there");
            admission.is_on(*plugin)
        };
        let with = Admission::without(["Priority"]).with(["AlwaysPullImages", "RuntimeClass"]);
        assert!(is_on(&with, "AlwaysPullImages") && is_on(&with, "RuntimeClass"));
        assert!(!is_on(&with, "Priority") && !is_on(&with, "AlwaysDeny"));
        assert!(!is_on(&Admission::default(), "AlwaysPullImages"));
    }
}
