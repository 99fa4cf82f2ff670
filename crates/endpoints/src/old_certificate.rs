//! Client certificates of X.509 version 1, which `openssl x509 -req` makes unless it is told otherwise: they have no
//! extensions, and the library that judges the others does not read them.
//!
//! In: a certificate of that version. Out: whether the client has its key, and whether an authority signed it. Such a
//! certificate says nothing of its use, which means any; it is taken only from an authority itself, without
//! intermediates.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::sign::public_key_to_spki;
use rustls::{CertificateError, DigitallySignedStruct, Error};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

/// Whether the certificate is of that version.
pub fn is_old(certificate: &CertificateDer<'_>) -> bool {
    parsed(certificate).is_ok_and(|certificate| certificate.version() == X509Version::V1)
}

fn parsed<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, Error> {
    let bad = CertificateError::BadEncoding;
    X509Certificate::from_der(certificate).map(|(_, parsed)| parsed).map_err(|_| bad.into())
}

/// Whether the certificate is signed by one of `roots` and valid at `unix_ms`.
///
/// # Errors
/// Why not.
pub fn judge(leaf: &CertificateDer<'_>, roots: &[CertificateDer<'_>], unix_ms: u64) -> Result<(), Error> {
    let leaf = parsed(leaf)?;
    let now = (unix_ms / 1000) as i64;
    if now < leaf.validity().not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > leaf.validity().not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    let is_signed = roots.iter().filter_map(|root| parsed(root).ok()).any(|root| {
        root.subject().as_raw() == leaf.issuer().as_raw()
            && leaf.verify_signature(Some(root.public_key())).is_ok()
    });
    if is_signed { Ok(()) } else { Err(CertificateError::UnknownIssuer.into()) }
}

/// Whether the certificate's key made the signature of a TLS 1.3 handshake.
///
/// # Errors
/// It did not.
pub fn verify_tls13(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let certificate = parsed(certificate)?;
    let key = SubjectPublicKeyInfoDer::from(certificate.public_key().raw);
    verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
}

/// Whether the certificate's key made the signature of a TLS 1.2 handshake.
///
/// # Errors
/// It did not.
pub fn verify_tls12(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let certificate = parsed(certificate)?;
    let key = certificate.public_key();
    let bits = &key.subject_public_key.data;
    let of_scheme = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
    let is_good = of_scheme.into_iter().flat_map(|(_, algorithms)| algorithms.iter()).any(|algorithm| {
        let own = public_key_to_spki(&algorithm.public_key_alg_id(), bits);
        own.as_ref() == key.raw && algorithm.verify_signature(bits, message, signed.signature()).is_ok()
    });
    if is_good {
        Ok(HandshakeSignatureValid::assertion())
    } else {
        Err(CertificateError::BadSignature.into())
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    /// Made with `openssl req -x509` and `openssl x509 -req`.
    fn certificate(text: &str) -> CertificateDer<'static> {
        let text: String = text.split_whitespace().collect();
        STANDARD.decode(text).expect("base64").into()
    }

    #[test]
    fn an_authority_vouches_for_its_own() {
        let authority = certificate(include_str!("testdata/authority.b64"));
        let stranger = certificate(include_str!("testdata/namesake.b64"));
        let leaf = certificate(include_str!("testdata/version1.b64"));
        assert!(is_old(&leaf) && !is_old(&authority));
        const IN_TIME: u64 = 1_900_000_000_000;
        let verdict = |roots: &[CertificateDer<'_>], unix_ms| judge(&leaf, roots, unix_ms);
        assert_eq!(verdict(&[stranger.clone(), authority.clone()], IN_TIME), Ok(()));
        assert_eq!(verdict(&[stranger], IN_TIME), Err(CertificateError::UnknownIssuer.into()));
        assert_eq!(verdict(&[], IN_TIME), Err(CertificateError::UnknownIssuer.into()));
        assert_eq!(verdict(std::slice::from_ref(&authority), 1), Err(CertificateError::NotValidYet.into()));
        assert_eq!(verdict(&[authority], 1 << 43), Err(CertificateError::Expired.into()));
    }
}
