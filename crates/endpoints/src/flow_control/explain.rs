//! What a client is told of its flow: two headers on every answer, and why it is refused.
//!
//! In: a flow, a [`Rejection`]. Out: headers, a `Status`. Never: decides.

use std::sync::Arc;

use forebay_apimachinery::{Reason, Status};
use forebay_flow::{Flow, Price, Rejection, explained};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};

use crate::status::Failure;

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// Ours, with a 429: the flow, the price, and what was in its way.
const REFUSAL: HeaderName = HeaderName::from_static("x-forebay-flow-control");

/// The flow that a request is in.
#[derive(Clone, Debug)]
pub struct Classified {
    pub flow: Flow,
    pub level_uid: Arc<str>,
}

impl Classified {
    /// Says on `headers` by which objects the request was classified; those that nobody has stored have no
    /// uid.
    pub fn tell(&self, headers: &mut HeaderMap) {
        for (name, uid) in [(SCHEMA_UID, &self.flow.schema_uid), (LEVEL_UID, &self.level_uid)] {
            if let Ok(value) = HeaderValue::from_str(uid)
                && !uid.is_empty()
            {
                headers.insert(name, value);
            }
        }
    }
}

/// A refusal as it is answered: when to come back, and why.
pub fn refused(rejection: &Rejection) -> Failure {
    let Rejection { flow, price, reason, .. } = rejection;
    let why = explained(flow, Some(*price), &reason.obstacle());
    let message = format!("Too many requests, please try again later. {why}");
    let retry = u32::try_from(rejection.retry_after).unwrap_or(u32::MAX).max(1);
    Status::new(Reason::TooManyRequests, message).retry_after(retry).into()
}

/// The same in short, for those who log headers. A user's name may hold what no header may.
pub fn in_short(flow: &Flow, price: Option<Price>, reason: &str) -> Option<(HeaderName, HeaderValue)> {
    Some((REFUSAL, HeaderValue::from_str(&forebay_flow::in_short(flow, price, reason)).ok()?))
}

#[cfg(test)]
mod tests {
    use forebay_flow::RejectReason;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_refusal_says_which_flow_what_it_costs_and_what_was_in_its_way() {
        let flow = Flow {
            schema: "service-accounts".into(),
            schema_uid: "u1".into(),
            level: "workload-low".into(),
            distinguisher: "a\nb".into(),
            hash: 7,
        };
        let price = Price { bytes: 1_000, cpu: Duration::from_millis(2) };
        let reason = RejectReason::QueueFull { waiting: 50 };
        let level_uid: Arc<str> = "u2".into();
        let rejection =
            Rejection { flow, level_uid: level_uid.clone(), price, work: 9, reason, retry_after: 4 };
        let failure = refused(&rejection);
        assert_eq!(failure.status.retry_after_seconds, 4);
        assert_eq!(
            failure.status.message,
            "Too many requests, please try again later. It is in the flow of \"a\\nb\" of FlowSchema \"service-accounts\" \
             in PriorityLevelConfiguration \"workload-low\", and would have held 1000 bytes and used 2000 us of CPU time; 50 \
             requests wait in its queue."
        );
        let mut headers = HeaderMap::new();
        let (_, short) = in_short(&rejection.flow, Some(price), reason.as_str()).expect("a header");
        assert_eq!(
            short,
            "reason=queue-full; level=workload-low; schema=service-accounts; flow=0000000000000007; bytes=1000; cpu_us=2000"
        );
        Classified { flow: rejection.flow, level_uid }.tell(&mut headers);
        assert_eq!(
            (&headers[&SCHEMA_UID], &headers[&LEVEL_UID]),
            (&"u1".parse().unwrap(), &"u2".parse().unwrap())
        );
    }
}
