//! The tree against std's map, with older states of both kept and compared again in the end.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use forebay_rt::Random;

use crate::tree::{Entry, NODE_MAX, Side, Tree};

/// A key, and a number that tells versions of it apart and is its weight.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbered(u64, usize);

impl Entry for Arc<Numbered> {
    type Key = u64;

    fn to_key(&self) -> u64 {
        self.0
    }

    fn cmp_key(&self, key: &u64) -> Ordering {
        self.0.cmp(key)
    }

    fn cmp_entry(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }

    fn weight(&self) -> usize {
        self.1
    }
}

type Numbers = Tree<Arc<Numbered>>;
type Model = BTreeMap<u64, Arc<Numbered>>;

fn same(tree: &Numbers, model: &Model) {
    tree.check();
    assert_eq!(tree.len(), model.len());
    assert_eq!(tree.is_empty(), model.is_empty());
    assert!(tree.places(0..tree.len()).eq(model.values()), "not what the model has");
    assert!(tree.places(0..tree.len()).rev().eq(model.values().rev()), "another backwards");
}

/// Asks for a few places and parts.
fn ask(tree: &Numbers, model: &Model, random: &Random, keys: u64) {
    let (one, other) = (random.below(keys + 2), random.below(keys + 2));
    let (from, to) = (one.min(other), one.max(other));
    assert_eq!(tree.get(&from), model.get(&from));
    let before = || model.range(..from).map(|(_, entry)| entry.1);
    assert_eq!(tree.weight_before(&from, Side::Before), before().sum::<usize>());
    assert_eq!(
        tree.weight_before(&to, Side::After),
        model.range(..=to).map(|(_, entry)| entry.1).sum::<usize>()
    );
    let (low, high) = (tree.rank(&from, Side::Before), tree.rank(&to, Side::After));
    assert_eq!(low, before().count());
    let expected = || model.range((Bound::Included(from), Bound::Included(to))).map(|(_, entry)| entry);
    assert_eq!(tree.places(low..high).len(), expected().count());
    assert!(tree.places(low..high).eq(expected()));
    assert!(tree.places(low..high).rev().eq(expected().rev()));
    // From both ends until they meet.
    let (mut ours, mut theirs) = (tree.places(low..high), expected());
    loop {
        let skip = random.below(3) as usize;
        let (next, expected) = match random.below(3) {
            0 => (ours.next_back(), theirs.next_back()),
            1 => (ours.nth(skip), theirs.nth(skip)),
            _ => (ours.next(), theirs.next()),
        };
        assert_eq!(next, expected);
        if next.is_none() {
            break;
        }
    }
}

/// - `order`: the next key, given the step.
fn run(
    seed: u64,
    steps: u64,
    keys: u64,
    removes_of_8: impl Fn(u64) -> u64,
    order: impl Fn(u64, &Random) -> u64,
) {
    let random = Random::seeded(seed);
    let (mut tree, mut model) = (Numbers::default(), Model::new());
    let mut kept: Vec<(Numbers, Model)> = Vec::new();
    for step in 0..steps {
        let key = order(step, &random);
        if random.below(8) < removes_of_8(step) {
            assert_eq!(tree.remove(&key), model.remove(&key), "seed {seed} step {step}");
        } else {
            let entry = Arc::new(Numbered(key, step as usize));
            assert_eq!(tree.insert(entry.clone()), model.insert(key, entry), "seed {seed} step {step}");
        }
        ask(&tree, &model, &random, keys);
        if random.below(64) == 0 {
            same(&tree, &model);
            let place = random.below(8) as usize;
            let now = (tree.clone(), model.clone());
            match kept.get_mut(place) {
                Some(old) => *old = now,
                None => kept.push(now),
            }
        }
    }
    kept.push((tree, model));
    kept.iter().for_each(|(tree, model)| same(tree, model));
}

#[test]
fn it_holds_what_a_map_holds_and_so_does_each_of_its_past_states() {
    for seed in 0..4 {
        run(seed, 3_000, 500, |_| 3, |_, random| random.below(500));
        // It grows, shrinks to nothing, and grows again.
        run(seed, 3_000, 300, |step| if step / 750 % 2 == 0 { 1 } else { 7 }, |_, random| random.below(300));
    }
}

#[test]
fn keys_in_order_fill_their_leaves_whichever_way_they_come() {
    run(1, 2_000, 2_000, |_| 0, |step, _| step);
    run(2, 2_000, 2_000, |_| 0, |step, _| 2_000 - step);
    run(3, 2_000, 2_000, |_| 1, |step, _| step / 2);
    // Many lists, each in order, as namespaces are when they are filled by turns.
    run(4, 2_000, 20_000, |_| 0, |step, _| step % 20 * 1_000 + step / 20);
    let mut tree = Numbers::default();
    (0..1_000).for_each(|key| drop(tree.insert(Arc::new(Numbered(key, 1)))));
    assert!(tree.leaves() <= 1_000 / NODE_MAX + 1, "{}", tree.leaves());
}

#[test]
fn what_nobody_shares_is_changed_in_place_and_what_somebody_does_is_copied() {
    let mut tree = Numbers::default();
    (0..100).for_each(|key| drop(tree.insert(Arc::new(Numbered(key * 2, 0)))));
    let shared = |one: &Numbers, other: &Numbers| {
        let place = |tree: &Numbers, key| {
            tree.places(0..tree.len()).find(|entry| entry.0 == key).map(|entry| entry as *const _)
        };
        (0..100).filter(|key| place(one, key * 2) == place(other, key * 2)).count()
    };
    let before = tree.clone();
    tree.insert(Arc::new(Numbered(80, 1)));
    let copied = 100 - shared(&tree, &before);
    assert!((1..=NODE_MAX).contains(&copied), "{copied} entries were copied");
    assert_eq!(before.get(&80).map(|entry| entry.1), Some(0));
    drop(before);
    let place = tree.places(40..41).next().map(|entry| entry as *const _);
    tree.insert(Arc::new(Numbered(80, 2)));
    assert_eq!(tree.places(40..41).next().map(|entry| entry as *const _), place);
}

#[test]
fn keys_in_descending_order_behind_a_full_leaf_fill_their_leaves_too() {
    let mut tree = Numbers::default();
    let full = NODE_MAX as u64;
    (0..full).for_each(|key| drop(tree.insert(Arc::new(Numbered(key, 1)))));
    (full..1_000).rev().for_each(|key| drop(tree.insert(Arc::new(Numbered(key, 1)))));
    tree.check();
    assert!(tree.leaves() <= 1_000 / NODE_MAX + 2, "{}", tree.leaves());
}

#[test]
fn a_node_with_less_than_a_third_joins_a_neighbour_that_has_room() {
    // The leaves are 0, 2, 4, 5 and 6, 8, 10. Which goes, and how many leaves there are then.
    for goes in [&[(8, 2), (2, 2), (4, 2), (5, 1)][..], &[(5, 2), (4, 2), (2, 1)]] {
        let mut tree = Numbers::default();
        [0, 2, 4, 6, 8, 10, 5].into_iter().for_each(|key| drop(tree.insert(Arc::new(Numbered(key, 1)))));
        assert_eq!(tree.leaves(), 2);
        for (key, leaves) in goes {
            tree.remove(key);
            tree.check();
            assert_eq!(tree.leaves(), *leaves, "without {key}");
        }
    }
    // Of many, few are left, here and there.
    let mut tree = Numbers::default();
    (0..1_000).for_each(|key| drop(tree.insert(Arc::new(Numbered(key, 1)))));
    (0..1_000).filter(|key| key % 10 != 0).for_each(|key| drop(tree.remove(&key)));
    tree.check();
    assert!(tree.leaves() <= 3 * 100 / NODE_MAX, "{}", tree.leaves());
}

#[test]
fn a_tree_is_empty_before_the_first_entry_and_after_the_last() {
    let mut tree = Numbers::default();
    assert!(tree.is_empty());
    (0..20).for_each(|key| drop(tree.insert(Arc::new(Numbered(key, 1)))));
    assert!(!tree.is_empty());
    (0..20).for_each(|key| drop(tree.remove(&key)));
    assert!(tree.is_empty());
    same(&tree, &Model::new());
}
