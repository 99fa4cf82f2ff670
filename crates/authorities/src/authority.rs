//! The authorities of clients, or of servers, and what one vouches for.
//!
//! In: authorities in PEM; a chain of certificates. Out: a [`Word`]: which authority, and from when until
//! when its word holds, so that nobody has to keep the certificates, nor to verify them again, to know
//! whether it still does. webpki finds the path and verifies it; what Go asks of a path besides, webpki
//! leaves to us: that the authority itself is in its time, is one, may sign, is for that purpose, has no
//! more below it than it allows; and that those between may sign. What Go takes, and webpki does not: a
//! certificate that is among the authorities itself, whoever signed it, and the certificate of an authority
//! that is shown as one's own. Never: the name of a server, which is another question.
//!
//! Source: Go 1.26 `crypto/x509/{verify,x509}.go` (`Verify`, `isValid`, `CheckSignatureFrom`,
//! `checkChainForKeyUsage`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rustls::DistinguishedName;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use sha2::{Digest, Sha256};
use webpki::{EndEntityCert, Error, VerifiedPath};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use crate::limits::NAMESAKES_MAX;
use crate::purpose::Purpose;
use crate::{old_certificate, signature};

/// Judges certificates of clients, or of servers.
#[derive(Debug)]
pub struct CertificateAuthority {
    purpose: Purpose,
    algorithms: WebPkiSupportedAlgorithms,
    // Those that may vouch, and at the same places what webpki knows of them.
    roots: Vec<Root>,
    anchors: Vec<TrustAnchor<'static>>,
    hints: Arc<[DistinguishedName]>,
    // All of them: each may also stand for itself.
    known: BTreeSet<[u8; 32]>,
}

#[derive(Debug)]
struct Root {
    der: CertificateDer<'static>,
    digest: [u8; 32],
    validity: Validity,
    // Authorities that there may be below it.
    below_max: Option<u32>,
    // Whether it vouches for some names only.
    has_name_constraints: bool,
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

impl CertificateAuthority {
    /// The authorities of clients, of a PEM text. One that may not vouch for others is left out, with a line
    /// in the log.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn of_clients(
        pem: &str,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<CertificateAuthority, AuthorityError> {
        let mut all = CertificateAuthority::none(Purpose::Clients, algorithms);
        let mut hints = Vec::new();
        for der in certificates(pem)? {
            let (name, fitness) = all.add(&der).map_err(AuthorityError::Unusable)?;
            hints.push(name);
            if let Err(why) = fitness {
                let subject = parsed(&der).map(|of| of.subject().to_string()).unwrap_or_default();
                tracing::warn!(subject, why, "an authority of client certificates vouches for nobody else");
            }
        }
        all.hints = hints.into();
        Ok(all)
    }

    /// Those of servers; certificates that cannot be read are left out.
    pub(crate) fn of_servers<'a>(
        certificates: impl IntoIterator<Item = CertificateDer<'a>>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> CertificateAuthority {
        let mut all = CertificateAuthority::none(Purpose::Servers, algorithms);
        for der in certificates {
            match all.add(&der) {
                Ok((_, Ok(()))) => {}
                Ok((_, Err(why))) => tracing::debug!(why, "an authority of servers vouches for nobody else"),
                Err(why) => tracing::debug!(%why, "an authority of servers cannot be read"),
            }
        }
        all
    }

    fn none(purpose: Purpose, algorithms: WebPkiSupportedAlgorithms) -> CertificateAuthority {
        let (roots, anchors) = (Vec::new(), Vec::new());
        let (hints, known) = (Arc::default(), BTreeSet::new());
        CertificateAuthority { purpose, algorithms, roots, anchors, hints, known }
    }

    /// Its name, and whether it vouches for others.
    fn add(&mut self, der: &CertificateDer<'_>) -> Result<(DistinguishedName, Result<(), Unfit>), Error> {
        let anchor = webpki::anchor_from_trusted_cert(der)?.to_owned();
        let certificate = parsed(der)?;
        let name = DistinguishedName::in_sequence(&anchor.subject);
        let digest = Sha256::digest(der).into();
        self.known.insert(digest);
        let fitness = below_max(&certificate, self.purpose).map(|below_max| {
            let validity = Validity::of(&certificate);
            let has_name_constraints = !matches!(certificate.name_constraints(), Ok(None));
            let der = der.clone().into_owned();
            self.anchors.push(anchor);
            self.roots.push(Root { der, digest, validity, below_max, has_name_constraints });
        });
        Ok((name, fitness))
    }

    /// The names that clients are told.
    pub fn hints(&self) -> &Arc<[DistinguishedName]> {
        &self.hints
    }

    /// The word for `chain`, one's own certificate first, to be used for the purpose. It may be one that
    /// holds only later than at `unix_ms`.
    ///
    /// # Errors
    /// Why there is none.
    pub fn judge(&self, chain: &[CertificateDer<'_>], unix_ms: u64) -> Result<Word, Error> {
        // Early ones are judged when they begin: once for one's own, once for another one on the path.
        const EARLY_MAX: usize = 2;
        let (leaf, between) = chain.split_first().ok_or(Error::BadDer)?;
        let mut at = UnixTime::since_unix_epoch(Duration::from_millis(unix_ms));
        for _ in 0..EARLY_MAX {
            match self.judge_at(leaf, between, at) {
                Err(Error::CertNotValidYet { not_before, .. }) => at = not_before,
                judged => return judged,
            }
        }
        self.judge_at(leaf, between, at)
    }

    /// The word for a certificate that holds at a time.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn judge_at(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        at: UnixTime,
    ) -> Result<Word, Error> {
        let digest = Sha256::digest(leaf).into();
        if self.known.contains(&digest) {
            // It stands for itself.
            return Ok(Word { validity: self.own_validity(leaf, at)?, root: digest });
        }
        if old_certificate::is_old(leaf) {
            return self.judge_by_signature(leaf, at);
        }
        let own = Validity::of(&parsed(leaf)?);
        let end = EndEntityCert::try_from(leaf)?;
        let usage = self.purpose.of_a_path();
        let verify = |path: &VerifiedPath<'_>| self.word(own, path, at).map(drop);
        let path =
            end.verify_for_usage(self.algorithms.all, &self.anchors, between, at, usage, None, Some(&verify));
        match path {
            Ok(path) => self.word(own, &path, at),
            Err(Error::CaUsedAsEndEntity) => self.judge_by_signature(leaf, at),
            Err(why) => Err(why),
        }
    }

    /// The word of a path whose signatures, names and uses are good.
    ///
    /// - `own`: of the certificate that is judged.
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

    /// Of one that webpki does not judge: an authority itself signed it.
    fn judge_by_signature(&self, leaf: &CertificateDer<'_>, at: UnixTime) -> Result<Word, Error> {
        let own = self.own_validity(leaf, at)?;
        let issuer = parsed(leaf)?.issuer().as_raw().to_vec();
        let mut why = Error::UnknownIssuer;
        let named = |root: &&Root| parsed(&root.der).is_ok_and(|root| root.subject().as_raw() == issuer);
        for root in self.roots.iter().filter(named).take(NAMESAKES_MAX) {
            let signed = signature::is_signed_by(leaf, &root.der, self.algorithms.all);
            match signed.and_then(|()| root.validity.check(at)) {
                Ok(()) if root.has_name_constraints => why = Error::NameConstraintViolation,
                Ok(()) => return Ok(Word { validity: own.and(root.validity), root: root.digest }),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// What webpki asks of a certificate by itself.
    fn own_validity(&self, leaf: &CertificateDer<'_>, at: UnixTime) -> Result<Validity, Error> {
        let certificate = parsed(leaf)?;
        let own = Validity::of(&certificate);
        own.check(at)?;
        if !self.purpose.is_of(&certificate)? {
            return Err(self.purpose.missed());
        }
        if has_unknown_critical(&certificate) {
            return Err(Error::UnsupportedCriticalExtension);
        }
        Ok(own)
    }

    /// Whether the authority that gave `word` is among these.
    pub fn stands_by(&self, word: &Word) -> bool {
        self.known.contains(&word.root)
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
/// Why it may not vouch for that.
fn below_max(certificate: &X509Certificate<'_>, purpose: Purpose) -> Result<Option<u32>, Unfit> {
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
    match purpose.is_of(certificate) {
        Ok(true) => {}
        Ok(false) => return Err("it is for other uses"),
        Err(_) => return Err(UNREADABLE),
    }
    if has_unknown_critical(certificate) {
        return Err("it has a critical extension that is not known");
    }
    Ok(constraints.and_then(|constraints| constraints.path_len_constraint))
}

fn has_unknown_critical(certificate: &X509Certificate<'_>) -> bool {
    let is_unknown = |oid: &str| !KNOWN.contains(&oid);
    certificate.extensions().iter().any(|one| one.critical && is_unknown(&one.oid.to_id_string()))
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
mod tests;
