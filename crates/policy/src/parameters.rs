//! Parameters as trees, as far as there is room for them, while one write is judged: many bindings have the
//! same ones, each as a text.
//!
//! In: which one, how long its text is, how it is read. Out: its tree. Never: read without being paid for;
//! more of them at a time than [`PARAMETERS_KEPT_MAX`], and the one that is asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::limits::{PARAMETER_BYTES_PAID, PARAMETERS_KEPT_MAX};

/// What was read, with what it was read of, whose places tell it from others as long as that is there.
pub struct ParameterTrees<O> {
    kept: BTreeMap<(usize, usize), (Arc<Value>, O)>,
    bytes: usize,
}

impl<O> Default for ParameterTrees<O> {
    fn default() -> ParameterTrees<O> {
        ParameterTrees { kept: BTreeMap::new(), bytes: 0 }
    }
}

impl<O> ParameterTrees<O> {
    /// Whether what is read of a text of so many bytes stays.
    pub fn keeps(&self, bytes: usize) -> bool {
        // A tree takes some times its text.
        self.bytes.saturating_add(bytes.saturating_mul(4)) <= PARAMETERS_KEPT_MAX
    }

    /// Bytes of what is kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The tree at `key`; `None` where the write may not cost as much any more.
    ///
    /// - `bytes`: of its text.
    /// - `left`: what the write may still cost: each time that it is read is paid for.
    /// - `read`: the tree, what it takes, and what it is of.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<E>(
        &mut self,
        key: (usize, usize),
        bytes: usize,
        left: &mut u64,
        read: impl FnOnce() -> Result<(Value, usize, O), E>,
    ) -> Result<Option<Arc<Value>>, E> {
        if let Some((tree, _)) = self.kept.get(&key) {
            return Ok(Some(tree.clone()));
        }
        *left = left.saturating_sub(1 + bytes as u64 / PARAMETER_BYTES_PAID);
        if *left == 0 {
            return Ok(None);
        }
        let keeps = self.keeps(bytes);
        let (tree, weight, of) = read()?;
        let tree = Arc::new(tree);
        if keeps {
            self.bytes += weight;
            self.kept.insert(key, (tree.clone(), of));
        }
        Ok(Some(tree))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Reads a parameter of so many bytes; whether it was read, and whether it is there.
    fn read(trees: &mut ParameterTrees<()>, at: usize, bytes: usize, left: &mut u64) -> (bool, bool) {
        let mut was_read = false;
        let found = trees.read::<Infallible>((0, at), bytes, left, || {
            was_read = true;
            Ok((Value::from(at), 2 * bytes, ()))
        });
        let Ok(found) = found;
        (was_read, found.is_some_and(|tree| *tree == at))
    }

    #[test]
    fn a_parameter_is_read_and_paid_for_once() {
        let (mut trees, mut left) = (ParameterTrees::default(), 10_000);
        assert_eq!(read(&mut trees, 7, 16_000, &mut left), (true, true));
        assert_eq!(left, 10_000 - 1_001);
        for _ in 0..100 {
            assert_eq!(read(&mut trees, 7, 16_000, &mut left), (false, true));
        }
        assert_eq!(left, 10_000 - 1_001);
        assert_eq!(trees.bytes(), 32_000);
    }

    #[test]
    fn what_there_is_no_room_for_is_read_again_and_paid_for_again() {
        let (mut trees, mut left) = (ParameterTrees::default(), 1_000_000);
        let bytes = PARAMETERS_KEPT_MAX / 4;
        assert_eq!(read(&mut trees, 1, bytes, &mut left), (true, true));
        assert!(!trees.keeps(bytes));
        let before = left;
        for _ in 0..2 {
            assert_eq!(read(&mut trees, 2, bytes, &mut left), (true, true));
        }
        assert_eq!(before - left, 2 * (1 + bytes as u64 / PARAMETER_BYTES_PAID));
        assert!(trees.bytes() <= PARAMETERS_KEPT_MAX);
    }

    #[test]
    fn nothing_is_read_that_nobody_can_pay_for() {
        let (mut trees, mut left) = (ParameterTrees::default(), 100);
        assert_eq!(read(&mut trees, 1, 1 << 20, &mut left), (false, false));
        assert_eq!(left, 0);
    }
}
