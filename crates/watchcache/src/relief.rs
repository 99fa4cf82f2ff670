//! What caches drop when memory is short.
//!
//! In: what is to be dropped, and the sizes of the windows. Out: a cap for the windows. Never: touches the
//! current objects, which are what a cache is for.

use forebay_revlog::{Limits, Usage};

use crate::limits;

/// What is to be dropped, in all caches together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relief {
    /// Protobuf messages and inflated blocks, which are made again when they are asked for.
    pub made: bool,
    /// Snapshots that are kept for the next pages of LISTs.
    pub snapshots: bool,
    /// The most bytes that all windows together may hold.
    pub windows_bytes_max: usize,
    /// Windows have to hold less than they do now, even if they are within their limits.
    pub windows: bool,
}

/// The most bytes that each window may hold, so that all are within `relief`; `None` when no window has to
/// shrink.
pub fn window_cap(windows: impl IntoIterator<Item = Usage>, relief: Relief) -> Option<usize> {
    let mut sizes: Vec<usize> = windows.into_iter().map(held_bytes).collect();
    sizes.sort_unstable();
    let (total, largest) = (sizes.iter().sum::<usize>(), sizes.last().copied().unwrap_or(0));
    let pressed = relief.windows.then(|| (largest / 2).max(limits::WINDOW_BYTES_MIN));
    // Small windows keep what they have; the others get equal shares of what is left.
    let mut left = relief.windows_bytes_max;
    let shared = (total > left).then(|| {
        for (place, size) in sizes.iter().enumerate() {
            let share = left / (sizes.len() - place);
            if *size > share {
                return share;
            }
            left -= size;
        }
        left
    });
    let cap = pressed.into_iter().chain(shared).min()?;
    Some(cap.max(limits::WINDOW_BYTES_MIN))
}

/// Bytes that a window holds, its events' own memory included.
pub fn held_bytes(usage: Usage) -> usize {
    usage.bytes + usage.items * limits::EVENT_BYTES
}

/// The limits of a window of at most `cap` bytes.
pub(crate) fn capped(full: Limits, cap: usize) -> Limits {
    Limits {
        items_max: full.items_max.min(cap / (2 * limits::EVENT_BYTES)).max(1),
        bytes_max: full.bytes_max.min(cap),
        ..full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[usize], windows_bytes_max: usize, windows: bool, want: Option<usize>) {
        let usages = bytes.iter().map(|bytes| Usage { bytes: *bytes, ..Usage::default() });
        let relief = Relief { made: false, snapshots: false, windows_bytes_max, windows };
        assert_eq!(window_cap(usages, relief), want, "{bytes:?} {relief:?}");
    }

    #[test]
    fn the_largest_windows_give_way_and_the_small_ones_keep_what_they_have() {
        const MIB: usize = 1 << 20;
        check(&[], MIB, true, Some(limits::WINDOW_BYTES_MIN));
        check(&[MIB, 2 * MIB], 4 * MIB, false, None);
        check(&[MIB, 8 * MIB, 20 * MIB], 11 * MIB, false, Some(5 * MIB));
        check(&[MIB, 3 * MIB, 20 * MIB], 11 * MIB, false, Some(7 * MIB));
        check(&[MIB, 8 * MIB], 64 * MIB, true, Some(4 * MIB));
        check(&[MIB, 8 * MIB], 2 * MIB, true, Some(MIB));
        check(&[MIB; 100], 0, true, Some(limits::WINDOW_BYTES_MIN));
    }
}
