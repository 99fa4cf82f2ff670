//! What others said of tokens, for a while.
//!
//! In: a token, for whom it has to be good, what was said. Out: the same, as long as it counts. A token is
//! kept as a keyed digest: nobody learns one from this memory, or chooses where it goes. Errors do not come
//! here. Owner: the one lock in here.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use forebay_api::Authenticated;
use forebay_rt::{Duration, Instant};
use ring::hmac;
use ring::rand::SystemRandom;

use crate::limits::{CACHE_BYTES_MAX, CACHE_ENTRY_BYTES};

/// A token and for whom it has to be good.
pub type CacheKey = [u8; 32];

/// Who a token stands for; nobody, where that was said.
pub type TokenWord = Option<Authenticated>;

/// See the module's doc.
pub struct TokenCache {
    secret: hmac::Key,
    // The younger one first; when it is full it becomes the elder, and the elder is forgotten.
    generations: Mutex<[Generation; 2]>,
}

#[derive(Default)]
struct Generation {
    words: HashMap<CacheKey, Kept>,
    // <= CACHE_BYTES_MAX, and one word.
    bytes: usize,
}

#[derive(Clone)]
struct Kept {
    word: TokenWord,
    until: Instant,
}

impl TokenCache {
    /// # Errors
    /// The system gives no random numbers.
    pub fn new() -> Result<TokenCache, String> {
        let secret = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let secret = secret.map_err(|_| "no random numbers".to_owned())?;
        Ok(TokenCache { secret, generations: Mutex::default() })
    }

    /// - `epoch`: what was said under another one is not found.
    pub fn key(&self, token: &str, audiences: &[String], epoch: u64) -> CacheKey {
        let mut context = hmac::Context::with_key(&self.secret);
        context.update(&epoch.to_be_bytes());
        // Each with its length before it: nothing of one can be taken for something of the next.
        for text in std::iter::once(token).chain(audiences.iter().map(String::as_str)) {
            context.update(&(text.len() as u64).to_be_bytes());
            context.update(text.as_bytes());
        }
        let mut key = CacheKey::default();
        key.copy_from_slice(context.sign().as_ref());
        key
    }

    /// What counts at `now`.
    pub fn get(&self, key: &CacheKey, now: Instant) -> Option<TokenWord> {
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = generations[0].words.get(key) {
            return (now < kept.until).then(|| kept.word.clone());
        }
        let kept = generations[1].words.remove(key)?;
        generations[1].bytes -= weight(&kept);
        if now >= kept.until {
            return None;
        }
        let word = kept.word.clone();
        insert(&mut generations, *key, kept);
        Some(word)
    }

    /// Remembers `word`.
    pub fn put(&self, key: CacheKey, word: TokenWord, now: Instant, ttl: Duration) {
        if ttl.is_zero() {
            return;
        }
        let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        insert(&mut generations, key, Kept { word, until: now + ttl });
    }

    /// Forgets everything: other issuers are believed.
    pub fn clear(&self) {
        *self.generations.lock().unwrap_or_else(PoisonError::into_inner) = Default::default();
    }
}

fn insert(generations: &mut [Generation; 2], key: CacheKey, kept: Kept) {
    if generations[0].bytes >= CACHE_BYTES_MAX {
        generations.swap(0, 1);
        generations[0] = Generation::default();
    }
    let bytes = weight(&kept);
    let young = &mut generations[0];
    if let Some(before) = young.words.insert(key, kept) {
        young.bytes -= weight(&before);
    }
    young.bytes += bytes;
}

fn weight(kept: &Kept) -> usize {
    let Some(known) = &kept.word else { return CACHE_ENTRY_BYTES };
    let caller = &known.caller;
    let text = |text: &String| text.len() + size_of::<String>();
    let extra = caller.extra.iter().map(|(key, values)| text(key) + values.iter().map(text).sum::<usize>());
    let texts = caller.groups.iter().chain(&known.audiences).map(text);
    CACHE_ENTRY_BYTES + caller.name.len() + caller.uid.len() + texts.sum::<usize>() + extra.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_apimachinery::Caller;
    use forebay_rt::Clock;

    use super::*;

    fn word(name: &str, bytes: usize) -> TokenWord {
        let caller = Caller { name: name.into(), uid: "x".repeat(bytes), ..Caller::default() };
        Some(Authenticated { caller: Arc::new(caller), audiences: Vec::new() })
    }

    #[test]
    fn a_word_counts_for_its_token_and_audiences_until_its_time_is_over() {
        let (cache, now) = (TokenCache::new().expect("random"), Clock::system().now());
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let key = cache.key("ab", &texts(&["c"]), 0);
        for (token, audiences, epoch) in
            [("a", &["bc"][..], 0), ("ab", &[], 0), ("ab", &["c", ""], 0), ("ab", &["c"], 1)]
        {
            assert_ne!(key, cache.key(token, &texts(audiences), epoch));
        }
        let ttl = Duration::from_secs(10);
        cache.put(key, word("ann", 0), now, ttl);
        assert_eq!(cache.get(&key, now), Some(word("ann", 0)));
        assert_eq!(cache.get(&key, now + ttl), None);
        cache.put(key, None, now, ttl);
        assert_eq!(cache.get(&key, now), Some(None));
        cache.put(cache.key("none", &[], 0), None, now, Duration::ZERO);
        assert_eq!(cache.get(&cache.key("none", &[], 0), now), None);
        cache.clear();
        assert_eq!(cache.get(&key, now), None);
    }

    #[test]
    fn what_is_used_stays_and_there_are_never_more_bytes_than_two_generations() {
        let (cache, now) = (TokenCache::new().expect("random"), Clock::system().now());
        let (ttl, bytes) = (Duration::from_secs(60), CACHE_BYTES_MAX / 8);
        let (used, left) = (cache.key("used", &[], 0), cache.key("left", &[], 0));
        cache.put(used, word("used", 0), now, ttl);
        cache.put(left, word("left", 0), now, ttl);
        for at in 0..40 {
            cache.put(cache.key(&at.to_string(), &[], 0), word("other", bytes), now, ttl);
            assert!(cache.get(&used, now).is_some(), "{at}");
            let generations = cache.generations.lock().expect("no panic");
            for of in generations.iter() {
                let sum: usize = of.words.values().map(weight).sum();
                assert_eq!(of.bytes, sum);
                assert!(of.bytes <= CACHE_BYTES_MAX + 2 * bytes);
            }
        }
        assert_eq!(cache.get(&left, now), None);
    }
}
