//! What a server says of itself, as it stands in the store.
//!
//! In: numbers. Out: a short JSON object, and back. What cannot be read is nothing: its server counts as
//! full. Never: a name, an address or a user.
//!
//! Format: `docs/formats/neighbours.md`.

use serde_json::{Value, json};

use crate::limits::WORD_BYTES_MAX;

const VERSION: u64 = 1;

/// What a server says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Open connections on which a client was authenticated.
    pub connections: u64,
    /// Connections that it could take beside them; none while it refuses requests, has no memory to spare, or
    /// is not ready.
    pub room: u64,
}

impl Word {
    pub fn encode(self) -> Vec<u8> {
        let Word { connections, room } = self;
        json!({ "version": VERSION, "connections": connections, "room": room }).to_string().into_bytes()
    }

    /// The word that `bytes` are; none where they are none of this version.
    pub fn decode(bytes: &[u8]) -> Option<Word> {
        if bytes.len() > WORD_BYTES_MAX {
            return None;
        }
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        if number("version") != Some(VERSION) {
            return None;
        }
        // Neither is more than a machine has, so that sums of them do not overflow.
        let [connections, room] = ["connections", "room"].map(|name| number(name).filter(|n| *n < 1 << 40));
        Some(Word { connections: connections?, room: room? })
    }

    /// Whether others are to be told of it at once, who know `before`: there is room now, or none any more;
    /// or connections or room are others by an eighth, and by more than a few.
    pub fn is_news_after(self, before: Word) -> bool {
        let differs = |now: u64, before: u64| now.abs_diff(before) > (before / 8).max(4);
        (self.room == 0) != (before.room == 0)
            || differs(self.connections, before.connections)
            || differs(self.room, before.room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_was_said_and_nothing_else_is_a_word() {
        for word in [Word::default(), Word { connections: 1_200, room: 800 }] {
            assert_eq!(Word::decode(&word.encode()), Some(word));
            assert!(word.encode().len() <= WORD_BYTES_MAX && word.encode().starts_with(b"{"));
        }
        let longest = Word { connections: (1 << 40) - 1, room: (1 << 40) - 1 };
        assert!(longest.encode().len() <= WORD_BYTES_MAX);
        assert_eq!(
            Word::decode(br#"{"version":1,"connections":3,"room":4,"later":true}"#),
            Some(Word { connections: 3, room: 4 })
        );
        let long = format!(r#"{{"version":1,"connections":3,"room":4,"x":"{}"}}"#, "x".repeat(256));
        for other in [
            "",
            "{}",
            "[]",
            r#"{"version":2,"connections":3,"room":4}"#,
            r#"{"version":1,"connections":-3,"room":4}"#,
            r#"{"version":1,"connections":3}"#,
            r#"{"version":1,"connections":3,"room":18446744073709551615}"#,
            &long,
        ] {
            assert_eq!(Word::decode(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn it_is_news_when_room_comes_or_goes_or_much_has_changed() {
        let before = Word { connections: 800, room: 100 };
        for (connections, room, news) in [
            (800, 100, false),
            (899, 100, false),
            (901, 100, true),
            (699, 100, true),
            (800, 88, false),
            (800, 87, true),
            (800, 0, true),
        ] {
            let now = Word { connections, room };
            assert_eq!((now.is_news_after(before), before.is_news_after(before)), (news, false), "{now:?}");
        }
        assert!(Word { connections: 0, room: 1 }.is_news_after(Word::default()));
        assert!(!Word { connections: 4, room: 0 }.is_news_after(Word::default()));
    }
}
