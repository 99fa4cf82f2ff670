//! Fields that are somebody else's.
//!
//! In: managers and sets. Out: a line a field, in upstream's words. Never: decides; a list of paths, which
//! would be many times as long as the sets are.

use std::fmt;

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::{Exhausted, Lease};

use crate::element::{Path, path_text};
use crate::index::Index;
use crate::set::Set;

/// All fields that are in the way, by manager, in order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts(pub Vec<(String, Set)>);

impl Conflicts {
    /// How many fields.
    pub fn count(&self) -> usize {
        self.0.iter().map(|(_, fields)| fields.size()).sum()
    }

    /// Those that are not in `fields`. Cost: n log m in them and `fields`, however many managers there are.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn without(self, fields: &Set, lease: &Lease) -> Result<Conflicts, Exhausted> {
        let _scope = lease.scope();
        lease.charge(Index::bytes_of(fields))?;
        let index = Index::of(fields);
        let left = self.0.into_iter().map(|(manager, own)| (manager, index.taken_from(&own)));
        Ok(Conflicts(left.filter(|(_, own)| !own.is_empty()).collect()))
    }

    /// Calls `each` with every field and whose it is.
    pub fn for_each(&self, mut each: impl FnMut(&str, &Path<'_>)) {
        for (manager, fields) in &self.0 {
            fields.for_each(|path| each(manager, path));
        }
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut done = Ok(());
        if self.count() == 1 {
            self.for_each(|manager, path| {
                done = write!(f, "conflict with {}: {}", go_quote(manager), path_text(path));
            });
            return done;
        }
        for (index, (manager, fields)) in self.0.iter().enumerate() {
            let line = if index > 0 { "\n" } else { "" };
            done = done.and_then(|()| write!(f, "{line}conflicts with {}:", go_quote(manager)));
            fields.for_each(|path| done = done.and_then(|()| write!(f, "\n- {}", path_text(path))));
        }
        done
    }
}
