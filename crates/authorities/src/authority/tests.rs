//! In: certificates that are made here. Out: whether they are believed. Never: a clock.

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

fn authorities(of: &[&Party]) -> CertificateAuthority {
    let pem: String = of.iter().map(|party| party.pem()).collect();
    let algorithms = ring::default_provider().signature_verification_algorithms;
    CertificateAuthority::of_clients(&pem, algorithms).expect("certificates")
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
    for (is_ca, want) in
        [(IsCa::NoCa, false), (IsCa::ExplicitNoCa, false), (IsCa::Ca(BasicConstraints::Constrained(0)), true)]
    {
        let authority = Party::authority("ca").with(|params| params.is_ca = is_ca);
        assert_eq!(is_believed(&authority), want);
    }
    for (usages, want) in [(vec![KeyCertSign, CrlSign], true), (vec![CrlSign], false)] {
        let authority = Party::authority("ca").with(|params| params.key_usages = usages);
        assert_eq!(is_believed(&authority), want);
    }
    for (uses, want) in [(vec![ServerAuth], false), (vec![ServerAuth, ClientAuth], true), (vec![Any], true)] {
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

/// As `Party::pem`, of one that another has signed.
fn pem_of(der: &CertificateDer<'_>) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

fn believing(pem: &str, purpose: Purpose) -> CertificateAuthority {
    let algorithms = ring::default_provider().signature_verification_algorithms;
    match purpose {
        Purpose::Clients => CertificateAuthority::of_clients(pem, algorithms).expect("certificates"),
        Purpose::Servers => {
            CertificateAuthority::of_servers(certificates(pem).expect("certificates"), algorithms)
        }
    }
}

#[test]
fn a_certificate_among_the_authorities_stands_for_itself_and_for_nobody_else() {
    use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    let root = Party::authority("ca");
    for (uses, [of_clients, of_servers]) in [
        (vec![], [true, true]),
        (vec![ClientAuth], [true, false]),
        (vec![ServerAuth], [false, true]),
        (vec![ClientAuth, ServerAuth], [true, true]),
    ] {
        let own = Party::new("own").with(|params| params.extended_key_usages = uses.clone());
        let chain = [own.signed_by(&root)];
        let below = [Party::new("below").signed_by(&own)];
        for (purpose, want) in [(Purpose::Clients, of_clients), (Purpose::Servers, of_servers)] {
            let all = believing(&pem_of(&chain[0]), purpose);
            let word = all.judge(&chain, year(2030));
            assert_eq!(word.is_ok(), want, "{purpose:?} {uses:?}");
            assert!(word.is_err() || all.stands_by(&word.expect("good")));
            assert!(all.judge(&below, year(2030)).is_err());
            assert!(all.judge(&[Party::new("own").signed_by(&root)], year(2030)).is_err(), "another one");
        }
    }
    let late = Party::new("own").valid(2000, 2020).signed_by(&root);
    let all = believing(&pem_of(&late), Purpose::Servers);
    assert!(matches!(all.judge(&[late], year(2030)), Err(Error::CertExpired { .. })));
    let early = Party::new("own").valid(2040, 2050).signed_by(&root);
    let word = believing(&pem_of(&early), Purpose::Servers).judge(&[early], year(2030)).expect("later");
    assert!(!word.holds_at(year(2030)) && word.holds_at(year(2045)));
}

#[test]
fn an_authority_may_show_its_certificate_as_its_own() {
    let (root, other) = (Party::authority("ca"), Party::authority("ca"));
    let own = Party::authority("own");
    for purpose in [Purpose::Clients, Purpose::Servers] {
        // As `openssl req -x509` makes them.
        let itself = CertificateDer::from_pem_slice(own.pem().as_bytes()).expect("a certificate");
        assert!(believing(&pem_of(&itself), purpose).judge(&[itself], year(2030)).is_ok());
        let chain = [own.signed_by(&root)];
        assert!(believing(&root.pem(), purpose).judge(&chain, year(2030)).is_ok());
        assert!(believing(&(other.pem() + &root.pem()), purpose).judge(&chain, year(2030)).is_ok());
        assert!(believing(&other.pem(), purpose).judge(&chain, year(2030)).is_err());
        assert!(believing(&root.pem(), purpose).judge(&chain, year(2095)).is_err());
    }
    let narrow = Party::authority("ca").with(|params| {
        let permitted_subtrees = vec![rcgen::GeneralSubtree::DnsName("a.example".into())];
        let constraints = rcgen::NameConstraints { permitted_subtrees, excluded_subtrees: vec![] };
        params.name_constraints = Some(constraints);
    });
    let chain = [own.signed_by(&narrow)];
    let judged = believing(&narrow.pem(), Purpose::Servers).judge(&chain, year(2030));
    assert_eq!(judged, Err(Error::NameConstraintViolation));
}

#[test]
fn what_is_for_servers_is_not_for_clients() {
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
    let root = Party::authority("ca");
    for (uses, want) in [
        (vec![], true),
        (vec![ServerAuth], true),
        (vec![ClientAuth, ServerAuth], true),
        (vec![Any], true),
        (vec![ClientAuth], false),
    ] {
        let chain = [Party::new("server").with(|params| params.extended_key_usages = uses).signed_by(&root)];
        assert_eq!(believing(&root.pem(), Purpose::Servers).judge(&chain, year(2030)).is_ok(), want);
    }
}
