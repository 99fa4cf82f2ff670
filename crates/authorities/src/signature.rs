//! Whether one certificate's key signed another one, where webpki does not find it out: certificates that it
//! does not read, or does not take where Go takes them.
//!
//! In: two certificates. Out: yes, or why not. The signature is one that others may have too: none with
//! SHA-1, and none by an RSA key of less than 2048 bits, which the signed one may not have itself either.
//! Never: looks at what either may be used for.

use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm};
use rustls::sign::public_key_to_spki;
use webpki::Error;
use x509_parser::asn1_rs::{Any, Class, FromDer as _};
use x509_parser::public_key::PublicKey;

use crate::authority::parsed;

/// Bits of an RSA key that counts.
const RSA_BITS_MIN: usize = 2048;

/// Whether `root` signed the certificate, in one of `algorithms`.
///
/// # Errors
/// Why that is not so.
pub(crate) fn is_signed_by(
    leaf: &CertificateDer<'_>,
    root: &CertificateDer<'_>,
    algorithms: &[&dyn SignatureVerificationAlgorithm],
) -> Result<(), Error> {
    let (inside, outside) = algorithm_of(leaf).ok_or(Error::BadDer)?;
    let (leaf, root) = (parsed(leaf)?, parsed(root)?);
    if root.subject().as_raw() != leaf.issuer().as_raw() {
        return Err(Error::UnknownIssuer);
    }
    if inside != outside {
        return Err(Error::SignatureAlgorithmMismatch);
    }
    if let Ok(PublicKey::RSA(key)) = leaf.public_key().parsed()
        && key.key_size() < RSA_BITS_MIN
    {
        return Err(Error::InvalidSignatureForPublicKey);
    }
    let key = root.public_key();
    let bits = &key.subject_public_key.data;
    let is_good = algorithms.iter().any(|algorithm| {
        algorithm.signature_alg_id().as_ref() == outside
            && public_key_to_spki(&algorithm.public_key_alg_id(), bits).as_ref() == key.raw
            && algorithm
                .verify_signature(bits, leaf.tbs_certificate.as_ref(), &leaf.signature_value.data)
                .is_ok()
    });
    if is_good { Ok(()) } else { Err(Error::InvalidSignatureForPublicKey) }
}

/// How a certificate says that it is signed, in what is signed and beside it.
fn algorithm_of<'a>(certificate: &'a CertificateDer<'_>) -> Option<(&'a [u8], &'a [u8])> {
    let element = |bytes: &'a [u8]| Any::from_der(bytes).ok();
    let (behind, signed) = element(element(certificate)?.1.data)?;
    let outside = element(behind)?.1.data;
    // The version stands first, unless it is the first one; then the serial number.
    let (mut behind, first) = element(signed.data)?;
    if first.header.class() == Class::ContextSpecific {
        (behind, _) = element(behind)?;
    }
    Some((element(behind)?.1.data, outside))
}
