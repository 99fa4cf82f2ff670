//! AES-CBC with PKCS#7: a random block, ciphertext. Nothing is authenticated.

use aes::{Aes128, Aes192, Aes256};
use cbc::cipher::block_padding::{NoPadding, Pkcs7};
use cbc::cipher::{
    BlockCipher, BlockDecryptMut, BlockEncryptMut, BlockSizeUser, InnerIvInit as _, KeyInit as _, consts::U16,
};

use super::parts::{TOO_SHORT, random};

const BLOCK_BYTES: usize = 16;

const NOT_WHOLE: &str = "the stored data is not a multiple of the block size";
const NOT_PADDED: &str = "invalid PKCS7 data (empty or not padded)";
const BADLY_PADDED: &str = "invalid padding on input";

/// A key, as the cipher unrolls it.
pub struct CbcKey(With);

enum With {
    Aes128(Box<Aes128>),
    Aes192(Box<Aes192>),
    Aes256(Box<Aes256>),
}

impl CbcKey {
    /// None where it is not as long as a key of AES.
    pub fn new(key: &[u8]) -> Option<CbcKey> {
        let with = match key.len() {
            16 => With::Aes128(Box::new(Aes128::new_from_slice(key).ok()?)),
            24 => With::Aes192(Box::new(Aes192::new_from_slice(key).ok()?)),
            32 => With::Aes256(Box::new(Aes256::new_from_slice(key).ok()?)),
            _ => return None,
        };
        Some(CbcKey(with))
    }

    /// Appends what is kept of `plain`.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn seal(&self, plain: &[u8], kept: &mut Vec<u8>) -> Result<(), &'static str> {
        let padded = (plain.len() / BLOCK_BYTES + 1) * BLOCK_BYTES;
        let mut iv = [0; BLOCK_BYTES];
        random(&mut iv)?;
        kept.reserve(BLOCK_BYTES + padded);
        kept.extend_from_slice(&iv);
        let begin = kept.len();
        kept.extend_from_slice(plain);
        kept.resize(begin + padded, 0);
        let text = &mut kept[begin..];
        match &self.0 {
            With::Aes128(key) => encrypt(&**key, &iv, text, plain.len()),
            With::Aes192(key) => encrypt(&**key, &iv, text, plain.len()),
            With::Aes256(key) => encrypt(&**key, &iv, text, plain.len()),
        }
    }

    /// The value that `kept` stands for.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn open(&self, kept: &[u8]) -> Result<Vec<u8>, &'static str> {
        let (iv, text) = kept.split_first_chunk::<BLOCK_BYTES>().ok_or(TOO_SHORT)?;
        if text.len() % BLOCK_BYTES != 0 {
            return Err(NOT_WHOLE);
        }
        if text.is_empty() {
            return Err(NOT_PADDED);
        }
        let mut out = text.to_vec();
        match &self.0 {
            With::Aes128(key) => decrypt(&**key, iv, &mut out)?,
            With::Aes192(key) => decrypt(&**key, iv, &mut out)?,
            With::Aes256(key) => decrypt(&**key, iv, &mut out)?,
        }
        let length = unpadded(&out)?;
        out.truncate(length);
        Ok(out)
    }
}

fn encrypt<C>(key: &C, iv: &[u8; BLOCK_BYTES], text: &mut [u8], bytes: usize) -> Result<(), &'static str>
where
    C: BlockEncryptMut + BlockCipher + BlockSizeUser<BlockSize = U16> + Clone,
{
    let mode = cbc::Encryptor::inner_iv_init(key.clone(), iv.into());
    mode.encrypt_padded_mut::<Pkcs7>(text, bytes).map(drop).map_err(|_| "no room for the padding")
}

fn decrypt<C>(key: &C, iv: &[u8; BLOCK_BYTES], text: &mut [u8]) -> Result<(), &'static str>
where
    C: BlockDecryptMut + BlockCipher + BlockSizeUser<BlockSize = U16> + Clone,
{
    let mode = cbc::Decryptor::inner_iv_init(key.clone(), iv.into());
    mode.decrypt_padded_mut::<NoPadding>(text).map(drop).map_err(|_| NOT_WHOLE)
}

/// The length without the padding.
fn unpadded(text: &[u8]) -> Result<usize, &'static str> {
    let last = text.last().copied().ok_or(NOT_PADDED)?;
    let padding = usize::from(last);
    let length = text.len().checked_sub(padding).filter(|_| padding > 0).ok_or(NOT_PADDED)?;
    match text[length..].iter().all(|byte| *byte == last) {
        true => Ok(length),
        false => Err(BADLY_PADDED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_held_against_pkcs7_as_upstream_does() {
        for (text, expected) in [
            (&[9, 9, 1][..], Ok(2)),
            (&[9, 2, 2], Ok(1)),
            (&[3, 3, 3], Ok(0)),
            (&[9, 9, 0], Err(NOT_PADDED)),
            (&[9, 9, 4], Err(NOT_PADDED)),
            (&[9, 1, 2], Err(BADLY_PADDED)),
            (&[], Err(NOT_PADDED)),
        ] {
            assert_eq!(unpadded(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_whole_number_of_blocks_is_said_to_be_so() {
        let key = CbcKey::new(&[1; 16]).expect("a key");
        assert_eq!(key.open(&[0; 15]), Err(TOO_SHORT));
        assert_eq!(key.open(&[0; 33]), Err(NOT_WHOLE));
    }

    /// NIST SP 800-38A, F.2.1.
    #[test]
    fn it_is_the_cipher_that_others_know() {
        let hex = |text: &str| -> Vec<u8> {
            let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
            digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
        };
        let key = CbcKey::new(&hex("2b7e151628aed2a6abf7158809cf4f3c")).expect("a key");
        let With::Aes128(key) = &key.0 else { panic!("128 bits") };
        let mut text = hex("7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2");
        let iv: [u8; 16] = hex("000102030405060708090a0b0c0d0e0f").try_into().expect("16 bytes");
        decrypt(&**key, &iv, &mut text).expect("whole blocks");
        assert_eq!(text, hex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"));
    }
}
