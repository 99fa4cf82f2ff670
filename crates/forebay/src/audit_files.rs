//! `--audit-policy-file` and `--audit-webhook-config-file`: which requests are noted, and who is sent what is
//! noted.
//!
//! In: what was decided. Out: a policy and a way to the webhook, or the first file that is not as it should
//! be; and what notes requests. Never: a rule of a policy.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::Lease;
use forebay_audit::limits::POLICY_BYTES_MAX;
use forebay_audit::{Audit, AuditOptions, AuditPolicy, Posted, Posts};
use forebay_rt::{Clock, Random};
use forebay_webhook_client::{Kubeconfig, Poster};
use serde_json::Value;

use crate::config::AuditConfig;
use crate::error::Error;

const POLICY: &str = "loading audit policy file";
const WEBHOOK: &str = "initializing audit webhook";

/// What the files say.
#[derive(Debug, Clone)]
pub struct AuditFiles {
    policy: AuditPolicy,
    options: AuditOptions,
    target: Option<Kubeconfig>,
}

/// `None`: nothing is noted.
///
/// - `warnings`: gets what of a policy nobody knows.
///
/// # Errors
/// A file that is not there, or is not what it should be.
pub fn read(config: &AuditConfig, warnings: &mut Vec<String>) -> Result<Option<AuditFiles>, Error> {
    let Some(path) = &config.policy_file else { return Ok(None) };
    let wrong = |reason: String| Error::AuditFile { doing: POLICY, path: path.clone(), reason };
    let (tree, repeated) = policy_tree(path)?;
    let (policy, unknown) = AuditPolicy::of(&tree).map_err(wrong)?;
    let passed_over: Vec<String> = repeated.into_iter().chain(unknown).collect();
    if !passed_over.is_empty() {
        let what = "audit policy contains errors, falling back to lenient decoding: strict decoding error";
        warnings.push(format!("{what}: {}", passed_over.join(", ")));
    }
    let target = config.webhook_file.as_deref().map(target).transpose()?;
    let options = config.options.clone();
    if options.log.is_none() && target.is_none() {
        return Ok(None);
    }
    Ok(Some(AuditFiles { policy, options, target }))
}

fn target(path: &Path) -> Result<Kubeconfig, Error> {
    let kubeconfig = tree(WEBHOOK, path)?;
    let read = |file: &Path| {
        let file = path.parent().unwrap_or_else(|| Path::new("")).join(file);
        fs::read(&file).map_err(|why| format!("read {}: {why}", file.display()))
    };
    Kubeconfig::read(&kubeconfig, &read).map_err(|reason| Error::AuditFile {
        doing: WEBHOOK,
        path: path.to_owned(),
        reason,
    })
}

/// A policy as upstream reads it: of a key that is there twice the last counts. What is said of such keys.
fn policy_tree(path: &Path) -> Result<(Value, Option<String>), Error> {
    let wrong = |reason: String| Error::AuditFile { doing: POLICY, path: path.to_owned(), reason };
    let text = text(POLICY, path)?;
    let read = forebay_yaml::to_json(text.as_bytes(), &Lease::of_server());
    let read = read.map_err(|why| wrong(why.to_string()))?;
    let tree = forebay_apimachinery::json::read(&read.text).map_err(|why| wrong(why.to_string()))?;
    Ok((tree, read.repeated))
}

fn tree(doing: &'static str, path: &Path) -> Result<Value, Error> {
    let wrong = |reason: String| Error::AuditFile { doing, path: path.to_owned(), reason };
    serde_saphyr::from_str(&text(doing, path)?).map_err(|why| wrong(why.to_string()))
}

fn text(doing: &'static str, path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(POLICY_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(Error::file("read", path))?;
    if text.len() as u64 > POLICY_BYTES_MAX {
        let reason = format!("larger than {POLICY_BYTES_MAX} bytes");
        return Err(Error::AuditFile { doing, path: path.to_owned(), reason });
    }
    Ok(text)
}

impl AuditFiles {
    /// Begins to note requests. To be called within a runtime.
    ///
    /// # Errors
    /// The log cannot be made; what is shown to the webhook cannot be used.
    pub fn begin(&self, clock: &Clock) -> Result<Audit, Error> {
        let poster = self.target.as_ref().map(|target| Poster::new(target, clock.clone()));
        let poster = poster.transpose().map_err(|why| Error::Serve(format!("{WEBHOOK}: {why}")))?;
        let posts = poster.map(|poster| Arc::new(Webhook(poster)) as Arc<dyn Posts>);
        let path = self.options.log.as_ref().map(|log| log.path.clone()).unwrap_or_default();
        Audit::begin(self.policy.clone(), &self.options, posts, clock.clone(), Random::system())
            .map_err(Error::file("write", path))
    }
}

/// The way to the server that is sent events.
struct Webhook(Poster);

impl Posts for Webhook {
    fn post(&self, parts: Vec<Bytes>) -> Posted<'_> {
        Box::pin(self.0.post(parts))
    }
}

#[cfg(test)]
mod tests {
    use forebay_scratch::Scratch;

    use super::*;

    fn read_policy(text: &str, webhook: Option<&str>) -> (Result<Option<AuditFiles>, String>, Vec<String>) {
        let scratch = Scratch::new();
        let write = |name: &str, text: &str| {
            let path = scratch.path().join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let config = AuditConfig {
            policy_file: Some(write("policy", text)),
            webhook_file: webhook.map(|text| write("webhook", text)),
            options: AuditOptions::default(),
        };
        let mut warnings = Vec::new();
        let files = read(&config, &mut warnings);
        let dir = scratch.path().display().to_string();
        (files.map_err(|why| why.line().replace(&dir, "$DIR")), warnings)
    }

    const HEAD: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";

    #[test]
    fn a_policy_and_a_webhook_are_read() {
        let kubeconfig = "{current-context: c, contexts: [{name: c, context: {cluster: k}}], \
                          clusters: [{name: k, cluster: {server: 'http://127.0.0.1:1/events'}}]}";
        let (files, warnings) = read_policy(&format!("{HEAD}rules: [{{level: Metadata}}]"), Some(kubeconfig));
        assert!(files.expect("read").is_some() && warnings.is_empty());
        // Nobody is there to be told.
        let (files, _) = read_policy(&format!("{HEAD}rules: [{{level: Metadata}}]"), None);
        assert!(files.expect("read").is_none());
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_name() {
        let (files, _) = read_policy(&format!("{HEAD}rules: [{{level: Much}}]"), None);
        assert_eq!(
            files.expect_err("wrong"),
            "loading audit policy file: rules[0].level: Unsupported value: \"Much\": supported values: \"None\", \
             \"Metadata\", \"Request\", \"RequestResponse\": from file $DIR/policy"
        );
        let (files, _) = read_policy(&format!("{HEAD}rules: [{{level: None}}]"), Some("{}"));
        assert_eq!(
            files.expect_err("wrong"),
            "initializing audit webhook: context \"\" does not exist: from file $DIR/webhook"
        );
        let (_, warnings) = read_policy(&format!("{HEAD}rules: [{{level: None, verb: [get]}}]"), None);
        assert_eq!(
            warnings,
            [
                "audit policy contains errors, falling back to lenient decoding: strict decoding error: unknown field \
              \"rules[0].verb\""
            ]
        );
    }

    #[test]
    fn of_a_key_that_is_there_twice_the_last_counts_and_the_server_starts() {
        let (files, warnings) = read_policy(&format!("{HEAD}rules: []\nrules: [{{level: Metadata}}]"), None);
        assert!(files.expect("read").is_none());
        assert_eq!(
            warnings,
            ["audit policy contains errors, falling back to lenient decoding: strict decoding error: yaml: \
              unmarshal errors:\n  line 4: key \"rules\" already set in map"]
        );
    }
}
