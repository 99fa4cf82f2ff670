//! One allocation for texts that many objects share: label keys and values, field values.

use std::collections::HashSet;
use std::sync::Arc;

/// Owned by the one task that makes a resource's objects.
#[derive(Debug, Default)]
pub struct Interner {
    texts: HashSet<Arc<str>>,
    // Sweep when the set has grown to this.
    sweep_at: usize,
}

const SWEEP_MIN: usize = 1024;

impl Interner {
    /// The shared form of `text`.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        if self.texts.len() >= self.sweep_at.max(SWEEP_MIN) {
            self.sweep();
        }
        let shared: Arc<str> = Arc::from(text);
        self.texts.insert(shared.clone());
        shared
    }

    /// Forgets texts that no object uses any more.
    fn sweep(&mut self) {
        self.texts.retain(|text| Arc::strong_count(text) > 1);
        self.sweep_at = self.texts.len() * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_texts_are_forgotten() {
        let mut interner = Interner::default();
        let kept = interner.intern("kept");
        for number in 0..10 * SWEEP_MIN {
            interner.intern(&number.to_string());
        }
        assert!(interner.texts.len() <= SWEEP_MIN + 1, "{}", interner.texts.len());
        assert!(Arc::ptr_eq(&kept, &interner.intern("kept")));
    }
}
