//! What all ciphers need: randomness, and words.
//!
//! In: nothing. Out: random bytes. Never: a key of its own.

use ring::rand::{SecureRandom as _, SystemRandom};

/// What is written of a value that is shorter than its cipher's parts.
pub(super) const TOO_SHORT: &str = "the stored data was shorter than the required size";

/// Fills `bytes` from the operating system's generator.
///
/// # Errors
/// It gives none.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), &'static str> {
    SystemRandom::new().fill(bytes).map_err(|_| "unable to read sufficient random bytes")
}
