//! CertificateSigningRequests against what kube-apiserver says of them.

mod certificate_signing_request;

use serde_json::json;

use super::request::{certificate_fault, request_fault};
use super::{signer_name, subject_restriction};
use crate::core::base64;
use crate::field::{Causes, Path};

/// A line of the fixtures.
fn fixture(name: &str) -> &'static str {
    let lines = include_str!("requests.txt").lines();
    lines.filter_map(|line| line.split_once(' ')).find(|(known, _)| *known == name).expect("a known name").1
}

fn text(name: &str) -> String {
    String::from_utf8(base64::decode(fixture(name))).expect("PEM")
}

/// `name` with its DER changed.
fn changed(name: &str, change: fn(&mut Vec<u8>)) -> String {
    let text = text(name);
    let block = crate::pem::blocks(&text).next().expect("a block");
    let (label, mut der) = (block.label, block.bytes);
    change(&mut der);
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", base64::encode(&der))
}

#[test]
fn requests_are_parsed_and_their_signatures_checked() {
    const NO_REQUEST: Option<&str> = Some("PEM block type must be CERTIFICATE REQUEST");
    let ecdsa = text("ecdsa");
    let rows = [
        ("plain", ecdsa.clone(), None),
        ("RSA", text("rsa"), None),
        ("Ed25519", text("ed25519"), None),
        ("after a comment", format!("\n# hi\n{ecdsa}"), None),
        ("lines of Windows", ecdsa.replace('\n', "\r\n"), None),
        ("with headers", ecdsa.replacen("REQUEST-----\n", "REQUEST-----\nA: b\n\n", 1), None),
        ("before a certificate", format!("{ecdsa}{}", text("certificate")), None),
        ("behind a certificate", format!("{}{ecdsa}", text("certificate")), NO_REQUEST),
        ("a certificate", text("certificate"), NO_REQUEST),
        ("nothing", String::new(), NO_REQUEST),
        ("without an end", ecdsa.replace("-----END", ""), NO_REQUEST),
        ("in the middle of a line", format!("x{ecdsa}"), NO_REQUEST),
        ("no base64", ecdsa.replace('M', "*"), NO_REQUEST),
        (
            "cut short",
            changed("ecdsa", |der| der.truncate(der.len() - 5)),
            Some("asn1: syntax error: data truncated"),
        ),
        (
            "followed by more",
            changed("ecdsa", |der| der.push(b'x')),
            Some("asn1: syntax error: trailing data"),
        ),
        ("empty", changed("ecdsa", Vec::clear), Some("asn1: syntax error: sequence truncated")),
        (
            "something else",
            changed("ecdsa", |der| *der = b"abc".to_vec()),
            Some(
                "asn1: structure error: tags don't match (16 vs {class:1 tag:1 length:98 isCompound:true}) \
                 {optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> \
                 stringType:0 timeType:0 set:false omitEmpty:false} certificateRequest @2",
            ),
        ),
        ("forged ECDSA", text("ecdsa-forged"), Some("x509: ECDSA verification failure")),
        ("forged RSA", text("rsa-forged"), Some("crypto/rsa: verification error")),
        ("forged Ed25519", text("ed25519-forged"), Some("x509: Ed25519 verification failure")),
        ("unknown here", text("p521"), Some("x509: cannot verify signature: algorithm unimplemented")),
    ];
    for (what, pem, fault) in rows {
        assert_eq!(request_fault(&base64::encode(pem.as_bytes())).as_deref(), fault, "{what}");
    }
}

#[test]
fn no_request_makes_the_parser_panic() {
    let pem = text("ecdsa");
    let block = crate::pem::blocks(&pem).next().expect("a block");
    let request = |der: &[u8]| {
        let body = base64::encode(der);
        base64::encode(format!("-----BEGIN {0}-----\n{body}\n-----END {0}-----\n", block.label).as_bytes())
    };
    let mut refused = 0;
    for at in 0..block.bytes.len() {
        let mut broken = block.bytes.clone();
        broken[at] ^= 0x55;
        refused += usize::from(request_fault(&request(&broken)).is_some());
        assert!(request_fault(&request(&block.bytes[..at])).is_some(), "{at} bytes are no request");
    }
    // The name of the signature's algorithm is the only thing that nothing signs.
    assert!(refused > block.bytes.len() * 9 / 10, "{refused} of {}", block.bytes.len());
}

#[test]
fn issued_certificates_are_parsed() {
    let certificate = text("certificate");
    let rows = [
        ("one", certificate.clone(), None),
        ("two", format!("{certificate}{certificate}"), None),
        ("none yet", String::new(), None),
        ("no PEM", "abc".to_string(), Some("must contain at least one CERTIFICATE PEM block")),
        (
            "a request",
            text("ecdsa"),
            Some("only CERTIFICATE PEM blocks are allowed, found \"CERTIFICATE REQUEST\""),
        ),
        (
            "with headers",
            certificate.replacen("CATE-----\n", "CATE-----\nA: b\n\n", 1),
            Some("no PEM block headers are permitted"),
        ),
        (
            "malformed",
            changed("certificate", |der| *der = b"abc".to_vec()),
            Some("x509: malformed certificate"),
        ),
    ];
    for (what, pem, fault) in rows {
        assert_eq!(certificate_fault(&base64::encode(pem.as_bytes())).as_deref(), fault, "{what}");
    }
}

#[test]
fn nobody_becomes_a_master_through_the_signer_of_clients() {
    let refused = |signer: &str, request: &str| {
        subject_restriction(&json!({"spec": {"signerName": signer, "request": fixture(request)}})).is_some()
    };
    assert!(refused("kubernetes.io/kube-apiserver-client", "masters"));
    assert!(!refused("kubernetes.io/kube-apiserver-client", "ecdsa"));
    assert!(!refused("example.com/signer", "masters"));
}

/// A request whose subject has `organization` and nothing else.
fn asked_for(organization: rcgen::DnValue, change: impl Fn(&mut Vec<u8>)) -> String {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, organization);
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut der = params.serialize_request(&key).expect("a request").der().to_vec();
    change(&mut der);
    let (label, body) = ("CERTIFICATE REQUEST", base64::encode(&der));
    base64::encode(format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").as_bytes())
}

#[test]
fn masters_are_masters_in_every_type_of_string() {
    use rcgen::DnValue;
    const MASTERS: &str = "system:masters";
    const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";
    let refused = |signer: &str, request: &str| {
        subject_restriction(&json!({"spec": {"signerName": signer, "request": request}}))
    };
    let in_types = |text: &str| {
        [
            ("UTF8String", DnValue::Utf8String(text.into())),
            ("PrintableString", DnValue::PrintableString(text.try_into().expect("printable"))),
            ("IA5String", DnValue::Ia5String(text.try_into().expect("ASCII"))),
            ("T61String", DnValue::TeletexString(text.try_into().expect("ASCII"))),
            ("BMPString", DnValue::BmpString(text.try_into().expect("of one plane"))),
        ]
    };
    for (what, organization) in in_types(MASTERS) {
        let request = asked_for(organization, |_| ());
        assert_eq!(request_fault(&request), None, "{what}");
        let why = refused(CLIENTS, &request);
        let want =
            "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
        assert_eq!(why.as_deref(), Some(want), "{what}");
        assert_eq!(refused("example.com/signer", &request), None, "{what}");
    }
    for (what, organization) in in_types("system:nodes") {
        assert_eq!(refused(CLIENTS, &asked_for(organization, |_| ())), None, "{what}");
    }
    let universal = DnValue::UniversalString(MASTERS.try_into().expect("UTF-32"));
    let want =
        "use of kubernetes.io/kube-apiserver-client signer with a subject that cannot be read is not allowed";
    assert_eq!(refused(CLIENTS, &asked_for(universal, |_| ())).as_deref(), Some(want));
    // Some other type, or what its type does not allow.
    let retyped = |tag: u8, first: u8| {
        asked_for(DnValue::Utf8String(MASTERS.into()), move |der| {
            let at = der.windows(MASTERS.len()).position(|bytes| bytes == MASTERS.as_bytes()).expect("there");
            (der[at - 2], der[at]) = (tag, first);
        })
    };
    assert_eq!(refused(CLIENTS, &retyped(0x1b, b's')).as_deref(), Some(want));
    assert_eq!(refused(CLIENTS, &retyped(0x0c, 0xff)).as_deref(), Some(want));
    for (tag, fault) in [
        (0x0c, "asn1: invalid UTF-8 string"),
        (0x13, "asn1: syntax error: PrintableString contains invalid character"),
        (0x16, "asn1: syntax error: IA5String contains invalid character"),
    ] {
        assert_eq!(request_fault(&retyped(tag, 0xff)).as_deref(), Some(fault), "{tag:#x}");
    }
}

#[test]
fn signer_names_have_bounds() {
    let rows = [
        (format!("example.com/{}", "a.b".repeat(200)), &["Too long: may not be more than 571 bytes"][..]),
        (format!("{}com/a", "a.".repeat(127)), &["Too long: may not be more than 253 bytes"]),
        ("example.com/a".to_string(), &[]),
    ];
    for (name, expected) in rows {
        let mut causes = Causes::default();
        signer_name(&name, &Path::root("spec"), &mut causes);
        let found: Vec<String> = causes.into_vec().into_iter().map(|cause| cause.message).collect();
        assert_eq!(found, expected, "{name}");
    }
}
