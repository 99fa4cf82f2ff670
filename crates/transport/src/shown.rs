//! Which certificate a client is shown: by the name that it asks for, by the address that it came to, or the
//! one for everybody else.
//!
//! In: certificates with their names, and what a client's hello says. Out: one of them. Never: checks that a
//! certificate covers the names that it was given with: who gives them says so.
//!
//! Source: apiserver v0.36.3 `dynamiccertificates/named_certificates.go` and `tlsconfig.go`; Go 1.26
//! `crypto/tls/common.go`.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::server_tls::{TlsError, certified};

/// A certificate for those who ask for one of its names.
#[derive(Clone, PartialEq, Eq)]
pub struct NamedCertificate {
    /// PEM: the certificate, then its chain.
    pub cert_chain: String,
    /// PEM.
    pub key: String,
    /// `api.example.org`; `*.example.org`, for any one label in front; or an address, `10.0.0.1`, for those
    /// who came to it and ask for no name.
    pub names: Vec<String>,
    pub said_by: NamesBy,
}

/// Without the key.
impl fmt::Debug for NamedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedCertificate").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Who says what the names of a certificate are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamesBy {
    /// Whoever gave it. They count before those that others have in them.
    Giver,
    /// The certificate.
    Itself,
}

/// The certificates with names.
#[derive(Debug, Default)]
pub struct Named {
    // Those that have a name which no other has taken, in the order in which they were given.
    certificates: Vec<Arc<CertifiedKey>>,
    // Name or pattern -> who has it.
    by_name: HashMap<String, Arc<CertifiedKey>>,
}

impl Named {
    /// Of those that share a name the first one has it.
    ///
    /// # Errors
    /// [`TlsError`]: one of them cannot be served.
    pub fn new(provider: &CryptoProvider, given: &[NamedCertificate]) -> Result<Named, TlsError> {
        let made: Vec<_> = given
            .iter()
            .map(|one| certified(provider, &one.cert_chain, &one.key).map(Arc::new))
            .collect::<Result<_, _>>()?;
        let mut owners = HashMap::new();
        for said_by in [NamesBy::Giver, NamesBy::Itself] {
            for (at, one) in given.iter().enumerate().filter(|(_, one)| one.said_by == said_by) {
                one.names.iter().for_each(|name| {
                    owners.entry(name.clone()).or_insert(at);
                });
            }
        }
        let shown: BTreeSet<usize> = owners.values().copied().collect();
        let certificates = shown.into_iter().map(|at| made[at].clone()).collect();
        let by_name = owners.into_iter().map(|(name, at)| (name, made[at].clone())).collect();
        Ok(Named { certificates, by_name })
    }

    /// The one for clients that came to `address` and ask for no name.
    pub fn of_address(&self, address: IpAddr) -> Option<&Arc<CertifiedKey>> {
        self.named(&address.to_canonical().to_string())
    }

    /// The one for those who ask for `name`, in lower case: of exactly that name, or of the pattern for it.
    fn of_name(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        self.named(name).or_else(|| match name.split_once('.') {
            _ if name.is_empty() => None,
            Some((_, rest)) => self.named(&format!("*.{rest}")),
            None => self.named("*"),
        })
    }

    fn named(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        self.by_name.get(name)
    }

    fn is_empty(&self) -> bool {
        self.certificates.is_empty()
    }
}

/// What is shown to whom.
#[derive(Debug)]
pub struct ShownCertificates {
    /// To everybody else.
    pub certified: Arc<CertifiedKey>,
    pub named: Arc<Named>,
}

impl ShownCertificates {
    /// Where nobody has the name it is the first one that covers it and that the client can check.
    fn of(&self, name: &str, schemes: &[SignatureScheme]) -> &Arc<CertifiedKey> {
        if self.named.is_empty() {
            return &self.certified;
        }
        if let Some(found) = self.named.of_name(name) {
            return found;
        }
        let mut all = std::iter::once(&self.certified).chain(&self.named.certificates);
        let suits = |one: &&Arc<CertifiedKey>| {
            one.key.choose_scheme(schemes).is_some() && (name.is_empty() || covers(one, name))
        };
        all.find(suits).unwrap_or(&self.certified)
    }
}

impl ResolvesServerCert for ShownCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().unwrap_or_default().to_ascii_lowercase();
        Some(self.of(&name, hello.signature_schemes()).clone())
    }
}

fn covers(certified: &CertifiedKey, name: &str) -> bool {
    let leaf = certified.end_entity_cert().and_then(ParsedCertificate::try_from);
    let name = ServerName::try_from(name);
    leaf.is_ok_and(|leaf| name.is_ok_and(|name| verify_server_name(&leaf, &name).is_ok()))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};
    use rustls::crypto::ring;

    use super::*;

    const BOTH: [SignatureScheme; 2] =
        [SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ECDSA_NISTP384_SHA384];

    /// A certificate that covers `covers`, with a key of P-384 where it says so.
    fn made(covers: &str, is_long: bool) -> (String, String) {
        let algorithm = if is_long { &PKCS_ECDSA_P384_SHA384 } else { &PKCS_ECDSA_P256_SHA256 };
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let names: Vec<_> = covers.split(' ').map(str::to_owned).collect();
        let params = CertificateParams::new(names).expect("parameters");
        (params.self_signed(&key).expect("signed").pem(), key.serialize_pem())
    }

    fn named((cert_chain, key): (String, String), names: &str, said_by: NamesBy) -> NamedCertificate {
        NamedCertificate {
            cert_chain,
            key,
            names: names.split_whitespace().map(str::to_owned).collect(),
            said_by,
        }
    }

    /// What is shown of `given`, by its place; 0 is the one for everybody else.
    struct World(ShownCertificates, Vec<Arc<CertifiedKey>>);

    impl World {
        fn new(others: (String, String), given: &[NamedCertificate]) -> World {
            let provider = ring::default_provider();
            let made = |chain: &str, key: &str| certified(&provider, chain, key).expect("it fits");
            let shown = ShownCertificates {
                certified: Arc::new(made(&others.0, &others.1)),
                named: Arc::new(Named::new(&provider, given).expect("they fit")),
            };
            let all = given.iter().map(|one| Arc::new(made(&one.cert_chain, &one.key)));
            let all = std::iter::once(shown.certified.clone()).chain(all).collect();
            World(shown, all)
        }

        fn place(&self, shown: &CertifiedKey) -> usize {
            let World(_, all) = self;
            all.iter().position(|one| one.cert == shown.cert).expect("one of them")
        }

        fn of(&self, name: &str) -> usize {
            self.place(self.0.of(name, &BOTH))
        }

        fn at(&self, address: [u8; 4]) -> Option<usize> {
            self.0.named.of_address(address.into()).map(|one| self.place(one))
        }
    }

    #[test]
    fn names_go_before_patterns_and_what_was_said_before_what_is_in_certificates() {
        let world = World::new(
            made("a.test", false),
            &[
                named(made("w.test", false), "a.test *.b.test", NamesBy::Itself),
                named(made("x.test", false), "*.b.test c.b.test 10.0.0.1 *", NamesBy::Giver),
                named(made("y.test", false), "c.b.test d.b.test b.test", NamesBy::Giver),
                named(made("z.test", false), "c.b.test", NamesBy::Itself),
            ],
        );
        for (name, want) in [
            // It is in the map, though the other one covers it.
            ("a.test", 1),
            // Said of the second, which goes before what is in the first.
            ("x.b.test", 2),
            ("c.b.test", 2),
            ("d.b.test", 3),
            ("b.test", 3),
            // One label, not two, and not none.
            ("x.x.b.test", 0),
            ("single", 2),
            // In no map: whoever covers it. What has lost all of its names is not among them.
            ("w.test", 1),
            ("y.test", 3),
            ("z.test", 0),
            ("nobody.test", 0),
            ("", 0),
        ] {
            assert_eq!(world.of(name), want, "{name:?}");
        }
        assert_eq!((world.at([10, 0, 0, 1]), world.at([10, 0, 0, 2])), (Some(2), None));
        let mapped = IpAddr::from([0, 0, 0, 0, 0, 0xffff, 0x0a00, 1]);
        assert_eq!(world.0.named.of_address(mapped).map(|one| world.place(one)), Some(2));
    }

    #[test]
    fn who_asks_for_no_name_is_shown_what_it_can_check() {
        let world =
            World::new(made("a.test", false), &[named(made("b.test", true), "b.test", NamesBy::Giver)]);
        let of = |name: &str, scheme: SignatureScheme| world.place(world.0.of(name, &[scheme]));
        let [short, long] = BOTH;
        assert_eq!((of("", short), of("", long)), (0, 1));
        // A name that is there is what is shown.
        assert_eq!((of("b.test", short), of("a.test", long), of("a.test", short)), (1, 0, 0));
    }

    #[test]
    fn a_certificate_without_names_is_shown_to_nobody() {
        let world = World::new(made("a.test", false), &[named(made("b.test", false), "", NamesBy::Itself)]);
        assert!(world.0.named.is_empty());
        assert_eq!(world.of("b.test"), 0);
        let provider = ring::default_provider();
        let (cert, _) = made("a.test", false);
        let unfit = named((cert, made("a.test", false).1), "", NamesBy::Itself);
        assert!(matches!(Named::new(&provider, &[unfit]), Err(TlsError::Serving(_))));
    }
}
