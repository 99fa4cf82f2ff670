//! `--admission-control-config-file`: what admission plugins are told by files.
//!
//! In: a path. Out: who this server is to its webhooks, what is said of pod security, what may be used only
//! within quotas, and what other plugins go by. Never: a plugin that is not served; what is said to one
//! counts, so that is an error.
//!
//! Source: apiserver v0.36.3 `pkg/admission/config.go`, `pkg/admission/plugin/webhook/config`;
//! pod-security-admission v0.36.3 `admission/api`.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use forebay_registry::{
    DefaultTolerations, EventRates, LimitedResources, NodeSelectors, PluginSettings, SecurityConfiguration,
};
use forebay_webhook_client::{CredentialsOfPlugins, HostCredentials};
use serde_json::Value;

use crate::error::Error;

/// A kubeconfig with a thousand users and their certificates is 4 MB.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// What the files say.
#[derive(Debug, Default)]
pub struct AdmissionFiles {
    pub webhook_credentials: CredentialsOfPlugins,
    pub security: SecurityConfiguration,
    pub limited: LimitedResources,
    pub settings: PluginSettings,
}

/// # Errors
/// A file that is not there, or is not what it should be.
pub fn read(path: &Path) -> Result<AdmissionFiles, Error> {
    let wrong = |reason: String| Error::AdmissionFile { path: path.to_owned(), reason };
    let configuration = tree(path)?;
    let version = configuration["apiVersion"].as_str().unwrap_or_default();
    if configuration["kind"] != "AdmissionConfiguration" || !is_of_admission(version) {
        return Err(wrong(format!("no AdmissionConfiguration: {version}, {}", configuration["kind"])));
    }
    let mut all = AdmissionFiles::default();
    for plugin in configuration["plugins"].as_array().into_iter().flatten() {
        let said = || match (plugin["path"].as_str().unwrap_or_default(), &plugin["configuration"]) {
            ("", configuration) => Ok(configuration.clone()),
            (file, _) => tree(&beside(path, Path::new(file))),
        };
        let of = match plugin["name"].as_str().unwrap_or_default() {
            "MutatingAdmissionWebhook" => &mut all.webhook_credentials.mutating,
            "ValidatingAdmissionWebhook" => &mut all.webhook_credentials.validating,
            "PodSecurity" => {
                let said = said()?;
                if !said.is_null() {
                    all.security = SecurityConfiguration::of(&said).map_err(wrong)?;
                }
                continue;
            }
            "ResourceQuota" => {
                let said = said()?;
                if !said.is_null() {
                    all.limited = LimitedResources::of(&said).map_err(wrong)?;
                }
                continue;
            }
            "PodNodeSelector" => {
                all.settings.node_selectors = NodeSelectors::of(&said()?).map_err(wrong)?;
                continue;
            }
            "PodTolerationRestriction" => {
                let said = said()?;
                if !said.is_null() {
                    all.settings.tolerations = DefaultTolerations::of(&said).map_err(wrong)?;
                }
                continue;
            }
            "EventRateLimit" => {
                all.settings.event_rates = EventRates::of(&said()?).map_err(wrong)?;
                continue;
            }
            name => return Err(wrong(format!("a configuration of plugin {name:?} is not served yet"))),
        };
        if let Some(file) = kubeconfig(&said()?).map_err(wrong)? {
            *of = credentials(&file)?;
        }
    }
    Ok(all)
}

fn is_of_admission(version: &str) -> bool {
    matches!(version, "apiserver.config.k8s.io/v1" | "apiserver.k8s.io/v1alpha1")
}

/// Where the kubeconfig is, if a plugin has one.
fn kubeconfig(configuration: &Value) -> Result<Option<PathBuf>, String> {
    if configuration.is_null() {
        return Ok(None);
    }
    let text = |name: &str| configuration[name].as_str().unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        ("apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration")
        | ("apiserver.config.k8s.io/v1alpha1", "WebhookAdmission") => {}
        (version, kind) => return Err(format!("no configuration of webhooks: {version}, {kind}")),
    }
    if !text("staticManifestsDir").is_empty() {
        return Err("staticManifestsDir is not served yet".to_owned());
    }
    match text("kubeConfigFile") {
        "" => Ok(None),
        file if Path::new(file).is_absolute() => Ok(Some(PathBuf::from(file))),
        file => Err(format!("kubeConfigFile: Invalid value: {file:?}: must be an absolute file path")),
    }
}

fn credentials(path: &Path) -> Result<HostCredentials, Error> {
    let kubeconfig = tree(path)?;
    let read = |file: &Path| {
        let file = beside(path, file);
        fs::read(&file).map_err(|why| format!("read {}: {why}", file.display()))
    };
    let known = HostCredentials::of_kubeconfig(&kubeconfig, &read);
    known.map_err(|reason| Error::AdmissionFile { path: path.to_owned(), reason })
}

/// What `file` names, seen from where `path` is.
fn beside(path: &Path, file: &Path) -> PathBuf {
    path.parent().unwrap_or_else(|| Path::new("")).join(file)
}

fn tree(path: &Path) -> Result<Value, Error> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(Error::file("read", path))?;
    let wrong = |reason: String| Error::AdmissionFile { path: path.to_owned(), reason };
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    serde_saphyr::from_str(&text).map_err(|why| wrong(why.to_string()))
}

#[cfg(test)]
mod tests {
    use forebay_scratch::Scratch;

    use super::*;

    fn read_all(files: &[(&str, &str)]) -> Result<AdmissionFiles, String> {
        let scratch = Scratch::new();
        for (name, text) in files {
            let text = text.replace("$DIR", &scratch.path().display().to_string());
            fs::write(scratch.path().join(name), text).expect("a file");
        }
        let mut said = read(&scratch.path().join("admission")).map_err(|why| why.to_string());
        if let Err(why) = &mut said {
            *why = why.replace(&scratch.path().display().to_string(), "$DIR");
        }
        said
    }

    const KUBECONFIG: &str = "users: [{name: '*', user: {tokenFile: token}}]";

    fn admission(plugins: &str) -> String {
        format!("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n{plugins}")
    }

    #[test]
    fn each_plugin_of_webhooks_has_its_credentials_written_there_or_in_a_file() {
        let of = "{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: $DIR/k}";
        let plugins = format!(
            "- {{name: MutatingAdmissionWebhook, configuration: {of}}}\n- {{name: ValidatingAdmissionWebhook, path: v}}"
        );
        let files =
            [("admission", &*admission(&plugins)), ("v", of), ("k", KUBECONFIG), ("token", "secret\n")];
        let all = read_all(&files).expect("credentials").webhook_credentials;
        for known in [all.mutating, all.validating] {
            let shown = known.of("h", 443).and_then(|it| it.authorization.clone());
            assert_eq!(shown.as_deref(), Some("Bearer secret"));
        }
    }

    #[test]
    fn pod_security_has_defaults_and_exemptions_written_there_or_in_a_file() {
        let of = "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, exemptions: {namespaces: [own]}}";
        let file = [("admission", &*admission("- {name: PodSecurity, path: s}")), ("s", of)];
        let there = admission(&format!("- {{name: PodSecurity, configuration: {of}}}"));
        for files in [&file[..], &[("admission", &*there)]] {
            let security = read_all(files).expect("a configuration").security;
            assert!(security.exempts_namespace("own") && !security.exempts_namespace("other"));
        }
        let nothing =
            read_all(&[("admission", &admission("- {name: PodSecurity}"))]).expect("nothing is said");
        assert_eq!(nothing.security, SecurityConfiguration::default());
    }

    #[test]
    fn selectors_tolerations_and_rates_are_read() {
        let plugins = "- {name: PodNodeSelector, configuration: {podNodeSelectorPluginConfig: {x: a=b}}}\n\
                       - {name: PodTolerationRestriction, configuration: {apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1, kind: Configuration, default: [{key: a}]}}\n\
                       - {name: EventRateLimit, configuration: {apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [{type: Server, qps: 1, burst: 1}]}}";
        let settings = read_all(&[("admission", &admission(plugins))]).expect("configurations").settings;
        assert_eq!(settings.node_selectors.of_namespace("x"), "a=b");
        assert_eq!(settings.tolerations.default.len(), 1);
        assert!(!settings.event_rates.is_empty());
        assert!(read_all(&[("admission", &admission("- {name: EventRateLimit}"))]).is_err());
    }

    #[test]
    fn what_is_not_served_or_is_something_else_is_refused() {
        let refused = |text: &str| read_all(&[("admission", text)]).expect_err("refused");
        assert_eq!(
            refused(&admission("- {name: ImagePolicyWebhook}")),
            "admission configuration $DIR/admission: a configuration of plugin \"ImagePolicyWebhook\" is not served yet"
        );
        let security = "{apiVersion: pod-security.admission.config.k8s.io/v1, kind: PodSecurityConfiguration, defaults: {enforce: all}}";
        assert!(
            refused(&admission(&format!("- {{name: PodSecurity, configuration: {security}}}"))).ends_with(
                "defaults.enforce: Invalid value: \"all\": must be one of privileged, baseline, restricted"
            )
        );
        assert!(refused("kind: Other").contains("no AdmissionConfiguration"));
        let of = "{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: k}";
        let plugins = format!("- {{name: MutatingAdmissionWebhook, configuration: {of}}}");
        assert!(refused(&admission(&plugins)).ends_with("must be an absolute file path"));
    }
}
