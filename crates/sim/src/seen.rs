//! How often the interesting things happened: a simulation in which they do not proves nothing.

use std::fmt;
use std::ops::AddAssign;

use forebay_embedded::faults::Crash;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// See the module's doc.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Seen { $($(#[$doc])* pub $name: u64,)* }

        impl Seen {
            /// Each counter's name and value.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }

        impl AddAssign for Seen {
            fn add_assign(&mut self, other: Seen) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Writes that were acknowledged.
    writes,
    conflicts,
    /// Writes that got neither yes nor no.
    unanswered,
    /// Writes that nobody was told of and that were there after a crash.
    survived_unacknowledged,
    expired_keys,
    crashes_losing_unsynced,
    crashes_tearing_unsynced,
    crashes_keeping_all,
    disk_failures,
    sync_failures,
    machine_downs,
    full_disks,
    stalls,
    leader_losses,
    lagging_feeds,
    forgetful_feeds,
    times_gone_back,
    told_of_going_back,
    failed_calls,
    /// Times that a cache went on from the store's history, and that it was filled anew in one life.
    cache_resumptions,
    cache_refills,
    lists,
    http_lists,
    cut_lists,
    pages,
    exact_lists,
    expired_continues,
    gets,
    watches,
    http_watches,
    initial_states,
    events,
    selector_transitions,
    bookmarks,
    resumes,
    resumes_after_restart,
    vanished_clients,
    parked_clients,
    expired_watches,
    edge_probes,
    refused_for_now,
}

impl Seen {
    pub fn crashed(&mut self, crash: Crash) {
        match crash {
            Crash::LoseUnsynced => self.crashes_losing_unsynced += 1,
            Crash::TearUnsynced { .. } => self.crashes_tearing_unsynced += 1,
            Crash::KeepAll => self.crashes_keeping_all += 1,
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<_> = self.all().iter().map(|(name, count)| format!("{name} {count}")).collect();
        f.write_str(&all.join(", ").replace('_', " "))
    }
}
