//! Whether reads and writes of single keys could have happened one after the other.
//!
//! Wing and Gong's search, with Lowe's memory of what was tried: each step takes an operation that was called
//! before any that is left was answered, and does it on a model of one key. What was never answered may be
//! done at any later time, or never; the log says which of them were.
//!
//! In: operations, and the log. Out: the first [`Violation`]. Cost: with few clients a key, about that of
//! sorting.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{Call, Completion, Log, Operation, Promise, Tick, Violation};

/// Judges every key, and the order of revisions of all of them.
///
/// # Errors
/// [`Promise::Linearizable`], [`Promise::RealTime`].
pub fn linearizable(operations: &[Operation], log: &Log) -> Result<(), Violation> {
    revisions_follow_time(operations)?;
    let mut keys: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
    for operation in resolved(operations, log) {
        keys.entry(operation.key.clone()).or_default().push(operation);
    }
    keys.into_iter().try_for_each(|(key, operations)| Search::new(operations).run(&key))
}

/// Who began after another write was answered has a higher revision.
fn revisions_follow_time(operations: &[Operation]) -> Result<(), Violation> {
    let mut moments: Vec<(Tick, bool, u64, &Operation)> = Vec::new();
    for operation in operations {
        if let (Completion::Written { revision }, Some(ended)) = (&operation.answer, operation.ended) {
            moments.push((operation.begun, false, *revision, operation));
            moments.push((ended, true, *revision, operation));
        }
    }
    moments.sort_by_key(|(at, is_end, ..)| (*at, *is_end));
    let (mut newest, mut by) = (0, None);
    for (_, is_end, revision, operation) in moments {
        if is_end && revision > newest {
            (newest, by) = (revision, Some(operation));
        } else if !is_end && revision <= newest {
            let what = format!("{operation:?} began after {by:?}");
            return Err(Violation::new(Promise::RealTime, what));
        }
    }
    Ok(())
}

/// Unanswered writes as the log knows them: done, at a revision, or never done and left out. Of deletes it
/// does not know.
fn resolved(operations: &[Operation], log: &Log) -> Vec<Operation> {
    let written: BTreeMap<(&str, &str), u64> = log
        .entries
        .iter()
        .filter_map(|entry| {
            entry.current.as_ref().map(|(value, _)| ((entry.key.as_str(), value.as_str()), entry.revision))
        })
        .collect();
    let known = |operation: &Operation| {
        let mut operation = operation.clone();
        if let (
            Call::Create { value } | Call::Update { value, .. } | Call::Put { value, .. },
            Completion::Unknown,
        ) = (&operation.call, &operation.answer)
        {
            let revision = *written.get(&(operation.key.as_str(), value.as_str()))?;
            operation.answer = Completion::Written { revision };
        }
        Some(operation)
    };
    operations.iter().filter_map(known).collect()
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Model {
    // The value and its revision.
    object: Option<(String, u64)>,
    // No later write has a revision as low as this.
    floor: u64,
}

impl Model {
    /// The key after `operation`, if it can have had this answer here.
    fn step(&self, operation: &Operation) -> Option<Model> {
        let is_expected = |expect: &Option<u64>| {
            let there = self.object.as_ref().map(|(_, revision)| *revision);
            expect.is_none_or(|expect| there == Some(expect))
        };
        let same = |holds: bool| holds.then(|| self.clone());
        let put = |value: &String, revision: u64| {
            (revision > self.floor)
                .then(|| Model { object: Some((value.clone(), revision)), floor: revision })
        };
        match (&operation.call, &operation.answer) {
            (Call::Get, Completion::Found { value, revision }) => {
                same(self.object.as_ref() == Some(&(value.clone(), *revision)))
            }
            (Call::Create { value }, Completion::Written { revision }) => {
                self.object.is_none().then(|| put(value, *revision))?
            }
            (Call::Update { value, expect }, Completion::Written { revision }) => {
                (self.object.is_some() && is_expected(expect)).then(|| put(value, *revision))?
            }
            (Call::Put { value, expect }, Completion::Written { revision }) => {
                (self.object.is_none() || is_expected(expect)).then(|| put(value, *revision))?
            }
            (Call::Create { .. }, Completion::AlreadyExists) => same(self.object.is_some()),
            (
                Call::Update { expect, .. } | Call::Put { expect, .. } | Call::Delete { expect },
                Completion::Conflict,
            ) => same(self.object.is_some() && !is_expected(expect)),
            (Call::Get | Call::Update { .. } | Call::Delete { .. }, Completion::NotFound) => {
                same(self.object.is_none())
            }
            (Call::Delete { expect }, Completion::Deleted | Completion::Unknown) => (self.object.is_some()
                && is_expected(expect))
            .then_some(Model { object: None, floor: self.floor }),
            _ => None,
        }
    }
}

/// The search for an order of one key's operations.
///
/// What changes nothing is done as soon as it can be: later it might not be possible, and nothing is lost.
/// Writes come in the order of their revisions. So there is only something to try where a delete is about,
/// which names no revision.
struct Search {
    // In order of their calls.
    operations: Vec<Operation>,
    done: Vec<bool>,
    // Of those that are not done, the first.
    first: usize,
    // Places of writes, highest revision first; those that are done are at the end no more.
    writes: Vec<usize>,
    // What was done, and what had become of the key: tried, in vain.
    tried: HashSet<(Vec<bool>, Model)>,
    // The longest order that was found, for what is told of a failure.
    longest: Vec<usize>,
}

/// A step of the order that is being tried.
struct Step {
    place: usize,
    before: Model,
    /// Whether another one could come instead.
    is_choice: bool,
}

impl Search {
    fn new(mut operations: Vec<Operation>) -> Search {
        operations.sort_by_key(|operation| operation.begun);
        let mut writes: Vec<usize> =
            (0..operations.len()).filter(|place| revision_of(&operations[*place]).is_some()).collect();
        writes.sort_by_key(|place| std::cmp::Reverse(revision_of(&operations[*place])));
        let done = vec![false; operations.len()];
        Search { operations, done, first: 0, writes, tried: HashSet::new(), longest: Vec::new() }
    }

    fn run(mut self, key: &str) -> Result<(), Violation> {
        let mut model = Model { object: None, floor: 0 };
        let mut order: Vec<Step> = Vec::new();
        let mut from = 0;
        while !self.is_over() {
            if let Some((place, after)) = self.next(&model, from) {
                let is_choice = after != model;
                if is_choice {
                    self.tried.insert(self.doing(place, &after));
                }
                order.push(Step { place, before: std::mem::replace(&mut model, after), is_choice });
                self.mark(place, true);
                if order.len() > self.longest.len() {
                    self.longest = order.iter().map(|step| step.place).collect();
                }
                from = 0;
                continue;
            }
            // Nothing can come next: the last choice was wrong.
            loop {
                let Some(step) = order.pop() else { return Err(self.failed(key)) };
                self.mark(step.place, false);
                model = step.before;
                if step.is_choice {
                    from = step.place + 1;
                    break;
                }
            }
        }
        Ok(())
    }

    /// All that was answered is done.
    fn is_over(&self) -> bool {
        let left = self.operations[self.first..].iter().zip(&self.done[self.first..]);
        left.filter(|(_, done)| !**done).all(|(operation, _)| operation.ended.is_none())
    }

    /// The next operation that can come now; of those that change something, from `from` on.
    fn next(&mut self, model: &Model, from: usize) -> Option<(usize, Model)> {
        let able = self.able();
        let mut changing = None;
        for place in able {
            let operation = &self.operations[place];
            let Some(after) = model.step(operation) else { continue };
            if after == *model {
                return Some((place, after));
            }
            let is_next = revision_of(operation).is_none() || self.writes.last() == Some(&place);
            if changing.is_none()
                && place >= from
                && is_next
                && !self.tried.contains(&self.doing(place, &after))
            {
                changing = Some((place, after));
            }
        }
        changing
    }

    /// What may come now: nothing may come before what was answered before it was called.
    fn able(&self) -> Vec<usize> {
        let (mut answered, mut able) = (Tick::MAX, Vec::new());
        for place in self.first..self.operations.len() {
            let operation = &self.operations[place];
            if operation.begun > answered {
                break;
            }
            if !self.done[place] {
                answered = answered.min(operation.ended.unwrap_or(Tick::MAX));
                able.push(place);
            }
        }
        able
    }

    /// Where doing `place` leads.
    fn doing(&self, place: usize, after: &Model) -> (Vec<bool>, Model) {
        let mut done = self.done[self.first..].to_vec();
        done[place - self.first] = true;
        (done, after.clone())
    }

    fn mark(&mut self, place: usize, done: bool) {
        self.done[place] = done;
        self.first = match done {
            true => (self.first..self.done.len()).find(|at| !self.done[*at]).unwrap_or(self.done.len()),
            false => self.first.min(place),
        };
        if revision_of(&self.operations[place]).is_some() {
            match done {
                true => drop(self.writes.pop()),
                false => self.writes.push(place),
            }
        }
    }

    fn failed(&self, key: &str) -> Violation {
        let done: BTreeSet<usize> = self.longest.iter().copied().collect();
        let left = (0..self.operations.len()).filter(|place| !done.contains(place)).take(5);
        let left: Vec<String> = left.map(|place| format!("{:?}", self.operations[place])).collect();
        let last = self.longest.last().map(|place| &self.operations[*place]);
        let what = format!(
            "{key}: no order explains {} operations; after {} of them, the last {last:?}, none of these can be next: {}",
            self.operations.len(),
            self.longest.len(),
            left.join("; ")
        );
        Violation::new(Promise::Linearizable, what)
    }
}

fn revision_of(operation: &Operation) -> Option<u64> {
    match operation.answer {
        Completion::Written { revision } => Some(revision),
        _ => None,
    }
}
