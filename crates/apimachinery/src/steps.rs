//! Steps: what work over client input costs, counted where it is done, so that tests need no clock.
//!
//! In: a step at each lookup of a member, each key that is remembered or looked for, each pair of values that
//! is compared. Out: how many there were while something ran. Never: limits anything; shared between threads.
//!
//! A step is an addition to a cell of the thread: a nanosecond beside a lookup that takes twenty.

use std::cell::Cell;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Takes `count` steps.
#[inline]
pub fn add(count: u64) {
    TAKEN.with(|taken| taken.set(taken.get().wrapping_add(count)));
}

/// How many steps `work` takes on this thread.
pub fn counted(work: impl FnOnce()) -> u64 {
    let before = TAKEN.with(Cell::get);
    work();
    TAKEN.with(Cell::get).wrapping_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_the_work_and_of_its_thread() {
        let taken = counted(|| {
            add(2);
            std::thread::scope(|scope| drop(scope.spawn(|| add(100))));
            assert_eq!(counted(|| add(3)), 3);
        });
        assert_eq!(taken, 5);
        assert_eq!(counted(|| {}), 0);
    }
}
