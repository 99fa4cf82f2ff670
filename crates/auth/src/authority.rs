//! Who vouches for clients: the authorities of their certificates, and what one vouches for.
//!
//! In: authorities in PEM; a client's certificates. Out: a [`Word`]: which authority, and from when until
//! when its word holds, so that nobody has to keep the certificates, nor to verify them again, to know
//! whether it still does. webpki finds the path and verifies it; what Go asks of a path besides, webpki
//! leaves to us: that the authority itself is in its time, is one, may sign, is for clients, has no more
//! below it than it allows; and that those between may sign.
//!
//! Source: Go 1.26 `crypto/x509/{verify,x509}.go` (`isValid`, `CheckSignatureFrom`, `checkChainForKeyUsage`).

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use rustls::DistinguishedName;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use sha2::{Digest, Sha256};
use webpki::{
    EndEntityCert, Error, ExtendedKeyUsageValidator, KeyPurposeId, KeyPurposeIdIter,
    RequiredEkuNotFoundContext, VerifiedPath,
};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use crate::limits::CLIENT_PATH_STEPS_MAX;
use crate::old_certificate;

/// Judges client certificates.
pub struct ClientAuthority {
    algorithms: WebPkiSupportedAlgorithms,
    // Those that may vouch, and at the same places what webpki knows of them.
    roots: Vec<Root>,
    anchors: Vec<TrustAnchor<'static>>,
    hints: Arc<[DistinguishedName]>,
}

struct Root {
    der: CertificateDer<'static>,
    digest: [u8; 32],
    validity: Validity,
    // Authorities that there may be below it.
    below_max: Option<u32>,
}

/// An authority's word for a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    // When everything on the path is valid.
    validity: Validity,
    // Of the authority's certificate.
    root: [u8; 32],
}

/// Seconds since 1970, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    from: i64,
    until: i64,
}

/// Why authorities cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("the text is not valid PEM")]
    Pem(#[source] pem::Error),
    #[error("the text holds no certificate")]
    Empty,
    #[error("one of the certificates cannot be used")]
    Unusable(#[source] Error),
}

/// Why an authority's certificate vouches for nobody.
type Unfit = &'static str;

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(AuthorityError::Empty),
        read => read.map_err(AuthorityError::Pem),
    }
}

impl ClientAuthority {
    /// The authorities of a PEM text. One that may not vouch is left out, with a line in the log.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn from_pem(
        pem: &str,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<ClientAuthority, AuthorityError> {
        let (mut roots, mut anchors, mut hints) = (Vec::new(), Vec::new(), Vec::new());
        for der in certificates(pem)? {
            let anchor = webpki::anchor_from_trusted_cert(&der);
            let anchor = anchor.map_err(AuthorityError::Unusable)?.to_owned();
            let certificate = parsed(&der).map_err(AuthorityError::Unusable)?;
            hints.push(DistinguishedName::in_sequence(&anchor.subject));
            match below_max(&certificate) {
                Ok(below_max) => {
                    let (digest, validity) = (Sha256::digest(&der).into(), Validity::of(&certificate));
                    anchors.push(anchor);
                    roots.push(Root { digest, validity, below_max, der: der.clone() });
                }
                Err(why) => {
                    let subject = certificate.subject().to_string();
                    tracing::warn!(subject, why, "an authority of client certificates vouches for nobody");
                }
            }
        }
        Ok(ClientAuthority { algorithms, roots, anchors, hints: hints.into() })
    }

    /// The names that clients are told.
    pub fn hints(&self) -> &Arc<[DistinguishedName]> {
        &self.hints
    }

    /// The word for `chain`, the client's certificate first, to be used as a client. It may be one that holds
    /// only later than at `unix_ms`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn judge(&self, chain: &[CertificateDer<'_>], unix_ms: u64) -> Result<Word, Error> {
        // Early ones are judged when they begin: once for the client's, once for another one on the path.
        const EARLY_MAX: usize = 2;
        let mut at = UnixTime::since_unix_epoch(Duration::from_millis(unix_ms));
        for _ in 0..EARLY_MAX {
            match self.judge_at(chain, at) {
                Err(Error::CertNotValidYet { not_before, .. }) => at = not_before,
                judged => return judged,
            }
        }
        self.judge_at(chain, at)
    }

    fn judge_at(&self, chain: &[CertificateDer<'_>], at: UnixTime) -> Result<Word, Error> {
        let (leaf, between) = chain.split_first().ok_or(Error::BadDer)?;
        if old_certificate::is_old(leaf) {
            return self.judge_old(leaf, at);
        }
        let own = Validity::of(&parsed(leaf)?);
        let leaf = EndEntityCert::try_from(leaf)?;
        let usage = ForClients { steps_left: Cell::new(CLIENT_PATH_STEPS_MAX) };
        let verify = |path: &VerifiedPath<'_>| self.word(own, path, at).map(drop);
        let path = leaf.verify_for_usage(
            self.algorithms.all,
            &self.anchors,
            between,
            at,
            usage,
            None,
            Some(&verify),
        )?;
        self.word(own, &path, at)
    }

    /// The word of a path whose signatures, names and uses are good.
    ///
    /// - `own`: of the client's certificate.
    fn word(&self, own: Validity, path: &VerifiedPath<'_>, at: UnixTime) -> Result<Word, Error> {
        let root = self.anchors.iter().position(|anchor| std::ptr::eq(anchor, path.anchor()));
        let root = &self.roots[root.ok_or(Error::UnknownIssuer)?];
        root.validity.check(at)?;
        let (mut validity, mut below) = (own.and(root.validity), 0);
        for between in path.intermediate_certificates() {
            let der = between.der();
            let between = parsed(&der)?;
            may_sign(&between).map_err(|_| Error::EndEntityUsedAsCa)?;
            validity = validity.and(Validity::of(&between));
            below += 1;
        }
        if root.below_max.is_some_and(|max| below > max) {
            return Err(Error::PathLenConstraintViolated);
        }
        Ok(Word { validity, root: root.digest })
    }

    fn judge_old(&self, leaf: &CertificateDer<'_>, at: UnixTime) -> Result<Word, Error> {
        let own = Validity::of(&parsed(leaf)?);
        own.check(at)?;
        let mut why = Error::UnknownIssuer;
        for root in &self.roots {
            let signed = old_certificate::is_signed_by(leaf, &root.der, self.algorithms.all);
            match signed.and_then(|()| root.validity.check(at)) {
                Ok(()) => return Ok(Word { validity: own.and(root.validity), root: root.digest }),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Whether the authority that gave `word` is among these.
    pub fn stands_by(&self, word: &Word) -> bool {
        self.roots.iter().any(|root| root.digest == word.root)
    }
}

impl Word {
    /// Whether it holds at a time.
    pub fn holds_at(&self, unix_ms: u64) -> bool {
        let Validity { from, until } = self.validity;
        let ms = |seconds: i64| i128::from(seconds) * 1000;
        (ms(from)..=ms(until)).contains(&i128::from(unix_ms))
    }
}

impl Validity {
    fn of(certificate: &X509Certificate<'_>) -> Validity {
        let validity = certificate.validity();
        Validity { from: validity.not_before.timestamp(), until: validity.not_after.timestamp() }
    }

    fn and(self, other: Validity) -> Validity {
        Validity { from: self.from.max(other.from), until: self.until.min(other.until) }
    }

    fn check(self, time: UnixTime) -> Result<(), Error> {
        let unix = |seconds: i64| {
            UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
        };
        let (not_before, not_after) = (unix(self.from), unix(self.until));
        if time < not_before {
            return Err(Error::CertNotValidYet { time, not_before });
        }
        if time > not_after {
            return Err(Error::CertExpired { time, not_after });
        }
        Ok(())
    }
}

/// What a certificate on a path is to be for: clients, or everything, or it does not say. It is asked for
/// each certificate with which webpki goes on, and so knows how long it has been looking.
struct ForClients {
    steps_left: Cell<usize>,
}

impl ExtendedKeyUsageValidator for ForClients {
    fn validate(&self, mut uses: KeyPurposeIdIter<'_, '_>) -> Result<(), Error> {
        const CLIENT: KeyPurposeId<'_> = KeyPurposeId::new(&[0x2b, 6, 1, 5, 5, 7, 3, 2]);
        const ANY: KeyPurposeId<'_> = KeyPurposeId::new(&[0x55, 0x1d, 0x25, 0]);
        let left = self.steps_left.get().checked_sub(1).ok_or(Error::MaximumPathBuildCallsExceeded)?;
        self.steps_left.set(left);
        let Some(first) = uses.next() else { return Ok(()) };
        for one in std::iter::once(first).chain(uses) {
            if [CLIENT, ANY].contains(&one?) {
                return Ok(());
            }
        }
        let required = webpki::KeyUsage::client_auth();
        Err(Error::RequiredEkuNotFoundContext(RequiredEkuNotFoundContext { required, present: Vec::new() }))
    }
}

/// A certificate's fields.
///
/// # Errors
/// It cannot be read.
pub fn parsed<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, Error> {
    match X509Certificate::from_der(der) {
        Ok(([], parsed)) => Ok(parsed),
        _ => Err(Error::BadDer),
    }
}

/// Authorities that there may be below this one; `None` is no limit.
///
/// # Errors
/// Why it may not vouch for clients.
fn below_max(certificate: &X509Certificate<'_>) -> Result<Option<u32>, Unfit> {
    const UNREADABLE: Unfit = "its extensions cannot be read";
    let constraints = certificate.basic_constraints().map_err(|_| UNREADABLE)?.map(|found| found.value);
    match constraints {
        Some(constraints) if !constraints.ca => return Err("it is not the certificate of an authority"),
        None if certificate.version() == X509Version::V3 => {
            return Err("it does not say that it is the certificate of an authority");
        }
        _ => {}
    }
    may_sign(certificate)?;
    if let Some(uses) = certificate.extended_key_usage().map_err(|_| UNREADABLE)?
        && !uses.value.any
        && !uses.value.client_auth
    {
        return Err("it is for other uses than those of clients");
    }
    let is_unknown = |oid: &str| !KNOWN.contains(&oid);
    if certificate.extensions().iter().any(|one| one.critical && is_unknown(&one.oid.to_id_string())) {
        return Err("it has a critical extension that is not known");
    }
    Ok(constraints.and_then(|constraints| constraints.path_len_constraint))
}

/// Extensions whose being critical is no obstacle: those that Go knows.
const KNOWN: [&str; 12] = [
    "2.5.29.14",
    "2.5.29.15",
    "2.5.29.17",
    "2.5.29.19",
    "2.5.29.30",
    "2.5.29.31",
    "2.5.29.32",
    "2.5.29.33",
    "2.5.29.35",
    "2.5.29.36",
    "2.5.29.37",
    "2.5.29.54",
];

/// # Errors
/// It says what its key is for, and that is not certificates.
fn may_sign(certificate: &X509Certificate<'_>) -> Result<(), Unfit> {
    match certificate.key_usage() {
        Ok(Some(usage)) if usage.value.flags != 0 && !usage.value.key_cert_sign() => {
            Err("its key is not for signing certificates")
        }
        Ok(_) => Ok(()),
        Err(_) => Err("its extensions cannot be read"),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
        KeyUsagePurpose,
    };
    use rustls::crypto::ring;

    use super::*;

    /// A key, and what it is certified as.
    struct Party {
        params: CertificateParams,
        key: KeyPair,
    }

    impl Party {
        /// Valid in all years of these tests.
        fn new(name: &str) -> Party {
            let mut params = CertificateParams::default();
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, name);
            Party { params, key: KeyPair::generate().expect("a key") }.valid(2000, 2090)
        }

        fn authority(name: &str) -> Party {
            Party::new(name).with(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))
        }

        fn valid(self, from: i32, until: i32) -> Party {
            self.with(|params| {
                params.not_before = rcgen::date_time_ymd(from, 1, 1);
                params.not_after = rcgen::date_time_ymd(until, 1, 1);
            })
        }

        fn with(mut self, change: impl FnOnce(&mut CertificateParams)) -> Party {
            change(&mut self.params);
            self
        }

        fn pem(&self) -> String {
            self.params.self_signed(&self.key).expect("signed").pem()
        }

        fn signed_by(&self, authority: &Party) -> CertificateDer<'static> {
            let issuer = Issuer::from_params(&authority.params, &authority.key);
            self.params.signed_by(&self.key, &issuer).expect("signed").der().clone()
        }
    }

    fn authorities(of: &[&Party]) -> ClientAuthority {
        let pem: String = of.iter().map(|party| party.pem()).collect();
        let algorithms = ring::default_provider().signature_verification_algorithms;
        ClientAuthority::from_pem(&pem, algorithms).expect("certificates")
    }

    /// The first moment of a year.
    fn year(year: i16) -> u64 {
        let first = jiff::civil::date(year, 1, 1).to_zoned(jiff::tz::TimeZone::UTC).expect("a time");
        first.timestamp().as_millisecond() as u64
    }

    /// Whether a client that `authority` has signed is believed in 2030.
    fn is_believed(authority: &Party) -> bool {
        let chain = [Party::new("client").signed_by(authority)];
        authorities(&[authority]).judge(&chain, year(2030)).is_ok_and(|word| word.holds_at(year(2030)))
    }

    #[test]
    fn an_authority_that_is_out_of_its_time_vouches_for_nobody() {
        assert!(is_believed(&Party::authority("ca")));
        assert!(!is_believed(&Party::authority("ca").valid(2000, 2029)));
        assert!(!is_believed(&Party::authority("ca").valid(2031, 2090)));
        let (old, new) = (Party::authority("ca").valid(2000, 2029), Party::authority("ca"));
        // Of two of one name and key the one that is in its time counts.
        let new = Party { key: KeyPair::from_pem(&old.key.serialize_pem()).expect("a key"), ..new };
        let chain = [Party::new("client").signed_by(&old)];
        assert!(authorities(&[&old]).judge(&chain, year(2030)).is_err());
        assert!(authorities(&[&old, &new]).judge(&chain, year(2030)).is_ok());
        assert!(authorities(&[&new, &old]).judge(&chain, year(2030)).is_ok());
    }

    #[test]
    fn what_is_no_authority_vouches_for_nobody() {
        use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
        use KeyUsagePurpose::{CrlSign, KeyCertSign};
        for (is_ca, want) in [
            (IsCa::NoCa, false),
            (IsCa::ExplicitNoCa, false),
            (IsCa::Ca(BasicConstraints::Constrained(0)), true),
        ] {
            let authority = Party::authority("ca").with(|params| params.is_ca = is_ca);
            assert_eq!(is_believed(&authority), want);
        }
        for (usages, want) in [(vec![KeyCertSign, CrlSign], true), (vec![CrlSign], false)] {
            let authority = Party::authority("ca").with(|params| params.key_usages = usages);
            assert_eq!(is_believed(&authority), want);
        }
        for (uses, want) in
            [(vec![ServerAuth], false), (vec![ServerAuth, ClientAuth], true), (vec![Any], true)]
        {
            let authority = Party::authority("ca").with(|params| params.extended_key_usages = uses);
            assert_eq!(is_believed(&authority), want);
        }
        for (is_critical, want) in [(true, false), (false, true)] {
            let mut unknown = rcgen::CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
            unknown.set_criticality(is_critical);
            let authority = Party::authority("ca").with(|params| params.custom_extensions.push(unknown));
            assert_eq!(is_believed(&authority), want);
        }
        // What such a text holds otherwise counts all the same.
        let (good, bad) = (Party::authority("good"), Party::authority("bad").valid(2000, 2029));
        let none = Party::new("none");
        let all = authorities(&[&none, &bad, &good]);
        assert_eq!(all.hints().len(), 3);
        for (by, want) in [(&none, false), (&bad, false), (&good, true)] {
            assert_eq!(all.judge(&[Party::new("client").signed_by(by)], year(2030)).is_ok(), want);
        }
    }

    #[test]
    fn those_between_are_held_to_what_they_and_the_authority_allow() {
        let limited = |max| {
            Party::authority("ca").with(|params| params.is_ca = IsCa::Ca(BasicConstraints::Constrained(max)))
        };
        let (first, second) = (Party::authority("first"), Party::authority("second"));
        let chain = |root: &Party| {
            [Party::new("client").signed_by(&second), second.signed_by(&first), first.signed_by(root)]
        };
        for (max, want) in [(0, false), (1, false), (2, true)] {
            let root = limited(max);
            assert_eq!(authorities(&[&root]).judge(&chain(&root), year(2030)).is_ok(), want, "{max}");
        }
        let root = limited(0);
        assert!(is_believed(&root));
        let root = Party::authority("ca");
        let mute = Party::authority("mute").with(|params| params.key_usages = vec![KeyUsagePurpose::CrlSign]);
        let chain = [Party::new("client").signed_by(&mute), mute.signed_by(&root)];
        assert_eq!(authorities(&[&root]).judge(&chain, year(2030)), Err(Error::EndEntityUsedAsCa));
    }

    #[test]
    fn a_clients_own_certificate_is_for_clients() {
        use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
        let root = Party::authority("ca");
        let rows = [
            (vec![], true),
            (vec![ClientAuth], true),
            (vec![ServerAuth, ClientAuth], true),
            (vec![Any], true),
            (vec![ServerAuth], false),
        ];
        for (uses, want) in rows {
            let client = Party::new("client").with(|params| params.extended_key_usages = uses);
            assert_eq!(authorities(&[&root]).judge(&[client.signed_by(&root)], year(2030)).is_ok(), want);
        }
    }

    #[test]
    fn a_maze_of_certificates_is_left_soon() {
        // Each could be the issuer of each, by their names: there are 7! ways through.
        let root = Party::authority("ca");
        let (outside, namesakes) = (Party::authority("maze"), (0..7).map(|_| Party::authority("maze")));
        let mut chain = vec![Party::new("client").signed_by(&outside)];
        chain.extend(namesakes.map(|one| one.signed_by(&outside)));
        let all = authorities(&[&root]);
        assert_eq!(all.judge(&chain, year(2030)), Err(Error::MaximumPathBuildCallsExceeded));
        // Whose path is six long, in whatever order it comes, is nowhere near.
        let mut above = Party::authority("ca");
        let root = authorities(&[&above]);
        let mut chain = Vec::new();
        for number in 0..6 {
            let next = Party::authority(&format!("a{number}"));
            chain.push(next.signed_by(&above));
            above = next;
        }
        chain.insert(0, Party::new("client").signed_by(&above));
        assert!(root.judge(&chain, year(2030)).is_ok());
        chain[1..].reverse();
        assert!(root.judge(&chain, year(2030)).is_ok());
    }

    #[test]
    fn a_word_holds_while_all_of_the_path_is_valid_and_its_authority_is_there() {
        let root = Party::authority("ca").valid(2000, 2050);
        let between = Party::authority("between").valid(2010, 2060);
        let client = Party::new("client").valid(2020, 2040);
        let chain = [client.signed_by(&between), between.signed_by(&root)];
        let all = authorities(&[&root]);
        let word = all.judge(&chain, year(2030)).expect("good");
        let rows = [(2019, false), (2020, true), (2030, true), (2040, true), (2041, false), (2055, false)];
        for (at, want) in rows {
            assert_eq!(word.holds_at(year(at)), want, "{at}");
        }
        assert!(!word.holds_at(year(2040) + 1) && !word.holds_at(year(2020) - 1));
        // Who comes early has the same word, which does not hold yet; who comes late has none.
        for early in [2005, 2015, 2019] {
            assert_eq!(all.judge(&chain, year(early)), Ok(word), "{early}");
        }
        assert!(matches!(all.judge(&chain, year(2041)), Err(Error::CertExpired { .. })));
        assert!(matches!(all.judge(&chain, year(2055)), Err(Error::CertExpired { .. })));
        assert!(all.stands_by(&word));
        assert!(!authorities(&[&Party::authority("ca")]).stands_by(&word));
        assert!(all.judge(&[], year(2030)).is_err());
    }
}
