//! Certificates of X.509 version 1, which `openssl x509 -req` makes unless it is told otherwise: they have no
//! extensions, and the library that judges the others does not read them.
//!
//! In: a certificate of that version. Out: whether somebody has its key. Such a certificate says nothing of
//! its use, which means any; it is taken only from an authority itself, without intermediates. Never: a
//! server's that has to be who it is called, which its names in an extension would say.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::{CertifiedKey, public_key_to_spki};
use rustls::{CertificateError, DigitallySignedStruct, Error, InconsistentKeys};
use x509_parser::prelude::{X509Certificate, X509Version};

use crate::authority::parsed;

/// Whether the certificate is of that version.
pub fn is_old(certificate: &CertificateDer<'_>) -> bool {
    parsed(certificate).is_ok_and(|certificate| certificate.version() == X509Version::V1)
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
    let certificate = read(certificate)?;
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
    let certificate = read(certificate)?;
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

/// A certificate with its chain, of that version, too, and its key.
///
/// # Errors
/// They cannot be read, or do not belong together.
pub fn certified_key(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Error> {
    let Some(leaf) = chain.first().filter(|leaf| is_old(leaf)) else {
        return CertifiedKey::from_der(chain, key, provider);
    };
    let key = provider.key_provider.load_private_key(key)?;
    let is_its = {
        let leaf = read(leaf)?;
        key.public_key().is_none_or(|public| public.as_ref() == leaf.public_key().raw)
    };
    match is_its {
        true => Ok(CertifiedKey::new(chain, key)),
        false => Err(InconsistentKeys::KeyMismatch.into()),
    }
}

fn read<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, Error> {
    parsed(certificate).map_err(|_| CertificateError::BadEncoding.into())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use rustls::crypto::ring;
    use webpki::Error as Refusal;

    use super::*;
    use crate::CertificateAuthority;
    use crate::signature::is_signed_by;

    /// Made with `openssl req -x509` and `openssl x509 -req`.
    fn certificate(text: &str) -> CertificateDer<'static> {
        let text: String = text.split_whitespace().collect();
        STANDARD.decode(text).expect("base64").into()
    }

    macro_rules! file {
        ($name:literal) => {
            certificate(include_str!(concat!("testdata/", $name, ".b64")))
        };
    }

    #[test]
    fn an_authority_vouches_for_its_own() {
        let (own, rsa, weak) = (file!("authority"), file!("authority.rsa2048"), file!("authority.rsa1024"));
        let rows = [
            ("by its authority", file!("version1"), &own, Ok(())),
            (
                "by another key of its name",
                file!("version1"),
                &rsa,
                Err(Refusal::InvalidSignatureForPublicKey),
            ),
            (
                "a namesake's",
                file!("version1"),
                &file!("namesake"),
                Err(Refusal::InvalidSignatureForPublicKey),
            ),
            ("by RSA of 2048 bits", file!("version1.rsa2048"), &rsa, Ok(())),
            ("with SHA-1", file!("version1.sha1"), &rsa, Err(Refusal::InvalidSignatureForPublicKey)),
            (
                "by RSA of 1024 bits",
                file!("version1.by-rsa1024"),
                &weak,
                Err(Refusal::InvalidSignatureForPublicKey),
            ),
            (
                "by it with SHA-1",
                file!("version1.by-rsa1024.sha1"),
                &weak,
                Err(Refusal::InvalidSignatureForPublicKey),
            ),
            (
                "of RSA of 1024 bits",
                file!("version1.of-rsa1024"),
                &rsa,
                Err(Refusal::InvalidSignatureForPublicKey),
            ),
        ];
        assert!(!is_old(&own));
        let algorithms = ring::default_provider().signature_verification_algorithms;
        for (what, leaf, root, want) in rows {
            assert!(is_old(&leaf), "{what}");
            assert_eq!(is_signed_by(&leaf, root, algorithms.all), want, "{what}");
        }
    }

    #[test]
    fn it_is_judged_as_others_are() {
        const IN_TIME: u64 = 1_900_000_000_000;
        let algorithms = ring::default_provider().signature_verification_algorithms;
        let pem = |name: &str| format!("-----BEGIN CERTIFICATE-----\n{name}-----END CERTIFICATE-----\n");
        let (own, namesake) =
            (pem(include_str!("testdata/authority.b64")), pem(include_str!("testdata/namesake.b64")));
        let authorities =
            |pem: &str| CertificateAuthority::of_clients(pem, algorithms).expect("certificates");
        let chain = [file!("version1")];
        let both = authorities(&format!("{namesake}{own}"));
        let word = both.judge(&chain, IN_TIME).expect("good");
        assert!(word.holds_at(IN_TIME) && !word.holds_at(1));
        assert_eq!(both.judge(&chain, 1), Ok(word));
        assert!(matches!(both.judge(&chain, 1 << 43), Err(Refusal::CertExpired { .. })));
        assert!(authorities(&own).stands_by(&word) && !authorities(&namesake).stands_by(&word));
        assert!(authorities(&namesake).judge(&chain, IN_TIME).is_err());
    }
}
