//! `apiserver_flowcontrol_*`: what the machine of turns counts, as text.
//!
//! In: its measures. Out: families. Never: counts.

use forebay_flow::{Distribution, Measure, MeasureKind, Point, PointValue};

use super::text::Text;

/// Appends all of them; of some there may be nothing yet.
pub fn write(text: &mut Text, measures: &[Measure]) {
    for Measure { name, kind, points } in measures {
        text.family(name, kind_of(*kind), help(name));
        points.iter().for_each(|point| series(text, name, point));
    }
}

fn kind_of(kind: MeasureKind) -> &'static str {
    match kind {
        MeasureKind::Counter => "counter",
        MeasureKind::Gauge => "gauge",
        MeasureKind::Histogram | MeasureKind::TimingHistogram => "histogram",
    }
}

fn series(text: &mut Text, name: &str, Point { labels, value }: &Point) {
    let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
    match value {
        PointValue::Number(number) => text.value(name, &labels, number),
        PointValue::Distribution(distribution) => buckets(text, name, &labels, distribution),
    }
}

fn buckets(
    text: &mut Text,
    name: &str,
    labels: &[(&str, &str)],
    Distribution { buckets, sum }: &Distribution,
) {
    let bucket = format!("{name}_bucket");
    for (bound, count) in buckets {
        let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_string() };
        let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
        text.value(&bucket, &labels, count);
    }
    text.value(&format!("{name}_sum"), labels, sum);
    text.value(&format!("{name}_count"), labels, buckets.last().map_or(0.0, |(_, count)| *count));
}

/// What a family is about.
fn help(name: &str) -> &'static str {
    let of = |prefix: &str| name.strip_prefix(prefix);
    match of("apiserver_flowcontrol_").or(of("forebay_flowcontrol_")).unwrap_or(name) {
        "foreseen_cpu_seconds_total" => "CPU time that requests were charged when they had their turn.",
        "rejected_requests_total" => "Requests that were refused, by why.",
        "dispatched_requests_total" => "Requests that had their turn.",
        "current_inqueue_requests" => "Requests that wait.",
        "current_inqueue_seats" => "Seats that requests wait for.",
        "current_executing_requests" => "Requests that are worked on, or whose readers have not taken all.",
        "current_executing_seats" | "request_concurrency_in_use" => "Seats that are taken.",
        "request_dispatch_no_accommodation_total" => "Turns that had to wait for bytes.",
        "request_wait_duration_seconds" => "Time that requests waited for their turn.",
        "request_execution_seconds" => "Time from a request's turn to its end.",
        "request_queue_length_after_enqueue" => "Length of the queue that a request joined.",
        "work_estimated_seats" => "Seats that requests were counted as.",
        "nominal_limit_seats" | "request_concurrency_limit" => "Seats that a level has by its shares.",
        "lower_limit_seats" => "Seats that a level does not lend.",
        "upper_limit_seats" => "Seats that a level may have with what it borrows.",
        "current_limit_seats" => "Seats that a level has now.",
        "demand_seats"
        | "demand_seats_high_watermark"
        | "demand_seats_average"
        | "demand_seats_stdev"
        | "demand_seats_smoothed" => "Seats that a level had use for.",
        "target_seats" => "Seats that a level is to have by its demand.",
        "current_r" | "dispatch_r" | "latest_s" | "next_s_bounds" | "next_discounted_s_bounds" => {
            "Clocks of a level's queues, in seconds of one seat."
        }
        "priority_level_seat_utilization" => "Time by the part of a level's seats that was taken.",
        "priority_level_request_utilization" => "Time by the part of a level's places that was taken.",
        "read_vs_write_current_requests" => "Time by the part of all places that reads and writes had.",
        "seat_fair_frac" => "Fair part of its demand that each level is given.",
        "held_bytes" => "Bytes that readers of a level have not taken.",
        "held_bytes_limit" => "Bytes that readers of a level may leave.",
        "turns_per_second" => "Turns that a level's requests have in a second.",
        "readers_cut_total" => "Answers that were broken off for others, as their readers stood still.",
        "seats" => "Seats that are divided among the levels.",
        "seat_bytes" => "Bytes that a seat has.",
        "latency_stretch" => "Latency under load by latency without.",
        "watches" => "Watches that are open.",
        "watch_bytes" => "Bytes that open watches are counted as.",
        "waiting_at_door" => "Requests that a server which has just started lets wait.",
        _ => "Of flow control.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_and_a_number_are_written_with_their_labels() {
        let level = || vec![("priority_level", "system".to_string())];
        let distribution = Distribution { buckets: vec![(0.5, 1.0), (f64::INFINITY, 3.0)], sum: 2.25 };
        let measures = [
            Measure {
                name: "apiserver_flowcontrol_target_seats",
                kind: MeasureKind::Gauge,
                points: vec![Point { labels: level(), value: PointValue::Number(2.5) }],
            },
            Measure {
                name: "apiserver_flowcontrol_demand_seats",
                kind: MeasureKind::TimingHistogram,
                points: vec![Point { labels: level(), value: PointValue::Distribution(distribution) }],
            },
            Measure { name: "forebay_flowcontrol_seats", kind: MeasureKind::Gauge, points: Vec::new() },
        ];
        let mut text = Text::default();
        write(&mut text, &measures);
        assert_eq!(
            text.finish(),
            "# HELP apiserver_flowcontrol_target_seats Seats that a level is to have by its demand.\n\
             # TYPE apiserver_flowcontrol_target_seats gauge\n\
             apiserver_flowcontrol_target_seats{priority_level=\"system\"} 2.5\n\
             # HELP apiserver_flowcontrol_demand_seats Seats that a level had use for.\n\
             # TYPE apiserver_flowcontrol_demand_seats histogram\n\
             apiserver_flowcontrol_demand_seats_bucket{priority_level=\"system\",le=\"0.5\"} 1\n\
             apiserver_flowcontrol_demand_seats_bucket{priority_level=\"system\",le=\"+Inf\"} 3\n\
             apiserver_flowcontrol_demand_seats_sum{priority_level=\"system\"} 2.25\n\
             apiserver_flowcontrol_demand_seats_count{priority_level=\"system\"} 3\n\
             # HELP forebay_flowcontrol_seats Seats that are divided among the levels.\n\
             # TYPE forebay_flowcontrol_seats gauge\n"
        );
    }
}
