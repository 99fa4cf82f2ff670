//! The rules of the queue, in rows: what is done to it, and what it says.

use std::collections::{BTreeMap, BTreeSet};

use forebay_rt::{Clock, Random};

use super::*;

/// Runs steps that are separated by `;` and compares what they say.
///
/// `add a`, `add a 5` (priority), `later a 100` (in ms), `later a 100 5`, `next`, `done a`, `len`, `at 100`
/// (ms since the beginning), `shut`, `drained`, `metrics`, `entries`. What says something is `next` (a key
/// with its priority unless that is 0, `+100` for nothing before that time, `-` for nothing, `shut`) and
/// those that ask for a number.
fn check(steps: &str, says: &str) {
    let began = Clock::manual(0).0.now();
    let ms = |text: &str| Duration::from_millis(text.parse().expect("milliseconds"));
    let (mut queue, mut now, mut said) = (Queue::<String>::new(), began, Vec::new());
    for step in steps.split(';') {
        let words: Vec<&str> = step.split_whitespace().collect();
        let priority = |at: usize| words.get(at).map_or(0, |text| text.parse().expect("a priority"));
        match words[0] {
            "add" => queue.add(words[1].into(), priority(2), now),
            "later" => queue.add_at(words[1].into(), priority(3), now + ms(words[2]), now),
            "done" => queue.done(&words[1].to_owned(), now),
            "at" => now = began + ms(words[1]),
            "shut" => queue.shut_down(),
            "next" => said.push(match queue.next(now) {
                Next::Key(key, 0) => key,
                Next::Key(key, priority) => format!("{key}/{priority}"),
                Next::Later(at) => format!("+{}", (at - began).as_millis()),
                Next::Nothing => "-".into(),
                Next::Shut => "shut".into(),
            }),
            "len" => said.push(queue.len(now).to_string()),
            "entries" => said.push(queue.entries.len().to_string()),
            "drained" => said.push(queue.is_drained().to_string()),
            "metrics" => {
                let it = queue.metrics(now);
                said.push(format!(
                    "depth={} ready={} waiting={} busy={} adds={} retries={} unfinished={} longest={}",
                    it.depth,
                    it.ready,
                    it.waiting,
                    it.busy,
                    it.adds,
                    it.retries,
                    it.unfinished.as_millis(),
                    it.longest_running.as_millis()
                ));
            }
            other => panic!("no such step: {other}"),
        }
    }
    assert_eq!(said.join(" "), says, "{steps}");
}

#[test]
fn a_key_is_worked_on_once_however_often_it_is_added() {
    check("add a; add b; add a; len; next; next; next", "2 a b -");
    check("add a; next; done a; next; entries", "a - 0");
    check("add a; next; done a; add a; next", "a a");
}

#[test]
fn a_key_that_is_worked_on_and_added_comes_once_more_afterwards_and_never_to_two() {
    check("add a; next; add a; add a; next; len; done a; len; next; done a; next; entries", "a - 0 1 a - 0");
    // Behind what arrived before it was done.
    check("add a; next; add a; add b; done a; next; next", "a b a");
}

#[test]
fn a_key_that_nobody_has_is_not_taken_back() {
    check("done a; add a; done a; len; next; done b; next; done a; done a; next; entries", "1 a - - 0");
}

#[test]
fn what_is_due_later_comes_then() {
    check(
        "later a 100; next; len; at 99; next; at 100; len; next; done a; next; entries",
        "+100 0 +100 1 a - 0",
    );
    check("later a 0; next", "a");
    check("later b 20; later a 10; at 30; next; next; next", "a b -");
    check("later b 10; later a 10; at 30; next; next", "b a");
}

#[test]
fn of_two_times_the_sooner_counts() {
    check("later a 100; later a 50; next; at 50; next; done a; at 200; next", "+50 a -");
    check("later a 50; later a 100; next; at 50; next; done a; at 200; next; entries", "+50 a - 0");
}

#[test]
fn a_key_that_is_due_later_and_added_now_is_worked_on_at_both_times() {
    check("later a 100; add a; next; done a; next; at 100; next; done a; entries", "a +100 a 0");
    check("add a; next; later a 50; done a; next; at 50; next", "a +50 a");
    // Once, when it is not taken before that.
    check("add a; later a 100; at 100; next; done a; next; entries", "a - 0");
    // Due while it is worked on.
    check("add a; next; later a 50; at 60; next; done a; next; done a; entries", "a - a 0");
}

#[test]
fn the_higher_priority_comes_first_and_within_one_what_came_first() {
    check("add a; add b 5; add c 5; add d -1; add e; next; next; next; next; next", "b/5 c/5 a e d/-1");
}

#[test]
fn a_key_keeps_the_highest_priority_it_was_added_with_and_its_place_of_arrival() {
    check("add a; add b 5; add a 5; next; next", "a/5 b/5");
    check("add a 5; add a 1; next; done a; add a; next", "a/5 a");
    check("add a 9; next; add a 2; add a 3; add a 1; add b 2; done a; next; next", "a/9 a/3 b/2");
    check("later a 100 1; later a 200 7; add b 3; at 100; next; next", "a/7 b/3");
    check("add a 1; later a 10 4; add b 3; at 10; next; next", "a/4 b/3");
}

#[test]
fn once_shut_down_what_is_ready_is_given_out_and_nothing_is_added() {
    check("add a; later b 10; shut; add c; later d 5; next; at 20; next; entries", "a shut 1");
    check("shut; next; drained", "shut true");
    check(
        "add a; add b; next; shut; drained; next; next; done a; drained; done b; drained",
        "a false b shut false true",
    );
    // What was added while it was worked on is ready once more, for whoever worked on it.
    check(
        "add a; next; add a; shut; next; done a; drained; next; done a; drained; next",
        "a shut false a true shut",
    );
    // What is only due is forgotten also when it is worked on.
    check("add a; next; later a 10; shut; done a; drained; entries", "a true 0");
}

#[test]
fn the_numbers_say_what_there_is_and_what_was() {
    check(
        "add a; add a; add b; later c 100; metrics; at 10; next; at 30; next; add a; metrics; at 100; done a; done b; metrics",
        "depth=2 ready=2 waiting=1 busy=0 adds=2 retries=1 unfinished=0 longest=0 a b \
         depth=1 ready=0 waiting=1 busy=2 adds=3 retries=1 unfinished=20 longest=20 \
         depth=2 ready=2 waiting=0 busy=0 adds=4 retries=1 unfinished=0 longest=0",
    );
}

#[test]
fn latency_is_from_the_add_or_the_time_it_was_due_and_work_until_it_is_done() {
    let began = Clock::manual(0).0.now();
    let at = |ms| began + Duration::from_millis(ms);
    let mut queue = Queue::new();
    queue.add("a", 0, at(0));
    queue.add("a", 0, at(5));
    queue.add_at("b", 0, at(20), at(0));
    assert_eq!(queue.next(at(7)), Next::Key("a", 0));
    queue.add("a", 0, at(10));
    queue.done(&"a", at(11));
    assert_eq!(queue.next(at(30)), Next::Key("a", 0));
    assert_eq!(queue.next(at(31)), Next::Key("b", 0));
    let numbers = queue.metrics(at(31));
    let ms = Duration::from_millis;
    assert_eq!((numbers.latency.count, numbers.latency.total, numbers.latency.longest), (3, ms(38), ms(20)));
    assert_eq!((numbers.work.count, numbers.work.total), (1, ms(4)));
}

#[test]
fn a_storm_of_keys_leaves_no_room_behind() {
    let now = Clock::manual(0).0.now();
    let mut queue = Queue::new();
    (0..10_000).for_each(|key| queue.add(key, 0, now));
    assert!(queue.entries.capacity() >= 10_000);
    while let Next::Key(key, _) = queue.next(now) {
        queue.done(&key, now);
    }
    assert!(queue.entries.capacity() <= 2 * limits::ROOM_KEPT);
    assert!(queue.ready.is_empty() && queue.due.is_empty() && queue.busy.is_empty());
}

/// Random steps held against the plainest statement of the rules: sets of what is to be done, and of who has
/// what.
#[test]
fn no_work_is_lost_none_is_done_twice_at_once_and_nothing_comes_early() {
    for seed in 0..300 {
        let random = Random::seeded(seed);
        let began = Clock::manual(0).0.now();
        let (mut queue, mut now) = (Queue::new(), began);
        let (mut dirty, mut held) = (BTreeSet::new(), BTreeSet::new());
        let mut due: BTreeMap<u64, Instant> = BTreeMap::new();
        for step in 0..400 {
            let key = random.below(6);
            match random.below(10) {
                0..=2 => {
                    queue.add(key, random.below(3) as i32, now);
                    dirty.insert(key);
                }
                3 => {
                    let at = now + Duration::from_millis(1 + random.below(50));
                    queue.add_at(key, random.below(3) as i32, at, now);
                    due.entry(key).and_modify(|before| *before = at.min(*before)).or_insert(at);
                }
                4..=6 => {
                    let come: Vec<u64> =
                        due.iter().filter(|(_, at)| **at <= now).map(|(key, _)| *key).collect();
                    due.retain(|_, at| *at > now);
                    dirty.extend(come);
                    match queue.next(now) {
                        Next::Key(key, _) => {
                            assert!(dirty.remove(&key), "seed {seed} step {step}: nothing to do for {key}");
                            assert!(held.insert(key), "seed {seed} step {step}: {key} is with two");
                        }
                        Next::Later(at) => {
                            assert_eq!(Some(at), due.values().min().copied(), "seed {seed} step {step}")
                        }
                        Next::Nothing => assert!(due.is_empty(), "seed {seed} step {step}"),
                        Next::Shut => panic!("seed {seed}: nobody shut it"),
                    }
                    let is_idle = dirty.difference(&held).next().is_none();
                    assert_eq!(queue.is_empty(now), is_idle, "seed {seed} step {step}");
                }
                7 | 8 => {
                    queue.done(&key, now);
                    held.remove(&key);
                }
                _ => now += Duration::from_millis(random.below(20)),
            }
            let known: BTreeSet<_> = dirty.iter().chain(&held).chain(due.keys()).collect();
            assert_eq!(queue.entries.len(), known.len(), "seed {seed} step {step}");
        }
    }
}
