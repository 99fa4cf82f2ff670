//! Who is who: the flags of authentication, but those of proxies and certificates.
//!
//! In: what was typed. Out: what was decided of it, or the first thing that makes no sense. Reads no file.
//!
//! Source: kubernetes v1.36.3 `pkg/kubeapiserver/options/authentication.go`.

use std::path::PathBuf;
use std::time::Duration;

use forebay_auth::{BootstrapTokenUse, Ways};
use forebay_endpoints::config::{PodTokens, SecretTokens};
use forebay_issuers::TokenReviewVersion;
use forebay_oidc::Algorithm;
use forebay_oidc::config::{ClaimMappings, ClaimRule, JwtIssuer, Mapping, ProviderConfig};

use super::reader::Reader;
use super::{Anonymous, Authentication, ServiceAccounts};
use crate::error::Error;
use crate::flags::{gates, values};

/// A provider of tokens, as flags name it.
#[derive(Debug, Clone)]
pub struct OidcProvider {
    /// Without who vouches for its server.
    pub jwt: JwtIssuer,
    pub ca_file: Option<PathBuf>,
    pub algorithms: Vec<Algorithm>,
}

/// A webhook that is asked about tokens.
#[derive(Debug, Clone)]
pub struct TokenWebhook {
    pub file: PathBuf,
    pub version: TokenReviewVersion,
    /// How long its word counts.
    pub ttl: Duration,
}

const OIDC: [&str; 9] = [
    "oidc-issuer-url",
    "oidc-client-id",
    "oidc-ca-file",
    "oidc-username-claim",
    "oidc-username-prefix",
    "oidc-groups-claim",
    "oidc-groups-prefix",
    "oidc-signing-algs",
    "oidc-required-claim",
];

/// # Errors
/// The first flag that cannot be done as asked.
pub(super) fn decide(read: &Reader) -> Result<Authentication, Error> {
    let said = read.optional("anonymous-auth", values::bool)?;
    let anonymous = match said {
        Some(false) => Anonymous::Nothing,
        Some(true) | None => Anonymous::HealthAndVersion,
    };
    let config_file = read.path("authentication-config");
    let is_bootstrap = read.parsed("enable-bootstrap-token-auth", values::bool)?;
    Ok(Authentication {
        token_auth_file: read.path("token-auth-file"),
        anonymous,
        anonymous_is_said: said.is_some(),
        service_accounts: service_accounts(read)?,
        oidc: oidc(read, config_file.is_some())?,
        config_file,
        webhook: webhook(read)?,
        bootstrap_tokens: match is_bootstrap {
            true => BootstrapTokenUse::Believed,
            false => BootstrapTokenUse::Unknown,
        },
        ways: match gates::is_on("ConstrainedImpersonation", &read.list("feature-gates")) {
            true => Ways::All,
            false => Ways::Legacy,
        },
    })
}

/// - `has_file`: a file says it all.
fn oidc(read: &Reader, has_file: bool) -> Result<Option<OidcProvider>, Error> {
    let is_any = OIDC.iter().any(|flag| read.is_given(flag));
    if has_file && is_any {
        let why = "authentication-config file and oidc-* flags are mutually exclusive";
        return Err(Error::Conflict(why.to_owned()));
    }
    let text = |flag| read.optional(flag, |text| Ok(text.to_owned()));
    let (url, client) = match (text("oidc-issuer-url")?, text("oidc-client-id")?) {
        (Some(url), Some(client)) => (url, client),
        _ if is_any => {
            let why =
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set";
            return Err(Error::Conflict(why.to_owned()));
        }
        _ => return Ok(None),
    };
    let claim = read.parsed("oidc-username-claim", |text| Ok(text.to_owned()))?;
    let prefix = match text("oidc-username-prefix")?.as_deref() {
        // Whoever says nothing is not to be taken for a user of another issuer.
        None if claim != "email" => format!("{url}#"),
        None | Some("-") => String::new(),
        Some(prefix) => prefix.to_owned(),
    };
    let groups = match text("oidc-groups-claim")? {
        None => Mapping::default(),
        Some(claim) => {
            let prefix = Some(text("oidc-groups-prefix")?.unwrap_or_default());
            Mapping { claim, prefix, expression: String::new() }
        }
    };
    let required: Result<Vec<ClaimRule>, Error> =
        read.list("oidc-required-claim").iter().map(|pair| required(read, pair)).collect();
    Ok(Some(OidcProvider {
        jwt: JwtIssuer {
            issuer: ProviderConfig { url, audiences: vec![client], ..ProviderConfig::default() },
            claim_validation_rules: required?,
            claim_mappings: ClaimMappings {
                username: Mapping { claim, prefix: Some(prefix), expression: String::new() },
                groups,
                ..ClaimMappings::default()
            },
            user_validation_rules: Vec::new(),
        },
        ca_file: read.path("oidc-ca-file"),
        algorithms: algorithms(read)?,
    }))
}

fn required(read: &Reader, pair: &str) -> Result<ClaimRule, Error> {
    let (claim, value) = pair.split_once('=').ok_or_else(|| {
        read.refuse("oidc-required-claim", "malformed pair, expect string=string".to_owned())
    })?;
    let (claim, required_value) = (claim.trim().to_owned(), value.trim().to_owned());
    Ok(ClaimRule { claim, required_value, ..ClaimRule::default() })
}

fn algorithms(read: &Reader) -> Result<Vec<Algorithm>, Error> {
    let named = |name: &String| {
        Algorithm::named(name).ok_or_else(|| format!("oidc: unsupported signing alg: {name:?}"))
    };
    let all: Result<Vec<_>, String> = read.list("oidc-signing-algs").iter().map(named).collect();
    all.map_err(|why| read.refuse("oidc-signing-algs", why))
}

fn webhook(read: &Reader) -> Result<Option<TokenWebhook>, Error> {
    let version = read.parsed("authentication-token-webhook-version", |name| {
        TokenReviewVersion::named(name).ok_or_else(|| {
            format!(
                "unsupported authentication webhook version {name:?}, supported versions are \"v1\", \"v1beta1\""
            )
        })
    })?;
    let ttl = read.parsed("authentication-token-webhook-cache-ttl", values::duration)?;
    let file = read.path("authentication-token-webhook-config-file");
    Ok(file.map(|file| TokenWebhook { file, version, ttl }))
}

fn service_accounts(read: &Reader) -> Result<ServiceAccounts, Error> {
    let issuers = read.list("service-account-issuer");
    check_issuers(&issuers).map_err(|reason| read.refuse("service-account-issuer", reason))?;
    let mut api_audiences = read.list("api-audiences");
    if api_audiences.is_empty() {
        api_audiences.clone_from(&issuers);
    }
    let files = read.list("service-account-key-file");
    let key_files: Vec<_> = files.into_iter().filter(|file| !file.is_empty()).map(PathBuf::from).collect();
    let signing_key_file = read.path("service-account-signing-key-file");
    let signing_endpoint = read.optional("service-account-signing-endpoint", |text| Ok(text.to_owned()))?;
    if let Some(endpoint) = &signing_endpoint {
        check_endpoint(endpoint, signing_key_file.is_some(), !key_files.is_empty())?;
    }
    Ok(ServiceAccounts {
        issuers,
        api_audiences,
        key_files,
        signing_key_file,
        signing_endpoint,
        max_token_expiration: read.parsed("service-account-max-token-expiration", token_expiration)?,
        pod_tokens: match read.parsed("service-account-extend-token-expiration", values::bool)? {
            true => PodTokens::Extended,
            false => PodTokens::AsRequested,
        },
        secret_tokens: match read.parsed("service-account-lookup", values::bool)? {
            true => SecretTokens::LookedUp,
            false => SecretTokens::Believed,
        },
        keys_uri: read.optional("service-account-jwks-uri", https_url)?,
    })
}

/// - `signs`, `verifies`: whether there are files of keys that sign or verify.
fn check_endpoint(endpoint: &str, signs: bool, verifies: bool) -> Result<(), Error> {
    // As upstream comes upon them.
    let why = match (signs, verifies) {
        (true, _) => {
            "service-account-signing-key-file and service-account-signing-endpoint are mutually exclusive and \
             cannot be set at the same time"
        }
        (false, true) => {
            "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with \
             `--service-account-signing-endpoint` (They are mutually exclusive)"
        }
        (false, false) => {
            let is_word = |word: &str| {
                let mut bytes = word.bytes();
                !word.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            };
            return match endpoint.strip_prefix('@') {
                Some(name) if !name.split('.').all(is_word) => Err(Error::Conflict(format!(
                    "invalid value {endpoint:?} passed for `--service-account-signing-endpoint`, when prefixed \
                     with @ must be a valid abstract socket name"
                ))),
                _ => Ok(()),
            };
        }
    };
    Err(Error::Conflict(why.to_owned()))
}

fn https_url(value: &str) -> Result<String, String> {
    match value.strip_prefix("https://") {
        Some(rest) if !rest.is_empty() => Ok(value.to_owned()),
        _ => Err("requires https scheme".to_owned()),
    }
}

fn check_issuers(issuers: &[String]) -> Result<(), String> {
    for (place, issuer) in issuers.iter().enumerate() {
        if issuer.is_empty() {
            return Err("contains an empty string".to_owned());
        }
        if issuer.contains(':') && !issuer.contains("://") {
            return Err("contains a ':' but is not a URL".to_owned());
        }
        if issuers[..place].contains(issuer) {
            return Err("contains an issuer twice".to_owned());
        }
    }
    if issuers.is_empty() { Err("needs an issuer".to_owned()) } else { Ok(()) }
}

fn token_expiration(value: &str) -> Result<Option<Duration>, String> {
    match Some(values::duration(value)?).filter(|life| !life.is_zero()) {
        Some(life) if life < Duration::from_secs(3600) || life.as_secs() > u64::from(u32::MAX) => {
            Err("must be between 1 hour and 2^32 seconds".to_owned())
        }
        life => Ok(life),
    }
}
