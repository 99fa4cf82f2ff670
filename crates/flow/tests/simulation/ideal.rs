//! Beside an ideal fair queue, which serves all flows that wait at once, each with the same part of a core.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use forebay_flow::{
    Access, Arrival, Configuration, Dealer, Details, Dispatcher, Flow, FlowEffect, FlowInput, LimitBounds,
    Moment, Opening, Price, PriorityLevel, Setup, flow_hash,
};
use forebay_rt::Random;
use serde_json::json;

const QUEUES: u64 = 64;

/// A machine with one level beside the mandatory ones, of one seat.
fn machine() -> Dispatcher {
    let bounds = LimitBounds { seats_min: 1, seats_max: 1, bytes_max: 1 << 30 };
    let setup = Setup { bounds, watch_bytes: 1 << 20, cores: 2, start: Opening::Open };
    let mut machine = Dispatcher::new(setup, Duration::ZERO);
    let queuing = json!({"queues": QUEUES, "handSize": 1, "queueLengthLimit": 100_000});
    let limited = json!({"borrowingLimitPercent": 0, "limitResponse": {"type": "Queue", "queuing": queuing}});
    let level = json!({"metadata": {"name": "test"}, "spec": {"type": "Limited", "limited": limited}});
    let levels = vec![PriorityLevel::read(&level).unwrap()];
    machine.step(FlowInput::Configured(Configuration { schemas: Vec::new(), levels }), Duration::ZERO);
    machine
}

/// Flows that each have a queue of their own.
fn flows(count: usize) -> Vec<Flow> {
    let dealer = Dealer::new(QUEUES, 1).unwrap();
    let mut by_queue = BTreeMap::new();
    for user in 0.. {
        let hash = flow_hash("test", &format!("user-{user}"));
        by_queue.entry(dealer.deal(hash)[0]).or_insert(hash);
        if by_queue.len() == count {
            break;
        }
    }
    let flow = |hash| Flow {
        schema: "test".into(),
        schema_uid: "".into(),
        level: "test".into(),
        distinguisher: "".into(),
        hash,
    };
    by_queue.into_values().map(flow).collect()
}

#[derive(Clone, Copy)]
struct Job {
    arrives: u64,
    flow: usize,
    work: u64,
}

/// When each job ends where all flows with work are served at once.
fn ideal(jobs: &[Job], flows: usize) -> Vec<f64> {
    let mut ends = vec![0.0; jobs.len()];
    let mut queues: Vec<VecDeque<(usize, f64)>> = vec![VecDeque::new(); flows];
    let (mut now, mut arrived) = (0.0, 0);
    loop {
        while arrived < jobs.len() && jobs[arrived].arrives as f64 <= now {
            queues[jobs[arrived].flow].push_back((arrived, jobs[arrived].work as f64));
            arrived += 1;
        }
        let active = queues.iter().filter(|queue| !queue.is_empty()).count() as f64;
        let next = jobs.get(arrived).map(|job| job.arrives as f64);
        if active == 0.0 {
            match next {
                Some(next) => now = next,
                None => return ends,
            }
            continue;
        }
        let least =
            queues.iter().filter_map(|queue| queue.front()).map(|(_, left)| *left).fold(f64::MAX, f64::min);
        let until = (now + least * active).min(next.unwrap_or(f64::MAX));
        let served = (until - now) / active;
        for queue in &mut queues {
            let Some((job, left)) = queue.front_mut() else { continue };
            *left -= served;
            if *left < 1e-3 {
                ends[*job] = until;
                queue.pop_front();
            }
        }
        now = until;
    }
}

/// When each job ends where the machine says whose turn it is.
fn ours(jobs: &[Job], flows: &[Flow]) -> Vec<f64> {
    let mut machine = machine();
    let mut ends = vec![0.0; jobs.len()];
    let mut running: Option<(u64, u64)> = None;
    let (mut arrived, mut waiting) = (0, 0_i64);
    loop {
        let next = jobs.get(arrived).map(|job| job.arrives);
        let end = running.map(|(_, end)| end);
        let Some(now) = [next, end].into_iter().flatten().min() else { return ends };
        let at = Moment::from_nanos(now);
        let input = if end == Some(now) {
            let (id, _) = running.take().unwrap();
            ends[id as usize] = now as f64;
            let mut effects = machine
                .step(FlowInput::Answered { id, cpu: Duration::from_nanos(jobs[id as usize].work) }, at);
            effects.extend(machine.step(FlowInput::Left { id }, at));
            effects
        } else {
            let job = jobs[arrived];
            let price = Price { bytes: 0, cpu: Duration::from_nanos(job.work) };
            let mut arrival = Arrival::new(
                arrived as u64,
                flows[job.flow].clone(),
                price,
                Access::Read,
                Details::default(),
            );
            arrival.wait_max = Duration::from_secs(100_000);
            arrived += 1;
            waiting += 1;
            machine.step(FlowInput::Arrived(Box::new(arrival)), at)
        };
        for effect in input {
            let FlowEffect::Run { id } = effect else { panic!("{effect:?}") };
            assert!(running.is_none(), "two at once of one seat");
            running = Some((id, now + jobs[id as usize].work));
            waiting -= 1;
        }
        assert!(running.is_some() || waiting == 0, "idle with {waiting} waiting");
    }
}

fn jobs(random: &Random, flows: usize, load: f64, count: usize) -> Vec<Job> {
    let mut now = 0;
    let job = |_| {
        let flow = random.below(flows as u64) as usize;
        // Each flow has requests of its own size: from 0.1 ms to 10 ms.
        let work = [100_000, 1_000_000, 10_000_000][flow % 3] * (50 + random.below(50)) / 100;
        now += (random.below(2_000_000) as f64 * 2.8 / load) as u64;
        // Some come in bursts.
        Job { arrives: if random.below(4) == 0 { now } else { now / 50_000_000 * 50_000_000 }, flow, work }
    };
    let mut jobs: Vec<Job> = (0..count).map(job).collect();
    jobs.sort_by_key(|job| job.arrives);
    jobs
}

/// On one seat that is what any queue must be behind that does not break off what it has begun.
#[test]
fn no_flow_waits_longer_than_its_share_says_by_more_than_one_price() {
    let mut most = 0.0;
    for seed in 0..40 {
        let random = Random::seeded(seed);
        let count = 2 + random.below(12) as usize;
        let flows = flows(count);
        let jobs = jobs(&random, count, [0.5, 0.7, 0.9, 0.95][seed as usize % 4], 3_000);
        let largest = jobs.iter().map(|job| job.work).max().unwrap() as f64;
        let (ideal, ours) = (ideal(&jobs, count), ours(&jobs, &flows));
        let late = ideal.iter().zip(&ours).map(|(ideal, ours)| ours - ideal).fold(0.0, f64::max);
        most = f64::max(most, late / largest);
    }
    println!("figure: {most:.3} prices of the largest request later than ideal, at most");
    assert!(most <= 1.001, "{most}");
}
