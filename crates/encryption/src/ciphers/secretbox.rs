//! XSalsa20-Poly1305 as NaCl's secretbox has it: nonce, tag, ciphertext. Where a value is does not count.

use crypto_secretbox::aead::AeadInPlace as _;
use crypto_secretbox::{KeyInit as _, XSalsa20Poly1305};

use super::parts::{TOO_SHORT, random};

const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// What upstream says of a value that is not authentic.
const FAILED: &str = "output array was not large enough for encryption";

/// A key.
pub struct BoxKey(XSalsa20Poly1305);

impl BoxKey {
    /// None where it has not 32 bytes.
    pub fn new(key: &[u8]) -> Option<BoxKey> {
        XSalsa20Poly1305::new_from_slice(key).ok().map(BoxKey)
    }

    /// Appends what is kept of `plain`.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn seal(&self, plain: &[u8], kept: &mut Vec<u8>) -> Result<(), &'static str> {
        let mut nonce = [0; NONCE_BYTES];
        random(&mut nonce)?;
        kept.reserve(NONCE_BYTES + TAG_BYTES + plain.len());
        kept.extend_from_slice(&nonce);
        let begin = kept.len();
        kept.extend_from_slice(&[0; TAG_BYTES]);
        kept.extend_from_slice(plain);
        let (tag, text) = kept[begin..].split_at_mut(TAG_BYTES);
        let made = self.0.encrypt_in_place_detached(&nonce.into(), b"", text);
        tag.copy_from_slice(&made.map_err(|_| "the value is too long for secretbox")?);
        Ok(())
    }

    /// The value that `kept` stands for.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn open(&self, kept: &[u8]) -> Result<Vec<u8>, &'static str> {
        let (nonce, rest) = kept.split_first_chunk::<NONCE_BYTES>().ok_or(TOO_SHORT)?;
        let (tag, text) = rest.split_first_chunk::<TAG_BYTES>().ok_or(TOO_SHORT)?;
        let mut out = text.to_vec();
        let opened = self.0.decrypt_in_place_detached(nonce.into(), b"", &mut out, tag.into());
        opened.map_err(|_| FAILED)?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vector of NaCl's own documentation (`tests/secretbox.c`), its first bytes.
    #[test]
    fn it_is_the_box_that_others_know() {
        let key = [
            0x1b, 0x27, 0x55, 0x64, 0x73, 0xe9, 0x85, 0xd4, 0x62, 0xcd, 0x51, 0x19, 0x7a, 0x9a, 0x46, 0xc7,
            0x60, 0x09, 0x54, 0x9e, 0xac, 0x64, 0x74, 0xf2, 0x06, 0xc4, 0xee, 0x08, 0x44, 0xf6, 0x83, 0x89,
        ];
        let nonce = [
            0x69, 0x69, 0x6e, 0xe9, 0x55, 0xb6, 0x2b, 0x73, 0xcd, 0x62, 0xbd, 0xa8, 0x75, 0xfc, 0x73, 0xd6,
            0x82, 0x19, 0xe0, 0x03, 0x6b, 0x7a, 0x0b, 0x37,
        ];
        let mut text = [0xbe, 0x07, 0x5f, 0xc5, 0x3c, 0x81, 0xf2, 0xd5];
        let key = BoxKey::new(&key).expect("a key");
        key.0.encrypt_in_place_detached(&nonce.into(), b"", &mut text).expect("short");
        assert_eq!(text, [0x8e, 0x99, 0x3b, 0x9f, 0x48, 0x68, 0x12, 0x73]);
    }
}
