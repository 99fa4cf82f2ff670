//! The log against a plain model of it: a vector of everything that was ever appended, and where its history
//! begins.

use forebay_rt::Random;

use crate::{Cursor, Lane, Limits, Step, Usage, Writer};

const LIMITS: Limits = Limits { items_max: 12, bytes_max: 60, age_ms_max: 40 };
const LANES: u64 = 3;
/// Where a log begins that has a past.
const BEGINS: u64 = 20;

/// One item, as the model knows it. Its lane is `id % LANES`.
#[derive(Clone, Copy)]
struct Item {
    revision: u64,
    id: u64,
    bytes: usize,
    at_ms: u64,
}

struct World {
    random: Random,
    writer: Writer<u64>,
    lanes: Vec<Option<Lane>>,
    // Of each lane, where it began, or the last of its items that it forgot.
    floors: Vec<u64>,
    // Everything ever appended.
    items: Vec<Item>,
    // How many of them are evicted, and up to which revision.
    evicted: usize,
    floor: u64,
    progress: u64,
    now_ms: u64,
    pressed_out: u64,
    // What can still be put in front.
    has_past: bool,
    closed: bool,
}

/// A cursor, and what it is to yield.
struct Reader {
    cursor: Cursor<u64>,
    start: u64,
    // `None` reads everything; else its lane, and up to where it reads everything nevertheless.
    lane: Option<(u64, u64)>,
    // Next in `World::items`.
    at: usize,
    seen: u64,
    expired: bool,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            random: Random::seeded(seed),
            writer: Writer::new(BEGINS, LIMITS),
            lanes: (0..LANES).map(|_| None).collect(),
            floors: vec![BEGINS; LANES as usize],
            items: Vec::new(),
            evicted: 0,
            floor: BEGINS,
            progress: BEGINS,
            now_ms: 1_000,
            pressed_out: 0,
            has_past: true,
            closed: false,
        }
    }

    /// Puts in front what was before the beginning. How many items that were, and false if it is too late for
    /// them.
    fn prepend(&mut self) -> (usize, bool) {
        let (floor, mut past) = (1 + self.random.below(BEGINS), Vec::new());
        let mut revision = floor + 1;
        while revision <= BEGINS && past.len() < 15 {
            let (id, at_ms) =
                (1_000 + past.len() as u64, self.items.first().map_or(self.now_ms, |item| item.at_ms));
            past.push(Item { revision, id, bytes: self.random.below(12) as usize, at_ms });
            revision += self.random.below(4);
        }
        let batch = past.iter().map(|item| (item.revision, item.id, item.bytes)).collect();
        let is_done = self.writer.prepend(floor, batch, self.now_ms);
        assert_eq!(is_done, self.evicted == 0 && self.has_past);
        if !is_done {
            return (0, false);
        }
        let count = past.len();
        self.items.splice(..0, past);
        (self.floor, self.has_past) = (floor, false);
        self.evict();
        (count, true)
    }

    fn append(&mut self) {
        let (mut revision, mut batch) = (self.progress + self.random.below(2), Vec::new());
        for _ in 0..=self.random.below(5) {
            revision += self.random.below(3);
            revision = revision.max(self.progress + 1);
            let id = self.items.len() as u64 + batch.len() as u64;
            batch.push(Item { revision, id, bytes: self.random.below(12) as usize, at_ms: self.now_ms });
        }
        let route =
            |(index, item): (usize, &Item)| Some((index, self.lanes[(item.id % LANES) as usize].clone()?));
        let routes: Vec<(usize, Lane)> = batch.iter().enumerate().filter_map(route).collect();
        self.writer.append_routed(
            batch.iter().map(|item| (item.revision, item.id, item.bytes)),
            routes,
            self.now_ms,
        );
        let touched: Vec<u64> = batch.iter().map(|item| item.id % LANES).collect();
        self.items.extend(batch);
        self.progress = revision;
        self.evict();
        touched.into_iter().for_each(|lane| self.trimmed(lane));
    }

    fn held(&self) -> &[Item] {
        &self.items[self.evicted..]
    }

    fn evict(&mut self) {
        while let (Some(front), Some(last)) = (self.held().first(), self.held().last()) {
            let bytes: usize = self.held().iter().map(|item| item.bytes).sum();
            let aged = self.now_ms - front.at_ms > LIMITS.age_ms_max;
            let pressed = self.held().len() > LIMITS.items_max || bytes > LIMITS.bytes_max;
            if !(aged || pressed) || front.revision == last.revision {
                return;
            }
            let revision = front.revision;
            let gone = self.held().iter().take_while(|item| item.revision == revision).count();
            self.evicted += gone;
            self.pressed_out += if aged { 0 } else { gone as u64 };
            self.floor = revision;
        }
    }

    /// The lane has forgotten what the log has.
    fn trimmed(&mut self, lane: u64) {
        let floor = &mut self.floors[lane as usize];
        let gone = self.items[..self.evicted].iter().rev().find(|item| item.id % LANES == lane);
        *floor = gone.map_or(*floor, |item| item.revision.max(*floor));
    }

    fn open(&mut self, lane: u64) -> &Lane {
        let routed = self.items.last().map_or(BEGINS, |item| item.revision.max(BEGINS));
        if self.lanes[lane as usize].is_none() {
            self.floors[lane as usize] = routed;
        }
        self.lanes[lane as usize].get_or_insert_with(|| Lane::new(routed))
    }

    fn start(&mut self) -> Option<Reader> {
        let start = (self.floor + self.random.below(30)).saturating_sub(3).max(1);
        let log = self.writer.log();
        let (cursor, lane) = match self.random.below(LANES + 2) {
            lane if lane < LANES => {
                let reader = self.open(lane).reader();
                let until = self.floors[lane as usize];
                (log.lane_cursor(reader, start), Some((lane, if start < until { until } else { 0 })))
            }
            _ => (log.cursor(start), None),
        };
        match cursor {
            Ok(cursor) => {
                assert!(start >= self.floor);
                let at = self.items.partition_point(|item| item.revision <= start);
                Some(Reader { cursor, start, lane, at, seen: start, expired: false })
            }
            Err(expired) => {
                assert!(start < self.floor && expired.oldest == self.floor, "{expired:?}");
                None
            }
        }
    }

    fn read(&mut self, reader: &mut Reader) {
        // What it is still to be given.
        reader.at = reader.at.max(self.items.partition_point(|item| item.revision <= reader.start));
        let wanted = |item: &Item| match reader.lane {
            Some((lane, until)) => item.id % LANES == lane || item.revision <= until,
            None => true,
        };
        let rest: Vec<(usize, Item)> = self.items.iter().copied().enumerate().skip(reader.at).collect();
        let unread: Vec<(usize, Item)> = rest.into_iter().filter(|(_, item)| wanted(item)).collect();
        // On its way to its lane it cannot tell whose it was that was evicted.
        let on_its_way =
            reader.lane.is_some_and(|(_, until)| reader.seen < until && reader.seen < self.floor);
        let missed = on_its_way || unread.first().is_some_and(|(at, _)| *at < self.evicted);
        let (max, one) = (1 + self.random.below(4) as usize, self.random.below(2) == 0);
        let (step, mut items) = if one {
            match reader.cursor.try_next() {
                Some(Step::Item(revision, id)) => (None, vec![(revision, id)]),
                step => (step, Vec::new()),
            }
        } else {
            let mut items = Vec::new();
            (reader.cursor.take(max, &mut items), items)
        };
        if missed || reader.expired {
            reader.expired = true;
            assert_eq!((step, items), (Some(Step::Expired { oldest: self.floor }), vec![]));
            return;
        }
        if unread.is_empty() {
            assert!(items.is_empty(), "{items:?}");
            let closed = self.closed.then_some(Step::Closed);
            let progress = (self.progress > reader.seen).then_some(Step::Progress(self.progress));
            assert_eq!(step, closed.or(progress), "seen {} of {}", reader.seen, self.progress);
            reader.seen = if self.closed { reader.seen } else { self.progress.max(reader.seen) };
            assert!(reader.cursor.seen() >= reader.start);
            return;
        }
        assert_eq!(step, None);
        let asked = if one { 1 } else { max };
        let last = unread[(asked - 1).min(unread.len() - 1)].1.revision;
        let whole =
            |(index, (_, item)): &(usize, (usize, Item))| *index < asked || (!one && item.revision == last);
        let given: Vec<(usize, Item)> =
            unread.iter().copied().enumerate().take_while(whole).map(|(_, it)| it).collect();
        // Where it goes over to its lane it may stop early.
        let early =
            reader.lane.is_some_and(|(_, until)| given.iter().any(|(_, item)| item.revision <= until));
        let short =
            given.iter().take_while(|(_, item)| reader.lane.is_none_or(|(_, until)| item.revision <= until));
        let given = if early { short.copied().collect() } else { given };
        items.iter_mut().zip(&given).for_each(|(got, (_, item))| assert_eq!(*got, (item.revision, item.id)));
        assert_eq!(items.len(), given.len());
        let (at, item) = given[given.len() - 1];
        reader.at = at + 1;
        let half = unread.iter().any(|(place, next)| *place > at && next.revision == item.revision);
        reader.seen = reader.seen.max(item.revision - u64::from(half));
        // All that was to be given up to there was given.
        let seen = reader.cursor.seen();
        assert!(unread.iter().all(|(place, next)| *place <= at || next.revision > seen), "{seen}");
        assert!(seen >= reader.seen);
        reader.seen = seen;
    }

    fn check_usage(&self) {
        let usage = self.writer.log().usage();
        let bytes = self.held().iter().map(|item| item.bytes).sum();
        let Usage { items, bytes: counted, pressed_out, .. } = usage;
        assert_eq!((items, counted, pressed_out), (self.held().len(), bytes, self.pressed_out));
        assert_eq!((self.writer.log().oldest(), self.writer.progress()), (self.floor, self.progress));
    }

    fn check_undo(&self) {
        let after = (self.floor + self.random.below(20)).saturating_sub(2);
        let upto = after + self.random.below(20);
        let undo = self.writer.log().undo(after, upto);
        if after < self.floor {
            assert_eq!(undo.expect_err("gone").oldest, self.floor);
            return;
        }
        let between = self.held().iter().rev().filter(|item| item.revision > after && item.revision <= upto);
        assert_eq!(undo.expect("held"), between.map(|item| item.id).collect::<Vec<_>>());
    }
}

#[test]
fn a_log_is_what_its_model_is() {
    let mut prepended = 0;
    for seed in 0..400 {
        let mut world = World::new(seed);
        let mut readers: Vec<Reader> = Vec::new();
        for _ in 0..150 {
            match world.random.below(12) {
                0..=2 => world.append(),
                3 => {
                    world.progress += world.random.below(3);
                    world.writer.announce(world.progress);
                }
                4 => world.now_ms += world.random.below(20),
                5 => {
                    world.writer.evict(world.now_ms);
                    world.evict();
                }
                6 => {
                    let lane = world.random.below(LANES);
                    if let Some(open) = world.lanes[lane as usize].clone() {
                        world.writer.trim(&open);
                        world.trimmed(lane);
                    }
                }
                7 if readers.len() < 8 => readers.extend(world.start()),
                10 if world.random.below(3) == 0 => {
                    let (count, is_done) = world.prepend();
                    prepended += u32::from(is_done);
                    readers.iter_mut().for_each(|reader| reader.at += count);
                }
                8 if !readers.is_empty() && world.random.below(3) == 0 => {
                    readers.swap_remove(world.random.below(readers.len() as u64) as usize);
                }
                _ if !readers.is_empty() => {
                    let reader = world.random.below(readers.len() as u64) as usize;
                    world.read(&mut readers[reader]);
                }
                _ => {}
            }
            world.check_usage();
            world.check_undo();
        }
        // The end: everybody reads to it.
        let gone = std::mem::replace(&mut world.writer, Writer::new(BEGINS, LIMITS));
        drop(gone);
        world.closed = true;
        for reader in &mut readers {
            for _ in 0..100 {
                world.read(reader);
            }
            assert!(reader.expired || reader.cursor.try_next() == Some(Step::Closed), "seed {seed}");
        }
    }
    assert!(prepended > 100, "{prepended}");
}
