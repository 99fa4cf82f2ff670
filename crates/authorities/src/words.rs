//! Why a server's certificate is not believed, in the words of Go's `crypto/x509`.
//!
//! In: what rustls says. Out: what follows `tls: failed to verify certificate: x509: `. Never: decides.
//!
//! Source: Go 1.26 `crypto/x509/verify.go` (`CertificateInvalidError`, `HostnameError`,
//! `UnknownAuthorityError`).

use std::net::IpAddr;

use jiff::Timestamp;
use rustls::CertificateError;
use rustls::pki_types::{ServerName, UnixTime};

use crate::limits::NAMES_SAID_MAX;

/// See the module's doc.
pub fn go_words(error: &CertificateError) -> String {
    let time_of = |unix: &UnixTime| {
        let time = i64::try_from(unix.as_secs()).ok().and_then(|unix| Timestamp::from_second(unix).ok());
        time.map(|time| time.to_string()).unwrap_or_default()
    };
    match error {
        // Somebody else of the same name is not known, either.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => {
            format!("{OUT_OF_TIME}: current time {} is after {}", time_of(time), time_of(not_after))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("{OUT_OF_TIME}: current time {} is before {}", time_of(time), time_of(not_before))
        }
        CertificateError::Expired | CertificateError::NotValidYet => OUT_OF_TIME.to_owned(),
        CertificateError::NotValidForName => "certificate is not valid for the name".to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => of_names(expected, presented),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".to_owned()
        }
        other => other.to_string(),
    }
}

const OUT_OF_TIME: &str = "certificate has expired or is not yet valid";

/// - `presented`: as rustls says them, such as `DnsName("localhost")` and `IpAddress(127.0.0.1)`.
fn of_names(expected: &ServerName<'_>, presented: &[String]) -> String {
    let wanted = expected.to_str();
    let of = |kind| presented.iter().filter_map(|name| within(name, kind)).collect::<Vec<_>>();
    let (valid, kind) = match expected {
        ServerName::IpAddress(_) => (of("IpAddress("), "IP SANs"),
        _ => (of("DnsName("), "names"),
    };
    match valid.len() {
        0 if kind == "names" => {
            format!("certificate is not valid for any names, but wanted to match {wanted}")
        }
        0 => format!("cannot validate certificate for {wanted} because it doesn't contain any IP SANs"),
        many if many >= NAMES_SAID_MAX => {
            format!("certificate is valid for {many} {kind}, but none matched {wanted}")
        }
        _ => format!("certificate is valid for {}, not {wanted}", valid.join(", ")),
    }
}

fn within(name: &str, kind: &str) -> Option<String> {
    let inside = name.strip_prefix(kind)?.strip_suffix(')')?.trim_matches('"');
    // Of an address there are several texts; Go says the shortest.
    let address = inside.parse::<IpAddr>().map(|address| address.to_string());
    Some(address.unwrap_or_else(|_| inside.to_owned()))
}
