//! EventRateLimit: so many events a second are written, by everybody, by namespace, by user, or by what they
//! are about.
//!
//! Owns the buckets, behind a lock of a few lines. In: who writes an event, and when. Out: 429 for those
//! that are too many. Never: a key, of which a number is kept.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/eventratelimit`.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};

use forebay_api::Eventual;
use forebay_apimachinery::{Reason, Status};
use forebay_rt::Instant;
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, Switch, Tools, WriteAttributes};
use crate::settings::is_of;

/// Buckets of a limit that says nothing of them, as upstream.
const BUCKETS_DEFAULT: usize = 4_096;
/// Buckets of one limit, whatever it says: 2^20 x 64 B = 64 MB.
const BUCKETS_MAX: usize = 1 << 20;

pub struct EventRateLimit;

/// The limits that an administrator has set, with what is left of each.
#[derive(Default)]
pub struct EventRates(Vec<Limit>);

/// One of them.
struct Limit {
    by: By,
    each_second: f64,
    burst: f64,
    buckets_max: usize,
    hasher: RandomState,
    buckets: Mutex<Buckets>,
}

/// What shares a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Server,
    Namespace,
    User,
    SourceAndObject,
}

/// What is left, of those that were used last.
#[derive(Default)]
struct Buckets {
    // hash of the key -> its bucket, <= buckets_max
    all: HashMap<u64, Bucket>,
    // when it was used -> whose it is; exactly those of `all`
    used: BTreeMap<u64, u64>,
    uses: u64,
}

struct Bucket {
    left: f64,
    at: Instant,
    used: u64,
}

/// Without what is left.
impl fmt::Debug for EventRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|limit| limit.by)).finish()
    }
}

impl EventRates {
    /// # Errors
    /// It is something else, or has limits that make no sense.
    pub fn of(configuration: &Value) -> Result<EventRates, String> {
        is_of(configuration, "eventratelimit.admission.k8s.io/v1alpha1")?;
        let limits = configuration["limits"].as_array().filter(|limits| !limits.is_empty());
        let limits = limits.ok_or("limits: Invalid value: null: must not be empty")?;
        limits
            .iter()
            .enumerate()
            .map(|(index, limit)| Limit::of(index, limit))
            .collect::<Result<_, _>>()
            .map(EventRates)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a write of `event` is refused for.
    fn refusal(&self, write: &WriteAttributes<'_>, event: &Value, now: Instant) -> Option<Status> {
        // Each limit counts it, whatever the others say.
        let reached: Vec<String> =
            self.0.iter().filter_map(|limit| limit.refusal(write, event, now)).collect();
        let why = match reached.as_slice() {
            [] => return None,
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Some(Status::new(Reason::TooManyRequests, format!("Too many requests: {why}")))
    }
}

impl Limit {
    fn of(index: usize, limit: &Value) -> Result<Limit, String> {
        let by = match limit["type"].as_str().unwrap_or_default() {
            "Server" => By::Server,
            "Namespace" => By::Namespace,
            "User" => By::User,
            "SourceAndObject" => By::SourceAndObject,
            other => {
                return Err(format!(
                    "limits[{index}].type: Unsupported value: {other:?}: supported values: \"Namespace\", \
                     \"Server\", \"SourceAndObject\", \"User\""
                ));
            }
        };
        let positive = |name: &str| match limit[name].as_i64().unwrap_or_default() {
            number @ 1.. => Ok(number as f64),
            number => Err(format!("limits[{index}].{name}: Invalid value: {number}: must be positive")),
        };
        let (burst, each_second) = (positive("burst")?, positive("qps")?);
        let buckets_max = match limit["cacheSize"].as_i64().unwrap_or_default() {
            _ if by == By::Server => 1,
            0 => BUCKETS_DEFAULT,
            number @ 1.. => (number as usize).min(BUCKETS_MAX),
            number => {
                return Err(format!(
                    "limits[{index}].cacheSize: Invalid value: {number}: must not be negative"
                ));
            }
        };
        let (hasher, buckets) = (RandomState::new(), Mutex::default());
        Ok(Limit { by, each_second, burst, buckets_max, hasher, buckets })
    }

    fn refusal(&self, write: &WriteAttributes<'_>, event: &Value, now: Instant) -> Option<String> {
        let text = |at: &str| event.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let key = match self.by {
            By::Server => String::new(),
            By::Namespace => write.of.namespace.to_owned(),
            By::User => write.caller.map_or_else(String::new, |caller| caller.name.clone()),
            By::SourceAndObject => [
                "/source/component",
                "/source/host",
                "/involvedObject/kind",
                "/involvedObject/namespace",
                "/involvedObject/name",
                "/involvedObject/uid",
                "/involvedObject/apiVersion",
            ]
            .map(text)
            .concat(),
        };
        match self.take(self.hasher.hash_one(&key), now) {
            true => None,
            false => Some(format!("limit reached on type {:?} for key {key}", self.by)),
        }
    }

    /// Takes one from the bucket of `key`, if there is one left.
    fn take(&self, key: u64, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let Buckets { all, used, uses } = &mut *buckets;
        *uses += 1;
        let bucket = all.entry(key).or_insert(Bucket { left: self.burst, at: now, used: *uses });
        used.remove(&bucket.used);
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + since * self.each_second).min(self.burst);
        (bucket.at, bucket.used) = (now, *uses);
        used.insert(*uses, key);
        let has_one = bucket.left >= 1.0;
        if has_one {
            bucket.left -= 1.0;
        }
        if all.len() > self.buckets_max
            && let Some((_, oldest)) = used.pop_first()
        {
            all.remove(&oldest);
        }
        has_one
    }
}

impl Plugin for EventRateLimit {
    fn name(&self) -> &'static str {
        "EventRateLimit"
    }

    fn switch(&self) -> Switch {
        Switch::IfEnabled
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        let is_of = write.is_of("", "events") || write.is_of("events.k8s.io", "events");
        (write.creates() || write.updates()) && is_of && !write.dry_run
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let refusal = tools.settings.event_rates.refusal(write, object, tools.clock.now());
        Eventual::Now(refusal.map_or(Ok(()), Err))
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::{Caller, ResourceAttributes, Verb};
    use forebay_rt::{Clock, Duration};
    use serde_json::json;

    use super::*;

    fn rates(limits: Value) -> Result<EventRates, String> {
        EventRates::of(&json!({
            "apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration", "limits": limits,
        }))
    }

    /// What becomes of writes, each `seconds@namespace/user`, one after the other.
    fn check(limits: Value, writes: &str) -> Vec<String> {
        let (rates, start) = (rates(limits).expect("limits"), Clock::system().now());
        let judged = writes.split(' ').map(|write| {
            let (seconds, who) = write.split_once('@').expect("a time");
            let (namespace, user) = who.split_once('/').expect("a namespace");
            let caller = Caller { name: user.to_owned(), ..Caller::default() };
            let of = ResourceAttributes { resource: "events", namespace, ..ResourceAttributes::default() };
            let write = WriteAttributes {
                verb: &Verb::Create,
                of,
                namespaced: true,
                caller: Some(&caller),
                dry_run: false,
                is_patch: false,
                old: None,
                sent: &Value::Null,
            };
            let now = start + Duration::from_secs(seconds.parse().expect("a number"));
            rates.refusal(&write, &json!({}), now).map_or_else(|| "ok".to_owned(), |status| status.message)
        });
        judged.collect()
    }

    #[test]
    fn a_bucket_is_as_full_as_it_was_and_what_came_since() {
        let said = check(
            json!([{ "type": "Namespace", "qps": 1, "burst": 2 }]),
            "0@a/u 0@a/u 0@a/u 0@b/u 1@a/u 1@a/u",
        );
        let full = "Too many requests: limit reached on type Namespace for key a";
        assert_eq!(said, ["ok", "ok", full, "ok", "ok", full]);
    }

    #[test]
    fn every_limit_is_asked_and_those_that_are_reached_are_told() {
        let limits =
            json!([{ "type": "Server", "qps": 1, "burst": 1 }, { "type": "User", "qps": 1, "burst": 1 }]);
        let said = check(limits, "0@a/u 0@a/v 0@a/u");
        assert_eq!(said[0], "ok");
        assert_eq!(said[1], "Too many requests: limit reached on type Server for key ");
        assert_eq!(
            said[2],
            "Too many requests: [limit reached on type Server for key , limit reached on type User for key u]"
        );
    }

    #[test]
    fn the_bucket_that_was_used_longest_ago_makes_room() {
        let limits = json!([{ "type": "Namespace", "qps": 1, "burst": 1, "cacheSize": 2 }]);
        let said = check(limits, "0@a/u 0@b/u 0@a/u 0@c/u 0@b/u 0@a/u");
        let full = |key: &str| format!("Too many requests: limit reached on type Namespace for key {key}");
        // b went for c, and a for b.
        assert_eq!(said, ["ok".into(), "ok".into(), full("a"), "ok".into(), "ok".into(), "ok".to_owned()]);
    }

    #[test]
    fn limits_that_make_no_sense_are_refused_in_upstreams_words() {
        for (limits, why) in [
            (json!([]), "limits: Invalid value: null: must not be empty"),
            (
                json!([{ "type": "Server", "qps": 0, "burst": 1 }]),
                "limits[0].qps: Invalid value: 0: must be positive",
            ),
            (
                json!([{ "type": "User", "qps": 1, "burst": 1, "cacheSize": -1 }]),
                "limits[0].cacheSize: Invalid value: -1: must not be negative",
            ),
        ] {
            assert_eq!(rates(limits).expect_err("refused"), why);
        }
        assert!(rates(json!([{ "type": "Pod", "qps": 1, "burst": 1 }])).is_err());
        assert!(EventRates::of(&json!({})).is_err());
    }
}
