//! What is seen of it as metrics: upstream's by their names, and a few of our own.
//!
//! In: the machine. Out: names, labels and numbers. Never: text of an exposition format, or of help.
//!
//! Upstream's `epoch_advance_total` has no equal: these clocks never jump back.

use crate::dispatcher::Dispatcher;
use crate::histogram::Distribution;
use crate::level::Level;
use crate::limits::HOLD_EXPECTED;
use crate::price::nanos;
use crate::tally::SchemaTally;

/// A metric, by its whole name, and its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    pub name: &'static str,
    pub kind: MeasureKind,
    pub points: Vec<Point>,
}

/// What a metric's numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureKind {
    Counter,
    Gauge,
    Histogram,
    /// A histogram whose counts are nanoseconds.
    TimingHistogram,
}

/// One of a metric's series.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub labels: Vec<(&'static str, String)>,
    pub value: PointValue,
}

/// Its number, or numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum PointValue {
    Number(f64),
    Distribution(Distribution),
}

use MeasureKind::{Counter, Gauge, Histogram, TimingHistogram};

const LEVEL: &str = "priority_level";
const SCHEMA: &str = "flow_schema";

type OfSchema<T> = fn(&SchemaTally) -> T;
type OfLevel<T> = fn(&Level) -> T;

/// Numbers of each schema of each level.
const BY_SCHEMA: &[(&str, MeasureKind, OfSchema<f64>)] = &[
    ("apiserver_flowcontrol_dispatched_requests_total", Counter, |of| of.dispatched as f64),
    ("apiserver_flowcontrol_current_inqueue_requests", Gauge, |of| of.waiting as f64),
    ("apiserver_flowcontrol_current_inqueue_seats", Gauge, |of| of.waiting_seats as f64),
    ("apiserver_flowcontrol_current_executing_requests", Gauge, |of| of.running as f64),
    ("apiserver_flowcontrol_current_executing_seats", Gauge, |of| of.running_seats as f64),
    ("apiserver_flowcontrol_request_concurrency_in_use", Gauge, |of| of.running_seats as f64),
    ("apiserver_flowcontrol_request_dispatch_no_accommodation_total", Counter, |of| of.no_room as f64),
    ("forebay_flowcontrol_foreseen_cpu_seconds_total", Counter, |of| seconds(of.cpu)),
];

/// Histograms of each schema of each level, and a label more.
type SchemaHistogram = (&'static str, Option<(&'static str, &'static str)>, OfSchema<Distribution>);

const HISTOGRAMS_BY_SCHEMA: &[SchemaHistogram] = &[
    ("apiserver_flowcontrol_request_wait_duration_seconds", Some(("execute", "true")), |of| {
        of.waited_to_run.shown()
    }),
    ("apiserver_flowcontrol_request_wait_duration_seconds", Some(("execute", "false")), |of| {
        of.waited_in_vain.shown()
    }),
    ("apiserver_flowcontrol_request_execution_seconds", Some(("type", "regular")), |of| of.ran.shown()),
    ("apiserver_flowcontrol_request_execution_seconds", Some(("type", "watch")), |of| {
        of.watch_started.shown()
    }),
    ("apiserver_flowcontrol_request_queue_length_after_enqueue", None, |of| of.queue_lengths.shown()),
    ("apiserver_flowcontrol_work_estimated_seats", None, |of| of.seats.shown()),
];

/// Numbers of each level.
const BY_LEVEL: &[(&str, MeasureKind, OfLevel<f64>)] = &[
    ("apiserver_flowcontrol_nominal_limit_seats", Gauge, |of| of.bounds.nominal as f64),
    ("apiserver_flowcontrol_request_concurrency_limit", Gauge, |of| of.bounds.nominal as f64),
    ("apiserver_flowcontrol_lower_limit_seats", Gauge, |of| of.bounds.lower as f64),
    ("apiserver_flowcontrol_upper_limit_seats", Gauge, |of| of.bounds.upper as f64),
    ("apiserver_flowcontrol_current_limit_seats", Gauge, |of| of.current as f64),
    ("apiserver_flowcontrol_demand_seats_high_watermark", Gauge, |of| of.demand.high_watermark as f64),
    ("apiserver_flowcontrol_demand_seats_average", Gauge, |of| of.demand.average),
    ("apiserver_flowcontrol_demand_seats_stdev", Gauge, |of| of.demand.deviation),
    ("apiserver_flowcontrol_demand_seats_smoothed", Gauge, |of| of.demand.smoothed),
    ("apiserver_flowcontrol_target_seats", Gauge, |of| of.target),
    ("apiserver_flowcontrol_current_r", Gauge, |of| seconds(of.queues.as_ref().map_or(0, |it| it.clock()))),
    ("apiserver_flowcontrol_dispatch_r", Gauge, |of| seconds(of.tally.dispatch_clock)),
    ("apiserver_flowcontrol_latest_s", Gauge, |of| seconds(of.tally.latest_clock)),
    ("forebay_flowcontrol_held_bytes", Gauge, |of| of.holding.held() as f64),
    ("forebay_flowcontrol_held_bytes_limit", Gauge, |of| of.holding.pool() as f64),
    ("forebay_flowcontrol_turns_per_second", Gauge, |of| of.slots.rate()),
    ("forebay_flowcontrol_readers_cut_total", Counter, |of| of.tally.gave_way as f64),
];

/// How much of it was used, over time.
const TIMED_BY_LEVEL: &[(&str, Option<&str>, OfLevel<Distribution>)] = &[
    ("apiserver_flowcontrol_priority_level_seat_utilization", Some("executing"), |of| {
        of.tally.seat_use.shown()
    }),
    ("apiserver_flowcontrol_priority_level_request_utilization", Some("waiting"), |of| {
        of.tally.waiting_use.shown()
    }),
    ("apiserver_flowcontrol_priority_level_request_utilization", Some("executing"), |of| {
        of.tally.running_use.shown()
    }),
    ("apiserver_flowcontrol_demand_seats", None, |of| of.tally.demand.shown()),
];

impl Dispatcher {
    /// All metrics, as they are now.
    pub fn metrics(&self) -> Vec<Measure> {
        let mut found = vec![self.rejected()];
        found.extend(BY_SCHEMA.iter().map(|(name, kind, of)| {
            let points = self
                .schemas_seen()
                .map(|(level, schema, tally)| Point::new(vec![(LEVEL, level), (SCHEMA, schema)], of(tally)));
            Measure { name, kind: *kind, points: points.collect() }
        }));
        found.extend(HISTOGRAMS_BY_SCHEMA.iter().map(|(name, label, of)| {
            let points = self.schemas_seen().map(|(level, schema, tally)| {
                let labels = [(LEVEL, level), (SCHEMA, schema)].into_iter();
                let labels = labels.chain(label.map(|(name, value)| (name, value.to_string())));
                Point { labels: labels.collect(), value: PointValue::Distribution(of(tally)) }
            });
            Measure { name, kind: Histogram, points: points.collect() }
        }));
        found.extend(BY_LEVEL.iter().map(|(name, kind, of)| {
            let points = self
                .levels
                .iter()
                .map(|(name, level)| Point::new(vec![(LEVEL, name.to_string())], of(level)));
            Measure { name, kind: *kind, points: points.collect() }
        }));
        found.extend(TIMED_BY_LEVEL.iter().map(|(name, phase, of)| {
            let points = self.levels.iter().map(|(name, level)| {
                let labels = [(LEVEL, name.to_string())].into_iter();
                let labels = labels.chain(phase.map(|phase| ("phase", phase.to_string())));
                Point { labels: labels.collect(), value: PointValue::Distribution(of(level)) }
            });
            Measure { name, kind: TimingHistogram, points: points.collect() }
        }));
        found.extend(self.clock_bounds());
        found.push(self.read_and_write());
        found.extend(self.of_the_server());
        merged(found)
    }

    fn schemas_seen(&self) -> impl Iterator<Item = (String, String, &SchemaTally)> {
        self.levels.iter().flat_map(|(name, level)| {
            level
                .tally
                .schemas
                .iter()
                .map(move |(schema, tally)| (name.to_string(), schema.to_string(), tally))
        })
    }

    fn rejected(&self) -> Measure {
        let points = self.schemas_seen().flat_map(|(level, schema, tally)| {
            tally.rejected.iter().map(move |(reason, count)| {
                let labels =
                    vec![(LEVEL, level.clone()), (SCHEMA, schema.clone()), ("reason", reason.to_string())];
                Point::new(labels, *count as f64)
            })
        });
        let name = "apiserver_flowcontrol_rejected_requests_total";
        Measure { name, kind: Counter, points: points.collect() }
    }

    /// The least and the most of the clocks of queues that wait, as they are, and less what they have under
    /// way.
    fn clock_bounds(&self) -> [Measure; 2] {
        let bounds = |discount: u64| {
            self.levels.iter().flat_map(move |(name, level)| {
                let queues =
                    level.queues.iter().flat_map(|queues| queues.seen()).filter(|queue| queue.waiting > 0);
                let clocks: Vec<u64> =
                    queues.map(|queue| queue.clock.saturating_sub(queue.running as u64 * discount)).collect();
                [("min", clocks.iter().min().copied()), ("max", clocks.iter().max().copied())].map(
                    |(bound, clock)| {
                        let labels = vec![(LEVEL, name.to_string()), ("bound", bound.to_string())];
                        Point::new(labels, seconds(clock.unwrap_or_default()))
                    },
                )
            })
        };
        let measure = |name, discount| Measure { name, kind: Gauge, points: bounds(discount).collect() };
        [
            measure("apiserver_flowcontrol_next_s_bounds", 0),
            measure("apiserver_flowcontrol_next_discounted_s_bounds", nanos(HOLD_EXPECTED)),
        ]
    }

    fn read_and_write(&self) -> Measure {
        let phases = ["waiting", "executing"].into_iter().zip(&self.read_write.uses);
        let points = phases.flat_map(|(phase, uses)| {
            let kinds = ["readOnly", "mutating"].into_iter().zip(uses);
            kinds.map(move |(kind, used)| Point {
                labels: vec![("phase", phase.to_string()), ("request_kind", kind.to_string())],
                value: PointValue::Distribution(used.shown()),
            })
        });
        let name = "apiserver_flowcontrol_read_vs_write_current_requests";
        Measure { name, kind: TimingHistogram, points: points.collect() }
    }

    fn of_the_server(&self) -> Vec<Measure> {
        let open = self.watches.all();
        let waiting = self.door.as_ref().map_or(0, |door| door.waiting());
        let numbers = [
            ("apiserver_flowcontrol_seat_fair_frac", self.fair_fraction),
            ("forebay_flowcontrol_seats", self.total as f64),
            ("forebay_flowcontrol_seat_bytes", self.seat.bytes as f64),
            ("forebay_flowcontrol_latency_stretch", self.limiter.stretch()),
            ("forebay_flowcontrol_watches", open.watches as f64),
            ("forebay_flowcontrol_watch_bytes", open.bytes as f64),
            ("forebay_flowcontrol_waiting_at_door", waiting as f64),
        ];
        let measure =
            |(name, number)| Measure { name, kind: Gauge, points: vec![Point::new(Vec::new(), number)] };
        numbers.into_iter().map(measure).collect()
    }
}

impl Point {
    fn new(labels: Vec<(&'static str, String)>, number: f64) -> Point {
        Point { labels, value: PointValue::Number(number) }
    }
}

/// Series of one name as one metric; they stand side by side.
fn merged(found: Vec<Measure>) -> Vec<Measure> {
    let mut merged: Vec<Measure> = Vec::with_capacity(found.len());
    for measure in found {
        match merged.last_mut() {
            Some(last) if last.name == measure.name => last.points.extend(measure.points),
            _ => merged.push(measure),
        }
    }
    merged
}

fn seconds(clock: u64) -> f64 {
    clock as f64 / 1e9
}
