//! Where the time of a request went that took long.
//!
//! In: an event that is complete, how long parts of the work took. Out: its annotations. Never: one of a
//! request that was quick; what others than the server took.
//!
//! Source: apiserver v0.36.3 `pkg/endpoints/filters/audit.go` (`writeLatencyToAnnotation`).

use forebay_apimachinery::go_duration;
use forebay_rt::Duration;

use crate::event::AuditEvent;
use crate::limits::QUICK;

const TOTAL: &str = "apiserver.latency.k8s.io/total";
/// From when the head of the answer was known until all was sent that is sent a piece at a time: a piece is
/// made when it is sent.
const WRITE: &str = "apiserver.latency.k8s.io/response-write";

/// Adds to `event` how long it took, and its parts.
///
/// - `answered_us`, `now_us`: when it was answered, and when that was sent; microseconds since 1970.
pub fn tell(event: &mut AuditEvent, parts: Vec<(&'static str, Duration)>, (answered_us, now_us): (i64, i64)) {
    let since = |then: i64| Duration::from_micros(now_us.saturating_sub(then).try_into().unwrap_or(0));
    let total = since(event.received_us);
    if total <= QUICK {
        return;
    }
    let all = parts.into_iter().chain([(WRITE, since(answered_us)), (TOTAL, total)]);
    for (key, time) in all.filter(|(_, time)| !time.is_zero()) {
        let nanos = time.as_nanos().try_into().unwrap_or(i64::MAX);
        event.annotations.entry(key.to_owned()).or_insert_with(|| go_duration::show(nanos));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::an_event;

    #[test]
    fn of_a_request_that_took_long_it_is_told_where_its_time_went_and_of_others_nothing() {
        let told = |took_us: i64, sent_us: i64| {
            let mut event = an_event();
            event.annotations.clear();
            let now = event.received_us + took_us;
            tell(&mut event, vec![("etcd", Duration::from_micros(1_500))], (now - sent_us, now));
            event.annotations.into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
        };
        assert_eq!(told(500_000, 0), Vec::<String>::new());
        let total = "apiserver.latency.k8s.io/total";
        assert_eq!(told(500_001, 0), [format!("{total}=500.001ms"), "etcd=1.5ms".to_owned()]);
        let write = "apiserver.latency.k8s.io/response-write=1m0s".to_owned();
        assert_eq!(told(61_000_000, 60_000_000), [write, format!("{total}=1m1s"), "etcd=1.5ms".to_owned()]);
    }
}
