//! Names that many have, each once: of nodes and of namespaces.
//!
//! In: a name, as often as it is had. Out: the one text of it. Never: keeps one that nobody has.

use std::sync::Arc;

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(imbl::HashMap<Arc<str>, usize>);

impl Names {
    /// The name, had once more.
    pub fn take(&mut self, name: &str) -> Arc<str> {
        if let Some((shared, _)) = self.0.get_key_value(name) {
            let shared = shared.clone();
            if let Some(count) = self.0.get_mut(name) {
                *count += 1;
            }
            return shared;
        }
        let shared: Arc<str> = name.into();
        self.0.insert(shared.clone(), 1);
        shared
    }

    /// It is had once less.
    pub fn give_back(&mut self, name: &str) {
        match self.0.get_mut(name) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) => {
                self.0.remove(name);
            }
            None => {}
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
