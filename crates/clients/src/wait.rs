//! Waiting for a condition, with a limit.
//!
//! In: a look at the world. Out: what it saw once it was right. Never: a wait for a time to pass.

use std::time::{Duration, Instant};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks until the answer is `Ok`.
///
/// # Errors
/// What the last look saw, once `limit` has passed.
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let start = Instant::now();
    loop {
        match look() {
            Ok(seen) => return Ok(seen),
            Err(last) if start.elapsed() > limit => {
                return Err(format!("{what}: not within {limit:?}; last: {last}"));
            }
            // Nobody unparks: it is a pause that needs no clock of its own.
            Err(_) => std::thread::park_timeout(PAUSE),
        }
    }
}

/// What `work` gives, and how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let done = work();
    (done, begun.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_right_look_ends_the_wait() {
        let mut looks = 0;
        let seen = until("three looks", Duration::from_secs(60), || {
            looks += 1;
            if looks == 3 { Ok(looks) } else { Err(format!("look {looks}")) }
        });
        assert_eq!(seen, Ok(3));
    }

    #[test]
    fn the_last_look_is_in_the_error() {
        let why = until("a miracle", Duration::ZERO, || Err::<(), _>("nothing yet".to_owned())).unwrap_err();
        assert_eq!(why, "a miracle: not within 0ns; last: nothing yet");
    }
}
