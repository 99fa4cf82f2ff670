//! What the kinds of this group ask of any list.
//!
//! In: a list, and where it stands. Out: its items, or causes. Never: what an item is.

use forebay_apimachinery::Seen;
use serde_json::Value;

use crate::field::{Causes, Path};
use crate::value::{Members, list};

pub const SPEC: Path<'static> = Path::root("spec");

/// The items of a list, unless there are more than `max`: then only that is said.
pub fn bounded<'o>(
    of: &'o Members,
    name: &str,
    max: usize,
    at: &Path<'_>,
    causes: &mut Causes,
) -> &'o [Value] {
    let items = list(of, name);
    if items.len() > max {
        causes.too_many(&at.child(name), items.len(), max);
        return &[];
    }
    items
}

/// Says of items that their keys came before.
pub fn no_duplicates<'k>(keys: impl Iterator<Item = &'k str>, at: &Path<'_>, causes: &mut Causes) {
    let mut known = Seen::default();
    for (index, key) in keys.enumerate() {
        if known.again(key) {
            causes.duplicate(&at.index(index), key);
        }
    }
}
