//! What a key may be used for, from Kubernetes' words to what certificates say.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/certificates/authority/policies.go`; Go 1.26 `crypto/x509`.

use std::collections::BTreeSet;

use super::der::{OID, element};

/// What a certificate says of its key.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Usages {
    /// The first the highest bit.
    pub bits: u16,
    /// Object identifiers, one after the other.
    pub extended: Vec<u8>,
}

const BITS: [(&str, u16); 10] = [
    ("signing", 1 << 15),
    ("digital signature", 1 << 15),
    ("content commitment", 1 << 14),
    ("key encipherment", 1 << 13),
    ("data encipherment", 1 << 12),
    ("key agreement", 1 << 11),
    ("cert sign", 1 << 10),
    ("crl sign", 1 << 9),
    ("encipher only", 1 << 8),
    ("decipher only", 1 << 7),
];

/// The numbers of `1.3.6.1.5.5.7.3.x`.
const PURPOSE: [u8; 7] = [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03];
const ANY: &[u8] = &[0x55, 0x1d, 0x25, 0x00];
const MICROSOFT: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x0a, 0x03, 0x03];
const NETSCAPE: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x04, 0x01];

/// By the place that Go gives it.
const EXTENDED: [(&str, u8); 13] = [
    ("any", 0),
    ("server auth", 1),
    ("client auth", 2),
    ("code signing", 3),
    ("email protection", 4),
    ("s/mime", 4),
    ("ipsec end system", 5),
    ("ipsec tunnel", 6),
    ("ipsec user", 7),
    ("timestamping", 8),
    ("ocsp signing", 9),
    ("microsoft sgc", 10),
    ("netscape sgc", 11),
];

/// # Errors
/// There are usages that nobody knows.
pub fn read<'u>(usages: impl IntoIterator<Item = &'u str>) -> Result<Usages, String> {
    let (mut bits, mut extended, mut unknown) = (0, BTreeSet::new(), Vec::new());
    for usage in usages {
        // Few: two short tables.
        if let Some((_, bit)) = BITS.iter().find(|(name, _)| *name == usage) {
            bits |= bit;
        } else if let Some((_, place)) = EXTENDED.iter().find(|(name, _)| *name == usage) {
            extended.insert(*place);
        } else {
            unknown.push(format!("{usage:?}"));
        }
    }
    if !unknown.is_empty() {
        return Err(format!("unrecognized usage values: [{}]", unknown.join(" ")));
    }
    Ok(Usages { bits, extended: extended.into_iter().flat_map(identifier).collect() })
}

fn identifier(place: u8) -> Vec<u8> {
    match place {
        0 => element(OID, ANY),
        10 => element(OID, MICROSOFT),
        11 => element(OID, NETSCAPE),
        purpose => element(OID, &[&PURPOSE[..], &[purpose]].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As upstream's `TestKeyUsagesFromStrings`.
    #[test]
    fn usages_are_those_of_certificates() {
        let of = |usages: &[&str]| read(usages.iter().copied());
        let purposes = |all: &[u8]| -> Vec<u8> { all.iter().flat_map(|place| identifier(*place)).collect() };
        assert_eq!(of(&["signing"]), Ok(Usages { bits: 0x8000, extended: Vec::new() }));
        assert_eq!(
            of(&["client auth", "client auth"]),
            Ok(Usages { bits: 0, extended: [0x06, 8].into_iter().chain(PURPOSE).chain([2]).collect() })
        );
        assert_eq!(of(&["cert sign", "encipher only"]), Ok(Usages { bits: 0x0500, extended: Vec::new() }));
        assert_eq!(
            of(&["ocsp signing", "crl sign", "s/mime", "content commitment"]),
            Ok(Usages { bits: 0x4200, extended: purposes(&[4, 9]) })
        );
        assert_eq!(
            of(&["unsupported string"]),
            Err("unrecognized usage values: [\"unsupported string\"]".to_owned())
        );
    }
}
