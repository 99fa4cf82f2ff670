//! AES-GCM with a random nonce: nonce, ciphertext, tag. Where a value is counts as what is authenticated.
//!
//! ring has keys of 16 and 32 bytes; those of 24, which upstream takes too, are RustCrypto's (ADR 86).

use aes::Aes192;
use aes_gcm::aead::AeadInPlace as _;
use aes_gcm::aead::consts::U12;
use aes_gcm::{AesGcm, KeyInit as _};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::parts::{TOO_SHORT, random};

const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;

/// Bytes that are kept beside those of a value.
pub(super) const SEALED_MORE: usize = NONCE_BYTES + TAG_BYTES;

const FAILED: &str = "cipher: message authentication failed";
const TOO_LONG: &str = "the value is too long for AES-GCM";

/// A key.
pub struct GcmKey(With);

enum With {
    Ring(Box<LessSafeKey>),
    Aes192(Box<AesGcm<Aes192, U12>>),
}

impl GcmKey {
    /// None where it is not as long as a key of AES.
    pub fn new(key: &[u8]) -> Option<GcmKey> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            32 => &AES_256_GCM,
            _ => return AesGcm::new_from_slice(key).ok().map(|key| GcmKey(With::Aes192(Box::new(key)))),
        };
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?);
        Some(GcmKey(With::Ring(Box::new(key))))
    }

    /// Appends what is kept of `plain` at `at`.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn seal(&self, plain: &[u8], at: &[u8], kept: &mut Vec<u8>) -> Result<(), &'static str> {
        match &self.0 {
            With::Ring(key) => seal(key, plain, at, kept),
            With::Aes192(key) => {
                let (nonce, begin) = begin(plain, kept)?;
                let tag = key.encrypt_in_place_detached(&nonce.into(), at, &mut kept[begin..]);
                kept.extend_from_slice(&tag.map_err(|_| TOO_LONG)?);
                Ok(())
            }
        }
    }

    /// The value that `kept` stands for at `at`.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn open(&self, kept: &[u8], at: &[u8]) -> Result<Vec<u8>, &'static str> {
        match &self.0 {
            With::Ring(key) => open(key, kept, at),
            With::Aes192(key) => {
                let (nonce, mut out, length) = parts(kept)?;
                let (text, tag) = out.split_at_mut(length);
                let opened = key.decrypt_in_place_detached(nonce.into(), at, text, (&*tag).into());
                opened.map_err(|_| FAILED)?;
                out.truncate(length);
                Ok(out)
            }
        }
    }
}

/// Appends what is kept of `plain` at `at` under a key of ring's.
pub(super) fn seal(
    key: &LessSafeKey,
    plain: &[u8],
    at: &[u8],
    kept: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let (nonce, begin) = begin(plain, kept)?;
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::from(at), &mut kept[begin..]);
    kept.extend_from_slice(tag.map_err(|_| TOO_LONG)?.as_ref());
    Ok(())
}

/// The value that `kept` stands for at `at` under a key of ring's.
pub(super) fn open(key: &LessSafeKey, kept: &[u8], at: &[u8]) -> Result<Vec<u8>, &'static str> {
    let (nonce, mut out, length) = parts(kept)?;
    let nonce = Nonce::assume_unique_for_key(*nonce);
    key.open_in_place(nonce, Aad::from(at), &mut out).map_err(|_| FAILED)?;
    out.truncate(length);
    Ok(out)
}

/// Appends a nonce and `plain`: the nonce, and where `plain` begins.
fn begin(plain: &[u8], kept: &mut Vec<u8>) -> Result<([u8; NONCE_BYTES], usize), &'static str> {
    let mut nonce = [0; NONCE_BYTES];
    random(&mut nonce)?;
    kept.reserve(SEALED_MORE + plain.len());
    kept.extend_from_slice(&nonce);
    let begin = kept.len();
    kept.extend_from_slice(plain);
    Ok((nonce, begin))
}

/// The nonce, a copy of what comes behind it, and its length without the tag.
fn parts(kept: &[u8]) -> Result<(&[u8; NONCE_BYTES], Vec<u8>, usize), &'static str> {
    let (nonce, text) = kept.split_first_chunk::<NONCE_BYTES>().ok_or(TOO_SHORT)?;
    let length = text.len().checked_sub(TAG_BYTES).ok_or(FAILED)?;
    Ok((nonce, text.to_vec(), length))
}
