//! What is known of the other servers: the last word of each.
//!
//! In: words by the names of their servers. Out: how many there are, what they hold, and what room there is.

use std::collections::BTreeMap;

use crate::limits::NEIGHBOURS_MAX;
use crate::word::Word;

/// What a neighbour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbour {
    Tells(Word),
    /// It is there and says nothing, as kube-apiserver does, or nothing that is understood. It counts as
    /// full.
    Silent,
}

/// The last words of the neighbours, this server not among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    // name of a server -> what it said last; <= NEIGHBOURS_MAX
    servers: BTreeMap<String, Neighbour>,
}

impl Heard {
    /// Notes what a neighbour says. Where there are too many, one with a later name is passed over.
    pub fn note(&mut self, name: &str, said: Neighbour) {
        self.servers.insert(name.to_owned(), said);
        if self.servers.len() > NEIGHBOURS_MAX {
            self.servers.pop_last();
        }
    }

    /// All of them, in the order of their names.
    pub fn servers(&self) -> impl Iterator<Item = (&str, Neighbour)> {
        self.servers.iter().map(|(name, said)| (name.as_str(), *said))
    }

    pub fn is_known(&self, name: &str) -> bool {
        self.servers.contains_key(name)
    }

    /// Those who say what they hold.
    pub fn words(&self) -> impl Iterator<Item = Word> {
        self.servers.values().filter_map(|said| match said {
            Neighbour::Tells(word) => Some(*word),
            Neighbour::Silent => None,
        })
    }

    /// How many connections may be let go in all, by whichever servers, wherever they come to: a balancer may
    /// lead them all to the neighbour that has the least room.
    pub fn least_room(&self) -> u64 {
        let room = |said: &Neighbour| match said {
            Neighbour::Tells(word) => word.room,
            Neighbour::Silent => 0,
        };
        self.servers.values().map(room).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_the_fullest_has_and_who_says_nothing_has_none() {
        let mut heard = Heard::default();
        assert_eq!(heard.least_room(), 0, "nobody is there");
        heard.note("b", Neighbour::Tells(Word { connections: 7, room: 50 }));
        heard.note("c", Neighbour::Tells(Word { connections: 9, room: 20 }));
        assert_eq!(heard.least_room(), 20);
        heard.note("c", Neighbour::Tells(Word { connections: 9, room: 60 }));
        assert_eq!((heard.least_room(), heard.words().map(|word| word.connections).sum::<u64>()), (50, 16));
        heard.note("kube-apiserver", Neighbour::Silent);
        assert_eq!((heard.least_room(), heard.words().count(), heard.servers().count()), (0, 2, 3));
    }

    #[test]
    fn no_more_than_so_many_are_listened_to() {
        let mut heard = Heard::default();
        (0..2 * NEIGHBOURS_MAX).for_each(|n| heard.note(&format!("{n:03}"), Neighbour::Silent));
        assert_eq!(heard.servers().count(), NEIGHBOURS_MAX);
        assert!(heard.is_known("000") && !heard.is_known("100"));
    }
}
