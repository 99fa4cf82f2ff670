//! Seals the objects of the state: quiet ones are put into blocks with their neighbours.
//!
//! The window's events say which keys changed. Each key is looked at when its object has been quiet for
//! [`Pace::cool_ms`]; keys that change all the time are looked at again after [`Pace::late_ms`]. Where events
//! were evicted before they were looked at, or more had to be sealed anew than there was time for, the whole
//! state is scanned afterwards.
//!
//! In: the window, the state. Out: jobs, each a few milliseconds of a background thread's time, and their
//! results: which object takes the place of which. Never: seals an object that changed within the last
//! seconds, except in haste; seals the same bytes again and again.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_object::Object;
use forebay_object::seal::{RecentBlocks, Sealer};
use forebay_revlog::Writer;

use super::Haste;
use super::run::{self, Patience, Run, Trigger};
use crate::event::Event;
use crate::limits;
use crate::snapshot::Snapshot;

/// Owned by the ingest task.
pub(super) struct Tree {
    pace: limits::Pace,
    // The window's next items to look at: those that become old enough for `cool_ms`, and for `late_ms`.
    cool: u64,
    late: u64,
    // Triggers that are left for the next job, at most LEFT_MAX and those that one job adds.
    left: Vec<Trigger>,
    scan: Scan,
    // Bytes of blocks that may be sealed anew now, and when that was counted.
    allowance: usize,
    counted_ms: u64,
}

enum Scan {
    Done,
    /// The scan goes on from this key.
    At(Key),
    /// The scan goes on from this key, and then once more from the beginning.
    Again(Key),
}

/// Work for the background.
pub(super) struct Job {
    snapshot: Snapshot,
    triggers: Vec<Trigger>,
    // The job's keys lie between these two, which do not belong to it.
    after: Option<Key>,
    below: Option<Key>,
    scan: Option<(Key, Revision)>,
    allowance: usize,
    recent: Arc<RecentBlocks>,
}

/// The result of a job.
pub(super) struct Done {
    // Objects, each with the one that takes its place.
    renewed: Vec<Renewed>,
    left: Vec<Trigger>,
    scanned: Scanned,
    resealed: usize,
    // Blocks were left broken because the allowance was used up.
    poor: bool,
}

/// An object, and the same at rest.
pub(super) type Renewed = (Arc<Object>, Arc<Object>);

/// How far a job went on with the scan.
enum Scanned {
    Nothing,
    UpTo(Key),
    All,
}

impl Tree {
    pub(super) fn new(pace: limits::Pace, seq: u64) -> Tree {
        Tree {
            pace,
            cool: seq,
            late: seq,
            left: Vec::new(),
            scan: Scan::Done,
            allowance: limits::RESEAL_BYTES_MAX,
            counted_ms: 0,
        }
    }

    /// Whether there is, or will be, something to look at.
    pub(super) fn is_behind(&self, window: &Writer<Arc<Event>>) -> bool {
        let looked = self.cool.min(self.late);
        looked < window.next_seq() || !self.left.is_empty() || !matches!(self.scan, Scan::Done)
    }

    /// The next jobs, if there are any now: one; in haste two, where there is enough for both.
    ///
    /// - `upto_seq`: the window's items from there on are not looked at in haste.
    pub(super) fn next_jobs(
        &mut self,
        window: &Writer<Arc<Event>>,
        snapshot: &Snapshot,
        recent: &Arc<RecentBlocks>,
        (haste, upto_seq): (Haste, u64),
        now_ms: u64,
    ) -> Vec<Job> {
        let earned = now_ms.saturating_sub(self.counted_ms).saturating_mul(limits::RESEAL_BYTES_PER_MS);
        self.allowance = limits::RESEAL_BYTES_MAX.min(self.allowance.saturating_add(earned as usize));
        self.counted_ms = now_ms;
        let mut triggers = std::mem::take(&mut self.left);
        if triggers.len() < limits::LEFT_MAX {
            if haste == Haste::None {
                triggers.extend(self.cool(window, snapshot, now_ms));
            }
            let until_ms = haste.until(now_ms.saturating_sub(self.pace.late_ms));
            loop {
                let looked = self.late;
                triggers.extend(self.late(window, snapshot, until_ms, upto_seq));
                // In haste until there is a trigger, or nothing more.
                if haste == Haste::None || !triggers.is_empty() || self.late == looked {
                    break;
                }
            }
            self.cool = self.cool.max(self.late);
        }
        // It is loose and no event says where it is.
        let lost = haste == Haste::Now && self.late == window.next_seq() && snapshot.loose_bytes() > 0;
        if lost && triggers.is_empty() && matches!(self.scan, Scan::Done) {
            self.scan_again();
        }
        let quiet = reached_at(window, haste.until(now_ms.saturating_sub(self.pace.cool_ms)));
        let has_time = lost || self.has_time();
        let scan = match &self.scan {
            Scan::At(key) | Scan::Again(key) if triggers.is_empty() && has_time => Some((key.clone(), quiet)),
            _ => None,
        };
        if triggers.is_empty() && scan.is_none() {
            return Vec::new();
        }
        let recent = recent.clone();
        let (after, below) = (None, None);
        let job = Job {
            snapshot: snapshot.clone(),
            triggers,
            after,
            below,
            scan,
            allowance: self.allowance,
            recent,
        };
        if haste == Haste::Now { job.halves() } else { vec![job] }
    }

    fn has_time(&self) -> bool {
        self.allowance >= limits::RESEAL_BYTES_MAX / 2
    }

    /// Notes that a job was lost: a scan finds its objects again.
    pub(super) fn lost(&mut self) {
        self.scan_again();
    }

    /// Notes what a job has left to do. Returns the objects that it sealed.
    pub(super) fn take(&mut self, mut done: Done) -> Vec<Renewed> {
        self.allowance = self.allowance.saturating_sub(done.resealed);
        self.left.append(&mut done.left);
        self.scan = match (std::mem::replace(&mut self.scan, Scan::Done), done.scanned) {
            (scan, Scanned::Nothing) => scan,
            (Scan::Again(_), Scanned::UpTo(key)) => Scan::Again(key),
            (_, Scanned::UpTo(key)) => Scan::At(key),
            (Scan::Again(_), Scanned::All) => Scan::At(Key::from("")),
            (_, Scanned::All) => Scan::Done,
        };
        if done.poor {
            self.scan_again();
        }
        done.renewed
    }

    /// Scans the state from its beginning, when the scan that is under way is through.
    fn scan_again(&mut self) {
        self.scan = match std::mem::replace(&mut self.scan, Scan::Done) {
            Scan::Done => Scan::At(Key::from("")),
            Scan::At(key) | Scan::Again(key) => Scan::Again(key),
        };
    }

    fn cool(&mut self, window: &Writer<Arc<Event>>, snapshot: &Snapshot, now_ms: u64) -> Vec<Trigger> {
        let until_ms = now_ms.saturating_sub(self.pace.cool_ms);
        let settled = self.settled(window, (until_ms, u64::MAX), |tree| &mut tree.cool);
        let quiet = reached_at(window, until_ms);
        let often = reached_at(window, until_ms.saturating_sub(limits::OFTEN_MS));
        let is_due = |event: &Arc<Event>| is_last(event, snapshot) && !is_hot(event, window, often);
        let due = settled.iter().filter(|event| is_due(event));
        due.filter_map(|event| trigger(event, quiet, Patience::Wait)).collect()
    }

    fn late(
        &mut self,
        window: &Writer<Arc<Event>>,
        snapshot: &Snapshot,
        until_ms: u64,
        upto_seq: u64,
    ) -> Vec<Trigger> {
        let settled = self.settled(window, (until_ms, upto_seq), |tree| &mut tree.late);
        let quiet = reached_at(window, until_ms);
        // Also what changed since: what is around it is to be sealed without it.
        let in_place = |key: &Key| snapshot.get(key).is_some_and(|now| now.is_sealed());
        let due = settled.iter().filter_map(|event| trigger(event, quiet, Patience::GoOn));
        due.filter(|trigger| !in_place(&trigger.key)).collect()
    }

    fn settled(
        &mut self,
        window: &Writer<Arc<Event>>,
        (until_ms, upto_seq): (u64, u64),
        pass: impl Fn(&mut Tree) -> &mut u64,
    ) -> Vec<Arc<Event>> {
        let next_seq = *pass(self);
        let max = (limits::SETTLED_MAX as u64).min(upto_seq.saturating_sub(next_seq)) as usize;
        let settled = window.settled(next_seq, until_ms, max);
        if settled.first().is_some_and(|(seq, _)| *seq > next_seq) {
            self.scan_again();
        }
        if let Some((seq, _)) = settled.last() {
            *pass(self) = seq + 1;
        }
        settled.into_iter().map(|(_, event)| event).collect()
    }
}

fn reached_at(window: &Writer<Arc<Event>>, ms: u64) -> Revision {
    Revision::from_log(window.reached_at(ms))
}

fn trigger(event: &Event, quiet: Revision, patience: Patience) -> Option<Trigger> {
    let object = event.current.as_ref().or(event.previous.as_ref())?;
    Some(Trigger { key: object.key().clone(), quiet, patience })
}

/// Whether the event's key is as the event left it.
fn is_last(event: &Event, snapshot: &Snapshot) -> bool {
    let object = event.current.as_ref().or(event.previous.as_ref());
    let now = object.and_then(|object| snapshot.get(object.key()));
    match (&event.current, now) {
        (Some(current), Some(now)) => Arc::ptr_eq(current, now),
        (None, None) => true,
        _ => false,
    }
}

/// Whether the key changed two times before within [`limits::OFTEN_MS`]: then it is expected to change again
/// soon.
fn is_hot(event: &Event, window: &Writer<Arc<Event>>, often: Revision) -> bool {
    let Some(previous) = &event.previous else { return false };
    if previous.revision() <= often {
        return false;
    }
    let seqs = window.seqs_at(previous.revision().get());
    let (events, _) = window.log().page(seqs.start, (seqs.end - seqs.start) as usize);
    let own = |event: &&Arc<Event>| event.current.as_ref().is_some_and(|it| it.key() == previous.key());
    let before = events.iter().find(own).and_then(|event| event.previous.as_ref());
    before.is_some_and(|before| before.revision() > often)
}

impl Job {
    /// Two that share it, if it is enough for two: what lies before one of its objects, and what lies from
    /// there on.
    fn halves(mut self) -> Vec<Job> {
        self.triggers.sort_by(|one, other| one.key.cmp(&other.key));
        // Nothing where the object is gone, or in a block: that is not to be cut.
        let plain = |trigger: &Trigger| {
            let now = self.snapshot.get(&trigger.key).filter(|now| !now.is_sealed());
            now.map(|now| now.body_len())
        };
        let total: usize = self.triggers.iter().filter_map(plain).sum();
        if total < 2 * limits::HALF_BYTES_MIN {
            return vec![self];
        }
        let mut before = 0;
        let middle = self.triggers.iter().position(|trigger| {
            let Some(bytes) = plain(trigger) else { return false };
            let is_middle = before >= total / 2;
            before += bytes;
            is_middle
        });
        let Some(middle) = middle else { return vec![self] };
        let second = self.triggers.split_off(middle);
        let pivot = second[0].key.clone();
        // What has the same key goes with it.
        let first = std::mem::take(&mut self.triggers);
        let (first, same): (Vec<_>, Vec<_>) = first.into_iter().partition(|trigger| trigger.key < pivot);
        let last_before = self.snapshot.around(&pivot).1.next().map(|object| object.key().clone());
        let allowance = self.allowance / 2;
        let (snapshot, recent) = (self.snapshot.clone(), self.recent.clone());
        let second = Job {
            snapshot,
            triggers: same.into_iter().chain(second).collect(),
            after: last_before,
            below: None,
            scan: None,
            allowance,
            recent,
        };
        vec![Job { triggers: first, below: Some(pivot), allowance, ..self }, second]
    }

    /// Seals a bounded part of the job.
    pub(super) fn run(mut self) -> Done {
        let mut done = Done {
            renewed: Vec::new(),
            left: Vec::new(),
            scanned: Scanned::Nothing,
            resealed: 0,
            poor: false,
        };
        let mut sealer = Sealer::new(self.recent.clone());
        let (mut after, mut bytes) = (self.after.take(), 0);
        self.triggers.sort_by(|one, other| one.key.cmp(&other.key));
        for trigger in std::mem::take(&mut self.triggers) {
            if after.as_ref().is_some_and(|after| trigger.key <= *after) {
                continue;
            }
            if bytes >= limits::JOB_BYTES || done.renewed.len() >= limits::JOB_OBJECTS {
                done.left.push(trigger);
                continue;
            }
            for run in run::runs_at(&self.snapshot, &trigger, (after.as_ref(), self.below.as_ref())) {
                let again = |key: &Key| Trigger { key: key.clone(), ..trigger.clone() };
                done.left.extend(run.more.iter().map(again));
                after = run.objects.last().map(|last| last.key().clone()).or(after);
                bytes += self.seal(run, &mut sealer, &mut done);
            }
        }
        if let Some((from, quiet)) = &self.scan {
            let (runs, next) = run::scan(&self.snapshot, from, *quiet);
            done.scanned = next.map_or(Scanned::All, Scanned::UpTo);
            for run in runs {
                self.seal(run, &mut sealer, &mut done);
            }
        }
        done
    }

    /// Seals a run; only its plain objects where it costs too much to seal the others anew. Returns the bytes
    /// that it sealed.
    fn seal(&self, run: Run, sealer: &mut Sealer, done: &mut Done) -> usize {
        let objects = run.objects;
        let rich = run.resealed == 0 || done.resealed + run.resealed <= self.allowance;
        let parts: Vec<&[Arc<Object>]> = match rich {
            true => vec![&objects],
            false => {
                let plain = |object: &Arc<Object>| !object.is_sealed();
                let stretches = objects.chunk_by(|one, next| plain(one) == plain(next));
                stretches.filter(|stretch| plain(&stretch[0])).collect()
            }
        };
        done.resealed += if rich { run.resealed } else { 0 };
        done.poor |= !rich;
        let mut bytes = 0;
        for part in parts {
            let sealed = sealer.seal(part);
            bytes += part.iter().map(|object| object.body_len()).sum::<usize>();
            let renewed = part.iter().cloned().zip(sealed).filter(|(old, new)| !Arc::ptr_eq(old, new));
            done.renewed.extend(renewed);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use forebay_backend::Op;
    use forebay_object::seal::BLOCK_OBJECTS;
    use forebay_rt::Random;

    use super::*;
    use crate::tests::{World, everything, noise};

    #[tokio::test]
    async fn in_haste_two_share_what_is_enough_for_both_and_seal_each_object_once() {
        let (world, random) = (World::new().await, Random::seeded(3));
        let name = |pod: usize| format!("a/pod-{pod:03}");
        for pod in 0..120 {
            let note = noise(&random, 600).repeat(16);
            let value = format!(
                r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"pod-{pod:03}","namespace":"a","uid":"u"}},"note":"{note}"}}"#
            );
            world.commit(&name(pod), Op::Put { value: value.into(), ttl: None }).await;
        }
        world.delete(&name(60)).await;
        let snapshot = world.cacher.fresh(world.soon()).await.expect("fresh").as_ref().clone();
        let objects: Vec<Arc<Object>> = snapshot.range(&everything().reach, None).cloned().collect();
        let quiet = snapshot.revision();
        let job = |keys: Vec<Key>| Job {
            snapshot: snapshot.clone(),
            triggers: keys.into_iter().map(|key| Trigger { key, quiet, patience: Patience::GoOn }).collect(),
            after: None,
            below: None,
            scan: None,
            allowance: limits::RESEAL_BYTES_MAX,
            recent: Arc::default(),
        };
        let mut keys: Vec<Key> = objects.iter().map(|object| object.key().clone()).rev().collect();
        keys.push(Key::from(format!("{}{}", crate::tests::PREFIX, name(60))));
        // Too little for two.
        assert_eq!(job(keys[..50].to_vec()).halves().len(), 1);
        let halves = job(keys).halves();
        assert_eq!(halves.len(), 2);
        // Old -> new, and by which half.
        let mut renewed: BTreeMap<Key, (usize, Arc<Object>)> = BTreeMap::new();
        for (half, job) in halves.into_iter().enumerate() {
            let done = job.run();
            assert!(done.left.is_empty());
            for (old, new) in done.renewed {
                assert_eq!((old.key(), &*old.body()), (new.key(), &*new.body()));
                assert!(renewed.insert(old.key().clone(), (half, new)).is_none(), "{old:?} twice");
            }
        }
        assert_eq!(renewed.len(), objects.len());
        let by: Vec<usize> = renewed.values().map(|(half, _)| *half).collect();
        assert!(by.is_sorted() && (40..80).contains(&by.iter().sum::<usize>()), "{by:?}");
        assert!(renewed.values().all(|(_, new)| new.place().is_some_and(|(_, of)| of < BLOCK_OBJECTS)));
    }
}
