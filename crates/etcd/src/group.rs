//! Whole revisions out of the parts that a watch comes in.
//!
//! In: the events of each message, in order, and whether more of the same answer follows. Out: the events of
//! whole revisions; the last revision of a fragment is held back until it is seen to be whole. Held at most:
//! the events of one revision.

use crate::messages::Event;

/// See the module's doc.
#[derive(Debug, Default)]
pub(crate) struct Grouper {
    // Of one revision.
    held: Vec<Event>,
}

impl Grouper {
    /// Takes in the events of a message, and gives back those of revisions that are whole now.
    pub(crate) fn take(&mut self, events: Vec<Event>, more_follows: bool) -> Vec<Event> {
        let mut all = std::mem::take(&mut self.held);
        all.extend(events);
        if more_follows && let Some(last) = all.last().map(|event| event.revision) {
            let whole = all.iter().take_while(|event| event.revision != last).count();
            self.held = all.split_off(whole);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_revision_is_never_split() {
        // Each message's revisions, and whether a fragment follows; what comes out after each.
        type Message = (&'static [u64], bool);
        let cases: &[(&[Message], &[&[u64]])] = &[
            (&[(&[1, 2, 2], false)], &[&[1, 2, 2]]),
            (&[(&[1, 2], true), (&[2, 3], true), (&[3], false)], &[&[1], &[2, 2], &[3, 3]]),
            (&[(&[5], true), (&[5], true), (&[5], false), (&[6], false)], &[&[], &[], &[5, 5, 5], &[6]]),
            (&[(&[1], true), (&[], false)], &[&[], &[1]]),
            (&[(&[], true), (&[], false)], &[&[], &[]]),
        ];
        for (messages, expected) in cases {
            let mut grouper = Grouper::default();
            let event = |revision: &u64| Event { key: Bytes::new(), revision: *revision, value: None };
            for ((revisions, more), expected) in messages.iter().zip(*expected) {
                let out = grouper.take(revisions.iter().map(event).collect(), *more);
                let out: Vec<u64> = out.iter().map(|event| event.revision).collect();
                assert_eq!(&out, expected, "{messages:?}");
            }
            assert!(grouper.held.is_empty());
        }
    }
}
