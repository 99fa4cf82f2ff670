//! `--admission-control-config-file`: what admission plugins are told by files.
//!
//! In: a path. Out: who this server is to its webhooks. Never: a plugin that is not served; what is said to
//! one counts, so that is an error.
//!
//! Source: apiserver v0.36.3 `pkg/admission/config.go`, `pkg/admission/plugin/webhook/config`.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use forebay_webhook_client::{CredentialsOfPlugins, HostCredentials};
use serde_json::Value;

use crate::error::Error;

/// A kubeconfig with a thousand users and their certificates is 4 MB.
const FILE_BYTES_MAX: u64 = 8 << 20;

/// # Errors
/// A file that is not there, or is not what it should be.
pub fn read(path: &Path) -> Result<CredentialsOfPlugins, Error> {
    let wrong = |reason: String| Error::AdmissionFile { path: path.to_owned(), reason };
    let configuration = tree(path)?;
    let version = configuration["apiVersion"].as_str().unwrap_or_default();
    if configuration["kind"] != "AdmissionConfiguration" || !is_of_admission(version) {
        return Err(wrong(format!("no AdmissionConfiguration: {version}, {}", configuration["kind"])));
    }
    let mut all = CredentialsOfPlugins::default();
    for plugin in configuration["plugins"].as_array().into_iter().flatten() {
        let of = match plugin["name"].as_str().unwrap_or_default() {
            "MutatingAdmissionWebhook" => &mut all.mutating,
            "ValidatingAdmissionWebhook" => &mut all.validating,
            name => return Err(wrong(format!("a configuration of plugin {name:?} is not served yet"))),
        };
        let configuration = match (plugin["path"].as_str().unwrap_or_default(), &plugin["configuration"]) {
            ("", configuration) => configuration.clone(),
            (file, _) => tree(&beside(path, Path::new(file)))?,
        };
        if let Some(file) = kubeconfig(&configuration).map_err(wrong)? {
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

    fn read_all(files: &[(&str, &str)]) -> Result<CredentialsOfPlugins, String> {
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
        let all = read_all(&files).expect("credentials");
        for known in [all.mutating, all.validating] {
            let shown = known.of("h", 443).and_then(|it| it.authorization.clone());
            assert_eq!(shown.as_deref(), Some("Bearer secret"));
        }
    }

    #[test]
    fn what_is_not_served_or_is_something_else_is_refused() {
        let refused = |text: &str| read_all(&[("admission", text)]).expect_err("refused");
        assert_eq!(
            refused(&admission("- {name: PodSecurity}")),
            "admission configuration $DIR/admission: a configuration of plugin \"PodSecurity\" is not served yet"
        );
        assert!(refused("kind: Other").contains("no AdmissionConfiguration"));
        let of = "{apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: k}";
        let plugins = format!("- {{name: MutatingAdmissionWebhook, configuration: {of}}}");
        assert!(refused(&admission(&plugins)).ends_with("must be an absolute file path"));
    }
}
