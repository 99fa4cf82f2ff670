//! Work that asks other servers: so much of it at one server, so that one that hangs holds up nobody else.
//!
//! In: uids whose work asks a server. Out: the next one that may begin. Pure. Owned by the collector's task.
//! Holds each uid once, as the queue that gave it out does.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use super::graph::Uid;
use crate::limits;

/// A version of another server, `group/version`: what is waited for together.
pub type OtherServer = Box<str>;

/// See the module's doc.
#[derive(Default)]
pub struct Lanes {
    // Only those with something in them.
    lanes: BTreeMap<OtherServer, Lane>,
    busy: usize,
    // Whose turn it was last.
    last: OtherServer,
}

#[derive(Default)]
struct Lane {
    waiting: VecDeque<Uid>,
    busy: usize,
}

impl Lanes {
    /// Work that has begun and not ended.
    pub fn busy(&self) -> usize {
        self.busy
    }

    /// There is work for `uid`, which asks `server`.
    pub fn add(&mut self, server: OtherServer, uid: Uid) {
        self.lanes.entry(server).or_default().waiting.push_back(uid);
    }

    /// Work to begin, which has begun then: the servers take turns.
    pub fn next(&mut self) -> Option<(OtherServer, Uid)> {
        if self.busy >= limits::ELSEWHERE_WORK_MAX {
            return None;
        }
        let may_begin = |(_, lane): &(&OtherServer, &Lane)| {
            !lane.waiting.is_empty() && lane.busy < limits::ELSEWHERE_LANE_WORK_MAX
        };
        let later = (Bound::Excluded(&*self.last), Bound::Unbounded);
        let mut turns = self.lanes.range::<str, _>(later).chain(&self.lanes);
        let (server, _) = turns.find(may_begin)?;
        let server = server.clone();
        let lane = self.lanes.get_mut(&server)?;
        let uid = lane.waiting.pop_front()?;
        lane.busy += 1;
        self.busy += 1;
        self.last = server.clone();
        Some((server, uid))
    }

    /// Work that [`Lanes::next`] gave out has ended.
    pub fn done(&mut self, server: &str) {
        let Some(lane) = self.lanes.get_mut(server) else { return };
        lane.busy -= 1;
        self.busy -= 1;
        if lane.busy == 0 && lane.waiting.is_empty() {
            self.lanes.remove(server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_hangs_has_its_own_lane_full_and_no_other() {
        let mut lanes = Lanes::default();
        for number in 0..limits::ELSEWHERE_LANE_WORK_MAX + 2 {
            lanes.add("hangs/v1".into(), Uid::from(format!("h{number}")));
        }
        lanes.add("well/v1".into(), Uid::from("w"));
        let begun: Vec<OtherServer> = std::iter::from_fn(|| lanes.next()).map(|(server, _)| server).collect();
        let of = |name: &str| begun.iter().filter(|server| ***server == *name).count();
        assert_eq!((of("hangs/v1"), of("well/v1")), (limits::ELSEWHERE_LANE_WORK_MAX, 1));
        assert_eq!(&*begun[1], "well/v1", "they take turns");
        lanes.done("well/v1");
        assert!(lanes.next().is_none());
        lanes.done("hangs/v1");
        assert_eq!(lanes.next().map(|(server, _)| server).as_deref(), Some("hangs/v1"));
        for _ in 0..limits::ELSEWHERE_LANE_WORK_MAX {
            lanes.done("hangs/v1");
        }
        assert_eq!(lanes.next().map(|(_, uid)| uid.to_string()).as_deref(), Some("h5"));
        lanes.done("hangs/v1");
        assert!(lanes.lanes.is_empty() && lanes.busy() == 0);
    }
}
