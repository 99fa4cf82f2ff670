//! Certificates for who asks for them, of the authority that vouches for this server and its administrator.
//!
//! In: a request that somebody approved, what its key is to be used for, for how long. Out: a certificate
//! that says what the request said, and no more: names and the key, no extension that was asked for. Never:
//! decides who may have one; makes an authority.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/certificates/authority`.

mod der;
mod request;
#[cfg(test)]
mod tests;
mod usages;

use std::fmt;
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, SigningKey as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::extensions::ParsedExtension;

pub use request::CertificateRequest;

use crate::authority::Authority;
use crate::{files, leaf, pem};
use der::{BIT_STRING, GENERALIZED_TIME, OCTET_STRING, OID, SEQUENCE, TRUE, UTC_TIME, element, sequence};

/// Clients whose clock is behind see a certificate that is valid already.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);
/// What lives shorter does not end earlier for that.
const SHORT: SignedDuration = SignedDuration::from_hours(8);
/// The shortest life that is given.
const LIFE_MIN: SignedDuration = SignedDuration::from_mins(10);
/// From this year on a time has four digits for it.
const FOUR_DIGITS_FROM: i16 = 2050;

/// The number at the end of `2.5.29.x`.
const KEY_USAGE: u8 = 15;
const ALTERNATIVE_NAMES: u8 = 17;
const BASIC_CONSTRAINTS: u8 = 19;
const AUTHORITY_KEY: u8 = 35;
const EXTENDED_KEY_USAGE: u8 = 37;

/// Signs requests. See the module's doc.
pub struct SigningAuthority {
    authority: Authority,
    /// Its name, as it is written into certificates.
    name: Vec<u8>,
    key_id: Option<Vec<u8>>,
    /// How it signs, as certificates say it.
    algorithm: Vec<u8>,
}

/// Without the key.
impl fmt::Debug for SigningAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningAuthority").field("expires", &self.authority.expires).finish_non_exhaustive()
    }
}

impl SigningAuthority {
    /// # Errors
    /// Its key is of a kind that nobody here signs with.
    pub(crate) fn of(authority: Authority) -> Result<SigningAuthority, String> {
        let (name, key_id) = {
            let (_, parsed) = x509_parser::parse_x509_certificate(&authority.der)
                .map_err(|why| format!("not a certificate: {why}"))?;
            let key_id = parsed.iter_extensions().find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            });
            (parsed.subject().as_raw().to_vec(), key_id)
        };
        let algorithm = algorithm(authority.issuer.key())?;
        Ok(SigningAuthority { name, key_id, algorithm, authority })
    }

    /// A certificate in PEM for what `request` asks for.
    ///
    /// - `usages`: what its key is for, in Kubernetes' words.
    /// - `asked`: how long the asker wants it to live.
    /// - `life_max`: how long it lives at most, and if nothing is asked.
    ///
    /// # Errors
    /// A usage that nobody knows; the authority has expired.
    pub fn sign<'u>(
        &self,
        request: &CertificateRequest,
        usages: impl IntoIterator<Item = &'u str>,
        (asked, life_max): (Option<SignedDuration>, SignedDuration),
        now: Timestamp,
    ) -> Result<String, String> {
        let usages = usages::read(usages)?;
        let life = asked.map_or(life_max, |asked| asked.max(LIFE_MIN).min(life_max));
        let (begins, ends) = self.validity(life, now)?;
        let serial = leaf::serial_number()?.to_bytes();
        let extensions = self.extensions(request, &usages);
        let signed = sequence(&[
            // Version 3.
            &[0xa0, 0x03, 0x02, 0x01, 0x02],
            &der::unsigned(&serial),
            &self.algorithm,
            &self.name,
            &sequence(&[&time(begins), &time(ends)]),
            &request.subject,
            &request.public_key,
            &element(0xa3, &element(SEQUENCE, &extensions)),
        ]);
        let signature = self.authority.issuer.key().sign(&signed).map_err(leaf::not_made)?;
        let signature = element(BIT_STRING, &[&[0][..], &signature].concat());
        let certificate = sequence(&[&signed, &self.algorithm, &signature]);
        Ok(pem::certificate(&certificate))
    }

    fn validity(&self, life: SignedDuration, now: Timestamp) -> Result<(Timestamp, Timestamp), String> {
        let expires = self.authority.expires;
        let begins = now - BACKDATE;
        let ends = if life < SHORT { now + life } else { now + life - BACKDATE };
        if begins >= expires {
            return Err(format!("the signer has expired: NotAfter={expires}"));
        }
        if now >= expires {
            return Err(format!(
                "refusing to sign a certificate that expired in the past: NotAfter={expires}"
            ));
        }
        Ok((begins, ends.min(expires)))
    }

    fn extensions(&self, request: &CertificateRequest, usages: &usages::Usages) -> Vec<u8> {
        let mut all = Vec::new();
        if usages.bits != 0 {
            all.extend(extension(KEY_USAGE, Critical::Yes, &der::named_bits(usages.bits)));
        }
        if !usages.extended.is_empty() {
            all.extend(extension(EXTENDED_KEY_USAGE, Critical::No, &element(SEQUENCE, &usages.extended)));
        }
        // No authority.
        all.extend(extension(BASIC_CONSTRAINTS, Critical::Yes, &sequence(&[])));
        if let Some(id) = &self.key_id {
            all.extend(extension(AUTHORITY_KEY, Critical::No, &sequence(&[&element(0x80, id)])));
        }
        let names = alternative_names(request);
        if !names.is_empty() {
            // Whoever has no name is known by these alone.
            let critical = if request.subject == sequence(&[]) { Critical::Yes } else { Critical::No };
            all.extend(extension(ALTERNATIVE_NAMES, critical, &element(SEQUENCE, &names)));
        }
        all
    }
}

/// When the first certificate in `pem` expires; nothing, if there is none.
pub fn expires(pem: &[u8]) -> Option<Timestamp> {
    let der = CertificateDer::from_pem_slice(pem).ok()?;
    let (_, certificate) = x509_parser::parse_x509_certificate(&der).ok()?;
    Some(files::validity(&certificate).1)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Critical {
    Yes,
    No,
}

fn extension(number: u8, critical: Critical, value: &[u8]) -> Vec<u8> {
    let oid = element(OID, &[0x55, 0x1d, number]);
    let critical: &[u8] = if critical == Critical::Yes { &TRUE } else { &[] };
    sequence(&[&oid, critical, &element(OCTET_STRING, value)])
}

/// In Go's order.
fn alternative_names(request: &CertificateRequest) -> Vec<u8> {
    let texts = |tag: u8, names: &[String]| -> Vec<u8> {
        names.iter().flat_map(|name| element(tag, name.as_bytes())).collect()
    };
    let ips = request.ips.iter().flat_map(|ip| match ip.to_canonical() {
        IpAddr::V4(ip) => element(0x87, &ip.octets()),
        IpAddr::V6(ip) => element(0x87, &ip.octets()),
    });
    let (dns, emails) = (texts(0x82, &request.dns_names), texts(0x81, &request.emails));
    [dns, emails, ips.collect(), texts(0x86, &request.uris)].concat()
}

fn time(at: Timestamp) -> Vec<u8> {
    let year = at.strftime("%Y").to_string().parse().unwrap_or(FOUR_DIGITS_FROM);
    match year < FOUR_DIGITS_FROM {
        true => element(UTC_TIME, at.strftime("%y%m%d%H%M%SZ").to_string().as_bytes()),
        false => element(GENERALIZED_TIME, at.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()),
    }
}

/// How `key` signs.
fn algorithm(key: &KeyPair) -> Result<Vec<u8>, String> {
    let used = key.algorithm();
    let known: &[u8] = if *used == rcgen::PKCS_ECDSA_P256_SHA256 {
        &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]
    } else if *used == rcgen::PKCS_ECDSA_P384_SHA384 {
        &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03]
    } else if *used == rcgen::PKCS_ED25519 {
        &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70]
    } else if *used == rcgen::PKCS_RSA_SHA256 {
        &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00]
    } else {
        return Err("the authority's key is of a kind that is not signed with".to_owned());
    };
    Ok(known.to_vec())
}
