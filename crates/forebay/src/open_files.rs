//! How many files the process may have open: each connection is one.
//!
//! In: the system's limits. Out: the soft one raised to the hard one, which is what that is for: the soft one is low for
//! the sake of programs that use `select`. Never: a server that does not start because of it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as the process may by itself.
pub fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::debug!(from = ?current, to = ?maximum, "raised the limit of open files"),
        Err(error) => tracing::warn!(%error, limit = ?current, "cannot raise the limit of open files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let lower = current.map(|files| files - 1);
        setrlimit(Resource::Nofile, Rlimit { current: lower, maximum }).expect("lower is always allowed");
        raise_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        raise_limit();
        assert_eq!(getrlimit(Resource::Nofile).maximum, maximum);
    }
}
