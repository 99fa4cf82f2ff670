//! AES-GCM under a key of its own for each value, which HKDF derives from a seed and 32 random bytes: those
//! bytes, nonce, ciphertext, tag. No number of values wears a seed out.

use ring::aead::{AES_256_GCM, LessSafeKey, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk};

use super::gcm;
use super::parts::{TOO_SHORT, random};

/// Of what a key is derived by, and of a seed at least.
const INFO_BYTES: usize = 32;
pub(crate) const SEED_BYTES: usize = 32;

/// A seed.
pub struct Seed(Prk);

impl Seed {
    /// Bytes that are kept beside those of a value.
    pub const SEALED_MORE: usize = INFO_BYTES + gcm::SEALED_MORE;

    /// None where it is too short for one.
    pub fn new(seed: &[u8]) -> Option<Seed> {
        (seed.len() >= SEED_BYTES).then(|| Seed(Prk::new_less_safe(HKDF_SHA256, seed)))
    }

    /// Appends what is kept of `plain` at `at`: [`SEALED_MORE`](Seed::SEALED_MORE) bytes more than it has.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn seal(&self, plain: &[u8], at: &[u8], kept: &mut Vec<u8>) -> Result<(), &'static str> {
        let mut info = [0; INFO_BYTES];
        random(&mut info)?;
        let key = self.key(&info)?;
        kept.reserve(Seed::SEALED_MORE + plain.len());
        kept.extend_from_slice(&info);
        gcm::seal(&key, plain, at, kept)
    }

    /// The value that `kept` stands for at `at`.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn open(&self, kept: &[u8], at: &[u8]) -> Result<Vec<u8>, &'static str> {
        let (info, kept) = kept.split_first_chunk::<INFO_BYTES>().ok_or(TOO_SHORT)?;
        gcm::open(&self.key(info)?, kept, at)
    }

    fn key(&self, info: &[u8; INFO_BYTES]) -> Result<LessSafeKey, &'static str> {
        let info = [info.as_slice()];
        let key = self.0.expand(&info, &AES_256_GCM).map_err(|_| "failed to KDF expand seed with info")?;
        Ok(LessSafeKey::new(UnboundKey::from(key)))
    }
}
