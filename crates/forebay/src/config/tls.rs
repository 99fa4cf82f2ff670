//! Certificates and what is spoken with them, as flags say it; and what browsers are told of that.
//!
//! In: the flags. Out: where files are, and a policy. Never: opens a file.
//!
//! Source: component-base v0.36.3 `cli/flag/namedcertkey_flag.go`; apiserver v0.36.3
//! `server/options/server_run_options.go`.

use std::path::{Path, PathBuf};

use forebay_pki::{CertificateFiles, NamedFiles, ServingNames};
use http::HeaderValue;

use super::reader::Reader;
use super::{Tls, TlsPolicy};
use crate::error::Error;

/// # Errors
/// A value that makes no sense, or half a pair.
pub(super) fn decide(
    read: &Reader,
    data_dir: &Path,
    names: ServingNames,
    warnings: &mut Vec<String>,
) -> Result<Tls, Error> {
    let given = match (read.path("tls-cert-file"), read.path("tls-private-key-file")) {
        (Some(cert), Some(key)) => Some(CertificateFiles { cert, key }),
        (None, None) => None,
        (Some(_), None) => {
            return Err(Error::Conflict("--tls-cert-file needs --tls-private-key-file".to_owned()));
        }
        (None, Some(_)) => {
            return Err(Error::Conflict("--tls-private-key-file needs --tls-cert-file".to_owned()));
        }
    };
    let min_version = read.parsed("tls-min-version", |value| Ok(value.to_owned()))?;
    let (suites, curves) = (read.list("tls-cipher-suites"), read.list("tls-curve-preferences"));
    let policy = TlsPolicy::decide(&min_version, &suites, &curves, warnings)
        .map_err(|(flag, reason)| read.refuse(flag, reason))?;
    let named = read.list("tls-sni-cert-key").iter().map(|value| named(value)).collect::<Result<_, _>>();
    Ok(Tls {
        cert_dir: read.path("cert-dir").unwrap_or_else(|| data_dir.join("pki")),
        given,
        named: named.map_err(|reason: &str| read.refuse("tls-sni-cert-key", reason.to_owned()))?,
        client_ca_file: read.path("client-ca-file"),
        policy,
        names,
    })
}

/// `example.crt,example.key`, or with names: `example.crt,example.key:*.example.org,example.org`.
fn named(value: &str) -> Result<NamedFiles, &'static str> {
    let (files, names) = match value.split_once(':') {
        None => (value, Vec::new()),
        Some((_, names)) if names.trim().is_empty() => return Err("empty names list is not allowed"),
        Some((files, names)) => (files, names.split(',').map(|name| name.trim().to_owned()).collect()),
    };
    let Some((cert, key)) = files.split_once(',').filter(|(_, key)| !key.contains(',')) else {
        return Err("expected comma separated certificate and key file paths");
    };
    let (cert, key) = (PathBuf::from(cert.trim()), PathBuf::from(key.trim()));
    if cert.as_os_str().is_empty() || key.as_os_str().is_empty() {
        return Err("missing filename for serving cert");
    }
    Ok(NamedFiles { files: CertificateFiles { cert, key }, names })
}

const DIRECTIVES: &str = "strict-transport-security-directives";

/// What answers say of HTTPS, if they are to.
///
/// # Errors
/// A directive that is none.
pub(super) fn transport_security(read: &Reader) -> Result<Option<HeaderValue>, Error> {
    let directives = read.list(DIRECTIVES);
    if directives.is_empty() {
        return Ok(None);
    }
    if !directives.iter().all(|directive| is_directive(directive)) {
        return Err(read.refuse(
            DIRECTIVES,
            "allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information".to_owned(),
        ));
    }
    let said = HeaderValue::from_str(&directives.join("; "));
    said.map(Some).map_err(|_| read.refuse(DIRECTIVES, "has what no header may have".to_owned()))
}

/// How long is left to whoever says it, as kube-apiserver leaves it.
fn is_directive(text: &str) -> bool {
    matches!(text, "includeSubDomains" | "preload")
        || text.strip_prefix("max-age=").is_some_and(|age| !age.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_of_files_has_names_behind_a_colon() {
        let shown = |value: &str| match named(value) {
            Ok(NamedFiles { files: CertificateFiles { cert, key }, names }) => {
                format!("{} {} {names:?}", cert.display(), key.display())
            }
            Err(reason) => reason.to_owned(),
        };
        const NO_PAIR: &str = "expected comma separated certificate and key file paths";
        const NO_NAMES: &str = "empty names list is not allowed";
        const NO_FILE: &str = "missing filename for serving cert";
        for (value, want) in [
            ("foo.crt,foo.key", "foo.crt foo.key []"),
            ("  foo.crt  ,  foo.key  ", "foo.crt foo.key []"),
            ("foo.crt,foo.key:abc", r#"foo.crt foo.key ["abc"]"#),
            ("foo.crt,foo.key: abc  ", r#"foo.crt foo.key ["abc"]"#),
            (
                "a/foo.crt,b/foo.key:*.example.org, example.org,10.0.0.1",
                r#"a/foo.crt b/foo.key ["*.example.org", "example.org", "10.0.0.1"]"#,
            ),
            ("foo.crt,foo.key:::1", r#"foo.crt foo.key ["::1"]"#),
            ("foo.crt,foo.key:a,,b", r#"foo.crt foo.key ["a", "", "b"]"#),
            ("", NO_PAIR),
            ("foo.crt", NO_PAIR),
            ("foo.crt,foo.key,abc", NO_PAIR),
            ("foo.crt:abc", NO_PAIR),
            ("foo.crt,foo.key:", NO_NAMES),
            ("foo.crt,foo.key: ", NO_NAMES),
            (",foo.key", NO_FILE),
            ("foo.crt, ", NO_FILE),
        ] {
            assert_eq!(shown(value), want, "{value:?}");
        }
    }

    #[test]
    fn directives_are_those_that_kube_apiserver_takes() {
        for good in ["max-age=31536000", "includeSubDomains", "preload", "max-age=", "max-age=a b"] {
            assert!(is_directive(good), "{good}");
        }
        for bad in ["max-age", "max-age=1=2", "Max-Age=1", "maxage=1", "includesubdomains", "off", " preload"]
        {
            assert!(!is_directive(bad), "{bad}");
        }
    }
}
