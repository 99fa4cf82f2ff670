//! `--authorization-*`: who is asked whether somebody may, once it is known who asks.
//!
//! In: flags. Out: a chain, or the file that says one. Never: reads a file.
//!
//! Source: kubernetes v1.36.3 `pkg/kubeapiserver/options/authorization.go`.

use std::path::PathBuf;
use std::time::Duration;

use forebay_apimachinery::json::go_quote;
use forebay_authorization::{
    ABAC_REFUSED, AuthorizationConfiguration, AuthorizerKind, ConfiguredAuthorizer, OnWebhookError,
    ReviewVersion, WebhookAuthorizerConfig,
};

use super::reader::Reader;
use crate::error::Error;
use crate::flags::values;

/// Where it is said who is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorizationSource {
    Flags(AuthorizationConfiguration),
    /// It is read again as long as the server runs.
    File(PathBuf),
}

const MODE: &str = "authorization-mode";
const CONFIG: &str = "authorization-config";
const WEBHOOK: &str = "authorization-webhook-config-file";
const VERSION: &str = "authorization-webhook-version";
const AUTHORIZED_TTL: &str = "authorization-webhook-cache-authorized-ttl";
const UNAUTHORIZED_TTL: &str = "authorization-webhook-cache-unauthorized-ttl";

/// How long a webhook of flags is waited for; upstream's.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// Decides on the flags.
///
/// # Errors
/// The reason, in kube-apiserver's words where it has any.
pub(super) fn decide(read: &Reader) -> Result<AuthorizationSource, Error> {
    if let Some(file) = read.path(CONFIG) {
        let others = [MODE, WEBHOOK, VERSION, AUTHORIZED_TTL, UNAUTHORIZED_TTL];
        if others.iter().any(|flag| read.raw.get(flag).is_some()) {
            return Err(Error::Conflict(
                "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are \
                 defined"
                    .to_owned(),
            ));
        }
        return Ok(AuthorizationSource::File(file));
    }
    let modes = read.list(MODE);
    check(&modes).map_err(|reason| read.refuse(MODE, reason))?;
    let webhook = webhook(read)?;
    // Few: a mode is named once.
    let asks_webhook = modes.iter().any(|mode| mode == "Webhook");
    match (&webhook, asks_webhook) {
        (None, true) => {
            let why = "authorization-mode Webhook's authorization config file not passed";
            return Err(Error::Conflict(why.to_owned()));
        }
        (Some(_), false) => {
            let why = "cannot specify --authorization-webhook-config-file without mode Webhook";
            return Err(Error::Conflict(why.to_owned()));
        }
        _ => {}
    }
    let authorizers = modes.iter().filter_map(|mode| {
        let kind = match (mode.as_str(), &webhook) {
            ("AlwaysAllow", _) => AuthorizerKind::AlwaysAllow,
            ("AlwaysDeny", _) => AuthorizerKind::AlwaysDeny,
            ("Node", _) => AuthorizerKind::Node,
            ("RBAC", _) => AuthorizerKind::Rbac,
            (_, Some(webhook)) => AuthorizerKind::Webhook(Box::new(webhook.clone())),
            (_, None) => return None,
        };
        let name = if mode == "Webhook" { "default".to_owned() } else { mode.to_lowercase() };
        Some(ConfiguredAuthorizer { name, kind })
    });
    Ok(AuthorizationSource::Flags(AuthorizationConfiguration { authorizers: authorizers.collect() }))
}

/// # Errors
/// What is wrong with the list of modes.
fn check(modes: &[String]) -> Result<(), String> {
    if modes.is_empty() {
        return Err("at least one authorization-mode must be passed".to_owned());
    }
    for (place, mode) in modes.iter().enumerate() {
        match mode.as_str() {
            "AlwaysAllow" | "AlwaysDeny" | "Node" | "RBAC" | "Webhook" => {}
            "ABAC" => return Err(ABAC_REFUSED.to_owned()),
            _ => return Err(format!("authorization-mode {mode:?} is not a valid mode")),
        }
        if modes[..place].contains(mode) {
            return Err(format!("authorization-mode [{}] has mode specified more than once", quoted(modes)));
        }
    }
    Ok(())
}

fn webhook(read: &Reader) -> Result<Option<WebhookAuthorizerConfig>, Error> {
    let version = read.parsed(VERSION, |version| match version {
        "v1" => Ok(ReviewVersion::V1),
        "v1beta1" => Ok(ReviewVersion::V1beta1),
        other => Err(format!(
            "unsupported webhook authorizer version {}, supported versions are \"v1\", \"v1beta1\"",
            go_quote(other)
        )),
    })?;
    let authorized = read.parsed(AUTHORIZED_TTL, values::duration)?;
    let unauthorized = read.parsed(UNAUTHORIZED_TTL, values::duration)?;
    let unless_zero = |ttl: Duration| Some(ttl).filter(|ttl| !ttl.is_zero());
    Ok(read.path(WEBHOOK).map(|kubeconfig| WebhookAuthorizerConfig {
        authorized_ttl: unless_zero(authorized),
        unauthorized_ttl: unless_zero(unauthorized),
        timeout: WEBHOOK_TIMEOUT,
        version,
        on_error: OnWebhookError::NoOpinion,
        kubeconfig,
        conditions: Vec::new(),
    }))
}

fn quoted(modes: &[String]) -> String {
    modes.iter().map(|mode| format!("{mode:?}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::flags::argv;
    use crate::flags::layers::Raw;

    /// What the flags come to, a word each.
    fn decided(flags: &str) -> String {
        let arguments = flags.split(' ').filter(|flag| !flag.is_empty()).map(OsString::from);
        let raw = argv::parse(arguments).and_then(|argv| Raw::collect(argv.flags, std::iter::empty()));
        match raw.and_then(|raw| decide(&Reader { raw: &raw })) {
            Ok(AuthorizationSource::File(file)) => format!("file {}", file.display()),
            Ok(AuthorizationSource::Flags(chain)) => {
                let names = chain.authorizers.iter().map(|one| match &one.kind {
                    AuthorizerKind::Webhook(webhook) => {
                        format!("{} {:?} {:?}", one.name, webhook.version, webhook.unauthorized_ttl)
                    }
                    _ => one.name.clone(),
                });
                names.collect::<Vec<_>>().join(",")
            }
            Err(error) => error.line(),
        }
    }

    #[test]
    fn a_list_of_modes_is_asked_in_its_order() {
        let mode = |list: &str| decided(&format!("--authorization-mode={list}"));
        assert_eq!(decided(""), "rbac");
        assert_eq!(mode("AlwaysDeny,AlwaysAllow"), "alwaysdeny,alwaysallow");
        assert_eq!(mode("Node,RBAC"), "node,rbac");
        assert_eq!(mode("Node"), "node");
        let refused = |list: &str, why: &str| {
            let said = mode(list);
            assert!(said.contains(why), "{list}: {said}");
        };
        refused("RBAC,ABAC", "authorization-mode \"ABAC\" is not served");
        refused("rbac", "authorization-mode \"rbac\" is not a valid mode");
        refused("RBAC,RBAC", "authorization-mode [\"RBAC\" \"RBAC\"] has mode specified more than once");
    }

    #[test]
    fn a_webhook_takes_its_mode_and_its_file() {
        let file = "--authorization-webhook-config-file=k";
        assert_eq!(
            decided(&format!("--authorization-mode=Webhook,RBAC {file}")),
            "default V1beta1 Some(30s),rbac"
        );
        let more = "--authorization-webhook-version=v1 --authorization-webhook-cache-unauthorized-ttl=0s";
        assert_eq!(decided(&format!("--authorization-mode=Webhook {file} {more}")), "default V1 None");
        assert_eq!(
            decided("--authorization-mode=Webhook"),
            "authorization-mode Webhook's authorization config file not passed"
        );
        assert_eq!(decided(file), "cannot specify --authorization-webhook-config-file without mode Webhook");
        assert!(
            decided("--authorization-webhook-version=v2")
                .contains("unsupported webhook authorizer version \"v2\"")
        );
    }

    #[test]
    fn a_file_says_all_or_nothing() {
        assert_eq!(decided("--authorization-config=/f"), "file /f");
        assert_eq!(
            decided("--authorization-config=/f --authorization-mode=RBAC"),
            "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined"
        );
    }
}
