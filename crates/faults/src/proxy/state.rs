//! What all connections of a proxy share: which fault it is now, and what was counted.
//!
//! In: orders from the proxy's owner, requests. Out: for each what becomes of it. An order has a number;
//! whoever was there before it does what it says once, however soon the next one comes. Never: two locks at
//! once, a lock across an await.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::asked::{RequestInfo, RequestKind};
use super::counts::Counts;
use super::effects::OfRequest;
use crate::fault::Fault;

/// The fault that began last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// Counts the faults that began: what was open before does what the fault says.
    pub number: u64,
    pub begun: Option<Fault>,
    pub lasts: bool,
    /// The proxy's owner has gone.
    pub closed: bool,
}

#[derive(Debug)]
pub struct State {
    orders: watch::Sender<Order>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    counts: Counts,
    // Requests since the fault began.
    turn: u64,
    // interest -> the revision that it asked for first since history went; as many as the informers.
    expired: BTreeMap<String, u64>,
}

impl Order {
    /// The fault that lasts now.
    pub fn now(&self) -> Option<Fault> {
        self.begun.filter(|_| self.lasts)
    }
}

impl State {
    pub fn new() -> State {
        State { orders: watch::Sender::new(Order::default()), seen: Mutex::default() }
    }

    pub fn subscribe(&self) -> watch::Receiver<Order> {
        self.orders.subscribe()
    }

    pub fn begin(&self, fault: Fault) {
        {
            let mut seen = self.seen();
            seen.turn = 0;
            seen.expired.clear();
        }
        self.orders.send_modify(|order| {
            *order =
                Order { number: order.number + 1, begun: Some(fault), lasts: true, closed: order.closed };
        });
    }

    pub fn end(&self) {
        self.orders.send_modify(|order| order.lasts = false);
    }

    pub fn close(&self) {
        self.orders.send_modify(|order| order.closed = true);
    }

    pub fn counts(&self) -> Counts {
        self.seen().counts.clone()
    }

    /// Counts a request, and says what becomes of it.
    pub fn ask(&self, asked: &RequestInfo, user_agent: &str) -> OfRequest {
        let now = self.orders.borrow().now();
        let mut seen = self.seen();
        seen.counts.add(asked, user_agent);
        let turn = seen.turn;
        seen.turn += 1;
        let then = now.map_or(OfRequest::Forwarded, |fault| fault.of_request(asked, turn));
        let revision = asked.revision.filter(|_| asked.kind == RequestKind::Watch);
        match (then, revision) {
            (OfRequest::IfNotExpired, Some(revision)) => {
                let expired = *seen.expired.entry(asked.interest.clone()).or_insert(revision);
                refused_if(revision <= expired)
            }
            (OfRequest::IfNotExpired, None) => OfRequest::Forwarded,
            // What is gone stays gone when the fault that took it is over.
            (OfRequest::Forwarded, Some(revision)) => {
                refused_if(seen.expired.get(&asked.interest).is_some_and(|expired| revision <= *expired))
            }
            (then, _) => then,
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused_if(expired: bool) -> OfRequest {
    match expired {
        true => OfRequest::Refused(super::effects::EXPIRED),
        false => OfRequest::Forwarded,
    }
}

#[cfg(test)]
mod tests {
    use hyper::Method;

    use super::*;
    use crate::proxy::effects::EXPIRED;

    fn watch(interest: &str, revision: u64) -> RequestInfo {
        let uri = format!("/api/v1/{interest}?watch=true&resourceVersion={revision}");
        RequestInfo::of(&Method::GET, &uri.parse().unwrap())
    }

    #[test]
    fn what_is_gone_stays_gone_for_each_informer_by_itself() {
        let state = State::new();
        state.begin(Fault::Expired);
        assert_eq!(state.ask(&watch("pods", 7), ""), OfRequest::Refused(EXPIRED));
        assert_eq!(state.ask(&watch("secrets", 9), ""), OfRequest::Refused(EXPIRED));
        assert_eq!(state.ask(&watch("pods", 8), ""), OfRequest::Forwarded);
        let whole = "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersion=7";
        let whole = RequestInfo::of(&Method::GET, &whole.parse().unwrap());
        assert_eq!(state.ask(&whole, ""), OfRequest::Forwarded);
        state.end();
        assert_eq!(state.ask(&watch("pods", 7), ""), OfRequest::Refused(EXPIRED));
        assert_eq!(state.ask(&watch("leases", 1), ""), OfRequest::Forwarded);
        state.begin(Fault::CleanEnd);
        assert_eq!(state.ask(&watch("pods", 7), ""), OfRequest::Forwarded);
    }

    #[test]
    fn answers_take_turns_from_when_the_fault_began() {
        let state = State::new();
        state.ask(&watch("pods", 1), "");
        state.begin(Fault::TooManyRequests);
        let after = |then| match then {
            OfRequest::Refused(status) => (status.code, status.retry_after),
            other => panic!("{other:?}"),
        };
        assert_eq!(after(state.ask(&watch("pods", 1), "")), (429, Some(1)));
        assert_eq!(after(state.ask(&watch("pods", 1), "")), (429, None));
        assert_eq!(state.counts().tally().watches, 3);
    }
}
