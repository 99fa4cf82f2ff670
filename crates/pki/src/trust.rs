//! The authorities of client certificates as they are published for programs beside this server.
//!
//! Bundles in PEM and the time go in, one bundle comes out. Never: an authority lost that another server put
//! there.

use std::collections::HashSet;
use std::path::Path;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::{files, pem};

/// Authorities that are published at most, 20 KB or so; beyond it those that were published first go, but
/// ours. More servers than that beside each other, each with one of its own, would push out one another's.
const AUTHORITIES_MAX: usize = 32;

/// The published authorities and then our own: each once, those that expired left out. What was published and
/// cannot be read is given up.
pub fn combined(published: &str, ours: &str, now: Timestamp) -> String {
    let read = |bundle: &str| CertificateDer::pem_slice_iter(bundle.as_bytes()).flatten().collect::<Vec<_>>();
    let ours = read(ours);
    let mut kept: Vec<CertificateDer<'static>> = Vec::new();
    for certificate in read(published).iter().chain(&ours) {
        if !kept.contains(certificate) && is_current(certificate, now) {
            kept.push(certificate.clone());
        }
    }
    let mut excess = kept.len().saturating_sub(AUTHORITIES_MAX);
    kept.retain(|certificate| {
        let goes = excess > 0 && !ours.contains(certificate);
        excess -= usize::from(goes);
        !goes
    });
    kept.iter().map(|certificate| pem::certificate(certificate)).collect()
}

/// Whether two bundles have an authority in common.
pub fn overlap(one: &str, two: &str) -> bool {
    let read =
        |bundle: &str| CertificateDer::pem_slice_iter(bundle.as_bytes()).flatten().collect::<HashSet<_>>();
    !read(one).is_disjoint(&read(two))
}

fn is_current(certificate: &CertificateDer<'_>, now: Timestamp) -> bool {
    files::parsed(Path::new(""), certificate).is_ok_and(|parsed| now < files::validity(&parsed).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};

    /// The year in which all but the old one are valid.
    const NOW: i64 = 1_800_000_000;

    fn authority(name: &str, expires: i32) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.not_after = rcgen::date_time_ymd(expires, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("signed").pem();
        pem.replace("\r\n", "\n")
    }

    #[test]
    fn bundles_overlap_by_one_authority() {
        let (a, b, c) = (authority("a", 2090), authority("b", 2090), authority("c", 2090));
        assert!(overlap(&format!("{a}{b}"), &format!("{c}{b}")));
        assert!(!overlap(&format!("{a}{b}"), &c) && !overlap("", "") && !overlap(&a, "nonsense"));
    }

    #[test]
    fn there_is_an_end_to_what_is_published() {
        let now = Timestamp::from_second(NOW).expect("a time");
        let all: Vec<String> =
            (0..AUTHORITIES_MAX + 2).map(|number| authority(&format!("a{number}"), 2090)).collect();
        let (first, last) = (&all[0], &all[AUTHORITIES_MAX + 1]);
        // Ours is the first one, or a new one.
        let published = all[..=AUTHORITIES_MAX].concat();
        let kept = combined(&published, first, now);
        assert_eq!(kept, format!("{first}{}", all[2..=AUTHORITIES_MAX].concat()));
        assert_eq!(combined(&kept, first, now), kept);
        assert_eq!(combined(&published, last, now), all[2..].concat());
    }

    #[test]
    fn authorities_are_published_once_each_while_they_are_valid() {
        let (a, b, old) = (authority("a", 2090), authority("b", 2090), authority("old", 2001));
        let rows = [
            ("the first start", String::new(), a.clone(), a.clone()),
            ("nothing new", a.clone(), a.clone(), a.clone()),
            ("another server's stays, before ours", b.clone(), a.clone(), format!("{b}{a}")),
            ("an expired one goes", format!("{old}{b}"), a.clone(), format!("{b}{a}")),
            ("what cannot be read goes", "nonsense".to_owned(), a.clone(), a.clone()),
            ("twice in one bundle", format!("{b}{b}"), format!("{a}{b}"), format!("{b}{a}")),
        ];
        let now = Timestamp::from_second(NOW).expect("a time");
        for (why, published, ours, want) in rows {
            assert_eq!(combined(&published, &ours, now), want, "{why}");
        }
    }
}
