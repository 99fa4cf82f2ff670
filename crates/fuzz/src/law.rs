//! What an input may cost, in memory and in steps: the law of `docs/robustness.md`, in numbers.
//!
//! In: an input's length, and a target at work on it. Out: nothing, or a panic that says by how much it is
//! over. Counted are the bytes that this thread asks of the allocator, most at a time and in all, and what
//! the target says of itself: how much it was charged for what it made ([`charged`]), and how many steps it
//! took ([`stepped`]). Targets do more than a server does, they say again what they read and compare; the
//! factors have room for that, and for nothing that grows faster.

use std::cell::Cell;

/// Bytes that any input may take at a time, and those for each byte of it: the smallest object, `{"a":0}`,
/// takes 704 for 7, and a target has several trees.
pub const PEAK_FREE_BYTES: u64 = 512 << 10;
pub const PEAK_BYTES_A_BYTE: u64 = 1 << 10;

/// The same of all that was asked for while it was worked on.
pub const TOTAL_FREE_BYTES: u64 = 4 << 20;
pub const TOTAL_BYTES_A_BYTE: u64 = 16 << 10;

/// What is charged comes on top: so many times, as a target reads what it has said.
pub const CHARGED_TIMES: u64 = 3;

/// Steps for n bytes, charged ones included: so many times n log n.
pub const STEPS_TIMES: u64 = 32;

thread_local! {
    static CHARGED: Cell<u64> = const { Cell::new(0) };
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// What the target was charged for the input at hand, besides the input: the peak of its lease.
pub fn charged(bytes: usize) {
    CHARGED.set(CHARGED.get() + bytes as u64);
}

/// Steps that the target took for the input at hand.
pub fn stepped(steps: u64) {
    STEPS.set(STEPS.get() + steps);
}

/// What `work` gives, and the most bytes that it asked for at a time: what a target was charged is held
/// against it.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let mut given = None;
    let cost = allocation_counter::measure(|| given = Some(work()));
    (given.expect("it was done"), cost.bytes_max as usize)
}

/// Holds what was charged for an input of so many bytes to what was asked for, and a quarter more.
///
/// - `own`: what the parser has for itself, whatever the input.
///
/// # Panics
/// When more was asked for.
pub fn paid(len: usize, peak: usize, lease_peak: usize, own: usize) {
    let most = lease_peak + lease_peak / 4 + 8 * len + own;
    assert!(peak <= most, "{peak} B are held at a time, of which {lease_peak} were charged");
    charged(lease_peak);
}

/// Runs `check` on an input of so many bytes.
///
/// # Panics
/// When it costs more than it may.
pub(crate) fn held(len: usize, check: impl FnOnce()) {
    CHARGED.set(0);
    STEPS.set(0);
    let cost = allocation_counter::measure(check);
    let (len, charged) = (len as u64, CHARGED_TIMES * CHARGED.get());
    let peak_max = PEAK_FREE_BYTES + PEAK_BYTES_A_BYTE * len + charged;
    assert!(cost.bytes_max <= peak_max, "it takes {} B at a time, and may take {peak_max}", cost.bytes_max);
    let total_max = TOTAL_FREE_BYTES + TOTAL_BYTES_A_BYTE * len + 16 * charged;
    assert!(cost.bytes_total <= total_max, "it asks for {} B, and may for {total_max}", cost.bytes_total);
    let bytes = len + CHARGED.get() + 16;
    let steps_max = STEPS_TIMES * bytes * u64::from(bytes.ilog2());
    assert!(STEPS.get() <= steps_max, "it takes {} steps, and may take {steps_max}", STEPS.get());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_proportion_is_within_the_law() {
        held(1000, || {
            drop(vec![0_u8; 1 << 20]);
            stepped(1000);
        });
        held(10, || {
            drop(vec![0_u8; 4 << 20]);
            charged(4 << 20);
        });
    }

    #[test]
    #[should_panic(expected = "at a time")]
    fn what_is_made_of_little_is_noticed() {
        held(100, || drop(vec![0_u8; 4 << 20]));
    }

    #[test]
    #[should_panic(expected = "it asks for")]
    fn what_is_made_again_and_again_is_noticed() {
        held(100, || (0..100).for_each(|_| drop(vec![0_u8; 256 << 10])));
    }

    #[test]
    #[should_panic(expected = "steps")]
    fn what_takes_a_step_for_each_pair_is_noticed() {
        held(1000, || stepped(1000 * 1000));
    }
}
