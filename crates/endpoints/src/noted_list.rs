//! The copy that an audit log has of a list's answer, while that is sent: all of it as JSON, however it is
//! answered.
//!
//! In: a list, and room. Out: a trail that has it, and the state that it is of. Never: more bytes than there
//! is room for, which half of it stays free of ([`Room::try_take_beside`]); waits for room: those who have it
//! may read as slowly as they like.

use bytes::Bytes;
use forebay_audit::Trail;
use forebay_audit::limits::RESPONSE_BYTES_MAX;
use forebay_reads::{As, IncludeObject, ListBody, Weight};
use forebay_room::{Held, Room};
use forebay_transport::limits::CHUNK_BYTES;

/// It is longer than what is kept of an answer, or than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// How much of an object's bytes is in its row, or in its metadata alone. It may be more: then more is asked
/// for on the way.
const SHOWN_SHARE: usize = 8;

/// What is foreseen of a list's copy, in bytes; nothing where it is too long for certain.
///
/// - `what`: is shown of each object.
pub fn foreseen(weight: Weight, what: As) -> Option<usize> {
    let bytes = match what {
        As::Object | As::Table(IncludeObject::Object) => weight.of.selected_bytes,
        As::Table(_) | As::PartialMetadata => weight.of.selected_bytes / SHOWN_SHARE,
    };
    // With a selector it is a guess.
    (bytes <= 2 * RESPONSE_BYTES_MAX).then_some(bytes.clamp(CHUNK_BYTES, RESPONSE_BYTES_MAX))
}

/// Reads all of `body`, and tells `trail`, which holds the room that it takes until it is noted. The state
/// that the list is of, if it says so. Cost: three passes over it.
///
/// - `held`: of `room`, what is [foreseen].
///
/// # Errors
/// [`TooLong`]: nothing is held any more.
pub fn read(
    mut body: ListBody,
    mut held: Held,
    room: &Room,
    trail: &Trail,
) -> Result<Option<String>, TooLong> {
    let (mut all, mut piece) = (Vec::with_capacity(held.bytes()), Vec::new());
    loop {
        let has_more = body.next_chunk(CHUNK_BYTES, &mut piece);
        if all.len() + piece.len() > RESPONSE_BYTES_MAX {
            return Err(TooLong);
        }
        let spare = all.capacity() - all.len();
        if spare < piece.len() {
            let ahead = (all.capacity() / 4).min(RESPONSE_BYTES_MAX.saturating_sub(all.capacity()));
            let more = (piece.len() - spare).max(ahead);
            held.merge(room.try_take_beside(more).ok_or(TooLong)?);
            all.reserve_exact(spare + more);
        }
        all.append(&mut piece);
        if !has_more {
            break;
        }
    }
    drop(body);
    all.shrink_to_fit();
    held.set(all.capacity());
    let revision = revision(&all);
    let json = Bytes::from(all);
    // A copy without the owners of fields, for as long as both are there.
    let copy = match trail.omits_managed_fields() {
        true => Some(room.try_take_beside(json.len()).ok_or(TooLong)?),
        false => None,
    };
    trail.answers(&json);
    trail.hold(held);
    drop((json, copy));
    Ok(revision)
}

/// The state that a list is of.
fn revision(list: &[u8]) -> Option<String> {
    const METADATA: &[u8] = b"\"metadata\":{";
    // Of built-in kinds its own comes first, of others last.
    let metadata = match list.starts_with(b"{\"kind\":") {
        true => memchr::memmem::find(list, METADATA)?,
        false => memchr::memmem::rfind(list, METADATA)?,
    };
    let rest = &list[metadata..];
    const NAME: &[u8] = b"\"resourceVersion\":\"";
    let from = memchr::memmem::find(rest, NAME)? + NAME.len();
    let digits = rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then(|| String::from_utf8_lossy(&rest[from..from + digits]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_of_which_state_it_is() {
        let list = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"71","continue":"x"},"items":[]}"#;
        assert_eq!(revision(list).as_deref(), Some("71"));
        let custom = br#"{"apiVersion":"a/v1","items":[{"metadata":{"resourceVersion":"7"}}],"kind":"L","metadata":{"continue":"","resourceVersion":"8"}}"#;
        assert_eq!(revision(custom).as_deref(), Some("8"));
        assert_eq!(revision(b"{}"), None);
    }

    #[test]
    fn room_is_asked_for_before_a_list_is_read_and_not_for_what_is_too_long() {
        let weight = |selected_bytes| Weight {
            of: forebay_reads::Estimate { selected_bytes, ..Default::default() },
            ..Weight::default()
        };
        for (bytes, what, want) in [
            (0, As::Object, Some(CHUNK_BYTES)),
            (1 << 20, As::Object, Some(1 << 20)),
            (1 << 20, As::PartialMetadata, Some((1 << 20) / SHOWN_SHARE)),
            (RESPONSE_BYTES_MAX + 1, As::Object, Some(RESPONSE_BYTES_MAX)),
            (2 * RESPONSE_BYTES_MAX + 1, As::Object, None),
        ] {
            assert_eq!(foreseen(weight(bytes), what), want, "{bytes}");
        }
    }
}
