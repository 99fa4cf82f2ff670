//! A request for a certificate, as Go reads it: who is to be vouched for, and whose key that is.
//!
//! In: PKCS#10 in PEM. Out: names, each with its place in a certificate, and the key as it came. What Go does
//! not read is not there, so that nothing is signed that nobody has looked at. Never: decides who may have a
//! certificate.
//!
//! Source: Go 1.26 `crypto/x509` (`parseCertificateRequest`), `crypto/x509/pkix`.

use std::net::IpAddr;

use forebay_certificate_names::attributes;
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension, X509Extension};
use x509_parser::oid_registry::{OID_X509_EXT_SUBJECT_ALT_NAME, Oid};
use x509_parser::prelude::FromDer as _;

use super::der::{OID, PRINTABLE_STRING, SEQUENCE, SET, UTF8_STRING, element, sequence};

/// See the module's doc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateRequest {
    pub common_name: String,
    pub organizations: Vec<String>,
    pub dns_names: Vec<String>,
    pub emails: Vec<String>,
    pub ips: Vec<IpAddr>,
    pub uris: Vec<String>,
    /// The name, as it is written into a certificate.
    pub(super) subject: Vec<u8>,
    /// The key with its algorithm, as it came.
    pub(super) public_key: Vec<u8>,
}

/// The last number of `2.5.4.x` for the parts of a name that Go reads, in the order that it writes them.
const COUNTRY: u8 = 6;
const ORGANIZATION: u8 = 10;
const COMMON_NAME: u8 = 3;
const SERIAL_NUMBER: u8 = 5;
const PARTS: [u8; 9] = [COUNTRY, ORGANIZATION, 11, 7, 8, 9, 17, COMMON_NAME, SERIAL_NUMBER];

impl CertificateRequest {
    /// Reads one; its signature is by the key that it has.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(pem: &[u8]) -> Result<CertificateRequest, String> {
        let der = CertificateSigningRequestDer::from_pem_slice(pem)
            .map_err(|_| "PEM block type must be CERTIFICATE REQUEST".to_owned())?;
        let (rest, request) =
            X509CertificationRequest::from_der(&der).map_err(|why| format!("no request: {why}"))?;
        if !rest.is_empty() {
            return Err("asn1: syntax error: trailing data".to_owned());
        }
        request
            .verify_signature()
            .map_err(|why| format!("unable to verify certificate request signature: {why}"))?;
        let info = &request.certification_request_info;
        let mut read =
            CertificateRequest { public_key: info.subject_pki.raw.to_vec(), ..CertificateRequest::default() };
        let mut values: [Vec<String>; 9] = Default::default();
        for (kind, text) in attributes(&info.subject) {
            let Some(text) = text? else { continue };
            // Few: nine parts.
            let part = last_number(kind).and_then(|last| PARTS.iter().position(|part| *part == last));
            match part.map(|part| (PARTS[part], &mut values[part])) {
                // Of these the last counts.
                Some((COMMON_NAME | SERIAL_NUMBER, values)) => *values = vec![text],
                Some((_, values)) => values.push(text),
                None => {}
            }
        }
        read.subject = name(&values);
        read.take_alternatives(info.iter_attributes().map(|attribute| attribute.parsed_attribute()))?;
        for (part, values) in PARTS.into_iter().zip(values) {
            match part {
                COMMON_NAME => read.common_name = values.into_iter().next().unwrap_or_default(),
                ORGANIZATION => read.organizations = values,
                _ => {}
            }
        }
        Ok(read)
    }

    fn take_alternatives<'a, 'd: 'a>(
        &mut self,
        attributes: impl Iterator<Item = &'a ParsedCriAttribute<'d>>,
    ) -> Result<(), String> {
        let requested = attributes.filter_map(|attribute| match attribute {
            ParsedCriAttribute::ExtensionRequest(requested) => Some(requested.extensions.iter()),
            _ => None,
        });
        let mut is_there = false;
        for extension in requested.flatten().filter(|one| one.oid == OID_X509_EXT_SUBJECT_ALT_NAME) {
            if is_there {
                return Err("x509: certificate request contains duplicate requested extensions".to_owned());
            }
            is_there = true;
            self.take_names(extension)?;
        }
        Ok(())
    }

    fn take_names(&mut self, extension: &X509Extension<'_>) -> Result<(), String> {
        let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() else {
            return Err("x509: invalid subject alternative names".to_owned());
        };
        let ascii = |text: &str, what: &str| match text.is_ascii() {
            true => Ok(text.to_owned()),
            false => Err(format!("x509: SAN {what} is malformed")),
        };
        for name in &names.general_names {
            match name {
                GeneralName::RFC822Name(text) => self.emails.push(ascii(text, "rfc822Name")?),
                GeneralName::DNSName(text) => self.dns_names.push(ascii(text, "dNSName")?),
                GeneralName::URI(text) => self.uris.push(ascii(text, "uniformResourceIdentifier")?),
                GeneralName::IPAddress(bytes) => {
                    let fault = || format!("x509: cannot parse IP address of length {}", bytes.len());
                    let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                    let ip = v4.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
                    self.ips.push(ip.map_err(|_| fault())?);
                }
                GeneralName::Invalid(..) => {
                    return Err("x509: invalid subject alternative names".to_owned());
                }
                // Go passes these over.
                _ => {}
            }
        }
        Ok(())
    }
}

/// `x` of `2.5.4.x`.
fn last_number(kind: &Oid<'_>) -> Option<u8> {
    match kind.as_bytes() {
        [0x55, 0x04, last] => Some(*last),
        _ => None,
    }
}

/// A name of these parts, the values of each together.
fn name(values: &[Vec<String>; 9]) -> Vec<u8> {
    let sets = PARTS.into_iter().zip(values).filter(|(_, values)| !values.is_empty());
    let sets = sets.map(|(part, values)| {
        let oid = element(OID, &[0x55, 0x04, part]);
        let mut members: Vec<Vec<u8>> =
            values.iter().map(|value| sequence(&[&oid, &string(value)])).collect();
        members.sort();
        element(SET, &members.concat())
    });
    element(SEQUENCE, &sets.collect::<Vec<_>>().concat())
}

/// A text, in the narrower of the two types if it fits.
fn string(text: &str) -> Vec<u8> {
    let is_printable = |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte);
    let tag = if text.bytes().all(is_printable) { PRINTABLE_STRING } else { UTF8_STRING };
    element(tag, text.as_bytes())
}
