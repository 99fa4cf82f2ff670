//! Names that clients chose, as they may be shown on a terminal and in a table.
//!
//! In: any text. Out: text without what would move a cursor or turn a line around, no longer than it may be.

use std::borrow::Cow;

use crate::limits::TEXT_BYTES_MAX;

/// The same, with a mark in the place of what is not to be printed.
pub fn printable(text: &str) -> Cow<'_, str> {
    // Once: the text is a name, cut to its limit before it is kept, or an answer's that was read whole.
    match text.chars().any(is_unprintable) {
        false => Cow::Borrowed(text),
        true => text.chars().map(|c| if is_unprintable(c) { '\u{fffd}' } else { c }).collect(),
    }
}

/// The part of it that is kept.
pub(crate) fn cut(text: &str) -> &str {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// Control characters, and those that say which way what follows is read.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_move_a_cursor_is_a_mark() {
        assert_eq!(printable("kubelet/v1.36 (linux/amd64)"), "kubelet/v1.36 (linux/amd64)");
        assert_eq!(printable("a\x1b[2Jb\u{9b}c\u{202e}d"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d");
        assert_eq!(printable("Jürgen 日本"), "Jürgen 日本");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let long = "ü".repeat(TEXT_BYTES_MAX);
        assert_eq!(cut(&long).len(), TEXT_BYTES_MAX);
        assert_eq!(cut(&format!("x{long}")).len(), TEXT_BYTES_MAX - 1);
        assert_eq!(cut("short"), "short");
    }
}
