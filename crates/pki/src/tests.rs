//! The life of the directory, from first start over renewal to damage, at chosen times.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::*;
use forebay_scratch::Scratch;

const DAY: SignedDuration = SignedDuration::from_hours(24);
const FILES: [&str; 7] =
    ["admin.crt", "admin.key", "apiserver.crt", "apiserver.key", "ca.crt", "ca.key", "sa.key"];

fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("a time")
}

fn names(dns: &[&str]) -> ServingNames {
    ServingNames {
        dns: dns.iter().map(|name| (*name).to_owned()).collect(),
        ips: vec![IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])],
    }
}

fn ensure_at(dir: &Path, dns: &[&str], now: Timestamp) -> Result<(Pki, Vec<String>), Error> {
    let mut warnings = Vec::new();
    let pki = ensure(dir, &names(dns), now, &mut warnings)?;
    Ok((pki, warnings))
}

fn contents(dir: &Path) -> Vec<String> {
    FILES.iter().map(|name| fs::read_to_string(dir.join(name)).expect(name)).collect()
}

/// The files that differ.
fn changed(before: &[String], after: &[String]) -> String {
    let pairs = FILES.iter().zip(before.iter().zip(after));
    pairs.filter(|(_, (before, after))| before != after).map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_start_makes_what_the_next_ones_keep() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("pki");
    let (made, _) = ensure_at(&dir, &["localhost"], start()).expect("made");
    let before = contents(&dir);
    let (kept, warnings) = ensure_at(&dir, &["localhost"], start() + 30 * DAY).expect("kept");
    assert_eq!(changed(&before, &contents(&dir)), "");
    assert_eq!((made.serving, made.admin, made.ca_cert), (kept.serving, kept.admin, kept.ca_cert));
    assert_eq!(warnings, Vec::<String>::new());
    for (name, mode) in FILES.iter().map(|name| (name, if name.ends_with(".key") { 0o600 } else { 0o644 })) {
        let found = fs::metadata(dir.join(name)).expect(name).permissions().mode() & 0o777;
        assert_eq!(found & mode, found, "{name}: {found:o}");
    }
    assert_eq!(fs::metadata(&dir).expect("there").permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(&dir).expect("listed").count(), FILES.len());
}

#[test]
fn rustls_accepts_both_certificates_for_what_they_are() {
    let scratch = Scratch::new();
    let (pki, _) =
        ensure_at(scratch.path(), &["localhost", "kubernetes.default.svc"], start()).expect("made");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pki.ca_cert.as_bytes()).expect("PEM")).expect("an authority");
    let roots = std::sync::Arc::new(roots);
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let at = rustls::pki_types::UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_800_000_000));
    let serving = CertificateDer::from_pem_slice(pki.serving.cert.as_bytes()).expect("PEM");
    let admin = CertificateDer::from_pem_slice(pki.admin.cert.as_bytes()).expect("PEM");

    let servers =
        rustls::client::WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
            .build()
            .expect("a verifier");
    let verify = |cert: &CertificateDer<'static>, name: &str| {
        use rustls::client::danger::ServerCertVerifier as _;
        let name = rustls::pki_types::ServerName::try_from(name.to_owned()).expect("a name");
        servers.verify_server_cert(cert, &[], &name, &[], at).is_ok()
    };
    let rows = [
        ("localhost", true),
        ("kubernetes.default.svc", true),
        ("127.0.0.1", true),
        ("::1", true),
        ("example.org", false),
    ];
    for (name, want) in rows {
        assert_eq!(verify(&serving, name), want, "{name}");
    }

    let clients = rustls::server::WebPkiClientVerifier::builder_with_provider(roots, provider)
        .build()
        .expect("a verifier");
    assert!(clients.verify_client_cert(&admin, &[], at).is_ok());
    assert!(clients.verify_client_cert(&serving, &[], at).is_err());
}

#[test]
fn the_administrator_is_of_system_masters() {
    let scratch = Scratch::new();
    let (pki, _) = ensure_at(scratch.path(), &[], start()).expect("made");
    let der = CertificateDer::from_pem_slice(pki.admin.cert.as_bytes()).expect("PEM");
    let cert = files::parsed(Path::new("admin.crt"), &der).expect("a certificate");
    assert_eq!(cert.subject().to_string(), "O=system:masters, CN=kubernetes-admin");
}

#[test]
fn certificates_are_renewed_in_time_and_the_authority_is_not() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    ensure_at(dir, &["localhost"], start()).expect("made");
    let rows = [
        (699 * DAY, "", 0),
        (701 * DAY, "admin.crt apiserver.crt", 0),
        (-2 * DAY, "admin.crt apiserver.crt", 0),
        (3500 * DAY, "admin.crt apiserver.crt", 0),
        (3570 * DAY, "", 1),
    ];
    for (after, want, want_warnings) in rows {
        let before = contents(dir);
        // Two days before the start, the authority itself is not valid yet.
        if after < -DAY {
            let error = ensure_at(dir, &["localhost"], start() + after).expect_err("too early");
            assert!(error.line().ends_with("is the clock right?"), "{}", error.line());
            continue;
        }
        let (_, warnings) = ensure_at(dir, &["localhost"], start() + after).expect("renewed");
        assert_eq!(changed(&before, &contents(dir)), want, "{after:#}");
        assert_eq!(warnings.len(), want_warnings, "{warnings:?}");
    }
    let error = ensure_at(dir, &["localhost"], start() + 3651 * DAY).expect_err("expired");
    assert!(error.line().contains("ca.crt: expired at 20"), "{}", error.line());
}

#[test]
fn a_new_name_renews_the_serving_certificate_alone() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    let (first, _) = ensure_at(dir, &["localhost"], start()).expect("made");
    let before = contents(dir);
    let (second, _) = ensure_at(dir, &["localhost", "api.example.org"], start()).expect("renewed");
    assert_eq!(changed(&before, &contents(dir)), "apiserver.crt");
    assert_ne!(serial(&first.serving.cert), serial(&second.serving.cert));
    let before = contents(dir);
    ensure_at(dir, &["localhost"], start()).expect("kept: it covers more than is asked for");
    assert_eq!(changed(&before, &contents(dir)), "");
}

fn serial(pem: &str) -> String {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
    files::parsed(Path::new("cert"), &der).expect("a certificate").raw_serial_as_string()
}

#[test]
fn what_a_crash_left_behind_is_completed() {
    // Keys come first, so any certificate may be missing, and any key whose certificate is.
    let rows = [
        ("apiserver.crt", "apiserver.crt"),
        ("admin.crt", "admin.crt"),
        ("sa.key", "sa.key"),
        ("ca.crt admin.crt apiserver.crt", "admin.crt apiserver.crt ca.crt"),
        ("admin.key admin.crt", "admin.crt admin.key"),
        ("apiserver.key", "apiserver.crt apiserver.key"),
    ];
    for (missing, want) in rows {
        let scratch = Scratch::new();
        let dir = scratch.path();
        ensure_at(dir, &["localhost"], start()).expect("made");
        let before = contents(dir);
        for name in missing.split(' ') {
            fs::remove_file(dir.join(name)).expect("removed");
        }
        ensure_at(dir, &["localhost"], start()).expect(missing);
        assert_eq!(changed(&before, &contents(dir)), want, "{missing}");
    }
}

#[test]
fn a_new_authority_signs_anew() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    ensure_at(dir, &["localhost"], start()).expect("made");
    let before = contents(dir);
    fs::remove_file(dir.join("ca.crt")).expect("removed");
    fs::remove_file(dir.join("ca.key")).expect("removed");
    ensure_at(dir, &["localhost"], start()).expect("made anew");
    assert_eq!(changed(&before, &contents(dir)), "admin.crt apiserver.crt ca.crt ca.key");
}

#[test]
fn what_is_broken_is_named_and_left_as_it_is() {
    let rows: &[(&str, Damage, &str)] = &[
        (
            "ca.key",
            Damage::Remove,
            "ca.key: missing, though ca.crt is there; restore it, or remove the directory to begin with a new authority",
        ),
        ("ca.key", Damage::Garbage, "ca.key: not a private key in PEM (PKCS #8)"),
        ("ca.key", Damage::CopyOf("sa.key"), "ca.crt: does not belong to the private key in ca.key"),
        ("ca.crt", Damage::Garbage, "ca.crt: holds no certificate in PEM"),
        ("ca.crt", Damage::Cut, "ca.crt: "),
        ("ca.crt", Damage::CopyOf("apiserver.crt"), "ca.crt: does not belong to the private key in ca.key"),
        ("apiserver.key", Damage::Garbage, "apiserver.key: not a private key in PEM (PKCS #8)"),
        (
            "apiserver.key",
            Damage::CopyOf("admin.key"),
            "apiserver.crt: does not belong to the private key in apiserver.key",
        ),
        ("apiserver.crt", Damage::Garbage, "apiserver.crt: holds no certificate in PEM"),
        (
            "admin.crt",
            Damage::CopyOf("apiserver.crt"),
            "admin.crt: does not belong to the private key in admin.key",
        ),
        ("sa.key", Damage::Garbage, "sa.key: not a private key in PEM (PKCS #8)"),
    ];
    for (name, damage, want) in rows {
        let scratch = Scratch::new();
        let dir = scratch.path();
        ensure_at(dir, &["localhost"], start()).expect("made");
        damage.apply(dir, name);
        let files = || -> Vec<_> { FILES.iter().map(|name| fs::read(dir.join(name)).ok()).collect() };
        let before = files();
        let error = ensure_at(dir, &["localhost"], start() + 701 * DAY).expect_err(want);
        assert!(error.line().starts_with(&format!("{}/{want}", dir.display())), "{name}: {}", error.line());
        assert!(files() == before, "{name}");
    }
}

enum Damage {
    Remove,
    Garbage,
    Cut,
    CopyOf(&'static str),
}

impl Damage {
    fn apply(&self, dir: &Path, name: &str) {
        let path = dir.join(name);
        match self {
            Self::Remove => fs::remove_file(path),
            Self::Garbage => fs::write(path, "garbage\n"),
            Self::Cut => fs::read(&path).and_then(|content| fs::write(&path, &content[..content.len() / 2])),
            Self::CopyOf(other) => fs::copy(dir.join(other), path).map(|_| ()),
        }
        .expect("damaged");
    }
}

#[test]
fn a_certificate_of_somebody_else_is_not_overwritten() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    ensure_at(dir, &["localhost"], start()).expect("made");
    let key = rcgen::KeyPair::from_pem(&fs::read_to_string(dir.join("apiserver.key")).expect("read"))
        .expect("a key");
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("names");
    params.distinguished_name.push(rcgen::DnType::CommonName, "mine");
    let mine = params.self_signed(&key).expect("signed").pem();
    fs::write(dir.join("apiserver.crt"), &mine).expect("written");
    let error = ensure_at(dir, &["localhost"], start()).expect_err("not ours");
    assert!(
        error.line().ends_with("a certificate of your own is given with --tls-cert-file"),
        "{}",
        error.line()
    );
    assert_eq!(fs::read_to_string(dir.join("apiserver.crt")).expect("read"), mine);
}

#[test]
fn a_certificate_is_asked_for_by_its_common_name_and_the_names_that_it_covers() {
    let scratch = Scratch::new();
    let asked_by = |common_name: &str| {
        let mut params =
            rcgen::CertificateParams::new(vec!["a.test".into(), "*.b.test".into(), "10.0.0.1".into()]);
        let params = params.as_mut().expect("names");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, common_name);
        let key = rcgen::KeyPair::generate().expect("a key");
        let files = CertificateFiles { cert: scratch.new_path("crt"), key: scratch.new_path("key") };
        fs::write(&files.cert, params.self_signed(&key).expect("signed").pem()).expect("written");
        fs::write(&files.key, key.serialize_pem()).expect("written");
        let given = given::GivenServing::read(&files, None, start(), &mut Vec::new()).expect("read");
        given.asked_by.join(" ")
    };
    for (common_name, want) in [
        ("c.test", "c.test a.test *.b.test"),
        ("*.c.test", "*.c.test a.test *.b.test"),
        ("*", "* a.test *.b.test"),
        ("single", "single a.test *.b.test"),
        // An address would be where clients connect to.
        ("10.0.0.2", "a.test *.b.test"),
        ("010.0.0.2", "a.test *.b.test"),
        ("10.0.0.256", "10.0.0.256 a.test *.b.test"),
        ("::1", "a.test *.b.test"),
        ("C.test", "a.test *.b.test"),
        ("c_d.test", "a.test *.b.test"),
        ("a.*.test", "a.test *.b.test"),
        ("system:admin", "a.test *.b.test"),
    ] {
        assert_eq!(asked_by(common_name), want, "{common_name}");
    }
}

#[test]
fn what_is_shown_to_other_servers_may_be_of_version_1_and_is_that_of_the_key() {
    use base64::Engine as _;
    const VERSION: [u8; 5] = [0xa0, 3, 2, 1, 2];
    let scratch = Scratch::new();
    let mut params = rcgen::CertificateParams::default();
    // Long enough for lengths of two bytes, before and after.
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "x".repeat(300));
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut der = params.self_signed(&key).expect("signed").der().to_vec();
    // Nobody looks at its signature here.
    assert_eq!((der[1], der[5], &der[8..13]), (0x82, 0x82, &VERSION[..]));
    der.drain(8..13);
    for at in [2, 6] {
        let length = u16::from_be_bytes([der[at], der[at + 1]]) - VERSION.len() as u16;
        der[at..at + 2].copy_from_slice(&length.to_be_bytes());
    }
    let text = base64::engine::general_purpose::STANDARD.encode(&der);
    let files = CertificateFiles { cert: scratch.new_path("crt"), key: scratch.new_path("key") };
    fs::write(&files.cert, format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"))
        .expect("written");
    let read = |key: &rcgen::KeyPair| {
        fs::write(&files.key, key.serialize_pem()).expect("written");
        given::read_client(&files, start(), &mut Vec::new()).map(|pair| pair.key)
    };
    assert_eq!(read(&key).expect("read"), key.serialize_pem());
    let why = read(&rcgen::KeyPair::generate().expect("a key")).expect_err("another's").to_string();
    assert!(why.ends_with(&format!("is not the private key of the certificate in {}", files.cert.display())));
}
