//! Where the frames of one watch are put, in order, until they are sent.
//!
//! In: frames of its own, frames that others have as well, and what the cache has deflated. Out: [`Batch`],
//! in parts. Never: makes a frame.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::Key;
use forebay_catalog::Served;
use forebay_object::Deflated;
use smallvec::SmallVec;

/// Neighbours at rest whose objects are sent as they are stored, and as what.
#[derive(Clone, Copy)]
pub struct AtRest<'a> {
    pub deflated: Deflated<'a>,
    pub served: &'a Arc<Served>,
    /// Of its objects.
    pub first: &'a Key,
}

/// Where a watch's frames are put.
pub trait FrameSink {
    /// Room for so many bytes of frames of its own.
    fn reserve(&mut self, bytes: usize);

    /// A frame of its own, which `write` appends.
    fn own(&mut self, write: impl FnOnce(&mut Vec<u8>));

    /// So many frames of its own, of which `write` appends each by its place.
    fn own_each(&mut self, count: usize, mut write: impl FnMut(usize, &mut Vec<u8>)) {
        (0..count).for_each(|place| self.own(|own| write(place, own)));
    }

    /// A frame that others have as well.
    fn share(&mut self, frame: Bytes);

    /// Whether it has a use for [`FrameSink::segment`].
    fn takes_segments(&self) -> bool {
        false
    }

    /// The frames of all objects of a segment in the initial state, of which `write` appends each by its
    /// place. Whoever is sent the same segment of the same resource and version is sent the same.
    fn segment(&mut self, of: AtRest<'_>, write: impl FnMut(usize, &mut Vec<u8>)) {
        self.own_each(of.deflated.objects(), write);
    }

    /// Bytes of all frames.
    fn frame_bytes(&self) -> usize;
}

impl FrameSink for Vec<u8> {
    fn reserve(&mut self, bytes: usize) {
        self.reserve(bytes);
    }

    fn own(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self);
    }

    fn share(&mut self, frame: Bytes) {
        self.extend_from_slice(&frame);
    }

    fn frame_bytes(&self) -> usize {
        self.len()
    }
}

/// Frames of one watch in order, in parts: some frames of its own, or one that others have as well.
#[derive(Debug, Default)]
pub struct Batch {
    // Empty when there is none: most batches are one event, for which nothing is reserved.
    first: Bytes,
    rest: Option<Rest>,
    // Behind the parts.
    own: Vec<u8>,
    // Of each frame since they were asked for.
    sizes: Sizes,
}

/// Boxed: every watch that waits has an empty batch.
#[allow(clippy::box_collection, reason = "there is none most of the time")]
type Rest = Box<VecDeque<Bytes>>;

/// Bytes of frames; that of a single one is kept in place.
type Sizes = SmallVec<[u32; 4]>;

impl Batch {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.frame_bytes() == 0
    }

    /// Bytes of each frame that was put here since this was asked.
    pub fn take_sizes(&mut self) -> impl Iterator<Item = u32> + use<> {
        std::mem::take(&mut self.sizes).into_iter()
    }

    /// The parts that are left.
    pub fn parts(&mut self) -> impl Iterator<Item = &Bytes> {
        self.close();
        self.closed()
    }

    /// All that is left, as one.
    pub fn whole(&mut self) -> Bytes {
        self.close();
        let bytes = self.frame_bytes();
        if self.first.len() == bytes {
            return self.first.clone();
        }
        let mut whole = Vec::with_capacity(bytes);
        self.closed().for_each(|part| whole.extend_from_slice(part));
        whole.into()
    }

    /// Bytes of the part that comes next.
    pub fn next_bytes(&mut self) -> usize {
        self.close();
        self.first.len()
    }

    /// Takes at most `bytes_max` of the part that comes next.
    pub fn take(&mut self, bytes_max: usize) -> Bytes {
        self.close();
        let next = &mut self.first;
        let taken = next.split_to(next.len().min(bytes_max));
        if next.is_empty() {
            *next = self.rest.as_mut().and_then(|rest| rest.pop_front()).unwrap_or_default();
        }
        taken
    }

    fn closed(&self) -> impl Iterator<Item = &Bytes> {
        let first = std::iter::once(&self.first).filter(|first| !first.is_empty());
        first.chain(self.rest.iter().flat_map(|rest| rest.iter()))
    }

    /// Makes a part of what is not one yet.
    fn close(&mut self) {
        if !self.own.is_empty() {
            let own = std::mem::take(&mut self.own);
            self.push(own.into());
        }
    }

    fn push(&mut self, part: Bytes) {
        if part.is_empty() {
            return;
        }
        if self.first.is_empty() {
            self.first = part;
        } else {
            self.rest.get_or_insert_default().push_back(part);
        }
    }
}

impl From<Vec<u8>> for Batch {
    fn from(own: Vec<u8>) -> Batch {
        Batch { own, ..Batch::default() }
    }
}

impl FrameSink for Batch {
    fn reserve(&mut self, bytes: usize) {
        self.own.reserve(bytes);
    }

    fn own(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.own.len();
        write(&mut self.own);
        self.sizes.push((self.own.len() - from) as u32);
    }

    fn share(&mut self, frame: Bytes) {
        self.close();
        self.sizes.push(frame.len() as u32);
        self.push(frame);
    }

    fn frame_bytes(&self) -> usize {
        self.closed().map(Bytes::len).sum::<usize>() + self.own.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(text: &str, is_shared: bool, sink: &mut impl FrameSink) {
        match is_shared {
            true => sink.share(Bytes::copy_from_slice(text.as_bytes())),
            false => sink.own(|own| own.extend_from_slice(text.as_bytes())),
        }
    }

    #[test]
    fn a_batch_gives_its_frames_in_order_whoever_else_has_them() {
        let (mut batch, mut copied) = (Batch::default(), Vec::new());
        for (text, is_shared) in [("one ", false), ("two ", false), ("six ", true), ("ten", false)] {
            put(text, is_shared, &mut batch);
            put(text, is_shared, &mut copied);
        }
        assert_eq!((batch.frame_bytes(), copied.frame_bytes()), (15, 15));
        assert_eq!(batch.parts().map(Bytes::len).collect::<Vec<_>>(), [8, 4, 3]);
        assert_eq!(batch.take_sizes().collect::<Vec<_>>(), [4, 4, 4, 3]);
        put("nine", false, &mut batch);
        assert_eq!(batch.take_sizes().collect::<Vec<_>>(), [4], "each once");
        put("nine", false, &mut copied);
        assert_eq!(
            (batch.whole(), Batch::from(copied.clone()).whole()),
            (copied.clone().into(), copied.clone().into())
        );
        let mut taken = Vec::new();
        while !batch.is_empty() {
            assert!(batch.next_bytes() > 0);
            taken.push(batch.take(5));
        }
        assert_eq!(taken, ["one t", "wo ", "six ", "ten", "nine"]);
        assert_eq!((taken.concat(), batch.take(5)), (copied, Bytes::new()));
    }
}
