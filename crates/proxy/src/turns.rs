//! Turns at one server, or at all that are visited: how many requests are under way there, and whose.
//!
//! In: who asks. Out: a turn, or that there is none for them. A user has no more turns than are free beside
//! theirs: one alone has half, whoever comes next finds the other half, and two have a third each. This
//! server's own questions have turns of their own, which no client takes. Nobody waits for a turn. Never:
//! knows what a request is.
//!
//! Owner of the state: whoever holds the lock, for a few lines.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::OWN_REQUESTS_MAX;

/// See the module's doc. Cheap to clone; all clones are the same turns.
#[derive(Clone)]
pub struct Turns(Arc<Mutex<State>>);

struct State {
    // Turns of clients, in all.
    limit: usize,
    // Of those, taken.
    taken: usize,
    // This server's own that are taken; <= OWN_REQUESTS_MAX.
    own: usize,
    // user -> turns of theirs; only who has some, so <= `limit`.
    users: HashMap<Arc<str>, usize>,
}

/// One of them, until it is dropped.
pub struct Turn {
    turns: Turns,
    user: Option<Arc<str>>,
}

impl Turns {
    pub fn new(limit: usize) -> Turns {
        Turns(Arc::new(Mutex::new(State { limit, taken: 0, own: 0, users: HashMap::new() })))
    }

    /// - `user`: `None` where this server asks by itself.
    pub fn take(&self, user: Option<Arc<str>>) -> Option<Turn> {
        let mut state = self.state();
        match &user {
            None if state.own >= OWN_REQUESTS_MAX => return None,
            None => state.own += 1,
            Some(user) => {
                // Once: for a request.
                let has = state.users.get(user).copied().unwrap_or(0);
                if has + 2 > state.limit - state.taken {
                    return None;
                }
                state.taken += 1;
                *state.users.entry(user.clone()).or_default() += 1;
            }
        }
        drop(state);
        Some(Turn { turns: self.clone(), user })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        let Some(user) = &self.user else {
            state.own -= 1;
            return;
        };
        state.taken -= 1;
        if let Some(has) = state.users.get_mut(user) {
            *has -= 1;
            if *has == 0 {
                state.users.remove(user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(turns: &Turns, user: Option<&str>) -> Vec<Turn> {
        std::iter::from_fn(|| turns.take(user.map(Arc::from))).collect()
    }

    #[test]
    fn one_user_has_half_of_the_turns_and_whoever_comes_next_finds_some() {
        let turns = Turns::new(1_000);
        let first = all_of(&turns, Some("a"));
        assert_eq!(first.len(), 500);
        let others: Vec<Vec<Turn>> = ["b", "c"].map(|user| all_of(&turns, Some(user))).into();
        assert_eq!(others.iter().map(Vec::len).collect::<Vec<_>>(), [250, 125]);
        assert!(turns.take(Some("a".into())).is_none(), "while others are there");
        drop(others);
        drop(first);
        assert!(turns.state().users.is_empty());
        assert_eq!(turns.state().taken, 0);
        assert_eq!(all_of(&turns, Some("b")).len(), 500);
    }

    #[test]
    fn what_this_server_asks_by_itself_waits_for_no_client() {
        let turns = Turns::new(8);
        let _users: Vec<Vec<Turn>> = ["a", "b", "c"].map(|user| all_of(&turns, Some(user))).into();
        assert!(turns.take(Some("d".into())).is_none(), "full");
        let own = all_of(&turns, None);
        assert_eq!(own.len(), OWN_REQUESTS_MAX);
        drop(own);
        assert_eq!(turns.state().own, 0);
    }
}
