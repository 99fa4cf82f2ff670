//! Requests for certificates, and certificates, whose subjects say whatever a case wants them to.
//!
//! In: names of a subject, each in a type of string. Out: PEM, signed. Never: a key that means anything.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

const INTEGER: u8 = 0x02;
const BITS: u8 = 0x03;
const OBJECT: u8 = 0x06;
const TIME: u8 = 0x17;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const ATTRIBUTES: u8 = 0xa0;
const BMP: u8 = 0x1e;
const LATIN: u8 = 0x14;

/// The types of strings that Go reads, by their tags: UTF8, Numeric, Printable, Teletex, IA5, BMP. A name of
/// another type is passed over there, and none that ours lets anybody ask for.
pub const STRINGS: [u8; 6] = [0x0c, 0x12, 0x13, LATIN, 0x16, BMP];
/// What a name may be: an organization, a common name, a unit of an organization.
pub const SORTS: [u8; 3] = [0x0a, 0x03, 0x0b];

const ED25519: [u8; 3] = [0x2b, 0x65, 0x70];

/// One name of a subject.
#[derive(Clone, Copy, Debug)]
pub struct SubjectName {
    /// Of [`SORTS`].
    pub sort: u8,
    /// Of [`STRINGS`].
    pub string: u8,
    pub text: &'static str,
}

/// A request for a certificate.
///
/// - `subject`: sets of names.
/// - `label`: of its PEM.
/// - `is_forged`: whether somebody else has signed it.
pub fn request(subject: &[Vec<SubjectName>], label: &str, is_forged: bool) -> String {
    let info = [element(INTEGER, &[0]), name(subject), public_key(), element(ATTRIBUTES, &[])].concat();
    let info = element(SEQUENCE, &info);
    let mut signature = key().sign(&info).as_ref().to_vec();
    if is_forged {
        signature[5] ^= 1;
    }
    pem(label, &element(SEQUENCE, &[info, algorithm(), bits(&signature)].concat()))
}

/// A certificate of nobody.
pub fn certificate() -> String {
    let [from, until] = [b"260101000000Z", b"360101000000Z"].map(|time| element(TIME, time));
    let validity = element(SEQUENCE, &[from, until].concat());
    let parts = [element(INTEGER, &[1]), algorithm(), name(&[]), validity, name(&[]), public_key()];
    let info = element(SEQUENCE, &parts.concat());
    let signature = key().sign(&info);
    pem("CERTIFICATE", &element(SEQUENCE, &[info, algorithm(), bits(signature.as_ref())].concat()))
}

fn key() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("any seed is a key")
}

fn public_key() -> Vec<u8> {
    element(SEQUENCE, &[algorithm(), bits(key().public_key().as_ref())].concat())
}

fn algorithm() -> Vec<u8> {
    element(SEQUENCE, &element(OBJECT, &ED25519))
}

fn bits(bytes: &[u8]) -> Vec<u8> {
    element(BITS, &[&[0], bytes].concat())
}

fn name(subject: &[Vec<SubjectName>]) -> Vec<u8> {
    let set = |names: &Vec<SubjectName>| {
        element(SET, &names.iter().map(|one| attribute(*one)).collect::<Vec<_>>().concat())
    };
    element(SEQUENCE, &subject.iter().map(set).collect::<Vec<_>>().concat())
}

fn attribute(SubjectName { sort, string, text }: SubjectName) -> Vec<u8> {
    let bytes = match string {
        BMP => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        LATIN => text.chars().map(|letter| u8::try_from(letter).unwrap_or(b'?')).collect(),
        _ => text.as_bytes().to_vec(),
    };
    element(SEQUENCE, &[element(OBJECT, &[0x55, 0x04, sort]), element(string, &bytes)].concat())
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).expect("they are short").to_be_bytes();
    let head = match (high, low) {
        (0, low) if low < 0x80 => vec![tag, low],
        (0, low) => vec![tag, 0x81, low],
        (high, low) => vec![tag, 0x82, high, low],
    };
    [&head, content].concat()
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
