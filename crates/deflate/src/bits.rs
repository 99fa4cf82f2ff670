//! Writes bits, the lowest first, to where there is room for them.
//!
//! In: numbers of some bits. Out: bytes. Never: a byte beyond the room: who writes asks for it before.

pub(crate) struct Bits<'a> {
    into: &'a mut [u8],
    at: usize,
    // Those that are no whole byte yet; fewer than 8 after a flush.
    held: u64,
    count: u32,
}

impl Bits<'_> {
    pub(crate) fn new(into: &mut [u8]) -> Bits<'_> {
        Bits { into, at: 0, held: 0, count: 0 }
    }

    /// Nothing if so many more bits do not fit. A word is written at a time, so eight bytes must be left
    /// behind them.
    pub(crate) fn room_for(&self, bits: usize) -> Option<()> {
        let end = self.at + (self.count as usize + bits).div_ceil(8) + size_of::<u64>();
        (end <= self.into.len()).then_some(())
    }

    /// Adds bits to those that are held, 63 with them at most: seven are left by a flush, and three codes of
    /// 15, or the two of a repetition with their extra bits, may follow it.
    ///
    /// - `bits`: none above `count`.
    #[inline(always)]
    pub(crate) fn add(&mut self, bits: u64, count: u32) {
        self.held |= bits << self.count;
        self.count += count;
        debug_assert!(self.count < u64::BITS);
    }

    /// Writes the whole bytes of what is held.
    #[inline(always)]
    pub(crate) fn flush(&mut self) {
        let word = self.into[self.at..].first_chunk_mut().expect("room was asked for");
        *word = self.held.to_le_bytes();
        self.at += self.count as usize / 8;
        self.held >>= self.count & !7;
        self.count &= 7;
    }

    pub(crate) fn put(&mut self, bits: u64, count: u32) {
        self.add(bits, count);
        self.flush();
    }

    /// Fills the last byte up, writes `last` behind it, and says how long all of it is.
    ///
    /// - `last`: eight bytes at most, for which there is room where some was asked for.
    pub(crate) fn end(mut self, last: &[u8]) -> usize {
        self.count = self.count.next_multiple_of(8);
        self.flush();
        self.into[self.at..][..last.len()].copy_from_slice(last);
        self.at + last.len()
    }
}
