//! Where a page begins: what a continue token says of it, and the place in the state.
//!
//! In: what is read, and a token's start. Out: a key. Never: encodes a token.

use forebay_apimachinery::Key;
use forebay_watchcache::{Interest, Reach};

/// The place behind which a page begins with `start`. Our tokens end in a zero byte, which no key has; before
/// any other start there is room for a letter that no key has.
pub(crate) fn place(interest: &Interest, start: &str) -> Key {
    let mut place = format!("{}{start}", prefix(interest));
    if let Some(last) = place.pop().filter(|last| *last != '\0') {
        place.extend(char::from_u32(u32::from(last) - 1));
        place.push(char::MAX);
    } else {
        place.push('\0');
    }
    Key::from(place)
}

/// What continue tokens leave off: the prefix of the keys in reach.
pub(crate) fn prefix(interest: &Interest) -> &str {
    match &interest.reach {
        Reach::Below(prefix) => prefix.as_str(),
        Reach::One(key) => {
            let slash = key.as_str().rfind('/').map_or(0, |slash| slash + 1);
            &key.as_str()[..slash]
        }
    }
}
