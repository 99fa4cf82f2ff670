//! A server that ends, and where its clients go.
//!
//! In: what is heard as it begins to end, and later. Out: for each neighbour how many connections it has more
//! than then. Others may have come to it as well: nobody knows a client at its next server.

use std::collections::BTreeMap;

use crate::heard::{Heard, Neighbour};

/// What the neighbours held when this server began to end.
#[derive(Clone, Debug)]
pub struct Departure {
    // name of a server -> its connections then; <= NEIGHBOURS_MAX
    before: BTreeMap<String, u64>,
}

impl Departure {
    pub fn begin(heard: &Heard) -> Departure {
        Departure { before: words(heard).map(|(name, held)| (name.to_owned(), held)).collect() }
    }

    /// The neighbours, and what each has gained since. One that came later has gained all that it has.
    pub fn gained<'h>(&'h self, heard: &'h Heard) -> impl Iterator<Item = (&'h str, u64)> {
        words(heard)
            .map(|(name, held)| (name, held.saturating_sub(self.before.get(name).copied().unwrap_or(0))))
    }
}

fn words(heard: &Heard) -> impl Iterator<Item = (&str, u64)> {
    heard.servers().filter_map(|(name, said)| match said {
        Neighbour::Tells(word) => Some((name, word.connections)),
        Neighbour::Silent => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::Word;

    #[test]
    fn what_each_neighbour_has_more_than_before_is_where_the_clients_went() {
        let heard = |all: &[(&str, u64)]| {
            let mut heard = Heard::default();
            all.iter().for_each(|(name, connections)| {
                heard.note(name, Neighbour::Tells(Word { connections: *connections, room: 9 }));
            });
            heard
        };
        let departure = Departure::begin(&heard(&[("a", 100), ("b", 50)]));
        let later = heard(&[("a", 180), ("b", 40), ("c", 7)]);
        assert_eq!(departure.gained(&later).collect::<Vec<_>>(), [("a", 80), ("b", 0), ("c", 7)]);
        let mut silent = later.clone();
        silent.note("a", Neighbour::Silent);
        assert_eq!(departure.gained(&silent).collect::<Vec<_>>(), [("b", 0), ("c", 7)]);
    }
}
