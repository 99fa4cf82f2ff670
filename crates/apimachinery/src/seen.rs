//! What came before, looked up by hash: the one way to ask it of what a client sends, as a list takes as long
//! as it is.
//!
//! In: keys, in the order in which they come. Out: whether a key was there before, or where it first was.
//! Never: keeps an order; a hash that a client can foresee, as it is std's with its keys.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::steps;

/// Keys that were there.
#[derive(Clone, Debug)]
pub struct Seen<K>(HashSet<K>);

impl<K> Default for Seen<K> {
    fn default() -> Seen<K> {
        Seen(HashSet::new())
    }
}

impl<K: Eq + Hash> Seen<K> {
    /// Remembers `key`. Says whether it was there before.
    pub fn again(&mut self, key: K) -> bool {
        steps::add(1);
        !self.0.insert(key)
    }

    /// Whether `key` was there.
    pub fn has<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        steps::add(1);
        self.0.contains(key)
    }

    /// How many there were, each once.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Eq + Hash> FromIterator<K> for Seen<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Seen<K> {
        let mut seen = Seen::default();
        seen.extend(keys);
        seen
    }
}

impl<K: Eq + Hash> Extend<K> for Seen<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        for key in keys {
            self.again(key);
        }
    }
}

/// What came first under each key.
#[derive(Clone, Debug)]
pub struct Firsts<K, V>(HashMap<K, V>);

impl<K: Eq + Hash, V> Firsts<K, V> {
    /// What came first under `key`.
    pub fn get<Q: ?Sized + Eq + Hash>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        steps::add(1);
        self.0.get(key)
    }
}

impl<K: Eq + Hash, V> FromIterator<(K, V)> for Firsts<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Firsts<K, V> {
        let mut firsts = HashMap::new();
        for (key, value) in pairs {
            steps::add(1);
            firsts.entry(key).or_insert(value);
        }
        Firsts(firsts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_there_again_from_the_second_time_on() {
        let mut seen = Seen::default();
        assert_eq!(["a", "b", "a", "a"].map(|key| seen.again(key)), [false, false, true, true]);
        assert!(seen.has("b") && !seen.has("c"));
        assert_eq!((seen.len(), seen.is_empty()), (2, false));
        let pairs: Seen<(&str, i64)> = [("a", 1), ("a", 2)].into_iter().collect();
        assert!(pairs.has(&("a", 2)) && !pairs.has(&("b", 1)));
    }

    #[test]
    fn of_values_with_one_key_the_first_stays() {
        let firsts: Firsts<&str, i64> = [("a", 1), ("b", 2), ("a", 3)].into_iter().collect();
        assert_eq!((firsts.get("a"), firsts.get("b"), firsts.get("c")), (Some(&1), Some(&2), None));
    }

    #[test]
    fn each_key_is_a_step_however_many_there_are() {
        for count in [1_000, 4_000] {
            let steps = steps::counted(|| {
                let seen: Seen<u64> = (0..count).collect();
                (0..count).for_each(|key| assert!(seen.has(&key)));
            });
            assert_eq!(steps, 2 * count);
        }
    }
}
