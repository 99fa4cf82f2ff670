//! Whom TLS believes to be the server that it connects to.
//!
//! In: the certificates that a server shows, and the name that it was asked for by; a configuration of
//! rustls. Out: the same configuration, which believes whom Go's clients believe. Never: the authorities of
//! the system, which are a library's.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, SignatureScheme};

use crate::authority::CertificateAuthority;

/// Servers are believed that `authorities` vouch for, or that show one of these certificates itself, whoever
/// signed it: so do the certificates that tests and tools make for a webhook and hand out as its bundle.
///
/// - `authorities`: of which those that cannot be read are left out.
pub fn believe_servers<'a>(
    config: &mut ClientConfig,
    authorities: impl IntoIterator<Item = CertificateDer<'a>>,
) {
    let algorithms = config.crypto_provider().signature_verification_algorithms;
    let authority = CertificateAuthority::of_servers(authorities, algorithms);
    config.dangerous().set_certificate_verifier(Arc::new(ServerVerifier { authority, algorithms }));
}

#[derive(Debug)]
struct ServerVerifier {
    authority: CertificateAuthority,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        verify_server_name(&ParsedCertificate::try_from(leaf)?, name)?;
        self.authority.judge_at(leaf, between, now).map_err(refusal)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn refusal(why: webpki::Error) -> CertificateError {
    match why {
        webpki::Error::CertExpired { time, not_after } => {
            CertificateError::ExpiredContext { time, not_after }
        }
        webpki::Error::CertNotValidYet { time, not_before } => {
            CertificateError::NotValidYetContext { time, not_before }
        }
        webpki::Error::UnknownIssuer => CertificateError::UnknownIssuer,
        webpki::Error::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        webpki::Error::BadDer | webpki::Error::BadDerTime => CertificateError::BadEncoding,
        other => CertificateError::Other(OtherError(Arc::new(other))),
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::crypto::ring;

    use super::*;
    use crate::words::go_words;

    struct Server {
        params: CertificateParams,
        key: KeyPair,
    }

    impl Server {
        fn new(names: &[&str], is_ca: IsCa) -> Server {
            let names = names.iter().map(ToString::to_string).collect::<Vec<_>>();
            let mut params = CertificateParams::new(names).expect("names");
            params.is_ca = is_ca;
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
            Server { params, key: KeyPair::generate().expect("a key") }
        }

        fn itself(&self) -> CertificateDer<'static> {
            self.params.self_signed(&self.key).expect("signed").der().clone()
        }

        fn signed_by(&self, by: &Server) -> CertificateDer<'static> {
            let issuer = Issuer::from_params(&by.params, &by.key);
            self.params.signed_by(&self.key, &issuer).expect("signed").der().clone()
        }
    }

    /// 2020-07-01, and a year later.
    const IN_TIME: u64 = 1_593_561_600;
    const LATE: u64 = 1_625_097_600;

    /// Why a server is not believed, in Go's words.
    fn refused(bundle: &[CertificateDer<'_>], shown: &CertificateDer<'_>, name: &str, at: u64) -> String {
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let authority = CertificateAuthority::of_servers(bundle.iter().cloned(), algorithms);
        let verifier = ServerVerifier { authority, algorithms };
        let name = ServerName::try_from(name).expect("a name");
        let at = UnixTime::since_unix_epoch(Duration::from_secs(at));
        match verifier.verify_server_cert(shown, &[], &name, &[], at) {
            Ok(_) => String::new(),
            Err(rustls::Error::InvalidCertificate(why)) => go_words(&why),
            Err(other) => other.to_string(),
        }
    }

    #[test]
    fn a_bundle_may_be_the_servers_own_certificate() {
        let root = Server::new(&[], IsCa::Ca(BasicConstraints::Unconstrained));
        let server = Server::new(&["localhost", "127.0.0.1"], IsCa::NoCa).signed_by(&root);
        for name in ["localhost", "127.0.0.1"] {
            assert_eq!(refused(from_ref(&server), &server, name, IN_TIME), "");
            assert_eq!(refused(&[root.itself()], &server, name, IN_TIME), "");
        }
        let other = Server::new(&["localhost"], IsCa::NoCa).itself();
        let unknown = "certificate signed by unknown authority";
        assert_eq!(refused(&[other], &server, "localhost", IN_TIME), unknown);
        assert_eq!(refused(&[], &server, "localhost", IN_TIME), unknown);
        // As `openssl req -x509` makes them.
        let both = Server::new(&["localhost"], IsCa::Ca(BasicConstraints::Unconstrained)).itself();
        assert_eq!(refused(from_ref(&both), &both, "localhost", IN_TIME), "");
        // What cannot be read is left out.
        let broken = CertificateDer::from(vec![1, 2, 3]);
        assert_eq!(refused(&[broken, both.clone()], &both, "localhost", IN_TIME), "");
    }

    #[test]
    fn a_certificate_of_a_bundle_is_held_to_its_names_and_its_time() {
        let names = ["localhost", "*.example.com", "127.0.0.1", "::1"];
        let server = Server::new(&names, IsCa::NoCa).itself();
        let refused = |name, at| refused(from_ref(&server), &server, name, at);
        assert_eq!(refused("a.example.com", IN_TIME), "");
        assert_eq!(refused("::1", IN_TIME), "");
        assert_eq!(refused("other", IN_TIME), "certificate is valid for localhost, *.example.com, not other");
        assert_eq!(refused("10.0.0.1", IN_TIME), "certificate is valid for 127.0.0.1, ::1, not 10.0.0.1");
        assert_eq!(
            refused("localhost", LATE),
            "certificate has expired or is not yet valid: current time 2021-07-01T00:00:00Z is after \
             2021-01-01T00:00:00Z"
        );
        assert_eq!(
            refused("localhost", 0),
            "certificate has expired or is not yet valid: current time 1970-01-01T00:00:00Z is before \
             2020-01-01T00:00:00Z"
        );
    }

    #[test]
    fn who_has_no_names_is_told_so_as_go_says_it() {
        let refused = |names: &[&str], name| {
            let server = Server::new(names, IsCa::NoCa).itself();
            refused(from_ref(&server), &server, name, IN_TIME)
        };
        let none = "certificate is not valid for any names, but wanted to match localhost";
        assert_eq!(refused(&["10.0.0.1"], "localhost"), none);
        let none = "cannot validate certificate for 10.0.0.1 because it doesn't contain any IP SANs";
        assert_eq!(refused(&["localhost"], "10.0.0.1"), none);
        let many: Vec<String> = (0..100).map(|number| format!("a{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(refused(&many, "b"), "certificate is valid for 100 names, but none matched b");
    }
}
