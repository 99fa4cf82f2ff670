//! A configuration that is used: what each resource's values are sealed and opened with.
//!
//! In: a file. Out: chains by resource, and the plugins that they ask. Never: which file is in force.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use forebay_apimachinery::go_url::Url;
use forebay_rt::{Clock, CutOnDrop, Duration, Tasks};

use crate::chain::{Chain, CipherKey, Link, Provider};
use crate::ciphers::{BoxKey, CbcKey, GcmKey};
use crate::config::{
    EncryptionConfiguration, KmsConfiguration, NamedKey, ProviderConfiguration, Reload, decode, validate,
};
use crate::hash::hashed_bytes;
use crate::kms::{KmsProvider, KmsSettings};
use crate::limits;
use crate::metrics::EncryptionMetrics;
use crate::rekeyed::Rekeyed;
use crate::rules::{KeyPlace, Places, ResourceName, ResourcePattern, ResourceRules};

/// See the module's doc.
pub(crate) struct InForce {
    /// Of the file.
    pub(crate) hash: String,
    // By the number of the resource.
    built_in: Vec<Option<Arc<Chain>>>,
    rules: ResourceRules<Arc<Chain>>,
    plugins: Vec<Plugin>,
    _tasks: CutOnDrop,
}

struct Plugin {
    provider: Arc<KmsProvider>,
    socket: String,
    timeout: Duration,
}

/// What everything is made with.
pub(crate) struct Making<'a> {
    pub(crate) places: &'a Places,
    pub(crate) clock: &'a Clock,
    pub(crate) metrics: &'a Arc<EncryptionMetrics>,
    pub(crate) rekeyed: &'a Rekeyed,
}

/// Reads and checks a configuration; also the hash of its file.
///
/// # Errors
/// What is wrong with it, in upstream's words.
pub fn read_configuration(file: &Path, reload: Reload) -> Result<(EncryptionConfiguration, String), String> {
    let shown = file.display();
    let wrong = |why: String| format!("error while parsing file: {why}");
    let loading = |why: String| wrong(format!("error while loading file: {why}"));
    let bytes = read(file).map_err(|why| {
        loading(format!("error reading encryption provider configuration file \"{shown}\": {why}"))
    })?;
    if bytes.is_empty() {
        return Err(loading(format!("encryption provider configuration file \"{shown}\" is empty")));
    }
    let configuration = decode(&bytes).map_err(|why| {
        wrong(format!("error decoding encryption provider configuration file \"{shown}\": {why}"))
    })?;
    validate(&configuration, reload).map_err(wrong)?;
    Ok((configuration, hashed_bytes(&bytes)))
}

/// The hash of the file as it is now.
pub(crate) fn hash_of(file: &Path) -> Result<String, String> {
    let shown = file.display();
    match read(file) {
        Ok(bytes) if bytes.is_empty() => {
            Err(format!("encryption provider configuration file \"{shown}\" is empty"))
        }
        Ok(bytes) => Ok(hashed_bytes(&bytes)),
        Err(why) => Err(format!("error reading encryption provider configuration file \"{shown}\": {why}")),
    }
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?.take(limits::CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limits::CONFIG_BYTES_MAX {
        let max = limits::CONFIG_BYTES_MAX;
        return Err(std::io::Error::other(format!("larger than {max} bytes")));
    }
    Ok(bytes)
}

impl InForce {
    /// Makes everything that `configuration` names; nobody was asked anything yet. To be called within a
    /// runtime.
    ///
    /// # Errors
    /// In upstream's words.
    pub(crate) fn new(
        configuration: &EncryptionConfiguration,
        hash: String,
        making: &Making<'_>,
    ) -> Result<InForce, String> {
        let wrong = |why: String| format!("error while building transformers: {why}");
        let (tasks, mut plugins) = (Tasks::new(), Vec::new());
        let mut links: ResourceRules<Vec<Arc<Link>>> = ResourceRules::default();
        for rule in &configuration.rules {
            let mut of_rule = Vec::new();
            for provider in &rule.providers {
                let provider = make(provider, making, &tasks, &mut plugins).map_err(wrong)?;
                of_rule.push(Arc::new(Link::new(provider)));
            }
            for name in &rule.resources {
                let entry = links.entry(ResourcePattern::parse(name), Vec::new).map_err(wrong)?;
                entry.extend(of_rule.iter().cloned());
            }
        }
        let rules = links.map(|links| Arc::new(Chain::new(links)));
        let of = |name: &Arc<ResourceName>| rules.of(&name.group, &name.resource).cloned();
        let built_in = making.places.built_in().map(of).collect();
        Ok(InForce { hash, built_in, rules, plugins, _tasks: tasks.cut_on_drop() }.following(&tasks))
    }

    /// Its plugins are asked how they are from now on.
    fn following(self, tasks: &Tasks) -> InForce {
        for plugin in &self.plugins {
            tasks.spawn("kms plugin", plugin.provider.clone().follow());
        }
        self
    }

    /// Asks each plugin how it is, once.
    pub(crate) async fn prime(&self) {
        for plugin in &self.plugins {
            // It says so in the log, and is asked again.
            let _ill = plugin.provider.ask_how_it_is().await;
        }
    }

    /// Asks each plugin how it is.
    ///
    /// # Errors
    /// What is wrong, in upstream's words.
    #[cfg(test)]
    pub(crate) async fn ask_all(&self) -> Result<(), String> {
        self.prime().await;
        self.check()
    }

    /// Asks each plugin that is not well.
    ///
    /// # Errors
    /// What is wrong, in upstream's words.
    pub(crate) async fn ask_ill(&self) -> Result<(), String> {
        for plugin in &self.plugins {
            if plugin.provider.check().is_err() {
                let _ill = plugin.provider.ask_how_it_is().await;
            }
        }
        self.check()
    }

    /// Whether all plugins are well, as far as is known.
    ///
    /// # Errors
    /// What is wrong, in upstream's words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let numbered = self.plugins.iter().enumerate();
        let wrong: Vec<String> = numbered
            .filter_map(|(number, plugin)| {
                plugin.provider.check().err().map(|why| format!("kms-provider-{number}: {why}"))
            })
            .collect();
        match wrong.as_slice() {
            [] => Ok(()),
            [only] => Err(only.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    /// Why some of what plugins encrypted cannot be read for now.
    pub(crate) fn hindered(&self) -> Option<String> {
        self.plugins.iter().find_map(|plugin| plugin.provider.hindered())
    }

    /// How long new plugins may take to be well.
    pub(crate) fn grace(&self) -> Duration {
        let sum: Duration = self.plugins.iter().map(|plugin| plugin.timeout).sum();
        (sum * 2).max(limits::RELOAD_HEALTH_WAIT)
    }

    pub(crate) fn has_plugins(&self) -> bool {
        !self.plugins.is_empty()
    }

    /// The data keys that `earlier` knew are known here, of plugins that are the same.
    pub(crate) fn inherit(&self, earlier: &InForce) {
        for plugin in &self.plugins {
            let is_same = |other: &&Plugin| {
                other.socket == plugin.socket && other.provider.prefix() == plugin.provider.prefix()
            };
            if let Some(other) = earlier.plugins.iter().find(is_same) {
                plugin.provider.inherit(&other.provider);
            }
        }
    }

    /// What the values at `place` are kept with, and the resource as metrics name it.
    pub(crate) fn of(&self, place: &KeyPlace<'_>, places: &Places) -> Option<(&Chain, Arc<str>)> {
        match place {
            KeyPlace::BuiltIn(number) => {
                let chain = self.built_in.get(*number)?.as_deref()?;
                Some((chain, places.label(*number)))
            }
            KeyPlace::Custom { group, resource } => {
                let chain = self.rules.of(group, resource)?;
                Some((chain, ResourceName::new(group, resource).label))
            }
            KeyPlace::None => None,
        }
    }
}

fn make(
    provider: &ProviderConfiguration,
    making: &Making<'_>,
    tasks: &Tasks,
    plugins: &mut Vec<Plugin>,
) -> Result<Provider, String> {
    let ProviderConfiguration { aesgcm, aescbc, secretbox, identity: _, kms } = provider;
    if let Some(kms) = kms {
        return Ok(Provider::Kms(plugin(kms, making, tasks, plugins)?));
    }
    let keys = |keys: &[NamedKey], make: fn(&[u8]) -> Option<CipherKey>| -> Result<_, String> {
        let key = |key: &NamedKey| -> Result<(String, CipherKey), String> {
            let made = key.bytes().and_then(|bytes| make(&bytes));
            let wrong = || format!("error while creating cipher for named key {}", key.name);
            Ok((key.name.clone(), made.ok_or_else(wrong)?))
        };
        keys.iter().map(key).collect::<Result<Vec<_>, String>>()
    };
    Ok(if let Some(given) = aesgcm {
        Provider::Keys("k8s:enc:aesgcm:v1:", keys(given, |bytes| GcmKey::new(bytes).map(CipherKey::Gcm))?)
    } else if let Some(given) = aescbc {
        Provider::Keys("k8s:enc:aescbc:v1:", keys(given, |bytes| CbcKey::new(bytes).map(CipherKey::Cbc))?)
    } else if let Some(given) = secretbox {
        Provider::Keys(
            "k8s:enc:secretbox:v1:",
            keys(given, |bytes| BoxKey::new(bytes).map(CipherKey::Secretbox))?,
        )
    } else {
        Provider::Identity
    })
}

fn plugin(
    kms: &KmsConfiguration,
    making: &Making<'_>,
    tasks: &Tasks,
    plugins: &mut Vec<Plugin>,
) -> Result<Arc<KmsProvider>, String> {
    if kms.api_version != "v2" {
        return Err(format!(
            "KMS provider \"{}\" is of apiVersion {}: KMSv1 is deprecated, is off in Kubernetes v1.36 unless a feature \
             gate turns it on, and is not served here. Use KMSv2 instead.",
            kms.name, kms.api_version
        ));
    }
    let socket = Url::parse(&kms.endpoint).map(|url| url.path).unwrap_or_default();
    if socket.is_empty() {
        return Err(format!("endpoint \"{}\" of KMS provider \"{}\" has no path", kms.endpoint, kms.name));
    }
    let timeout = kms.timeout();
    let provider = KmsProvider::new(KmsSettings {
        name: &kms.name,
        socket: &socket,
        timeout,
        clock: making.clock.clone(),
        tasks: tasks.clone(),
        metrics: making.metrics.clone(),
        rekeyed: making.rekeyed.clone(),
    });
    plugins.push(Plugin { provider: provider.clone(), socket, timeout });
    Ok(provider)
}
