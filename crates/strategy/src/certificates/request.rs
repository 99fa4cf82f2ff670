//! What a CertificateSigningRequest carries: PKCS#10 requests in, X.509 certificates out, both in PEM.
//!
//! In: bytes in base64. Out: what is wrong with them, in Go's words as far as they are told apart. Never:
//! signs.
//!
//! Source: kubernetes v1.36.3 `apis/certificates/helpers.go`; Go 1.25 `encoding/asn1`, `crypto/x509`.

use forebay_apimachinery::json::go_quote;
use forebay_certificate_names::attributes;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::error::X509Error;
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::core::base64;
use crate::pem;

const REQUEST: &str = "CERTIFICATE REQUEST";
const CERTIFICATE: &str = "CERTIFICATE";
const SEQUENCE: u8 = 0x30;

/// What is wrong with a request.
pub fn request_fault(encoded: &str) -> Option<String> {
    let der = match request_der(encoded) {
        Some(der) => der,
        None => return Some("PEM block type must be CERTIFICATE REQUEST".into()),
    };
    if let Some(fault) = frame_fault(&der) {
        return Some(fault);
    }
    let request = match X509CertificationRequest::from_der(&der) {
        Ok((_, request)) => request,
        Err(error) => return Some(format!("asn1: structure error: {error}")),
    };
    let subject = &request.certification_request_info.subject;
    if let Some(fault) = attributes(subject).find_map(|(_, text)| text.err()) {
        return Some(fault.into());
    }
    match request.verify_signature() {
        Ok(()) => None,
        Err(X509Error::SignatureVerificationError) => Some(unverified(&request).into()),
        Err(_) => Some("x509: cannot verify signature: algorithm unimplemented".into()),
    }
}

/// Whether a request asks for a certificate of a member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    Yes,
    No,
    /// Its subject has a name or an organization that cannot be read: a signer might.
    Unreadable,
}

/// Whether a request asks for a certificate of a member of `group`.
pub fn asks_for_group(encoded: &str, group: &str) -> Asks {
    // That it is no request at all is for validation to say.
    let Some(der) = request_der(encoded) else { return Asks::No };
    let Ok((_, request)) = X509CertificationRequest::from_der(&der) else { return Asks::No };
    let mut asks = Asks::No;
    for (kind, text) in attributes(&request.certification_request_info.subject) {
        let is_organization = *kind == OID_X509_ORGANIZATION_NAME;
        match text {
            Ok(Some(text)) if is_organization && text == group => return Asks::Yes,
            Ok(Some(_)) => {}
            _ if is_organization || *kind == OID_X509_COMMON_NAME => asks = Asks::Unreadable,
            _ => {}
        }
    }
    asks
}

/// The common name that a request asks for; empty for none. As in Go the last of several counts.
///
/// # Errors
/// It cannot be read.
pub fn common_name(encoded: &str) -> Result<String, String> {
    let der = request_der(encoded).ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let (_, request) = X509CertificationRequest::from_der(&der)
        .map_err(|error| format!("asn1: structure error: {error}"))?;
    let mut found = String::new();
    for (kind, text) in attributes(&request.certification_request_info.subject) {
        let text = text?;
        if *kind == OID_X509_COMMON_NAME {
            found = text.unwrap_or_default();
        }
    }
    Ok(found)
}

/// What is wrong with the certificates that were issued.
pub fn certificate_fault(encoded: &str) -> Option<String> {
    let text = decoded(encoded);
    if text.is_empty() {
        return None;
    }
    let mut any = false;
    for block in pem::blocks(&text) {
        any = true;
        if block.label != CERTIFICATE {
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {}", go_quote(block.label)));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".into());
        }
        if block.bytes.is_empty() {
            return Some("found CERTIFICATE PEM block containing 0 certificates".into());
        }
        let mut rest = block.bytes.as_slice();
        while !rest.is_empty() {
            match X509Certificate::from_der(rest) {
                Ok((after, _)) => rest = after,
                Err(_) => return Some("x509: malformed certificate".into()),
            }
        }
    }
    (!any).then(|| "must contain at least one CERTIFICATE PEM block".into())
}

fn decoded(encoded: &str) -> String {
    String::from_utf8_lossy(&base64::decode(encoded)).into_owned()
}

fn request_der(encoded: &str) -> Option<Vec<u8>> {
    let text = decoded(encoded);
    pem::blocks(&text).next().filter(|block| block.label == REQUEST).map(|block| block.bytes)
}

fn unverified(request: &X509CertificationRequest<'_>) -> &'static str {
    match request.certification_request_info.subject_pki.algorithm.algorithm.to_id_string().as_str() {
        "1.2.840.113549.1.1.1" => "crypto/rsa: verification error",
        "1.3.101.112" => "x509: Ed25519 verification failure",
        _ => "x509: ECDSA verification failure",
    }
}

/// What is wrong with the outermost element, which is told before what is inside of it.
fn frame_fault(der: &[u8]) -> Option<String> {
    let Some((first, rest)) = der.split_first() else {
        return Some("asn1: syntax error: sequence truncated".into());
    };
    let (length, header) = match rest.split_first() {
        None => return Some("asn1: syntax error: truncated base 128 integer".into()),
        Some((short, _)) if *short < 0x80 => (usize::from(*short), 2),
        Some((long, rest)) => {
            let count = usize::from(long & 0x7f);
            if count == 0 {
                return Some("asn1: syntax error: indefinite length found (not DER)".into());
            }
            if count > rest.len() {
                return Some("asn1: syntax error: truncated tag or length".into());
            }
            if count > 4 {
                return Some("asn1: structure error: length too large".into());
            }
            (rest[..count].iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), 2 + count)
        }
    };
    if *first != SEQUENCE {
        let (class, tag, compound) = (first >> 6, first & 0x1f, first & 0x20 != 0);
        return Some(format!(
            "asn1: structure error: tags don't match (16 vs {{class:{class} tag:{tag} length:{length} \
             isCompound:{compound}}}) {{optional:false explicit:false application:false private:false \
             defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}} certificateRequest \
             @{header}"
        ));
    }
    match der.len().checked_sub(header)? {
        _ if length == 0 => Some("asn1: syntax error: sequence truncated".into()),
        there if there < length => Some("asn1: syntax error: data truncated".into()),
        there if there > length => Some("asn1: syntax error: trailing data".into()),
        _ => None,
    }
}
