//! The pieces of a list that several read: each is made once, by whoever comes to it first.
//!
//! In: a source that can be forked. Out: a [`Place`] before its first piece, from which every reader goes its
//! own way: a place knows what comes next, once somebody has made it, and from what to make it. Nobody waits
//! for another's client: a piece is made without any, and who stands at the edge of what is made makes the
//! next. What was made can be forgotten at any time; who still needs it makes it again, from there on. Never:
//! decides what is kept.

use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use forebay_reads::SeenObjects;
use forebay_transport::limits::MADE_BYTES;

use crate::source::ListSource;

/// A place between two pieces.
pub struct Place {
    // What comes next is made of it. Locked to be forked.
    source: Mutex<Box<dyn ListSource>>,
    // Locked to be taken or forgotten.
    next: Mutex<Arc<OnceLock<Made>>>,
    seen: SeenObjects,
}

/// What comes next at a place.
struct Made {
    // `None` behind the last.
    piece: Option<(Bytes, Arc<Place>)>,
    _kept: PieceBytes,
}

/// Bytes that are kept, in all places together. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct KeptBytes(Arc<AtomicUsize>);

/// So many of them, until dropped.
pub struct PieceBytes {
    bytes: usize,
    of: KeptBytes,
}

/// What a reader comes to.
pub struct NextPiece {
    /// `None` behind the last.
    pub piece: Option<(Bytes, Arc<Place>)>,
    /// It was made for this reader.
    pub is_new: bool,
}

/// What a place takes besides what is made at it: itself, and its source without what all forks share.
const PLACE_BYTES: usize = 512;

impl KeptBytes {
    pub fn keep(&self, bytes: usize) -> PieceBytes {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        PieceBytes { bytes, of: self.clone() }
    }

    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for PieceBytes {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Place {
    pub fn new(source: Box<dyn ListSource>) -> Place {
        let seen = source.seen();
        Place { source: Mutex::new(source), next: Mutex::default(), seen }
    }

    /// The objects before it.
    pub fn seen(&self) -> SeenObjects {
        self.seen
    }

    /// What comes next. Whoever wants the same at the same time waits until it is made: about a millisecond.
    pub fn next(&self, kept: &KeptBytes) -> NextPiece {
        let (made, mut is_new) = (self.made().clone(), false);
        let make = || {
            is_new = true;
            self.make(kept)
        };
        let piece = made.get_or_init(make).piece.clone();
        NextPiece { piece, is_new }
    }

    /// The same, if it is there and there is something in it.
    pub fn next_made(&self) -> Option<(Bytes, Arc<Place>)> {
        let made = self.made().clone();
        made.get().and_then(|made| made.piece.clone()).filter(|(piece, _)| !piece.is_empty())
    }

    /// What makes all that comes next. A fork of it stays, for the next time, and should making it panic.
    pub fn source(&self) -> Box<dyn ListSource> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let fork = (*source).clone();
        mem::replace(&mut *source, fork)
    }

    /// Lets go of what comes next: it is made again when a reader comes to it.
    pub fn forget(&self) {
        let gone = mem::take(&mut *self.made());
        drop(gone);
    }

    fn make(&self, kept: &KeptBytes) -> Made {
        let mut source = self.source();
        let mut piece = Vec::with_capacity(MADE_BYTES);
        if !source.fill(&mut piece) && piece.is_empty() {
            return Made { piece: None, _kept: kept.keep(PLACE_BYTES) };
        }
        piece.shrink_to_fit();
        let bytes = PLACE_BYTES + piece.len() + source.held_bytes();
        let piece = Some((Bytes::from(piece), Arc::new(Place::new(source))));
        Made { piece, _kept: kept.keep(bytes) }
    }

    fn made(&self) -> MutexGuard<'_, Arc<OnceLock<Made>>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    /// However many pieces are behind it that nobody else has, they go one after the other.
    fn drop(&mut self) {
        let mut next = mem::take(&mut *self.made());
        while let Some(Made { piece: Some((_, place)), .. }) =
            Arc::into_inner(next).and_then(OnceLock::into_inner)
        {
            let Some(place) = Arc::into_inner(place) else { break };
            next = mem::take(&mut *place.made());
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_transport::BodySource;

    use super::*;
    use crate::source::OfList;

    /// A number in each piece.
    #[derive(Clone)]
    struct Numbers(std::ops::Range<usize>);

    impl BodySource for Numbers {
        fn fill(&mut self, out: &mut Vec<u8>) -> bool {
            let next = self.0.next();
            next.iter().for_each(|number| out.extend_from_slice(number.to_string().as_bytes()));
            next.is_some()
        }
    }

    impl OfList for Numbers {
        fn seen(&self) -> SeenObjects {
            SeenObjects::default()
        }

        fn held_bytes(&self) -> usize {
            0
        }
    }

    fn place(count: usize) -> Arc<Place> {
        Arc::new(Place::new(Box::new(Numbers(0..count))))
    }

    /// Reads from `place` to the end: what, and how many pieces were made for it.
    fn read(mut place: Arc<Place>, kept: &KeptBytes) -> (Vec<u8>, usize) {
        let (mut text, mut made) = (Vec::new(), 0);
        loop {
            let next = place.next(kept);
            made += usize::from(next.is_new);
            let Some((piece, then)) = next.piece else { return (text, made) };
            text.extend_from_slice(&piece);
            place = then;
        }
    }

    #[test]
    fn what_one_has_made_the_next_finds() {
        let (place, kept) = (place(12), KeptBytes::default());
        assert!(place.next_made().is_none());
        let want: Vec<u8> = (0..12).flat_map(|number| number.to_string().into_bytes()).collect();
        assert_eq!(read(place.clone(), &kept), (want.clone(), 13));
        assert_eq!(place.next_made().map(|(piece, _)| piece), Some("0".into()));
        assert_eq!(read(place.clone(), &kept), (want, 0));
        assert!(kept.bytes() > 13 * PLACE_BYTES);
        drop(place);
        assert_eq!(kept.bytes(), 0);
    }

    #[test]
    fn what_was_forgotten_is_made_again_from_there_and_the_same() {
        let (place, kept) = (place(12), KeptBytes::default());
        let Some((_, second)) = place.next(&kept).piece else { panic!("a piece") };
        let (rest, made) = read(second.clone(), &kept);
        assert_eq!(made, 12);
        second.forget();
        assert_eq!((read(second.clone(), &kept), kept.bytes() > 0), ((rest.clone(), 12), true));
        assert_eq!(read(second, &kept), (rest, 0), "those who are behind together share it again");
    }

    #[test]
    fn pieces_that_nobody_has_any_more_are_gone_however_many_they_are() {
        let (place, kept) = (place(200_000), KeptBytes::default());
        let mut last = place.clone();
        while let Some((_, then)) = last.next(&kept).piece {
            last = then;
        }
        drop(place);
        assert_eq!(kept.bytes(), PLACE_BYTES, "but for what the last one knows");
    }
}
