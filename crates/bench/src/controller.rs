//! A controller that reads and writes an object, at a rate.
//!
//! In: a server. Out: how long each request took since it was due. Never: a failure that counts as fast: it
//! counts as the longest.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::aside::Aside;
use crate::caller::Caller;
use crate::client::{Protocol, RestConfig};
use crate::pending::Pending;
use crate::{Error, pods, users};

/// Requests in a second, and the longest that one may take.
pub const RATE: u32 = 20;
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Controller {
    log: Arc<Pending>,
    _thread: Aside,
}

impl Controller {
    pub fn start(target: &RestConfig) -> Result<Controller, Error> {
        let log = Arc::<Pending>::default();
        let thread = Aside::start("controller", control(target.clone(), log.clone()))?;
        Ok(Controller { log, _thread: thread })
    }

    /// The requests that were due from `begin` on, before `end`: how long they took, sorted.
    pub fn span(&self, begin: Instant, end: Instant) -> Vec<Duration> {
        self.log.span(begin, end, Instant::now())
    }
}

async fn control(target: RestConfig, log: Arc<Pending>) {
    let mut caller = Caller::new(target, Protocol::Http2, users::CONTROLLER);
    let collection = format!("/api/v1/namespaces/{}/configmaps", pods::namespace(1));
    let path = format!("{collection}/controller");
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"controller"}}"#;
    // Where it could not be made, each request that follows fails and says so.
    let _made = caller.post(&collection, body.into(), LONGEST).await;
    let mut serial = 0_u64;
    let mut due = Instant::now();
    loop {
        tokio::time::sleep_until(due.into()).await;
        let number = log.begin(due);
        let left = (due + LONGEST).saturating_duration_since(Instant::now());
        serial += 1;
        let answer = match serial % 2 {
            0 => caller.get(&path, left).await,
            _ => caller.patch(&path, format!(r#"{{"data":{{"serial":"{serial}"}}}}"#), left).await,
        };
        let is_done = answer.is_ok_and(|answer| answer.status == 200);
        let took = if is_done { due.elapsed() } else { LONGEST };
        log.end(number, took);
        // Who waits for an answer asks nothing meanwhile, and does not make up for it.
        due = (due + Duration::from_secs(1) / RATE).max(Instant::now());
    }
}
