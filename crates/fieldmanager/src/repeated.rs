//! An apply that says what was said before changes nothing, not even a time.
//!
//! In: an object as it is and as it is to be. Out: the same with the old times, if nothing else differs.
//! Never: changes what an entry owns.
//!
//! Source: apiserver v0.36.3 `endpoints/handlers/fieldmanager/equality.go`.

use serde_json::{Map, Value};

use crate::entry::entries_of;

/// Gives the entries of `new` the times of `old` if they are all that differs.
///
/// Both are in one form: as they are written, which says each zero or none.
pub fn keep_times_if_repeated(new: &mut Value, old: &Value) {
    if is_repeated(new, old) {
        new["metadata"]["managedFields"] = old["metadata"]["managedFields"].clone();
    }
}

fn is_repeated(new: &Value, old: &Value) -> bool {
    let (new_entries, old_entries) = (entries_of(new), entries_of(old));
    !new_entries.is_empty()
        && new_entries.len() == old_entries.len()
        && new_entries.iter().zip(old_entries).any(|(new, old)| new["time"] != old["time"])
        && new_entries.iter().zip(old_entries).all(|(new, old)| same_but(new, old, "time", |_, _| true))
        && same_but(new, old, "metadata", |new, old| same_but(new, old, "managedFields", |_, _| true))
}

/// Whether two objects have the same members, one of which is judged apart.
fn same_but(new: &Value, old: &Value, name: &str, same: impl Fn(&Value, &Value) -> bool) -> bool {
    let empty = Map::new();
    let (new, old) = (new.as_object().unwrap_or(&empty), old.as_object().unwrap_or(&empty));
    let rest = |members: &'_ Map<String, Value>| members.len() - usize::from(members.contains_key(name));
    rest(new) == rest(old)
        && new.iter().all(|(member, value)| member == name || old.get(member) == Some(value))
        && same(new.get(name).unwrap_or(&Value::Null), old.get(name).unwrap_or(&Value::Null))
}
