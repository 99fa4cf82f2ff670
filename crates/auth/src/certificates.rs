//! What a client's certificate says of who asks, and the credentials that may change while the server runs.
//!
//! In: the connection's certificates; authorities and tokens. Out: whose a certificate is. It is verified
//! once, by the authorities that there are, and again when those are others; whether it is in its time is
//! asked for each request. Never: decides what the holder may do, keeps a certificate.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use forebay_api::{Authenticated, Authentication, Certificate};
use forebay_apimachinery::Caller;
use forebay_authorities::{CertificateAuthority, Word, parsed};
use forebay_rt::Clock;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use x509_parser::der_parser::{Oid, oid};
use x509_parser::oid_registry::{OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME};

use crate::config::TokenUser;

/// What of a user's attributes says which credential it came with.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// A certificate is no good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unauthorized;

/// What a connection's client has shown, if it has: what was made of it. The certificates are the TLS
/// session's, which keeps them anyhow.
#[derive(Default)]
pub struct Peer(Option<Shown>);

struct Shown {
    credentials: Arc<Credentials>,
    clock: Clock,
    judged: Mutex<Judged>,
    /// When it ends, in seconds since 1970, whoever vouches for it; none if it cannot be read.
    ends: Option<i64>,
}

/// The last verdict on a client's certificate.
struct Judged {
    // By the authorities of which generation.
    by: u64,
    verdict: Verdict,
    // By the authorities of proxies of which generation, and that it is a proxy's, whose word for whom a
    // request is from is taken.
    proxies_by: u64,
    proxy: Option<Word>,
}

#[derive(Clone)]
enum Verdict {
    /// It is somebody's, while the word of its authority holds; `None`: it names nobody, which counts as no
    /// certificate.
    Good(Word, Option<Arc<Caller>>),
    Bad,
}

/// By what clients are known. Each part is replaced whole while the server runs.
#[derive(Default)]
pub struct Credentials {
    authorities: ArcSwapOption<Authorities>,
    // That there have been. The first is 1.
    generations: AtomicU64,
    tokens: ArcSwap<Tokens>,
    proxies: ArcSwapOption<Proxies>,
}

/// The proxies in front of this server that are believed whom a request is from.
pub struct FrontProxies {
    pub authority: CertificateAuthority,
    /// What their certificates are called; any, if there is none.
    pub names: Vec<String>,
}

struct Proxies {
    generation: u64,
    proxies: FrontProxies,
}

struct Authorities {
    generation: u64,
    authority: CertificateAuthority,
}

/// SHA-256 of the token -> user. Looking up a digest takes a time that says nothing about the tokens.
type Tokens = HashMap<[u8; 32], Arc<Caller>>;

impl Peer {
    /// A client that showed `chain`, which is judged now: one that asks for nothing is not kept waiting for
    /// it.
    pub fn new(credentials: &Arc<Credentials>, clock: &Clock, chain: &[CertificateDer<'_>]) -> Peer {
        if chain.is_empty() {
            return Peer::default();
        }
        let (credentials, clock) = (credentials.clone(), clock.clone());
        let leaf = chain.first().and_then(|leaf| parsed(leaf).ok());
        let ends = leaf.map(|leaf| leaf.validity().not_after.timestamp());
        let judged = Mutex::new(Judged::not_yet());
        let peer = Peer(Some(Shown { credentials, clock, judged, ends }));
        peer.look_again(Some(chain));
        peer
    }

    /// Judges anew, if the authorities are others than those that did.
    ///
    /// - `chain`: what was shown.
    pub fn look_again(&self, chain: Option<&[CertificateDer<'_>]>) {
        let Some(Shown { credentials, clock, judged, .. }) = &self.0 else { return };
        self.look_for_proxy(chain);
        let authorities = credentials.authorities.load();
        let Some(Authorities { generation, authority }) = authorities.as_deref() else { return };
        // Only who reads the connection comes here: nobody else has judged in between.
        let lock = || judged.lock().unwrap_or_else(PoisonError::into_inner);
        if lock().by != *generation {
            let verdict = judge(authority, chain.unwrap_or_default(), clock.unix_ms());
            let mut judged = lock();
            (judged.by, judged.verdict) = (*generation, verdict);
        }
    }

    /// The same of whether it is a proxy's.
    fn look_for_proxy(&self, chain: Option<&[CertificateDer<'_>]>) {
        let Some(Shown { credentials, clock, judged, .. }) = &self.0 else { return };
        let proxies = credentials.proxies.load();
        let Some(Proxies { generation, proxies }) = proxies.as_deref() else { return };
        let lock = || judged.lock().unwrap_or_else(PoisonError::into_inner);
        if lock().proxies_by != *generation {
            let proxy = proxies.word_for(chain.unwrap_or_default(), clock.unix_ms());
            let mut judged = lock();
            (judged.proxies_by, judged.proxy) = (*generation, proxy);
        }
    }

    /// Whether it is a proxy that is believed whom its requests are from.
    pub fn is_front_proxy(&self) -> bool {
        let Some(Shown { credentials, clock, judged, .. }) = &self.0 else { return false };
        let proxies = credentials.proxies.load();
        let Some(Proxies { generation, proxies }) = proxies.as_deref() else { return false };
        let judged = judged.lock().unwrap_or_else(PoisonError::into_inner);
        // Where others judged, and the certificate was not looked at since: they have to agree.
        judged.proxy.as_ref().is_some_and(|word| {
            let stands = judged.proxies_by == *generation || proxies.authority.stands_by(word);
            stands && word.holds_at(clock.unix_ms())
        })
    }

    /// For how many seconds more its certificate is good; negative if it was. None if it showed none, or
    /// nobody looks at it.
    pub fn seconds_left(&self) -> Option<i64> {
        let Shown { credentials, clock, ends, .. } = self.0.as_ref()?;
        let _looked_at = credentials.authorities.load().as_deref()?;
        let now = i64::try_from(clock.unix_ms() / 1000).unwrap_or(i64::MAX);
        Some(ends.as_ref()? - now)
    }

    /// Whom its certificate names, or nobody; `None` when it showed none.
    ///
    /// # Errors
    /// The certificate is no good.
    fn named(&self) -> Option<Result<Option<Arc<Caller>>, Unauthorized>> {
        let Shown { credentials, clock, judged, .. } = self.0.as_ref()?;
        let authorities = credentials.authorities.load();
        let authorities = authorities.as_deref()?;
        let judged = judged.lock().unwrap_or_else(PoisonError::into_inner);
        Some(match &judged.verdict {
            Verdict::Good(word, caller) if word.holds_at(clock.unix_ms()) => {
                // Where others judged, and the certificate was not looked at since: they have to agree.
                let stands = judged.by == authorities.generation || authorities.authority.stands_by(word);
                if stands { Ok(caller.clone()) } else { Err(Unauthorized) }
            }
            Verdict::Good(..) | Verdict::Bad => Err(Unauthorized),
        })
    }
}

impl Credentials {
    pub fn new(authority: Option<CertificateAuthority>, tokens: &[TokenUser]) -> Credentials {
        let credentials = Credentials::default();
        if let Some(authority) = authority {
            credentials.believe(authority);
        }
        credentials.know(tokens);
        credentials
    }

    /// From now on certificates are judged by `authority`: those of connections that are there with what is
    /// read of them next.
    pub fn believe(&self, authority: CertificateAuthority) {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        self.authorities.store(Some(Arc::new(Authorities { generation, authority })));
    }

    /// From now on these proxies are believed whom a request is from: on connections that are there with
    /// what is read of them next.
    pub fn believe_proxies(&self, proxies: FrontProxies) {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        self.proxies.store(Some(Arc::new(Proxies { generation, proxies })));
    }

    /// The user of a token.
    pub fn user_of(&self, token: &[u8]) -> Option<Arc<Caller>> {
        self.tokens.load().get(<[u8; 32]>::from(Sha256::digest(token)).as_slice()).cloned()
    }

    /// From now on tokens are those of `users`.
    pub fn know(&self, users: &[TokenUser]) {
        let known = |user: &TokenUser| {
            let caller = Caller {
                name: user.user.clone(),
                uid: user.uid.clone(),
                groups: user.groups.clone(),
                ..Caller::default()
            };
            (Sha256::digest(user.token.as_bytes()).into(), Arc::new(caller.authenticated()))
        };
        self.tokens.store(Arc::new(users.iter().map(known).collect()));
    }
}

impl Judged {
    fn not_yet() -> Judged {
        // No generation has this number.
        Judged { by: 0, verdict: Verdict::Bad, proxies_by: 0, proxy: None }
    }
}

impl Certificate for Peer {
    fn holder(&self) -> Authentication {
        match self.named() {
            Some(Ok(Some(caller))) => Authentication::Known(Authenticated { caller, audiences: Vec::new() }),
            Some(Err(Unauthorized)) => Authentication::Refused("the client's certificate is no good".into()),
            Some(Ok(None)) | None => Authentication::NoOpinion,
        }
    }
}

impl FrontProxies {
    fn word_for(&self, chain: &[CertificateDer<'_>], unix_ms: u64) -> Option<Word> {
        let word = self.authority.judge(chain, unix_ms).ok()?;
        let Subject { name, .. } = Subject::of(chain.first()?).ok()?;
        (self.names.is_empty() || self.names.contains(&name)).then_some(word)
    }
}

fn judge(authority: &CertificateAuthority, chain: &[CertificateDer<'_>], unix_ms: u64) -> Verdict {
    let word = match authority.judge(chain, unix_ms) {
        Ok(word) => word,
        Err(error) => {
            tracing::debug!(%error, "client certificate refused");
            return Verdict::Bad;
        }
    };
    let Some(leaf) = chain.first() else { return Verdict::Bad };
    let Ok(Subject { name, groups, uids }) = Subject::of(leaf) else {
        tracing::debug!("a client certificate's subject cannot be read");
        return Verdict::Bad;
    };
    if name.is_empty() {
        return Verdict::Good(word, None);
    }
    let uid = match <[String; 1]>::try_from(uids) {
        Ok([uid]) if !uid.is_empty() => uid,
        Err(none) if none.is_empty() => String::new(),
        // Several, or one that says nothing.
        _ => return Verdict::Bad,
    };
    let digest: String = Sha256::digest(leaf).iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = [(CREDENTIAL_ID.to_string(), vec![format!("X509SHA256={digest}")])].into();
    Verdict::Good(word, Some(Arc::new(Caller { name, uid, groups, extra }.authenticated())))
}

/// What of a certificate's subject counts.
struct Subject {
    // The last one, as Go has it.
    name: String,
    groups: Vec<String>,
    uids: Vec<String>,
}

impl Subject {
    /// # Errors
    /// Some of it cannot be read: what Go does not read is no certificate there.
    fn of(leaf: &CertificateDer<'_>) -> Result<Subject, Unauthorized> {
        let uid: Oid<'static> = oid!(1.3.6.1.4.1.57683.2);
        let leaf = parsed(leaf).map_err(|_| Unauthorized)?;
        let mut subject = Subject { name: String::new(), groups: Vec::new(), uids: Vec::new() };
        for (kind, text) in forebay_certificate_names::attributes(leaf.subject()) {
            let text = text.ok().flatten().ok_or(Unauthorized)?;
            if *kind == OID_X509_COMMON_NAME {
                subject.name = text;
            } else if *kind == OID_X509_ORGANIZATION_NAME {
                subject.groups.push(text);
            } else if *kind == uid {
                subject.uids.push(text);
            }
        }
        Ok(subject)
    }
}

#[cfg(test)]
mod tests {
    use forebay_fuzz::{Corpus, gist, run};
    use forebay_rt::ManualClock;
    use rcgen::{
        BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue, IsCa, Issuer, KeyPair,
    };
    use rustls::crypto::ring;

    use super::*;

    const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;
    const UID: DnType = DnType::CustomDnType(Vec::new());

    struct Authority(Issuer<'static, KeyPair>, String);

    impl Authority {
        fn new(name: &str) -> Authority {
            let mut params = CertificateParams::default();
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().expect("a key");
            let pem = params.self_signed(&key).expect("signed").pem();
            Authority(Issuer::new(params, key), pem)
        }

        /// A certificate for 2020 to 2040, as `(from, until)` say.
        fn signs(
            &self,
            subject: Vec<(DnType, DnValue)>,
            (from, until): (i32, i32),
        ) -> CertificateDer<'static> {
            let mut params = CertificateParams::default();
            params.distinguished_name = DistinguishedName::new();
            for (kind, text) in subject {
                let uid = || DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
                params.distinguished_name.push(if kind == UID { uid() } else { kind }, text);
            }
            params.not_before = rcgen::date_time_ymd(from, 1, 1);
            params.not_after = rcgen::date_time_ymd(until, 1, 1);
            let key = KeyPair::generate().expect("a key");
            params.signed_by(&key, &self.0).expect("signed").der().clone()
        }
    }

    fn believing(authorities: &[&Authority]) -> CertificateAuthority {
        let pem: String = authorities.iter().map(|authority| authority.1.as_str()).collect();
        let algorithms = ring::default_provider().signature_verification_algorithms;
        CertificateAuthority::of_clients(&pem, algorithms).expect("certificates")
    }

    fn peer(credentials: &Arc<Credentials>, clock: &Clock, chain: &[CertificateDer<'_>]) -> Peer {
        let judged = Mutex::new(Judged::not_yet());
        let peer =
            Peer(Some(Shown { credentials: credentials.clone(), clock: clock.clone(), judged, ends: None }));
        peer.look_again(Some(chain));
        peer
    }

    /// In 2030, or so.
    fn clock() -> (Clock, ManualClock) {
        Clock::manual(60 * YEAR_MS + YEAR_MS / 2)
    }

    /// Whom a peer is.
    fn who(peer: &Peer) -> String {
        match peer.named() {
            None => "nobody".into(),
            Some(Err(Unauthorized)) => "401".into(),
            Some(Ok(None)) => "anonymous".into(),
            Some(Ok(Some(caller))) => {
                format!("{} {} {:?}", caller.name, caller.groups.join(","), caller.uid)
            }
        }
    }

    fn alice() -> Vec<(DnType, DnValue)> {
        vec![(DnType::CommonName, "alice".into())]
    }

    const ALICE: &str = "alice system:authenticated \"\"";

    #[test]
    fn who_an_authority_vouched_for_loses_with_it_and_wins_with_another() {
        let (one, other) = (Authority::new("one"), Authority::new("other"));
        let chain = [one.signs(alice(), (2020, 2040))];
        let credentials = Arc::new(Credentials::new(Some(believing(&[&one])), &[]));
        let (clock, _) = clock();
        let peer = peer(&credentials, &clock, &chain);
        assert_eq!(who(&peer), ALICE);
        credentials.believe(believing(&[&other, &one]));
        assert_eq!(who(&peer), ALICE, "before anything more is read of it");
        peer.look_again(Some(&chain));
        assert_eq!(who(&peer), ALICE);
        credentials.believe(believing(&[&other]));
        assert_eq!(who(&peer), "401", "before anything more is read of it");
        peer.look_again(Some(&chain));
        assert_eq!(who(&peer), "401");
        credentials.believe(believing(&[&one]));
        peer.look_again(Some(&chain));
        assert_eq!(who(&peer), ALICE);
        assert_eq!(who(&Peer::default()), "nobody");
    }

    #[test]
    fn a_proxy_is_believed_as_long_as_its_authority_is() {
        let (one, other) = (Authority::new("one"), Authority::new("other"));
        let chain = [one.signs(alice(), (2020, 2040))];
        let proxies = |of: &Authority, names: &[&str]| FrontProxies {
            authority: believing(&[of]),
            names: names.iter().map(|name| (*name).to_string()).collect(),
        };
        let credentials = Arc::new(Credentials::new(Some(believing(&[&other])), &[]));
        let (clock, hand) = clock();
        let peer = peer(&credentials, &clock, &chain);
        assert!(!peer.is_front_proxy());
        credentials.believe_proxies(proxies(&one, &["alice"]));
        assert!(!peer.is_front_proxy(), "it was not looked at since");
        peer.look_again(Some(&chain));
        assert!(peer.is_front_proxy());
        credentials.believe_proxies(proxies(&other, &["alice"]));
        assert!(!peer.is_front_proxy(), "before anything more is read of it");
        credentials.believe_proxies(proxies(&one, &["bob"]));
        peer.look_again(Some(&chain));
        assert!(!peer.is_front_proxy(), "it is called otherwise");
        credentials.believe_proxies(proxies(&one, &[]));
        peer.look_again(Some(&chain));
        assert!(peer.is_front_proxy());
        hand.advance_ms(20 * YEAR_MS);
        assert!(!peer.is_front_proxy(), "its time is over");
    }

    #[test]
    fn a_certificate_is_good_in_its_time_and_not_before_or_after() {
        let one = Authority::new("one");
        let credentials = Arc::new(Credentials::new(Some(believing(&[&one])), &[]));
        let (clock, hand) = clock();
        let ends = peer(&credentials, &clock, &[one.signs(alice(), (2020, 2032))]);
        let begins = peer(&credentials, &clock, &[one.signs(alice(), (2032, 2034))]);
        let over = peer(&credentials, &clock, &[one.signs(alice(), (2020, 2029))]);
        let who = || [&ends, &begins, &over].map(who);
        assert_eq!(who(), [ALICE, "401", "401"]);
        hand.advance_ms(2 * YEAR_MS);
        assert_eq!(who(), ["401", ALICE, "401"]);
        hand.advance_ms(2 * YEAR_MS);
        assert_eq!(who(), ["401", "401", "401"]);
    }

    #[test]
    fn a_subject_means_what_go_reads_whatever_its_strings_are() {
        let one = Authority::new("one");
        let credentials = Arc::new(Credentials::new(Some(believing(&[&one])), &[]));
        let (clock, _) = clock();
        let check = |subject: Vec<(DnType, DnValue)>, want: &str| {
            let shown = format!("{subject:?}");
            assert_eq!(
                who(&peer(&credentials, &clock, &[one.signs(subject, (2020, 2040))])),
                want,
                "{shown}"
            );
        };
        let types = |text: &str| {
            [
                DnValue::Utf8String(text.into()),
                DnValue::PrintableString(text.try_into().expect("printable")),
                DnValue::Ia5String(text.try_into().expect("ASCII")),
                DnValue::TeletexString(text.try_into().expect("ASCII")),
                DnValue::BmpString(text.try_into().expect("of one plane")),
            ]
        };
        for (name, group) in types("eve").into_iter().zip(types("devs")) {
            let subject = vec![(DnType::OrganizationName, group), (DnType::CommonName, name)];
            check(subject, "eve devs,system:authenticated \"\"");
        }
        let universal = || DnValue::UniversalString("devs".try_into().expect("UTF-32"));
        check(vec![(DnType::CommonName, "eve".into()), (DnType::OrganizationName, universal())], "401");
        check(vec![(DnType::CommonName, universal())], "401");
        check(vec![(DnType::OrganizationName, "devs".into())], "anonymous");
        for (uid, want) in [("7", "alice system:authenticated \"7\""), ("", "401")] {
            check(vec![(DnType::CommonName, "alice".into()), (UID, uid.into())], want);
        }
    }

    #[test]
    fn fuzz_client_certificates() {
        use base64::Engine as _;
        let der = |text: &str| {
            let text: String = text.split_whitespace().collect();
            base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
        };
        let own = include_str!("../../authorities/src/testdata/authority.b64");
        let pem = format!("-----BEGIN CERTIFICATE-----\n{own}-----END CERTIFICATE-----\n");
        let algorithms = ring::default_provider().signature_verification_algorithms;
        let authority = CertificateAuthority::of_clients(&pem, algorithms).expect("certificates");
        let (good, own) = (der(include_str!("../../authorities/src/testdata/version1.b64")), der(own));
        let others = [
            include_str!("../../authorities/src/testdata/version1.rsa2048.b64"),
            include_str!("../../authorities/src/testdata/authority.rsa2048.b64"),
        ]
        .map(der);
        let signed =
            parsed(&CertificateDer::from(good.as_slice())).expect("read").tbs_certificate.as_ref().to_vec();
        let corpus = Corpus { inputs: &[&good, &own, &others[0], &others[1]], ..Corpus::default() };
        run("client certificates", &corpus, |input| {
            let leaf = CertificateDer::from(input);
            // As what stands between, too.
            let chain = [leaf.clone(), CertificateDer::from(own.as_slice()), leaf.clone()];
            let verdict = authority.judge(&chain, 1_900_000_000_000);
            if verdict.is_ok() {
                let has_what_was_signed = input.windows(signed.len()).any(|part| part == signed);
                assert!(has_what_was_signed || input == own.as_slice(), "nobody signed this");
            }
            let subject = Subject::of(&leaf).map(|subject| (subject.name, subject.groups, subject.uids));
            (verdict.map(drop).map_err(gist), subject.map_err(drop))
        });
    }
}
