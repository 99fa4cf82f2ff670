//! Cuts changes into parts, so that room is taken for one part at a time.
//!
//! In: changes, oldest first. Out: a part of whole revisions, and what it takes. Never: waits.

use forebay_backend::Change;

use crate::limits;

/// The next whole revisions of `changes`, about [`limits::PART_BYTES`], and the room they need.
pub(super) fn next_part(changes: &mut Vec<Change>) -> Option<(Vec<Change>, usize)> {
    let (mut bytes, mut len, mut last) = (0, 0, changes.first()?.revision);
    for change in changes.iter() {
        if change.revision != last && bytes >= limits::PART_BYTES {
            break;
        }
        last = change.revision;
        // The object's revision is written into its bytes.
        bytes += change.value.as_ref().map_or(0, |value| value.len() + limits::REVISION_BYTES);
        len += 1;
    }
    let part = if len == changes.len() { std::mem::take(changes) } else { changes.drain(..len).collect() };
    Some((part, bytes))
}
