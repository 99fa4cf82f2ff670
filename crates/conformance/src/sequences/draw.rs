//! Sequences from a seed.
//!
//! In: a seed, the kinds. Out: a [`Sequence`], the same each time. Never: a look at a server.

use forebay_rt::Random;

use super::kinds::WrittenKind;
use super::step::{Action, Edit, ScaleVerb, SentManagers, SentVersion, Sequence, Step, WRONGS, Wrong};

const MANAGERS: [&str; 7] = ["alice", "alice", "bob", "bob", "carol", "kubectl", "kubectl-client-side-apply"];
const AGENTS: [&str; 4] = ["dave/1.0 (linux)", "erin", "kubectl/v1.36.3", ""];

/// The sequence of `seed`, of one of `kinds`.
///
/// - `pauses`: whether its steps are seconds apart. Then more managers write than an object keeps apart;
///   else fewer do, as which of them are joined is a matter of seconds.
pub fn draw(kinds: &[WrittenKind], seed: u64, pauses: bool) -> Sequence {
    let random = Random::seeded(seed);
    let kind = random.below(kinds.len() as u64) as usize;
    drawn(random, kinds, kind, seed, pauses)
}

/// The sequence of `seed`, of the kind of that number.
pub fn draw_of(kinds: &[WrittenKind], kind: usize, seed: u64) -> Sequence {
    drawn(Random::seeded(seed), kinds, kind, seed, false)
}

fn drawn(random: Random, kinds: &[WrittenKind], kind: usize, seed: u64, pauses: bool) -> Sequence {
    let mut draw = Draw { random, kind: &kinds[kind], pauses, writers: 0 };
    let length = if pauses { 12 + draw.below(6) } else { 3 + draw.below(9) };
    let steps = (0..length).map(|at| draw.step(at == 0)).collect();
    Sequence { seed, kind, pauses, steps }
}

struct Draw<'a> {
    random: Random,
    kind: &'a WrittenKind,
    pauses: bool,
    /// Managers of updates so far, in sequences that pause.
    writers: usize,
}

impl Draw<'_> {
    fn below(&self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn percent(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn step(&mut self, is_first: bool) -> Step {
        let action = if is_first { self.first() } else { self.later() };
        let is_update = !matches!(action, Action::Create | Action::Scale(..) | Action::Delete { .. });
        let status = is_update && !is_first && self.kind.has_status && self.percent(25);
        let manager = self.manager(action);
        Step {
            edits: self.edits(action, status),
            status,
            agent: self.percent(40).then(|| self.one(&AGENTS).to_owned()),
            version: if self.percent(70) { 0 } else { self.below(self.kind.versions.len()) },
            dry_run: !is_first && self.percent(6),
            validation: self.percent(15).then(|| self.one(&["Strict", "Warn", "Ignore"])),
            managers: self.managers(action),
            action,
            manager,
        }
    }

    fn first(&self) -> Action {
        match self.below(100) {
            0..48 => Action::Apply { force: self.percent(20), with_base: true, wrong: None },
            48..88 => Action::Create,
            88..94 => self.apply(),
            94..97 => Action::Put(SentVersion::None),
            _ => self.later(),
        }
    }

    fn later(&self) -> Action {
        match self.below(100) {
            0..40 => self.apply(),
            40..56 => Action::Put(match self.below(10) {
                0 => SentVersion::Stale,
                1..4 => SentVersion::None,
                _ => SentVersion::Current,
            }),
            56..65 => Action::MergePatch,
            65..74 => Action::JsonPatch,
            // Custom kinds refuse it, which need not be heard often.
            74..82 if self.kind.definition().is_some() && self.percent(85) => Action::MergePatch,
            74..82 => Action::StrategicPatch,
            82..91 if self.kind.has_scale => Action::Scale(
                match self.below(4) {
                    0 => ScaleVerb::Merge,
                    // On a custom resource kube-apiserver fails, and the objects are alike no more.
                    1 if self.kind.definition().is_some() && self.percent(85) => ScaleVerb::Put,
                    1 => ScaleVerb::Apply { force: self.percent(50) },
                    _ => ScaleVerb::Put,
                },
                1 + self.below(4) as u32,
            ),
            82..91 => self.apply(),
            91..94 => Action::Delete { background: self.percent(80) },
            94..96 => Action::Create,
            _ => Action::Apply {
                force: self.percent(30),
                with_base: self.percent(60),
                wrong: Some(self.one(&WRONGS)),
            },
        }
    }

    fn apply(&self) -> Action {
        Action::Apply { force: self.percent(35), with_base: self.percent(45), wrong: None }
    }

    fn manager(&mut self, action: Action) -> Option<String> {
        let is_apply = matches!(action, Action::Apply { .. } | Action::Scale(ScaleVerb::Apply { .. }, _));
        if let Action::Apply { wrong: Some(wrong), .. } = action {
            match wrong {
                Wrong::ManagerMissing => return None,
                Wrong::ManagerLong => return Some("m".repeat(129)),
                Wrong::ManagerUnprintable => return Some("a\u{7}b".to_owned()),
                _ => {}
            }
        }
        if self.pauses && !is_apply && self.percent(80) {
            self.writers += 1;
            return Some(format!("writer-{:02}", self.writers));
        }
        (is_apply || self.percent(75)).then(|| self.one(&MANAGERS).to_owned())
    }

    fn managers(&self, action: Action) -> SentManagers {
        let takes = matches!(
            action,
            Action::Create | Action::Put(_) | Action::MergePatch | Action::JsonPatch | Action::StrategicPatch
        );
        if !takes || self.percent(85) {
            return SentManagers::AsRead;
        }
        self.one(&[
            SentManagers::Emptied,
            SentManagers::EmptyEntry,
            SentManagers::Forged,
            SentManagers::Broken,
            SentManagers::LeftOut,
            SentManagers::LeftOut,
        ])
    }

    fn edits(&self, action: Action, status: bool) -> Vec<Edit> {
        let count = match action {
            Action::Scale(..) | Action::Delete { .. } => 0,
            Action::Create | Action::Apply { .. } => self.below(6),
            _ if self.percent(8) => 0,
            _ => 1 + self.below(3),
        };
        let adds_only = matches!(action, Action::Create | Action::Apply { .. });
        (0..count).map(|_| self.edit(adds_only, status)).collect()
    }

    fn edit(&self, adds_only: bool, status: bool) -> Edit {
        // What belongs to the other half is sent too, a little: it has no effect, or is refused.
        let wants_status = status != self.percent(12);
        let fields = &self.kind.fields;
        let mut field = self.below(fields.len());
        for _ in 0..8 {
            if fields[field].is_status() == wants_status {
                break;
            }
            field = self.below(fields.len());
        }
        let value = self.below(fields[field].values.len());
        Edit { field, value, removes: !adds_only && self.percent(25) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequences::kinds;

    #[test]
    fn a_seed_is_one_sequence_and_few_managers_update_where_nothing_pauses() {
        let kinds = kinds().expect("the kinds");
        for seed in 0..500 {
            let (one, other) = (draw(&kinds, seed, false), draw(&kinds, seed, false));
            let kind = &kinds[one.kind];
            assert_eq!(one.shown(kind), other.shown(kind));
            let mut writers: Vec<_> = one
                .steps
                .iter()
                .map(|step| (&step.manager, &step.agent, step.version, step.status))
                .collect();
            writers.sort_unstable();
            writers.dedup();
            assert!(writers.len() <= 11, "{}", one.shown(kind));
        }
    }
}
