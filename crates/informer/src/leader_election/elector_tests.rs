//! Electors that run on one Lease, on paused time. Requests take no time unless a test says so.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

use super::super::{OnEnd, limits, record};
use super::*;

const ANSWERS: u8 = 0;
const AWAY: u8 = 1;
const FORBIDS: u8 = 2;
const SLOW: u8 = 3;

/// A server as one elector sees it.
#[derive(Clone, Default)]
struct Server {
    lease: Arc<Mutex<Option<Lease>>>,
    how: Arc<AtomicU8>,
}

impl Server {
    /// The same Lease on a way of its own.
    fn other_way(&self) -> Server {
        Server { lease: self.lease.clone(), how: Arc::default() }
    }

    fn is(&self, how: u8) {
        self.how.store(how, Ordering::SeqCst);
    }

    fn holder(&self) -> String {
        let lease = self.lease.lock().expect("nobody panics in here");
        lease.as_ref().map(record::holder).unwrap_or_default().to_owned()
    }

    async fn does<T>(
        &self,
        what: impl FnOnce(&mut Option<Lease>) -> Result<T, LeaseError>,
    ) -> Result<T, LeaseError> {
        match self.how.load(Ordering::SeqCst) {
            AWAY => std::future::pending().await,
            FORBIDS => Err(LeaseError::Forbidden { message: "no".into() }),
            how => {
                if how == SLOW {
                    clock().sleep(Duration::from_millis(200)).await;
                }
                what(&mut self.lease.lock().expect("nobody panics in here"))
            }
        }
    }
}

fn stored(lease: &mut Option<Lease>, mut new: Lease, before: u64) -> Lease {
    new.metadata.resource_version = Some((before + 1).to_string());
    *lease = Some(new.clone());
    new
}

impl LeaseApi for Server {
    async fn get(&self, _namespace: &str, _name: &str) -> Result<Lease, LeaseError> {
        self.does(|lease| lease.clone().ok_or(LeaseError::NotFound)).await
    }

    async fn create(&self, new: Lease) -> Result<Lease, LeaseError> {
        self.does(|lease| match lease {
            None => Ok(stored(lease, new, 0)),
            Some(_) => Err(LeaseError::Conflict),
        })
        .await
    }

    async fn update(&self, new: Lease) -> Result<Lease, LeaseError> {
        self.does(|lease| {
            let current = lease.as_ref().ok_or(LeaseError::NotFound)?.metadata.resource_version.clone();
            match current == new.metadata.resource_version {
                true => Ok(stored(lease, new, current.and_then(|text| text.parse().ok()).unwrap_or(0))),
                false => Err(LeaseError::Conflict),
            }
        })
        .await
    }
}

/// What was told to whom, and when, in ms. Stopping takes a while, after which the holder is noted.
struct Told {
    who: &'static str,
    server: Server,
    clock: Clock,
    began: Instant,
    stop_takes: Duration,
    log: Log,
}

type Log = Arc<Mutex<Vec<(u128, String)>>>;

impl Told {
    fn note(&self, what: String) {
        let at = (self.clock.now() - self.began).as_millis();
        self.log.lock().expect("nobody panics in here").push((at, format!("{} {what}", self.who)));
    }
}

impl Callbacks for Told {
    fn started_leading(&mut self) {
        self.note("started".into());
    }

    async fn stopped_leading(&mut self) {
        self.note("stops".into());
        self.clock.sleep(self.stop_takes).await;
        self.note(format!("stopped; holder {}", self.server.holder()));
    }

    fn new_leader(&mut self, identity: &str) {
        self.note(format!("sees {identity}"));
    }

    fn request_failed(&mut self, error: &LeaseError) {
        self.note(format!("failed: {error}"));
    }
}

/// Wall time stands still in all of this: nobody is to need it.
fn clock() -> Clock {
    Clock::manual(1_000).0
}

fn config(who: &str) -> Config {
    Config { jitter: 0.0, ..Config::new("ns", "it", who) }
}

fn elector(server: &Server, who: &str) -> Elector<Server> {
    Elector::new(server.clone(), config(who), clock(), Arc::new(Random::seeded(1))).expect("a good one")
}

struct Running {
    cancel: Shutdown,
    task: tokio::task::JoinHandle<End>,
}

fn starts(server: &Server, who: &'static str, log: &Log, began: Instant) -> Running {
    let (elector, cancel) = (elector(server, who), Shutdown::default());
    let mut told = Told {
        who,
        server: server.clone(),
        clock: clock(),
        began,
        stop_takes: Duration::from_millis(500),
        log: log.clone(),
    };
    let flag = cancel.clone();
    let task = tokio::spawn(async move { elector.run(&mut told, &flag).await });
    Running { cancel, task }
}

fn told(log: &Log) -> Vec<String> {
    log.lock().expect("nobody panics in here").iter().map(|(_, what)| what.clone()).collect()
}

fn when(log: &Log, what: &str) -> u128 {
    let log = log.lock().expect("nobody panics in here");
    log.iter().find(|(_, said)| said == what).unwrap_or_else(|| panic!("nobody said {what}: {log:?}")).0
}

async fn pass(seconds: u64) {
    clock().sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cancelled_stops_gives_the_lease_back_and_the_next_one_leads() {
    let (server, log, began) = (Server::default(), Log::default(), clock().now());
    let first = starts(&server, "a", &log, began);
    pass(1).await;
    let second = starts(&server, "b", &log, began);
    pass(59).await;
    assert_eq!(told(&log), ["a sees a", "a started", "b sees a"]);
    first.cancel.raise();
    assert_eq!(first.task.await.expect("it ends"), End::Cancelled);
    assert_eq!(server.holder(), "");
    pass(5).await;
    // Given back only after it has stopped.
    assert_eq!(told(&log)[3..], ["a stops", "a stopped; holder a", "b sees b", "b started"]);
    assert!(when(&log, "b started") - when(&log, "a stopped; holder a") <= 2_010);
    second.cancel.raise();
    assert_eq!(second.task.await.expect("it ends"), End::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_the_server_is_away_from_stops_before_another_one_leads() {
    let (server, log, began) = (Server::default(), Log::default(), clock().now());
    let cut_off = server.other_way();
    let first = starts(&cut_off, "a", &log, began);
    pass(1).await;
    let second = starts(&server, "b", &log, began);
    pass(30).await;
    cut_off.is(AWAY);
    assert_eq!(first.task.await.expect("it ends"), End::Lost);
    pass(20).await;
    let (lost, led) = (when(&log, "a stops"), when(&log, "b started"));
    // It asked last at 30 s; from then on both count, and b may have looked up to a period later.
    assert!((39_900..40_200).contains(&lost), "{lost}");
    assert!((45_000..50_000).contains(&led), "{led}");
    assert_eq!(
        told(&log)[3..],
        [
            "a failed: not answered in time",
            "a stops",
            "a stopped; holder a",
            "a failed: not answered in time",
            "b sees b",
            "b started"
        ]
    );
    second.cancel.raise();
    assert_eq!(second.task.await.expect("it ends"), End::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn who_is_not_allowed_asks_again_and_leads_once_it_is() {
    let (server, log, began) = (Server::default(), Log::default(), clock().now());
    server.is(FORBIDS);
    let running = starts(&server, "a", &log, began);
    pass(3).await;
    assert_eq!(told(&log), ["a failed: not allowed: no"; 2]);
    server.is(ANSWERS);
    pass(2).await;
    assert_eq!(told(&log)[2..], ["a sees a", "a started"]);
    // Not for long enough to lose it.
    server.is(FORBIDS);
    pass(7).await;
    server.is(ANSWERS);
    pass(60).await;
    let said = told(&log);
    assert!(
        said[4..].len() >= 3 && said[4..].iter().all(|what| what == "a failed: not allowed: no"),
        "{said:?}"
    );
    running.cancel.raise();
    assert_eq!(running.task.await.expect("it ends"), End::Cancelled);
    assert_eq!(server.holder(), "");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_under_way_is_given_up_when_leadership_ends() {
    let (server, log, began) = (Server::default(), Log::default(), clock().now());
    let running = starts(&server, "a", &log, began);
    pass(1).await;
    server.is(SLOW);
    clock().sleep(Duration::from_millis(1_100)).await;
    // In the middle of the first renewal, whose answer would be there before it has stopped.
    running.cancel.raise();
    assert_eq!(running.task.await.expect("it ends"), End::Cancelled);
    assert_eq!(told(&log), ["a sees a", "a started", "a stops", "a stopped; holder a"]);
    let lease = server.lease.lock().expect("nobody panics in here").clone().expect("a lease");
    // Made and given back.
    assert_eq!((record::holder(&lease), lease.metadata.resource_version.as_deref()), ("", Some("2")));
}

/// Says when it is dropped.
struct Dropped(Arc<Mutex<Vec<String>>>, Server);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.lock().expect("nobody panics in here").push(format!("ended; holder {}", self.1.holder()));
    }
}

#[tokio::test(start_paused = true)]
async fn work_is_done_only_while_leading_and_has_ended_when_the_lease_is_given_back() {
    let (server, said, cancel) = (Server::default(), Arc::new(Mutex::new(Vec::new())), Shutdown::default());
    let (elector, seen, at) = (elector(&server, "a"), said.clone(), server.clone());
    let flag = cancel.clone();
    let task = tokio::spawn(async move {
        let mut work = Work::new(&config("a"), move || {
            let dropped = Dropped(seen.clone(), at.clone());
            async move {
                dropped.0.lock().expect("nobody panics in here").push("works".into());
                std::future::pending().await
            }
        });
        let ends = [elector.run(&mut work, &flag).await, elector.run(&mut work, &Shutdown::default()).await];
        unreachable!("the second one leads for ever: {ends:?}");
    });
    pass(10).await;
    assert_eq!(*said.lock().expect("nobody panics in here"), ["works"]);
    cancel.raise();
    pass(10).await;
    assert_eq!(*said.lock().expect("nobody panics in here"), ["works", "ended; holder a", "works"]);
    // Dropped while it leads: the work ends, and the lease is left to run out.
    task.abort();
    assert!(task.await.is_err_and(|error| error.is_cancelled()));
    pass(1).await;
    assert_eq!(
        said.lock().expect("nobody panics in here").last().map(String::as_str),
        Some("ended; holder a")
    );
    assert_eq!(server.holder(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_given_back_runs_out() {
    let (server, log, began, cancel) =
        (Server::default(), Log::default(), clock().now(), Shutdown::default());
    let keeps = Config { on_end: OnEnd::RunOut, ..config("a") };
    let first =
        Elector::new(server.clone(), keeps, clock(), Arc::new(Random::seeded(1))).expect("a good one");
    let flag = cancel.clone();
    let first = tokio::spawn(async move {
        let mut work = Work::new(&config("a"), std::future::pending::<()>);
        first.run(&mut work, &flag).await
    });
    pass(1).await;
    cancel.raise();
    assert_eq!(first.await.expect("it ends"), End::Cancelled);
    assert_eq!(server.holder(), "a");
    let second = starts(&server, "b", &log, began);
    pass(30).await;
    assert!(when(&log, "b started") >= 1_000 + limits::LEASE_DURATION.as_millis());
    second.cancel.raise();
    assert_eq!(second.task.await.expect("it ends"), End::Cancelled);
}

#[test]
fn an_elector_that_cannot_keep_leaders_apart_does_not_begin() {
    let bad = Config { renew_deadline: limits::LEASE_DURATION, ..config("a") };
    let refused = Elector::new(Server::default(), bad, clock(), Arc::new(Random::seeded(1))).err();
    assert!(matches!(refused, Some(ConfigError::LeaseTooShort { .. })), "{refused:?}");
}
