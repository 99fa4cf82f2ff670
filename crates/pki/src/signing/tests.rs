//! What is signed for whom, held against what was asked for.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PublicKeyData as _, SanType};
use x509_parser::extensions::GeneralName;

use super::der::{PRINTABLE_STRING, SET};
use super::*;
use crate::authority::COMMON_NAME as AUTHORITY_NAME;
use crate::files::Key;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

fn authority() -> SigningAuthority {
    let key = Key::new().expect("a key").pair;
    let made = Authority::new(AUTHORITY_NAME, key, now() - HOUR).expect("an authority");
    SigningAuthority::of(made).expect("signs")
}

fn asked(parts: &[(DnType, &str)], names: Vec<SanType>) -> CertificateRequest {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    parts.iter().for_each(|(kind, text)| params.distinguished_name.push(kind.clone(), *text));
    params.subject_alt_names = names;
    let key = Key::new().expect("a key").pair;
    let pem = params.serialize_request(&key).expect("a request").pem().expect("PEM");
    CertificateRequest::parse(pem.as_bytes()).expect("a request")
}

fn read<T>(pem: &str, look: impl FnOnce(&x509_parser::certificate::X509Certificate<'_>) -> T) -> T {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
    let (rest, certificate) = x509_parser::parse_x509_certificate(&der).expect("a certificate");
    assert!(rest.is_empty());
    look(&certificate)
}

#[test]
fn a_certificate_says_what_was_asked_for_and_is_believed() {
    let signer = authority();
    let ip = IpAddr::from([10, 0, 0, 1]);
    let names = vec![
        SanType::DnsName("node-1".try_into().expect("a name")),
        SanType::IpAddress(ip),
        SanType::URI("spiffe://x/y".try_into().expect("a name")),
        SanType::Rfc822Name("a@b".try_into().expect("a name")),
    ];
    let request = asked(
        &[(DnType::CommonName, "system:node:node-1"), (DnType::OrganizationName, "system:nodes")],
        names,
    );
    assert_eq!(request.common_name, "system:node:node-1");
    assert_eq!(request.organizations, ["system:nodes"]);
    assert_eq!((&*request.dns_names, &*request.ips), (&["node-1".to_owned()][..], &[ip][..]));
    assert_eq!((&*request.uris, &*request.emails), (&["spiffe://x/y".into()][..], &["a@b".into()][..]));

    let usages = ["digital signature", "key encipherment", "client auth"];
    let pem = signer.sign(&request, usages, (None, 24 * HOUR), now()).expect("signed");
    read(&pem, |certificate| {
        assert_eq!(certificate.subject().to_string(), "O=system:nodes, CN=system:node:node-1");
        assert_eq!(certificate.issuer().to_string(), format!("CN={AUTHORITY_NAME}"));
        assert_eq!(certificate.public_key().raw, request.public_key);
        assert!(!certificate.is_ca());
        let usage = certificate.key_usage().expect("read").expect("there").value;
        assert!(usage.digital_signature() && usage.key_encipherment() && !usage.key_cert_sign());
        let extended = certificate.extended_key_usage().expect("read").expect("there").value;
        assert!(extended.client_auth && !extended.server_auth && !extended.any);
        let names = &certificate.subject_alternative_name().expect("read").expect("there").value;
        let wanted = [
            GeneralName::DNSName("node-1"),
            GeneralName::RFC822Name("a@b"),
            GeneralName::IPAddress(&[10, 0, 0, 1]),
            GeneralName::URI("spiffe://x/y"),
        ];
        assert_eq!(names.general_names, wanted);
    });
    // As the server itself judges it.
    let mut roots = rustls::RootCertStore::empty();
    roots.add(signer.authority.der.clone()).expect("an authority");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let believed =
        rustls::server::WebPkiClientVerifier::builder_with_provider(std::sync::Arc::new(roots), provider)
            .build()
            .expect("a verifier");
    let shown = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
    let at = |seconds| rustls::pki_types::UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    assert!(believed.verify_client_cert(&shown, &[], at(1_800_000_001)).is_ok());
    assert!(believed.verify_client_cert(&shown, &[], at(1_800_000_000 + 25 * 3_600)).is_err());
}

/// As upstream's `TestCertificateAuthority` and `TestDuration`.
#[test]
fn short_lives_are_not_cut_and_none_outlives_the_authority() {
    let signer = authority();
    let request = asked(&[(DnType::CommonName, "someone")], Vec::new());
    let lives = |asked, max| {
        let pem = signer.sign(&request, ["signing"], (asked, max), now()).expect("signed");
        read(&pem, |certificate| {
            let (begins, ends) = files::validity(certificate);
            (begins.duration_since(now()).as_mins(), ends.duration_since(now()).as_mins())
        })
    };
    assert_eq!(lives(None, HOUR), (-5, 60));
    assert_eq!(lives(None, 24 * HOUR), (-5, 24 * 60 - 5));
    assert_eq!(lives(Some(SignedDuration::from_mins(30)), 24 * HOUR), (-5, 30));
    assert_eq!(lives(Some(SignedDuration::from_mins(1)), 24 * HOUR), (-5, 10));
    assert_eq!(lives(Some(48 * HOUR), 24 * HOUR), (-5, 24 * 60 - 5));
    let (_, ends) = lives(None, 20 * 365 * 24 * HOUR);
    assert_eq!(ends, signer.authority.expires.duration_since(now()).as_mins());
    let late = signer.authority.expires;
    let refused = |at| signer.sign(&request, ["signing"], (None, HOUR), at).expect_err("refused");
    assert!(refused(late).starts_with("refusing to sign a certificate that expired in the past"));
    assert!(refused(late + BACKDATE).starts_with("the signer has expired"));
}

/// A request with this subject, whole.
fn raw(subject: &[u8], key: &KeyPair) -> Vec<u8> {
    let info = sequence(&[&[0x02, 1, 0], subject, &key.subject_public_key_info(), &[0xa0, 0]]);
    let signature = element(BIT_STRING, &[&[0][..], &key.sign(&info).expect("signed")].concat());
    sequence(&[&info, &algorithm(key).expect("known"), &signature])
}

#[test]
fn a_name_is_written_as_it_was_read_and_nothing_that_was_not() {
    let key = Key::new().expect("a key").pair;
    let part = |oid: &[u8], text: &str| {
        element(SET, &sequence(&[&element(OID, oid), &element(PRINTABLE_STRING, text.as_bytes())]))
    };
    let (name, group) = (&[0x55, 0x04, 3][..], &[0x55, 0x04, 10][..]);
    let subject = sequence(&[
        &part(name, "first"),
        &part(group, "b"),
        &part(&[0x55, 0x04, 46], "a qualifier"),
        &part(name, "last"),
        &part(group, "a"),
    ]);
    let pem = |der: &[u8]| pem::certificate(der).replace("CERTIFICATE", "CERTIFICATE REQUEST");
    let request = CertificateRequest::parse(pem(&raw(&subject, &key)).as_bytes()).expect("a request");
    assert_eq!((&*request.common_name, &*request.organizations), ("last", &["b".into(), "a".into()][..]));
    let signed = authority().sign(&request, ["client auth"], (None, HOUR), now()).expect("signed");
    read(&signed, |certificate| {
        let parts: Vec<String> = certificate
            .subject()
            .iter_attributes()
            .map(|one| format!("{}={}", one.attr_type(), one.as_str().expect("text")))
            .collect();
        assert_eq!(parts, ["2.5.4.10=a", "2.5.4.10=b", "2.5.4.3=last"]);
        assert!(certificate.subject_alternative_name().expect("read").is_none());
        assert!(certificate.key_usage().expect("read").is_none());
    });

    let mut other = raw(&subject, &key);
    let end = other.len() - 1;
    other[end] ^= 1;
    let refused = CertificateRequest::parse(pem(&other).as_bytes()).expect_err("refused");
    assert!(refused.starts_with("unable to verify certificate request signature"), "{refused}");
    assert!(CertificateRequest::parse(b"nothing").is_err());
}
