//! What is seen of it as text: `dump_priority_levels`, `dump_queues` and `dump_requests` below
//! `/debug/api_priority_and_fairness/`.
//!
//! In: the machine. Out: tables as upstream prints them: cells end with a comma and are filled with blanks.
//! Never: asked often; each walks all there is.
//!
//! Source: apiserver v1.36.3 `util/flowcontrol/apf_controller_debug.go`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use jiff::Timestamp;

use crate::dispatcher::Dispatcher;
use crate::fair::Place;
use crate::price::Moment;
use crate::request::{Request, State};

/// Least width of a column, its padding included.
const WIDTH_MIN: usize = 8;

const LEVELS: [&str; 10] = [
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
];
const QUEUES: [&str; 9] = [
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
];
const REQUESTS: [&str; 10] = [
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
];
const DETAILS: [&str; 8] =
    ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"];

/// When a request began that has not begun.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// Whether it is said what requests ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailsShown {
    Yes,
    No,
}

/// What is in one queue.
#[derive(Default)]
struct InQueue<'a> {
    waiting: BTreeMap<u64, &'a Request>,
    // those that had their turn and wait for bytes, then those that run
    parked: BTreeMap<u64, &'a Request>,
    running: Vec<&'a Request>,
}

impl Dispatcher {
    /// A row for each level.
    pub fn dump_priority_levels(&self) -> String {
        let mut rows = vec![LEVELS.map(str::to_string).to_vec()];
        for (name, level) in &self.levels {
            let queues = level.queues.iter().flat_map(|queues| queues.seen());
            rows.push(vec![
                name.to_string(),
                queues.filter(|queue| queue.waiting > 0).count().to_string(),
                level.is_idle().to_string(),
                level.quiescing.to_string(),
                level.waiting.to_string(),
                level.running.to_string(),
                level.tally.dispatched.to_string(),
                level.tally.rejected.to_string(),
                level.tally.timed_out.to_string(),
                level.tally.cancelled.to_string(),
            ]);
        }
        table(&rows)
    }

    /// A row for each queue.
    pub fn dump_queues(&self) -> String {
        let mut rows = vec![QUEUES.map(str::to_string).to_vec()];
        for (name, level) in &self.levels {
            let contents = self.queued(name);
            for (index, queue) in level.queues.iter().flat_map(|queues| queues.seen()).enumerate() {
                let content = contents.get(&(index as i64));
                let running = content.iter().flat_map(|content| &content.running);
                let waiting = content
                    .iter()
                    .flat_map(|content| content.waiting.values().chain(content.parked.values()));
                let asked: u64 = waiting.map(|request| Self::seats_of(request)).sum();
                rows.push(vec![
                    name.to_string(),
                    index.to_string(),
                    queue.waiting.to_string(),
                    queue.running.to_string(),
                    running.map(|request| Self::seats_of(request)).sum::<u64>().to_string(),
                    seat_seconds(queue.clock),
                    asked.to_string(),
                    asked.to_string(),
                    seat_seconds(queue.work),
                ]);
            }
        }
        table(&rows)
    }

    /// A row for each request that waits or runs.
    ///
    /// - `began`: what time it was at the first [`Moment`].
    pub fn dump_requests(&self, began: SystemTime, details: DetailsShown) -> String {
        let mut header = REQUESTS.map(str::to_string).to_vec();
        if details == DetailsShown::Yes {
            header.extend(DETAILS.map(str::to_string));
        }
        let mut rows = vec![header];
        let mut row = |queue: i64, index: i64, request: &Request| {
            rows.push(self.request_row(queue, index, request, began, details));
        };
        for name in self.levels.keys() {
            for (index, content) in self.queued(name) {
                let waiting = content.waiting.values().chain(content.parked.values());
                waiting.enumerate().for_each(|(at, request)| row(index, at as i64, request));
                content.running.iter().for_each(|request| row(index, -1, request));
            }
        }
        table(&rows)
    }

    /// What is in each queue of a level; -1 is none.
    fn queued(&self, level: &str) -> BTreeMap<i64, InQueue<'_>> {
        let mut found = BTreeMap::<i64, InQueue>::new();
        for request in self.requests.values().filter(|request| *request.arrival.flow.level == *level) {
            match request.state {
                State::Queued(Place { queue, arrival }) => {
                    found.entry(queue as i64).or_default().waiting.insert(arrival, request);
                }
                State::Parked(Place { queue, arrival }) => {
                    found.entry(queue as i64).or_default().parked.insert(arrival, request);
                }
                State::Running(run) => {
                    let queue = run.queue.map_or(-1, |queue| queue as i64);
                    found.entry(queue).or_default().running.push(request);
                }
                State::AtDoor | State::Watching => {}
            }
        }
        found.values_mut().for_each(|content| content.running.sort_by_key(|request| request.arrival.id));
        found
    }

    fn seats_of(request: &Request) -> u64 {
        match request.state {
            State::Running(run) => run.seats,
            _ => request.seats,
        }
    }

    fn request_row(
        &self,
        queue: i64,
        index: i64,
        request: &Request,
        began: SystemTime,
        details: DetailsShown,
    ) -> Vec<String> {
        let started = match request.state {
            State::Running(run) => time(began, run.began),
            _ => NEVER.to_string(),
        };
        let flow = &request.arrival.flow;
        let mut row = vec![
            flow.level.to_string(),
            flow.schema.to_string(),
            queue.to_string(),
            index.to_string(),
            flow.distinguisher.to_string(),
            time(began, request.arrived),
            Self::seats_of(request).to_string(),
            "0".to_string(),
            "0s".to_string(),
            started,
        ];
        if details == DetailsShown::Yes {
            let of = &request.arrival.details;
            let texts = [
                &of.user,
                &of.verb,
                &of.path,
                &of.namespace,
                &of.name,
                &of.api_version,
                &of.resource,
                &of.subresource,
            ];
            row.extend(texts.map(|text| text.replace(char::is_control, " ")));
        }
        row
    }
}

fn time(began: SystemTime, at: Moment) -> String {
    Timestamp::try_from(began + at).map_or_else(|_| NEVER.to_string(), |time| time.to_string())
}

/// Time of a seat, with eight digits, as upstream has it.
fn seat_seconds(clock: u64) -> String {
    format!("{}.{:08}ss", clock / 1_000_000_000, clock % 1_000_000_000 / 10)
}

/// Rows in columns: each cell but the last ends with a comma and is as wide as the widest of its column.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count() + 2).max().unwrap_or_default().max(WIDTH_MIN)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == row.len() {
                text += cell;
            } else {
                text += &format!("{:<width$}", format!("{cell},"), width = widths[column]);
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_end_with_a_comma_and_stand_below_each_other() {
        let rows = [["Name", "Is", "Last"], ["a-long-name", "true", "x"]];
        let rows = rows.map(|row| row.map(str::to_string).to_vec());
        assert_eq!(table(&rows), "Name,        Is,     Last\na-long-name, true,   x\n");
        assert_eq!(seat_seconds(12_345_678_901), "12.34567890ss");
    }
}
