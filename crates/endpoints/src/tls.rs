//! TLS: what is shown to clients, and which certificates of theirs are taken.
//!
//! In: PEM and a policy. Out: transport's TLS, and [`CertificateAuthority`], which judges a client's
//! certificate. The handshake takes any certificate whose key the client has: whether it is trusted is
//! decided for each request, so that an untrusted or expired one is answered 401 and not with a broken
//! connection.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use forebay_auth::FrontProxies;
use forebay_authorities::{AuthorityError, CertificateAuthority, old_certificate};
pub use forebay_transport::TlsError;
use forebay_transport::{NamedCertificate, ServerTls};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, OtherError, SignatureScheme};

use crate::config::Tls;
use crate::limits::{CLIENT_CERTIFICATES_MAX, CLIENT_CHAIN_BYTES_MAX};

/// Why the authorities of client certificates cannot be used.
pub fn no_authority(error: AuthorityError) -> TlsError {
    const WHAT: &str = "client CA";
    match error {
        AuthorityError::Pem(cause) => TlsError::Pem { what: WHAT, cause },
        AuthorityError::Empty => TlsError::Empty { what: WHAT },
        AuthorityError::Unusable(cause) => TlsError::Authority(cause.into()),
    }
}

/// What is shown to clients, and what they are asked for. It may change while the server runs: who comes then
/// gets the new.
pub struct Serving {
    tls: Arc<ServerTls>,
    // Locked for a few lines, by whoever replaces one of them.
    hints: Mutex<Hints>,
}

/// Names of the authorities of clients, and of those of proxies.
#[derive(Clone, Default)]
struct Hints {
    clients: Arc<[DistinguishedName]>,
    proxies: Arc<[DistinguishedName]>,
}

impl Serving {
    /// What is shown at first, and the judges of certificates of clients and of proxies, if there are any.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(tls: &Tls) -> Result<(Serving, Option<CertificateAuthority>, Option<FrontProxies>), TlsError> {
        let algorithms = tls.provider.signature_verification_algorithms;
        let authority = tls.client_ca.as_deref();
        let authority = authority
            .map(|pem| CertificateAuthority::of_clients(pem, algorithms))
            .transpose()
            .map_err(no_authority)?;
        let proxies = tls.front_proxies.as_ref().map(|trust| {
            let authority =
                CertificateAuthority::of_clients(&trust.authorities, algorithms).map_err(no_authority)?;
            Ok::<_, TlsError>(FrontProxies { authority, names: trust.names.clone() })
        });
        let proxies = proxies.transpose()?;
        let of_proxies = proxies.as_ref().map_or_else(Arc::default, |of| of.authority.hints().clone());
        let of_clients = authority.as_ref().map(|authority| authority.hints().clone());
        let asks = of_clients.is_some() || proxies.is_some();
        let hints = joined(&of_clients.unwrap_or_default(), &of_proxies);
        let clients = asks.then(|| TakeAny::of(&hints, algorithms));
        let shown = (tls.cert_chain.as_str(), tls.key.as_str());
        let served = ServerTls::new(tls.provider.clone(), tls.versions, tls.http2, shown, clients)?;
        served.show_named(&tls.named)?;
        let clients = authority.as_ref().map_or_else(Arc::default, |of| of.hints().clone());
        let hints = Mutex::new(Hints { clients, proxies: of_proxies });
        Ok((Serving { tls: Arc::new(served), hints }, authority, proxies))
    }

    /// For connections.
    pub fn tls(&self) -> &Arc<ServerTls> {
        &self.tls
    }

    /// Shows another certificate, with its chain and key in PEM, from now on.
    ///
    /// # Errors
    /// [`TlsError`]; what was shown is shown still.
    pub fn show(&self, cert_chain: &str, key: &str) -> Result<(), TlsError> {
        self.tls.show(cert_chain, key)
    }

    /// Shows these certificates to who asks for one of their names, from now on.
    ///
    /// # Errors
    /// [`TlsError`]; what was shown is shown still.
    pub fn show_named(&self, certificates: &[NamedCertificate]) -> Result<(), TlsError> {
        self.tls.show_named(certificates)
    }

    /// Tells clients that certificates of these authorities are asked for, from now on.
    ///
    /// # Errors
    /// [`TlsError`]; they are told what they were.
    pub fn ask_for(&self, hints: &Arc<[DistinguishedName]>) -> Result<(), TlsError> {
        self.ask(|all| all.clients = hints.clone())
    }

    /// The same of proxies.
    ///
    /// # Errors
    /// [`TlsError`]; they are told what they were.
    pub fn ask_for_proxies(&self, hints: &Arc<[DistinguishedName]>) -> Result<(), TlsError> {
        self.ask(|all| all.proxies = hints.clone())
    }

    fn ask(&self, change: impl FnOnce(&mut Hints)) -> Result<(), TlsError> {
        let mut hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = hints.clone();
        change(&mut next);
        self.tls.ask_for(TakeAny::of(&joined(&next.clients, &next.proxies), self.algorithms()))?;
        *hints = next;
        Ok(())
    }

    /// The algorithms of signatures that are believed.
    pub fn algorithms(&self) -> WebPkiSupportedAlgorithms {
        self.tls.algorithms()
    }
}

/// One after the other.
fn joined(
    clients: &Arc<[DistinguishedName]>,
    proxies: &Arc<[DistinguishedName]>,
) -> Arc<[DistinguishedName]> {
    match proxies.is_empty() {
        true => clients.clone(),
        false => clients.iter().chain(proxies.iter()).cloned().collect(),
    }
}

/// Takes any certificate, and none as well; checks that the client has its key, and that it does not send
/// more than [`CLIENT_CERTIFICATES_MAX`] or [`CLIENT_CHAIN_BYTES_MAX`], which the session would keep.
struct TakeAny {
    algorithms: WebPkiSupportedAlgorithms,
    // Names of authorities.
    hints: Arc<[DistinguishedName]>,
}

impl TakeAny {
    fn of(
        hints: &Arc<[DistinguishedName]>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Arc<dyn ClientCertVerifier> {
        Arc::new(TakeAny { algorithms, hints: hints.clone() })
    }
}

/// A client's certificates are more than are taken.
#[derive(Debug, thiserror::Error)]
#[error("the client sent {count} certificates of {bytes} bytes: more than are taken")]
struct TooMuch {
    count: usize,
    bytes: usize,
}

impl fmt::Debug for TakeAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakeAny").finish_non_exhaustive()
    }
}

impl ClientCertVerifier for TakeAny {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let count = 1 + intermediates.len();
        let bytes = leaf.len() + intermediates.iter().map(|one| one.len()).sum::<usize>();
        if count > CLIENT_CERTIFICATES_MAX || bytes > CLIENT_CHAIN_BYTES_MAX {
            let why = OtherError(Arc::new(TooMuch { count, bytes }));
            return Err(CertificateError::Other(why).into());
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if old_certificate::is_old(cert) {
            return old_certificate::verify_tls12(message, cert, dss, &self.algorithms);
        }
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if old_certificate::is_old(cert) {
            return old_certificate::verify_tls13(message, cert, dss, &self.algorithms);
        }
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use rcgen::{CertificateParams, KeyPair};
    use rustls::client::ResolvesClientCert;
    use rustls::crypto::ring;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::sign::CertifiedKey;
    use rustls::version::{TLS12, TLS13};
    use rustls::{
        ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConnection,
        SupportedProtocolVersion,
    };

    use super::*;
    use crate::config::Http2;

    fn signed(name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_string()]).expect("parameters");
        (params.self_signed(&key).expect("signed").pem(), key.serialize_pem())
    }

    fn ders(pem: &str) -> Vec<CertificateDer<'static>> {
        forebay_transport::certificates("test", pem).expect("certificates")
    }

    fn serving(shown: &(String, String), client_ca: &str) -> Serving {
        let tls = Tls {
            cert_chain: shown.0.clone(),
            key: shown.1.clone(),
            named: Vec::new(),
            client_ca: Some(client_ca.to_string()),
            front_proxies: None,
            provider: ring::default_provider(),
            versions: rustls::ALL_VERSIONS,
            http2: Http2::Enabled,
        };
        Serving::new(&tls).expect("valid").0
    }

    /// Shows its chain whatever it is asked for, and keeps what it is asked for.
    #[derive(Debug)]
    struct Shows(Option<Arc<CertifiedKey>>, Mutex<Vec<Vec<u8>>>);

    impl ResolvesClientCert for Shows {
        fn resolve(&self, hints: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
            *self.1.lock().expect("not poisoned") = hints.iter().map(|hint| hint.to_vec()).collect();
            self.0.clone()
        }

        fn has_certs(&self) -> bool {
            true
        }
    }

    fn shows(chain: Vec<CertificateDer<'static>>, key: &str) -> Arc<Shows> {
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        let key = ring::sign::any_supported_type(&key).expect("supported");
        Arc::new(Shows(Some(Arc::new(CertifiedKey::new(chain, key))), Mutex::default()))
    }

    fn client(
        trusted: &[&str],
        version: &'static SupportedProtocolVersion,
        shows: Arc<Shows>,
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        trusted.iter().flat_map(|pem| ders(pem)).for_each(|der| roots.add(der).expect("a root"));
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .expect("spoken")
            .with_root_certificates(roots)
            .with_client_cert_resolver(shows);
        Arc::new(config)
    }

    type Both = (ClientConnection, ServerConnection);

    /// Sends everything that either side has to say.
    fn exchange((client, server): &mut Both) -> Result<(), rustls::Error> {
        while client.wants_write() || server.wants_write() {
            let mut said = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut said).expect("memory");
            }
            let mut said = said.as_slice();
            while !said.is_empty() {
                server.read_tls(&mut said).expect("memory");
                server.process_new_packets()?;
            }
            let mut said = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut said).expect("memory");
            }
            let mut said = said.as_slice();
            while !said.is_empty() {
                client.read_tls(&mut said).expect("memory");
                client.process_new_packets()?;
            }
        }
        Ok(())
    }

    fn connect(client: &Arc<ClientConfig>, serving: &Serving) -> Result<Both, rustls::Error> {
        let name = "server.test".try_into().expect("a name");
        let client = ClientConnection::new(client.clone(), name).expect("a client");
        let mut both = (client, ServerConnection::new(serving.tls().current()).expect("a server"));
        exchange(&mut both).map(|()| both)
    }

    #[test]
    fn more_certificates_than_are_taken_end_the_handshake() {
        let (own, theirs) = (signed("server.test"), signed("client"));
        let serving = serving(&own, &theirs.0);
        let leaf = ders(&theirs.0).swap_remove(0);
        let with = |more: Vec<Vec<u8>>| {
            let mut chain = vec![leaf.clone()];
            chain.extend(more.into_iter().map(CertificateDer::from));
            chain
        };
        let left = CLIENT_CHAIN_BYTES_MAX - leaf.len();
        let rows = [
            ("its own", with(vec![]), true),
            ("as many as are taken", with(vec![vec![]; CLIENT_CERTIFICATES_MAX - 1]), true),
            ("one more", with(vec![vec![]; CLIENT_CERTIFICATES_MAX]), false),
            ("12,000 empty ones", with(vec![vec![]; 12_000]), false),
            ("as long as are taken", with(vec![vec![0x30; left]]), true),
            ("one byte more", with(vec![vec![0x30; left + 1]]), false),
            ("60 KiB", with(vec![vec![0x30; 60 << 10]]), false),
        ];
        for version in [&TLS12, &TLS13] {
            for (what, chain, want) in &rows {
                let client = client(&[&own.0], version, shows(chain.clone(), &theirs.1));
                let done = connect(&client, &serving);
                match done {
                    Ok((_, server)) => {
                        let kept = server.peer_certificates().map(<[_]>::len);
                        assert!(*want && kept == Some(chain.len()), "{what} {version:?}");
                    }
                    Err(error) => {
                        assert!(!want, "{what} {version:?}: {error}");
                        assert!(error.to_string().contains("TooMuch"), "{what}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_session_outlives_its_connection() {
        let (own, theirs) = (signed("server.test"), signed("client"));
        let serving = serving(&own, &theirs.0);
        for version in [&TLS12, &TLS13] {
            let client = client(&[&own.0], version, shows(ders(&theirs.0), &theirs.1));
            for _ in 0..2 {
                let (client, server) = connect(&client, &serving).expect("a handshake");
                assert_eq!(server.handshake_kind(), Some(HandshakeKind::Full));
                assert_eq!(client.tls13_tickets_received(), 0);
            }
        }
    }

    #[test]
    fn who_comes_later_is_shown_and_asked_for_what_there_is_then() {
        let (first, second) = (signed("server.test"), signed("server.test"));
        let (old, new) = (signed("old"), signed("new"));
        let serving = serving(&first, &old.0);
        let nothing = || Arc::new(Shows(None, Mutex::default()));
        let meet = |shows: Arc<Shows>| {
            connect(&client(&[&first.0, &second.0], &TLS13, shows), &serving).expect("a handshake")
        };
        let shown = |both: &Both| both.0.peer_certificates().expect("shown")[0].clone();
        let asked = nothing();
        let mut early = meet(asked.clone());
        assert_eq!(shown(&early), ders(&first.0)[0]);
        let names = |of: &str| {
            let algorithms = ring::default_provider().signature_verification_algorithms;
            let authority = CertificateAuthority::of_clients(of, algorithms).expect("certificates");
            authority.hints().clone()
        };
        let bytes = |of: &str| names(of).iter().map(|name| name.as_ref().to_vec()).collect::<Vec<_>>();
        assert_eq!(*asked.1.lock().expect("not poisoned"), bytes(&old.0));

        for (cert, key) in [(&second.0, &first.1), (&String::new(), &second.1), (&second.0, &String::new())] {
            assert!(serving.show(cert, key).is_err());
            assert_eq!(shown(&meet(nothing())), ders(&first.0)[0]);
        }
        serving.show(&second.0, &second.1).expect("it fits");
        serving.ask_for(&names(&new.0)).expect("they can be");
        let asked = nothing();
        assert_eq!(shown(&meet(asked.clone())), ders(&second.0)[0]);
        assert_eq!(*asked.1.lock().expect("not poisoned"), bytes(&new.0));

        // Who was there goes on.
        early.0.writer().write_all(b"hello").expect("room");
        exchange(&mut early).expect("heard");
        let mut heard = [0; 5];
        early.1.reader().read_exact(&mut heard).expect("heard");
        assert_eq!(&heard, b"hello");
    }
}
