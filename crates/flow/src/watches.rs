//! The bytes of watches: what each flow may keep open.
//!
//! In: watches that open and end, with their bytes. Out: whether one may. Never: their starts, which take
//! turns as requests do.
//!
//! As with answers, a flow keeps no more than is free beside it: with one user's hundred thousand there is
//! room for as many bytes of others as before the first of them, less half.

use std::collections::HashMap;

/// Watches of all flows.
#[derive(Debug)]
pub(crate) struct Watches {
    pool: u64,
    held: u64,
    // hash of the flow -> its watches and their bytes; only flows that have some
    flows: HashMap<u64, Open>,
}

/// What a flow keeps open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    pub watches: u64,
    pub bytes: u64,
}

impl Watches {
    pub(crate) fn new(pool: u64) -> Watches {
        Watches { pool, held: 0, flows: HashMap::new() }
    }

    /// Whether a flow may keep so many bytes more.
    pub(crate) fn fits(&self, flow: u64, bytes: u64) -> bool {
        let wanted = self.of(flow).bytes.saturating_add(bytes.saturating_mul(2));
        wanted <= self.pool.saturating_sub(self.held)
    }

    pub(crate) fn open(&mut self, flow: u64, bytes: u64) {
        let open = self.flows.entry(flow).or_default();
        open.watches += 1;
        open.bytes += bytes;
        self.held += bytes;
    }

    pub(crate) fn end(&mut self, flow: u64, bytes: u64) {
        let open = self.flows.get_mut(&flow).expect("who ends was open");
        open.watches -= 1;
        open.bytes -= bytes;
        self.held -= bytes;
        if open.watches == 0 {
            self.flows.remove(&flow);
        }
    }

    /// What a flow keeps open.
    pub(crate) fn of(&self, flow: u64) -> Open {
        self.flows.get(&flow).copied().unwrap_or_default()
    }

    pub(crate) fn all(&self) -> Open {
        Open { watches: self.flows.values().map(|open| open.watches).sum(), bytes: self.held }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_thousand_watches_of_one_leave_room_for_others() {
        let mut watches = Watches::new(100_000 << 10);
        let open = |watches: &mut Watches, flow| {
            let mut count = 0;
            while count < 100_000 && watches.fits(flow, 1 << 10) {
                watches.open(flow, 1 << 10);
                count += 1;
            }
            count
        };
        assert_eq!(open(&mut watches, 1), 50_000 - 1 + 1);
        // 1,000 others with 20 each.
        for flow in 2..1_002 {
            for _ in 0..20 {
                assert!(watches.fits(flow, 1 << 10));
                watches.open(flow, 1 << 10);
            }
        }
        (0..50_000).for_each(|_| watches.end(1, 1 << 10));
        assert_eq!(watches.of(1), Open::default());
        assert_eq!(watches.all(), Open { watches: 20_000, bytes: 20_000 << 10 });
    }
}
