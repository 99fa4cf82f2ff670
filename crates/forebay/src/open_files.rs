//! How many files the process may have open: each connection is one.
//!
//! In: the system's limits. Out: the soft one raised to the hard one, which is what that is for: the soft one
//! is low for the sake of programs that use `select`; and how many of them connections may take. Never: a
//! server that does not start because of it, or that has no file left for its store.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are not for connections: the store's, those that are read now and then, connections to etcd.
const OTHER_FILES: u64 = 256;

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

/// Connections that there are files for; `None` where there is no limit.
pub fn for_connections() -> Option<usize> {
    let files = getrlimit(Resource::Nofile).current?;
    Some(usize::try_from(connections(files)).unwrap_or(usize::MAX))
}

/// Under a low limit both get half.
fn connections(files: u64) -> u64 {
    files.saturating_sub(OTHER_FILES).max(files / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_keeps_files_for_itself() {
        for (files, want) in [(20_000, 19_744), (1_024, 768), (512, 256), (100, 50)] {
            assert_eq!(connections(files), want, "{files} files");
        }
    }

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
