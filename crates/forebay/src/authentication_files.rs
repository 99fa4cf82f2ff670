//! Who vouches for tokens elsewhere, as files say it: `--authentication-config`, the kubeconfig of
//! `--authentication-token-webhook-config-file`, the authorities of `--oidc-ca-file`.
//!
//! In: paths. Out: configurations, checked. Never: asks anybody.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use forebay_issuers::{ReviewVersion, TokenReviewer, check_authorities};
use forebay_oidc::config::JwtIssuer;
use forebay_oidc::{Algorithm, AuthenticationConfiguration, Issuer, validated};
use forebay_rt::Clock;
use forebay_webhook_client::Remote;
use serde_json::Value;

use crate::config::Authentication;
use crate::error::Error;

/// 64 issuers with authorities of 8 KB each are 512 KB.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What the files say.
#[derive(Debug, Default)]
pub struct AuthenticationFiles {
    /// Of a file, or what flags say.
    pub configuration: AuthenticationConfiguration,
    algorithms: Vec<Algorithm>,
    /// Where the configuration is, and its text.
    pub file: Option<(PathBuf, String)>,
    webhook: Option<WebhookFile>,
}

/// The kubeconfig of a webhook that is asked about tokens.
#[derive(Debug)]
struct WebhookFile {
    path: PathBuf,
    kubeconfig: Value,
    version: ReviewVersion,
}

impl AuthenticationFiles {
    /// # Errors
    /// A file that is not there, or is not what it should be.
    pub fn read(decided: &Authentication) -> Result<AuthenticationFiles, Error> {
        let own = &decided.service_accounts.issuers;
        let mut files = match (&decided.config_file, &decided.oidc) {
            (Some(path), _) => {
                let text = read_text(path)?;
                let wrong = |reason| Error::AuthenticationFile { path: path.clone(), reason };
                let (configuration, _) = parse(&text, own).map_err(wrong)?;
                let (algorithms, file) = (Algorithm::ALL.to_vec(), Some((path.clone(), text)));
                AuthenticationFiles { configuration, algorithms, file, webhook: None }
            }
            (None, Some(oidc)) => {
                let mut jwt: JwtIssuer = oidc.jwt.clone();
                if let Some(path) = &oidc.ca_file {
                    jwt.issuer.certificate_authority = read_text(path)?;
                }
                let configuration = AuthenticationConfiguration { jwt: vec![jwt], anonymous: None };
                let algorithms = oidc.algorithms.clone();
                AuthenticationFiles { configuration, algorithms, ..Default::default() }
            }
            (None, None) => AuthenticationFiles::default(),
        };
        if files.configuration.anonymous.is_some() && decided.anonymous_is_said {
            let why = "--anonymous-auth flag cannot be set when anonymous field is configured in authentication \
                       configuration file";
            return Err(Error::Conflict(format!("anonymous: Forbidden: {why}")));
        }
        files
            .issuers(own)
            .map_err(|why| Error::Conflict(format!("invalid authentication configuration: {why}")))?;
        if let Some(webhook) = &decided.webhook {
            files.webhook = Some(WebhookFile::read(&webhook.file, webhook.version)?);
        }
        Ok(files)
    }

    /// Whether anybody is asked about tokens, or may be once the file has changed.
    pub fn asks_others(&self) -> bool {
        !self.configuration.jwt.is_empty() || self.file.is_some() || self.webhook.is_some()
    }

    /// The webhook, if there is one. To be called within a runtime, in which its connections live.
    ///
    /// # Errors
    /// What of its kubeconfig cannot be used.
    pub fn reviewer(&self, clock: &Clock) -> Result<Option<TokenReviewer>, Error> {
        self.webhook.as_ref().map(|webhook| webhook.reviewer(clock)).transpose()
    }

    /// The issuers, their expressions compiled.
    ///
    /// - `own`: the issuers of this server's own tokens.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn issuers(&self, own: &[String]) -> Result<Vec<Issuer>, String> {
        validated(&self.configuration, own, &self.algorithms, &check_authorities)
    }
}

/// A configuration, and its issuers.
///
/// - `own`: the issuers of this server's own tokens.
///
/// # Errors
/// What is wrong with it, in upstream's words.
pub fn parse(text: &str, own: &[String]) -> Result<(AuthenticationConfiguration, Vec<Issuer>), String> {
    if text.is_empty() {
        return Err("empty config data".to_owned());
    }
    let tree: Value = serde_saphyr::from_str(text).map_err(|why| why.to_string())?;
    let configuration = AuthenticationConfiguration::of(&tree)?;
    let issuers = validated(&configuration, own, &Algorithm::ALL, &check_authorities);
    let issuers = issuers.map_err(|why| format!("invalid authentication configuration: {why}"))?;
    Ok((configuration, issuers))
}

/// # Errors
/// It is not there, is no text, or is longer than it may be.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(Error::file("read", path))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        let reason = format!("larger than {FILE_BYTES_MAX} bytes");
        return Err(Error::AuthenticationFile { path: path.to_owned(), reason });
    }
    Ok(text)
}

impl WebhookFile {
    fn read(path: &Path, version: ReviewVersion) -> Result<WebhookFile, Error> {
        let wrong = |reason| Error::AuthenticationFile { path: path.to_owned(), reason };
        let kubeconfig = serde_saphyr::from_str(&read_text(path)?).map_err(|why| wrong(why.to_string()))?;
        Ok(WebhookFile { path: path.to_owned(), kubeconfig, version })
    }

    fn reviewer(&self, clock: &Clock) -> Result<TokenReviewer, Error> {
        // What it names is seen from where it is.
        let read = |file: &Path| {
            let file = self.path.parent().unwrap_or_else(|| Path::new("")).join(file);
            fs::read(&file).map_err(|why| format!("read {}: {why}", file.display()))
        };
        let remote = Remote::of_kubeconfig(&self.kubeconfig, &read, clock);
        let wrong = |reason| Error::AuthenticationFile { path: self.path.clone(), reason };
        Ok(TokenReviewer { remote: remote.map_err(wrong)?, version: self.version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JWT: &str = "jwt: [{issuer: {url: 'https://i', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]";

    fn parsed(more: &str) -> Result<usize, String> {
        let text =
            format!("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n{more}\n");
        parse(&text, &["https://own".to_owned()]).map(|(_, issuers)| issuers.len())
    }

    #[test]
    fn a_configuration_is_read_from_yaml_and_checked() {
        assert_eq!(parsed(""), Ok(0));
        assert_eq!(parsed(JWT), Ok(1));
        assert_eq!(parse("", &[]).map(|(_, issuers)| issuers.len()), Err("empty config data".to_owned()));
        assert_eq!(parsed("more: 1"), Err("strict decoding error: unknown field \"more\"".to_owned()));
        let own = parsed(&JWT.replace("https://i", "https://own")).expect_err("refused");
        assert!(
            own.starts_with("invalid authentication configuration: jwt[0].issuer.url: Invalid value"),
            "{own}"
        );
        assert!(parsed("jwt: [").is_err());
    }
}
