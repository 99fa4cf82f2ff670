//! What is wrong with a configuration, in upstream's words and order.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::bad_value::BadValue;
use forebay_apimachinery::go_url::Url;
use forebay_apimachinery::json::go_quote;

use super::{EncryptionConfiguration, KmsConfiguration, NamedKey, ProviderConfiguration, Reload};
use crate::rules::{ANY, ResourcePattern};

const AES_KEY_BYTES: &[usize] = &[16, 24, 32];
const SECRETBOX_KEY_BYTES: &[usize] = &[32];

/// Whether it can be used.
///
/// # Errors
/// All that is wrong with it, as one text.
pub fn validate(configuration: &EncryptionConfiguration, reload: Reload) -> Result<(), String> {
    let mut faults = Faults(Vec::new());
    faults.configuration(configuration, reload);
    match <[String; 1]>::try_from(faults.0) {
        Ok([fault]) => Err(fault),
        Err(faults) if faults.is_empty() => Ok(()),
        Err(mut faults) => {
            let mut seen = BTreeSet::new();
            faults.retain(|fault| seen.insert(fault.clone()));
            Err(format!("[{}]", faults.join(", ")))
        }
    }
}

struct Faults(Vec<String>);

impl Faults {
    fn required(&mut self, at: &str, why: &str) {
        self.0.push(format!("{at}: Required value: {why}"));
    }

    fn invalid(&mut self, at: &str, shown: &str, why: &str) {
        self.0.push(format!("{at}: Invalid value: {shown}: {why}"));
    }

    fn configuration(&mut self, configuration: &EncryptionConfiguration, reload: Reload) {
        if configuration.rules.is_empty() {
            return self.required("resources", "at least one resources is required");
        }
        let mut kms_names = BTreeSet::new();
        for (place, rule) in configuration.rules.iter().enumerate() {
            let (resources, providers) =
                (format!("resources[{place}].resources"), format!("resources[{place}].providers"));
            if rule.resources.is_empty() {
                self.required(&resources, &format!("at least one {resources} is required"));
            }
            self.overlap(&rule.resources, &resources);
            for (number, name) in rule.resources.iter().enumerate() {
                if let Some(why) = wrong_name(name) {
                    self.invalid(&format!("{resources}[{number}]"), &go_quote(name), why);
                }
            }
            if rule.providers.is_empty() {
                self.required(&providers, &format!("at least one {providers} is required"));
            }
            for (number, provider) in rule.providers.iter().enumerate() {
                self.provider(provider, &format!("{providers}[{number}]"), &mut kms_names, reload);
            }
        }
    }

    fn overlap(&mut self, names: &[String], at: &str) {
        if names.len() < 2 {
            return;
        }
        let mut of_group: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
        let (mut all, mut is_any, mut twice) = (BTreeSet::new(), false, false);
        for pattern in names.iter().map(|name| ResourcePattern::parse(name)) {
            is_any |= pattern == ANY;
            twice |= !all.insert(pattern);
            let (count, has_star) = of_group.entry(pattern.group).or_default();
            *count += 1;
            *has_star |= pattern.resource == "*";
        }
        let shown = BadValue::shown_list(names.iter().map(|name| go_quote(name))).show();
        if twice {
            self.invalid(at, &shown, "the same resource cannot be specified multiple times");
        }
        if is_any || of_group.values().any(|(count, has_star)| *has_star && *count > 1) {
            self.invalid(
                at,
                &shown,
                "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as \
                 they will be masked",
            );
        }
    }

    fn provider<'c>(
        &mut self,
        provider: &'c ProviderConfiguration,
        at: &str,
        kms_names: &mut BTreeSet<&'c str>,
        reload: Reload,
    ) {
        let ProviderConfiguration { aesgcm, aescbc, secretbox, identity, kms } = provider;
        let found = [aesgcm.is_some(), aescbc.is_some(), secretbox.is_some(), *identity, kms.is_some()];
        match found.iter().filter(|is_there| **is_there).count() {
            0 => self.invalid(
                at,
                "{}",
                "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
            ),
            1 => {}
            // Upstream shows it whole, with its keys.
            _ => self.invalid(
                at,
                "\"REDACTED\"",
                "more than one provider specified in a single element, should split into different list elements",
            ),
        }
        if let Some(kms) = kms {
            self.kms(kms, &format!("{at}.kms"), kms_names, reload);
            kms_names.insert(&kms.name);
        } else if let Some(keys) = aesgcm {
            self.keys(keys, &format!("{at}.aesgcm.keys"), AES_KEY_BYTES);
        } else if let Some(keys) = aescbc {
            self.keys(keys, &format!("{at}.aescbc.keys"), AES_KEY_BYTES);
        } else if let Some(keys) = secretbox {
            self.keys(keys, &format!("{at}.secretbox.keys"), SECRETBOX_KEY_BYTES);
        }
    }

    fn keys(&mut self, keys: &[NamedKey], at: &str, lengths: &[usize]) {
        if keys.is_empty() {
            return self.required(at, "at least one keys is required");
        }
        for (place, key) in keys.iter().enumerate() {
            if key.name.is_empty() {
                self.required(&format!("{at}[{place}].name"), "name is a mandatory field for a key");
            }
            let at = format!("{at}[{place}].secret");
            if key.secret.is_empty() {
                self.required(&at, "secret is a mandatory field for a key");
                continue;
            }
            match key.bytes() {
                None => self.invalid(&at, "\"REDACTED\"", "secrets must be base64 encoded"),
                Some(bytes) if !lengths.contains(&bytes.len()) => {
                    let expected: Vec<String> = lengths.iter().map(usize::to_string).collect();
                    let why = format!(
                        "secret is not of the expected length, got {}, expected one of [{}]",
                        bytes.len(),
                        expected.join(" ")
                    );
                    self.invalid(&at, "\"REDACTED\"", &why);
                }
                Some(_) => {}
            }
        }
    }

    fn kms(&mut self, kms: &KmsConfiguration, at: &str, names: &BTreeSet<&str>, reload: Reload) {
        let (is_v1, name) = (kms.api_version == "v1", go_quote(&kms.name));
        let named = format!("{at}.name");
        if kms.name.is_empty() {
            self.required(&named, "name is a mandatory field for a provider");
        }
        if !is_v1 && kms.name.contains(':') {
            let why = format!("invalid KMS provider name {}, must not contain ':'", kms.name);
            self.invalid(&named, &name, &why);
        }
        if (reload == Reload::Automatic || !is_v1) && names.contains(kms.name.as_str()) {
            let why = format!("duplicate KMS provider name {}, names must be unique", kms.name);
            self.invalid(&named, &name, &why);
        }
        if kms.timeout_ns <= 0 {
            let shown = format!("\"{}s\"", kms.timeout_ns as f64 / 1e9);
            self.invalid(&format!("{at}.timeout"), &shown, "timeout should be a positive value");
        }
        self.endpoint(&kms.endpoint, &format!("{at}.endpoint"));
        let sized = format!("{at}.cachesize");
        match kms.cache_size {
            Some(size) if !is_v1 => {
                self.invalid(&sized, &size.to_string(), "cachesize is not supported in v2")
            }
            Some(0) => {
                self.invalid(&sized, "0", "cachesize should be a positive value, or negative to disable");
            }
            _ => {}
        }
        if !matches!(kms.api_version.as_str(), "v1" | "v2") {
            self.invalid(
                &format!("{at}.apiVersion"),
                &go_quote(&kms.api_version),
                "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported",
            );
        }
    }

    fn endpoint(&mut self, endpoint: &str, at: &str) {
        if endpoint.is_empty() {
            return self.invalid(at, "\"\"", "endpoint is a mandatory field for a kms");
        }
        match Url::parse(endpoint) {
            Err(why) => {
                let why = format!("invalid endpoint for kms provider, error: {why}");
                self.invalid(at, &go_quote(endpoint), &why);
            }
            Ok(url) if url.scheme != "unix" => {
                let scheme = go_quote(&url.scheme);
                let why = format!("unsupported scheme {scheme} for KMS provider, only unix is supported");
                self.invalid(at, &go_quote(endpoint), &why);
            }
            Ok(_) => {}
        }
    }
}

impl NamedKey {
    /// The key itself; none where that is no base64.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        // As Go's decoder, which passes over ends of lines.
        let text: String = self.secret.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        STANDARD.decode(text).ok()
    }
}

/// Why a resource cannot be named so.
fn wrong_name(name: &str) -> Option<&'static str> {
    if name.to_lowercase() != name {
        return Some("resource name should not contain capital letters");
    }
    if name == "*" {
        return Some(
            "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources",
        );
    }
    if matches!(name, "apiserveripinfo" | "serviceipallocations" | "servicenodeportallocations") {
        return Some("resources which do not have REST API/s cannot be encrypted");
    }
    let pattern = ResourcePattern::parse(name);
    match (pattern.group, pattern.resource) {
        ("events.k8s.io", _) => Some(
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the \
             config file",
        ),
        ("extensions", _) => Some("'extensions' group has been removed and cannot be used for encryption"),
        ("*", resource) if resource != "*" => {
            Some("encrypting the same resource across groups is not supported")
        }
        _ => None,
    }
}
