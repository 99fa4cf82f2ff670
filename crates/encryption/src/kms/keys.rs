//! The data keys of one plugin that are known, and those that it would not decrypt.
//!
//! In: what the plugin answered. Out: keys, by what they are known by. Never: asks. Owner: the provider,
//! under a lock of a few lines.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use forebay_rt::Instant;

use super::envelope::{CacheKey, SourceType};
use crate::ciphers::{GcmKey, Seed};
use crate::failed::SealError;
use crate::limits;

/// What opens values.
pub enum DataKey {
    Key(GcmKey),
    Seed(Seed),
}

impl DataKey {
    /// Of what the plugin decrypted.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn new(source: SourceType, plaintext: &[u8]) -> Result<DataKey, String> {
        let bytes = plaintext.len();
        match source {
            SourceType::Key => {
                let key = GcmKey::new(plaintext).map(DataKey::Key);
                key.ok_or_else(|| format!("crypto/aes: invalid key size {bytes}"))
            }
            SourceType::Seed => {
                let seed = Seed::new(plaintext).map(DataKey::Seed);
                seed.ok_or_else(|| format!("invalid seed length {bytes} used for key generation"))
            }
        }
    }

    pub fn open(&self, kept: &[u8], at: &[u8]) -> Result<Vec<u8>, &'static str> {
        match self {
            DataKey::Key(key) => key.open(kept, at),
            DataKey::Seed(seed) => seed.open(kept, at),
        }
    }
}

/// See the module's doc.
#[derive(Default)]
pub struct DataKeys {
    // <= DATA_KEYS_MAX
    known: HashMap<CacheKey, Arc<DataKey>>,
    // In the order in which they were learned.
    order: VecDeque<CacheKey>,
    // <= REFUSED_MAX
    refused: HashMap<CacheKey, (Instant, SealError)>,
    refused_order: VecDeque<CacheKey>,
}

impl DataKeys {
    pub fn get(&self, key: &CacheKey) -> Option<Arc<DataKey>> {
        self.known.get(key).cloned()
    }

    /// All that are known, as they were learned.
    pub fn all(&self) -> Vec<(CacheKey, Arc<DataKey>)> {
        let known = |key: &CacheKey| Some((*key, self.known.get(key)?.clone()));
        self.order.iter().filter_map(known).collect()
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Learns a key. Whether it was refused when that was last tried.
    pub fn learn(&mut self, key: CacheKey, data_key: Arc<DataKey>) -> bool {
        let was_refused = self.refused.remove(&key).is_some();
        if self.known.insert(key, data_key).is_none() {
            self.order.push_back(key);
            if self.order.len() > limits::DATA_KEYS_MAX
                && let Some(first) = self.order.pop_front()
            {
                self.known.remove(&first);
            }
        }
        was_refused
    }

    /// Notes that the plugin did not decrypt it.
    pub fn refuse(&mut self, key: CacheKey, error: SealError, now: Instant) {
        let hold = if error.passes { limits::UNANSWERED_HOLD } else { limits::REFUSED_HOLD };
        if self.refused.insert(key, (now + hold, error)).is_none() {
            self.refused_order.push_back(key);
            if self.refused_order.len() > limits::REFUSED_MAX
                && let Some(first) = self.refused_order.pop_front()
            {
                self.refused.remove(&first);
            }
        }
    }

    /// Why it was not decrypted a moment ago.
    pub fn refusal(&self, key: &CacheKey, now: Instant) -> Option<&SealError> {
        self.refused.get(key).filter(|(until, _)| now < *until).map(|(_, error)| error)
    }

    /// Why it was not decrypted when that was last tried.
    pub fn last_refusal(&self, key: &CacheKey) -> Option<&SealError> {
        self.refused.get(key).map(|(_, error)| error)
    }
}

#[cfg(test)]
mod tests {
    use forebay_rt::Clock;

    use super::*;

    fn key(number: usize) -> CacheKey {
        let mut key = CacheKey::default();
        key[..8].copy_from_slice(&(number as u64).to_le_bytes());
        key
    }

    #[test]
    fn the_key_that_was_learned_first_is_forgotten_first() {
        let mut keys = DataKeys::default();
        let data_key = Arc::new(DataKey::new(SourceType::Seed, &[1; 32]).expect("a seed"));
        for number in 0..=limits::DATA_KEYS_MAX {
            keys.learn(key(number), data_key.clone());
            keys.learn(key(number), data_key.clone());
        }
        assert_eq!(keys.len(), limits::DATA_KEYS_MAX);
        assert!(keys.get(&key(0)).is_none() && keys.get(&key(1)).is_some());
    }

    #[test]
    fn a_refusal_is_held_for_a_while_and_gone_once_the_key_is_known() {
        let (mut keys, now) = (DataKeys::default(), Clock::system().now());
        keys.refuse(key(1), SealError::new("no"), now);
        assert_eq!(keys.refusal(&key(1), now).map(|error| error.why.as_str()), Some("no"));
        assert_eq!(keys.refusal(&key(1), now + limits::REFUSED_HOLD), None);
        assert!(keys.last_refusal(&key(1)).is_some());
        let data_key = Arc::new(DataKey::new(SourceType::Key, &[1; 16]).expect("a key"));
        keys.learn(key(1), data_key);
        assert_eq!(keys.last_refusal(&key(1)), None);
        for number in 0..=limits::REFUSED_MAX {
            keys.refuse(key(number), SealError::new("no"), now);
        }
        assert!(keys.refused.len() <= limits::REFUSED_MAX, "{}", keys.refused.len());
    }

    #[test]
    fn what_is_no_key_is_said_to_be_none() {
        let why = |source, bytes| DataKey::new(source, &vec![0; bytes]).err();
        assert_eq!(why(SourceType::Key, 33).as_deref(), Some("crypto/aes: invalid key size 33"));
        assert_eq!(
            why(SourceType::Seed, 31).as_deref(),
            Some("invalid seed length 31 used for key generation")
        );
    }
}
