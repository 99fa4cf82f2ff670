//! One fault after another, with all clients beside each other.
//!
//! In: a server's configuration, clients, faults, a [`Plan`]. Out: an [`Trial`] for each. Never: a wait
//! without a limit; a client that is waited for at another's expense.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_clients::wait::until;

use crate::Error;
use crate::fault::{Fault, Lasts};
use crate::limits::{CLIENT_TIMEOUT, SYNC_MAX};
use crate::proxy::{Proxy, RequestCounts, Upstream};
use crate::rivals::Rival;
use crate::subject::{InformerState, Names, Setting, Subject};
use crate::writers::{Churn, Direct, Truth, World};

/// How long and how many.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub informers: usize,
    pub writes_per_second: u32,
    pub a_while: Duration,
    pub long: Duration,
    /// Longest wait for a client that is blind, from when the fault is over.
    pub blind_max: Duration,
    /// Longest wait for stores to be equal, from when the writes are over.
    pub equal_max: Duration,
}

/// What came of one fault.
#[derive(Clone, Debug)]
pub struct Trial {
    pub fault: Fault,
    pub lasted: Duration,
    /// In the order of the clients.
    pub of: Vec<Verdict>,
}

/// What came of one fault for one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What was asked since the fault began.
    pub asked: RequestCounts,
    /// `None`: longer than the longest wait.
    pub blind: Option<Duration>,
    pub equal: bool,
}

/// A server, what is in it, and who writes.
pub struct Stage {
    upstream: Upstream,
    direct: Arc<Direct>,
    world: Option<World>,
    namespaces: Vec<String>,
    plan: Plan,
}

/// A client behind its proxy.
struct Seat {
    // Before the proxy: it goes first, without seeing the proxy go.
    subject: Box<dyn Subject>,
    proxy: Proxy,
    before: RequestCounts,
    verdict: Verdict,
}

impl Stage {
    /// Fills the server.
    pub fn set(config: &kube::Config, plan: Plan) -> Result<Stage, Error> {
        let direct = Arc::new(Direct::new(config)?);
        let world = direct.make(plan.informers)?;
        let namespaces = world.namespaces();
        Ok(Stage { upstream: Upstream::of(config)?, direct, world: Some(world), namespaces, plan })
    }

    /// Makes one fault before all clients.
    pub fn run(&mut self, fault: Fault, rivals: &[Rival]) -> Result<Trial, Error> {
        let mut seats = self.seats(fault, rivals)?;
        let world = self.world.take().ok_or_else(|| Error::Harness("a run before has failed".to_owned()))?;
        let churn = world.churn(self.direct.clone(), self.plan.writes_per_second)?;
        // Each watch is open once something came through it.
        churn.mark();
        within("informers follow", SYNC_MAX, || all_see(&mut seats, &churn))?;

        let begun = Instant::now();
        for seat in &mut seats {
            seat.before = seat.proxy.counts().tally();
            seat.begin(fault)?;
        }
        within("the fault lasts", Duration::MAX, || Ok(begun.elapsed() >= self.plan.lasts(fault)))?;
        for seat in &mut seats {
            seat.end(fault)?;
        }
        let lasted = begun.elapsed();
        churn.mark();
        self.blind(&mut seats, &churn, begun)?;
        self.world = Some(churn.stop()?);
        self.equal(&mut seats)?;
        let of = seats.iter().map(Seat::judged).collect();
        Ok(Trial { fault, lasted, of })
    }

    /// Starts the clients, and waits until they are synced.
    fn seats(&self, fault: Fault, rivals: &[Rival]) -> Result<Vec<Seat>, Error> {
        let mut seats = Vec::new();
        for rival in rivals {
            let proxy = Proxy::start(self.upstream.clone())?;
            let setting = Setting {
                port: proxy.port(),
                url: proxy.url(),
                authority: proxy.authority().to_owned(),
                namespaces: self.namespaces.clone(),
                timeout: (fault == Fault::Stall).then_some(CLIENT_TIMEOUT),
            };
            let subject = (rival.start)(&setting)?;
            seats.push(Seat {
                subject,
                proxy,
                before: RequestCounts::default(),
                verdict: Verdict::default(),
            });
        }
        let truth = self.direct.truth()?;
        within("informers are synced", SYNC_MAX, || {
            for seat in &mut seats {
                if !seat.holds(&truth, &self.namespaces)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        Ok(seats)
    }

    /// Notes when each client sees again; who does not is given up.
    fn blind(&self, seats: &mut [Seat], churn: &Churn, begun: Instant) -> Result<(), Error> {
        let over = Instant::now();
        within("clients see again", Duration::MAX, || {
            let mut all = true;
            for seat in seats.iter_mut().filter(|seat| seat.verdict.blind.is_none()) {
                match sees(seat, churn)? {
                    true => seat.verdict.blind = Some(begun.elapsed()),
                    false => all = false,
                }
            }
            Ok(all || over.elapsed() > self.plan.blind_max)
        })
    }

    fn equal(&self, seats: &mut [Seat]) -> Result<(), Error> {
        let truth = self.direct.truth()?;
        let over = Instant::now();
        within("stores are equal", Duration::MAX, || {
            let mut all = true;
            for seat in seats.iter_mut().filter(|seat| !seat.verdict.equal) {
                seat.verdict.equal = seat.holds(&truth, &self.namespaces)?;
                all &= seat.verdict.equal;
            }
            Ok(all || over.elapsed() > self.plan.equal_max)
        })
    }
}

impl Plan {
    fn lasts(&self, fault: Fault) -> Duration {
        match fault.row().lasts {
            Lasts::Once => Duration::ZERO,
            Lasts::AWhile => self.a_while,
            Lasts::Long => self.long,
        }
    }
}

impl Seat {
    fn begin(&mut self, fault: Fault) -> Result<(), Error> {
        if fault == Fault::NoName {
            self.subject.resolve(Names::Fail)?;
        }
        self.proxy.begin(fault);
        Ok(())
    }

    fn end(&mut self, fault: Fault) -> Result<(), Error> {
        self.proxy.end();
        if fault == Fault::NoName {
            self.subject.resolve(Names::Resolve)?;
        }
        Ok(())
    }

    /// Whether each informer holds what is true of its namespace.
    fn holds(&mut self, truth: &BTreeMap<String, Truth>, namespaces: &[String]) -> Result<bool, Error> {
        let held = self.subject.look()?;
        let is_true = |held: &InformerState| {
            let truth = truth.get(&held.namespace).copied().unwrap_or_default();
            held.synced && truth == Truth { objects: held.objects, digest: held.digest }
        };
        Ok(held.len() == namespaces.len() && held.iter().all(is_true))
    }

    fn judged(&self) -> Verdict {
        let (now, before) = (self.proxy.counts().tally(), self.before);
        Verdict { asked: now.since(&before), ..self.verdict }
    }
}

/// Whether each informer has seen a write that was begun after the mark.
fn sees(seat: &mut Seat, churn: &Churn) -> Result<bool, Error> {
    let first = churn.first()?;
    let held = seat.subject.look()?;
    Ok(held.iter().all(|held| first.get(&held.namespace).is_some_and(|first| held.seen >= *first)))
}

fn all_see(seats: &mut [Seat], churn: &Churn) -> Result<bool, Error> {
    for seat in seats {
        if !sees(seat, churn)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Looks until it is so.
fn within(what: &str, limit: Duration, mut look: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
    let looked = until(what, limit, || match look() {
        Ok(true) => Ok(Ok(())),
        Ok(false) => Err("not yet".to_owned()),
        // No wait mends it.
        Err(why) => Ok(Err(why)),
    });
    looked.map_err(Error::Harness)?
}
