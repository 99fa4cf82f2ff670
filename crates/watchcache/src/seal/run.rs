//! Which neighbours are sealed together: a run is a stretch of the tree without a whole block in it.
//!
//! In: a state, a key whose object is quiet or gone, and since when its neighbours have to be quiet. Out: the
//! run around it, or nothing while a neighbour is expected to change. Never: deflates, changes anything.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_object::Object;
use forebay_object::seal::{Direction, Piece, PieceState, is_enough, is_small, pieces};

use crate::limits;
use crate::snapshot::Snapshot;

/// A key whose object is quiet, or gone: its neighbourhood may be sealed.
#[derive(Clone, Debug)]
pub(super) struct Trigger {
    pub(super) key: Key,
    /// Objects that were put after this revision are young.
    pub(super) quiet: Revision,
    pub(super) patience: Patience,
}

/// What a young object nearby means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// It is too early: there will be another trigger once the young object is quiet.
    Wait,
    /// Nothing, because it may never be quiet: its neighbours are sealed without it.
    GoOn,
}

/// Neighbours in key order, for new blocks.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) objects: Vec<Arc<Object>>,
    /// Plain bytes of the objects that are in a block already.
    pub(super) resealed: usize,
    /// Where a run that was cut goes on.
    pub(super) more: Vec<Key>,
}

/// What a walk in one direction found, nearest first, and what ended it.
struct Side {
    objects: Vec<Arc<Object>>,
    bytes: usize,
    end: End,
}

enum End {
    /// The end of the tree, or an object that stays plain.
    Wall,
    Young,
    /// A block that is large enough; nearest object first.
    Block(Vec<Arc<Object>>),
    /// The run is long enough; the next begins at this key.
    Cut(Key),
}

/// The runs around a trigger's key, in order: two where a young object is between them.
///
/// - `after`, `below`: keys up to the one are done already; those from the other on are another job's.
pub(super) fn runs_at(
    snapshot: &Snapshot,
    trigger: &Trigger,
    (after, below): (Option<&Key>, Option<&Key>),
) -> Vec<Run> {
    let here = snapshot.get(&trigger.key);
    if here.is_some_and(|here| here.is_at_rest()) {
        return Vec::new();
    }
    let young = here.is_some_and(|here| here.revision() > trigger.quiet);
    if young && trigger.patience == Patience::Wait {
        return Vec::new();
    }
    let (on, before) = snapshot.around(&trigger.key);
    let before = before.take_while(|object| after.is_none_or(|after| object.key() > after));
    let on = on.take_while(|object| below.is_none_or(|below| object.key() < below));
    let left = walk(pieces(before, Direction::Back), trigger.quiet);
    let right = walk(pieces(on.skip(usize::from(young)), Direction::On), trigger.quiet);
    let pairs = match young {
        true => vec![(left, Side::none()), (Side::none(), right)],
        false => vec![(left, right)],
    };
    pairs.into_iter().filter_map(|(left, right)| join(left, right, trigger.patience)).collect()
}

/// The runs from `from` on, and where to go on when the tree does.
pub(super) fn scan(snapshot: &Snapshot, from: &Key, quiet: Revision) -> (Vec<Run>, Option<Key>) {
    let (on, _) = snapshot.around(from);
    let (mut runs, mut side, mut looked, mut bytes) = (Vec::new(), Side::none(), 0, 0);
    for piece in pieces(on, Direction::On) {
        if looked >= limits::SCAN_OBJECTS || bytes >= limits::RUN_BYTES_MAX {
            runs.extend(join(Side::none(), side, Patience::GoOn));
            return (runs, piece.objects.first().map(|object| object.key().clone()));
        }
        looked += piece.objects.len();
        match kind(&piece, quiet) {
            Kind::Loose => {
                let before = side.bytes;
                side.add(piece);
                bytes += side.bytes - before;
            }
            _ => runs.extend(join(Side::none(), std::mem::replace(&mut side, Side::none()), Patience::GoOn)),
        }
    }
    runs.extend(join(Side::none(), side, Patience::GoOn));
    (runs, None)
}

/// One run of both sides.
fn join(left: Side, right: Side, patience: Patience) -> Option<Run> {
    let too_early = |side: &Side| matches!(side.end, End::Young) && !side.is_a_block();
    if patience == Patience::Wait && (too_early(&left) || too_early(&right)) {
        return None;
    }
    let (len, bytes) = (left.objects.len() + right.objects.len(), left.bytes + right.bytes);
    if len == 0 {
        return None;
    }
    let mut more = Vec::new();
    let mut beside = |end: End| match end {
        End::Block(objects) => Some(objects),
        End::Cut(key) => {
            more.push(key);
            None
        }
        End::Wall | End::Young => None,
    };
    let (mut before, mut after) = (beside(left.end), beside(right.end));
    match (&before, &after) {
        // Too little for a block of its own: a neighbouring block takes it in.
        _ if !is_small(bytes, len) => (before, after) = (None, None),
        (Some(one), Some(other)) if one.len() <= other.len() => after = None,
        (Some(_), Some(_)) => before = None,
        _ => {}
    }
    let before = before.into_iter().flatten().collect::<Vec<_>>().into_iter().rev();
    let objects: Vec<Arc<Object>> = before
        .chain(left.objects.into_iter().rev())
        .chain(right.objects)
        .chain(after.into_iter().flatten())
        .collect();
    let in_blocks = objects.iter().filter(|object| object.is_sealed());
    let resealed = in_blocks.map(|object| object.body_len()).sum();
    Some(Run { objects, resealed, more })
}

/// Collects pieces until one ends the run.
fn walk<'a>(pieces: impl Iterator<Item = Piece<'a>>, quiet: Revision) -> Side {
    let mut side = Side::none();
    for piece in pieces {
        if side.bytes >= limits::RUN_BYTES_MAX || side.objects.len() >= limits::RUN_OBJECTS_MAX {
            side.end = End::Cut(piece.objects[0].key().clone());
            break;
        }
        match kind(&piece, quiet) {
            Kind::Loose => side.add(piece),
            Kind::Young => {
                side.end = End::Young;
                break;
            }
            Kind::Block => {
                side.end = End::Block(piece.objects.into_iter().cloned().collect());
                break;
            }
            Kind::Dense => break,
        }
    }
    side
}

impl Side {
    fn none() -> Side {
        Side { objects: Vec::new(), bytes: 0, end: End::Wall }
    }

    fn add(&mut self, piece: Piece<'_>) {
        self.bytes += piece.objects.iter().map(|object| object.body_len()).sum::<usize>();
        self.objects.extend(piece.objects.into_iter().cloned());
    }

    fn is_a_block(&self) -> bool {
        is_enough(self.bytes, self.objects.len())
    }
}

/// What a piece is to a run.
enum Kind {
    /// To be sealed: quiet and plain, part of a broken block, or a small block.
    Loose,
    Young,
    Block,
    Dense,
}

fn kind(piece: &Piece<'_>, quiet: Revision) -> Kind {
    match piece.state() {
        PieceState::Whole => Kind::Block,
        PieceState::Dense => Kind::Dense,
        PieceState::Plain if piece.objects[0].revision() > quiet => Kind::Young,
        PieceState::Plain | PieceState::Broken => Kind::Loose,
    }
}
