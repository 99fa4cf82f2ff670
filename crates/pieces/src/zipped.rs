//! A watch in gzip: one member that goes on for as long as there is something to say.
//!
//! In: frames, and segments of the cache. Out: a part of the member for each batch, which ends with an empty
//! stored block, so that its reader has all of it at once. The initial state is put together from blocks
//! whose events other watches send as well ([`EventBlocks`](crate::event_blocks::EventBlocks)), and what is
//! not in one is deflated; what happens later is stored: it would be deflated for each reader anew. Never:
//! holds a compressor.

use forebay_reads::{AtRest, FrameSink};

use crate::event_blocks::{BlockReader, Got};
use crate::member::Member;

/// What frames are put into, until it is made a part of the member.
pub struct Zipped {
    member: Member,
    // Plain bytes of this part that were deflated for it: it takes no more of them than as if it were to be
    // sent plain.
    deflated: usize,
    // Of each frame since they were asked for.
    sizes: Vec<u32>,
    // During an initial state that may come in blocks.
    blocks: Option<BlockReader>,
}

/// How what is plain in a part is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Deflate,
    Store,
}

impl Zipped {
    /// - `blocks`: as events, for an initial state that may come in blocks.
    pub fn new(blocks: Option<BlockReader>) -> Zipped {
        Zipped { member: Member::begin(Vec::new()), deflated: 0, sizes: Vec::new(), blocks }
    }

    /// Bytes of each frame that was put here since this was asked.
    pub fn take_sizes(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.sizes)
    }

    /// There are no more blocks to come.
    pub fn end_blocks(&mut self) {
        self.blocks = None;
    }

    /// What was put here since the last part; nothing comes after the last. Keeps no memory.
    pub fn part(&mut self, effort: Effort, is_last: bool) -> Vec<u8> {
        match effort {
            Effort::Deflate => self.member.flush(),
            Effort::Store => self.member.store(),
        }
        self.member.pause();
        if is_last {
            self.member.end();
        }
        self.deflated = 0;
        self.member.plain = Vec::new();
        std::mem::take(&mut self.member.out)
    }
}

impl FrameSink for Zipped {
    fn reserve(&mut self, bytes: usize) {
        self.member.plain.reserve(bytes);
    }

    fn own(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let plain = &mut self.member.plain;
        let from = plain.len();
        write(plain);
        self.sizes.push((plain.len() - from) as u32);
    }

    fn share(&mut self, frame: bytes::Bytes) {
        self.own(|own| own.extend_from_slice(&frame));
    }

    fn takes_segments(&self) -> bool {
        self.blocks.is_some()
    }

    fn segment(&mut self, of: AtRest<'_>, write: impl FnMut(usize, &mut Vec<u8>)) {
        let Some(blocks) = &self.blocks else { return self.own_each(of.deflated.objects(), write) };
        let Got { block, is_new } = blocks.next(of, write);
        // It is now.
        self.deflated += self.member.plain.len();
        self.member.add_deflated(&block.deflated, block.crc, block.plain_len);
        self.sizes.extend_from_slice(&block.sizes);
        if is_new {
            self.deflated += block.plain_len;
        }
    }

    fn frame_bytes(&self) -> usize {
        self.member.out.len() + self.member.plain.len() + self.deflated
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use forebay_apimachinery::Key;
    use forebay_catalog::Served;
    use forebay_object::{Deflated, Object, Segment, Segments};

    use super::*;
    use crate::event_blocks::EventBlocks;
    use crate::limits::{EVENT_BLOCKS_BYTES_MAX, EVENT_BLOCKS_PASSED_BYTES_MAX};
    use crate::member::testing::{read, sealed};

    /// A core resource as it is served.
    fn served(resource: &str) -> Arc<Served> {
        let catalog = forebay_catalog::table::without_stores(forebay_strategy::convert::of);
        catalog.resource("", "v1", resource).expect("served").clone()
    }

    /// What the last part ends with besides: an empty final block, a checksum and a length.
    const END_BYTES: usize = 2 + 8;

    #[test]
    fn each_part_ends_with_an_empty_stored_block() {
        let mut state = 1u64;
        let mut letter = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b'A'.wrapping_add((state >> 56) as u8)
        };
        let noise: Vec<u8> = (0..200_000).map(|_| letter()).collect();
        let parts = [
            (b"{\"type\":\"ADDED\"}\n".repeat(9_000), Effort::Deflate),
            (noise, Effort::Deflate),
            (b"{\"type\":\"BOOKMARK\"}\n".to_vec(), Effort::Deflate),
            (b"{\"type\":\"MODIFIED\"}\n".to_vec(), Effort::Store),
            (b"{\"type\":\"MODIFIED\"}\n".repeat(9_000), Effort::Store),
            (Vec::new(), Effort::Deflate),
        ];
        let blocks = EventBlocks::default().reader(&served("configmaps"));
        let (mut zipped, mut sent, mut plain) = (Zipped::new(Some(blocks)), Vec::new(), Vec::new());
        for (at, (part, effort)) in parts.iter().enumerate() {
            let is_last = at + 1 == parts.len();
            zipped.share(Bytes::copy_from_slice(part));
            assert_eq!(zipped.take_sizes(), [part.len() as u32]);
            let out = zipped.part(*effort, is_last);
            let end = out.len() - if is_last { END_BYTES } else { 0 };
            assert!(out[..end].ends_with(&[0, 0, 0, 0xff, 0xff]), "{at}");
            sent.extend(out);
            plain.extend_from_slice(part);
            assert!(at > 0 || sent.len() * 20 < plain.len(), "{} of {}", sent.len(), plain.len());
        }
        assert!(read(&sent) == plain);
    }

    fn event(object: &Object, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"ADDED\",\"object\":{\"kind\":\"Foo\",");
        out.extend_from_slice(&object.body());
        out.extend_from_slice(b"}\n");
    }

    /// Puts all segments of `sealed` into `zipped`; how many events were written for that.
    fn put(zipped: &mut Zipped, sealed: &[Arc<Object>], served: &Arc<Served>, sent: &mut Vec<u8>) -> usize {
        let mut written = 0;
        let mut segments = Segments::new(sealed.iter());
        while let Some(Segment { objects, deflated }) = segments.next_segment() {
            let deflated = deflated.expect("whole segments");
            assert!(zipped.takes_segments());
            let before = zipped.frame_bytes();
            zipped.segment(AtRest { deflated, served, first: objects[0].key() }, |place, own| {
                written += 1;
                event(objects[place], own);
            });
            assert!(zipped.frame_bytes() > before);
            // Some are in parts of their own, some behind others and behind what is in no segment.
            if sent.len().is_multiple_of(2) {
                zipped.own(|own| own.extend_from_slice(b"{\"hot\":true}\n"));
                sent.extend(zipped.part(Effort::Deflate, false));
            }
        }
        written
    }

    /// Sends the objects to a reader alone; how many events were written for that.
    fn send(sealed: &[Arc<Object>], served: &Arc<Served>, blocks: &EventBlocks) -> (Vec<u8>, usize) {
        let (mut zipped, mut sent) = (Zipped::new(Some(blocks.reader(served))), Vec::new());
        let written = put(&mut zipped, sealed, served, &mut sent);
        sent.extend(zipped.part(Effort::Deflate, true));
        assert_eq!(zipped.take_sizes().iter().sum::<u32>() as usize, read(&sent).len());
        (sent, written)
    }

    #[test]
    fn readers_of_the_same_blocks_share_their_events_and_each_reads_what_it_would_alone() {
        let (configmaps, secrets) = (served("configmaps"), served("secrets"));
        let (objects, blocks) = (sealed(400), EventBlocks::default());
        let held = blocks.reader(&configmaps);
        let (first, written) = send(&objects, &configmaps, &blocks);
        assert_eq!(written, 400);
        let text = String::from_utf8(read(&first)).expect("text");
        let names: Vec<String> = (0..400).map(|number| format!("\"name\":\"foo-{number}\"")).collect();
        let events: Vec<&str> = text.lines().filter(|line| line.starts_with("{\"type\"")).collect();
        assert_eq!(events.len(), 400);
        assert!(events.iter().zip(&names).all(|(event, name)| event.contains(name)), "in order");
        let bytes = blocks.bytes();
        assert!(bytes > 1_000 && bytes < EVENT_BLOCKS_PASSED_BYTES_MAX, "{bytes}");
        let (again, written) = send(&objects, &configmaps, &blocks);
        assert_eq!((written, again == first, blocks.bytes()), (0, true, bytes));
        assert_eq!(send(&objects, &secrets, &blocks).1, 400, "of another resource or version");
        blocks.keep(true);
        for _ in 0..2 {
            assert_eq!((blocks.bytes(), send(&objects, &configmaps, &blocks).1), (0, 400), "memory is short");
        }
        blocks.keep(false);
        assert_eq!(send(&objects, &configmaps, &blocks).1 + send(&objects, &configmaps, &blocks).1, 400);
        drop(held);
        assert_eq!((blocks.bytes(), send(&objects, &configmaps, &blocks).1), (0, 400), "nobody was there");
    }

    /// Blocks whose events are half a megabyte that does not shrink.
    struct Long {
        blocks: Vec<Vec<Arc<Object>>>,
        served: Arc<Served>,
    }

    impl Long {
        fn new(count: usize) -> Long {
            let blocks = (0..count).map(|_| sealed(40)).collect();
            Long { blocks, served: served("configmaps") }
        }

        /// Whether the block at `place` had to be made for `reader`.
        fn is_made(&self, place: usize, reader: &BlockReader) -> bool {
            let deflated = Deflated::of(&self.blocks[place]).expect("sealed");
            let (first, mut noise) = (Key::from(format!("/registry/{place:03}")), place as u64);
            let write = |_, own: &mut Vec<u8>| {
                own.extend((0..(512 << 10) / deflated.objects()).map(|_| {
                    noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (noise >> 56) as u8
                }));
            };
            reader.next(AtRest { deflated, served: &self.served, first: &first }, write).is_new
        }
    }

    #[test]
    fn what_is_kept_of_blocks_is_bounded_and_the_oldest_goes_first() {
        let (long, blocks) = (Long::new(20), EventBlocks::default());
        let [first, second] = [blocks.reader(&long.served), blocks.reader(&long.served)];
        for place in 0..20 {
            assert!(long.is_made(place, &first));
            assert!(blocks.bytes() <= EVENT_BLOCKS_BYTES_MAX);
        }
        assert!(blocks.bytes() > EVENT_BLOCKS_BYTES_MAX * 3 / 4);
        assert!(long.is_made(0, &second), "it was let go of");
        assert!(!long.is_made(19, &second), "the newest was not");
    }

    #[test]
    fn what_all_have_passed_makes_room_and_what_somebody_is_to_come_to_stays() {
        let (long, blocks) = (Long::new(20), EventBlocks::default());
        let [first, second] = [blocks.reader(&long.served), blocks.reader(&long.served)];
        // One of another resource comes to none of them.
        let _other = blocks.reader(&served("secrets"));
        for place in 0..10 {
            assert!(long.is_made(place, &first) && !long.is_made(place, &second));
            assert!(blocks.bytes() <= EVENT_BLOCKS_PASSED_BYTES_MAX + (520 << 10), "{place}");
        }
        for place in 10..20 {
            assert!(long.is_made(place, &first));
        }
        assert!(blocks.bytes() > EVENT_BLOCKS_PASSED_BYTES_MAX * 2);
        assert!((10..20).all(|place| !long.is_made(place, &second)), "all were kept for it");
        drop((first, second));
        assert!(blocks.bytes() > 0, "there is a reader");
        drop(_other);
        assert_eq!(blocks.bytes(), 0);
    }

    #[test]
    fn what_is_deflated_for_a_part_counts_as_what_it_was() {
        let (blocks, served, objects) = (EventBlocks::default(), served("configmaps"), sealed(40));
        let of = Deflated::of(&objects).expect("sealed");
        let at_rest = AtRest { deflated: of, served: &served, first: objects[0].key() };
        let mut zipped = Zipped::new(Some(blocks.reader(&served)));
        let hot = b"{\"hot\":true}\n".repeat(4_000);
        let mut lens = Vec::new();
        // Of one that is found nothing was deflated.
        for _ in 0..2 {
            let before = zipped.frame_bytes();
            zipped.own(|own| own.extend_from_slice(&hot));
            zipped.segment(at_rest, |place, own| event(&objects[place], own));
            lens.push(zipped.frame_bytes() - before);
        }
        assert!(lens[0] > hot.len() + of.plain_len() && lens[1] >= hot.len() && lens[1] < lens[0]);
        assert!(zipped.part(Effort::Deflate, true).len() * 10 < lens[0]);
        assert_eq!(zipped.frame_bytes(), 0);
    }

    #[test]
    fn past_its_initial_state_it_takes_no_blocks_and_keeps_none() {
        let (blocks, served, objects) = (EventBlocks::default(), served("configmaps"), sealed(40));
        let mut zipped = Zipped::new(Some(blocks.reader(&served)));
        assert_eq!(put(&mut zipped, &objects, &served, &mut Vec::new()), 40);
        assert!(blocks.bytes() > 0);
        zipped.end_blocks();
        assert!(!zipped.takes_segments() && blocks.bytes() == 0);
    }
}
