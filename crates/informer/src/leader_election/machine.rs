//! Who leads, as a state machine: answers and time in, requests and news out.
//!
//! In: answers about the Lease, and what time it is here. Out: [`Effect`]s. Owned by one elector. Never: does
//! IO, asks for the time, has two requests under way, or believes a time that stands in the Lease.
//!
//! Two leaders are kept apart by three rules. A leader leads for the renew deadline from when it *asked* for
//! the last renewal that was granted, so that the grant is never younger than its clock says. A candidate
//! leaves a lease alone for the lease duration since *it* saw the lease change. And every write names the
//! `resourceVersion` it was made from. So clocks may show anything, and run at speeds that differ by less
//! than lease duration to renew deadline (1.5 by default). A leader also stops as soon as it sees a lease
//! that it does not hold. Who deletes the Lease of a leader takes all this away until the leader looks again,
//! one retry period at most.
//!
//! Differences from client-go, all towards stopping sooner: there the renew deadline is measured from the
//! first attempt that failed, a leader goes on until then when it sees another holder, and a lease without a
//! duration is free.

use std::sync::Arc;

use forebay_rt::{Duration, Instant, Random};
use k8s_openapi::api::coordination::v1::Lease;

use super::api::LeaseError;
use super::config::{Config, OnEnd};
use super::limits;
use super::record;

/// Monotonic and wall time of one moment.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// What every decision is made by.
    pub at: Instant,
    /// What is written into the Lease for people to read: milliseconds since the Unix epoch.
    pub unix_ms: u64,
}

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// Nothing but time: the beginning, and each [`Effect::WakeAt`].
    Tick,
    /// What became of the last request. Of one that was given up nothing may be said any more.
    Answer(Result<Box<Lease>, LeaseError>),
    /// Leadership is to end, or not to be sought any longer.
    Cancel,
}

/// What is to be done, in this order. A request takes the place of the one under way, which is to be given
/// up.
#[derive(Debug)]
pub enum Effect {
    /// Ask for the Lease.
    Get,
    /// Make it.
    Create(Box<Lease>),
    /// Put this one in the place of that with the same `resourceVersion`.
    Update(Box<Lease>),
    /// This elector leads.
    Started,
    /// It no longer does. What goes on only while it leads is to end before the next input.
    Stopped,
    /// Somebody else leads than was last said, perhaps this elector.
    NewLeader(String),
    /// A request failed; it will be tried again, unless it was a release.
    Failed(LeaseError),
    /// Say [`Input::Tick`] then, if nothing else happens before. The last one of each step but that of the
    /// end.
    WakeAt(Instant),
    /// It is over; there will be no more effects.
    Over(End),
}

/// How an elector ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was told to.
    Cancelled,
    /// It led, and could not renew in time or saw that somebody else holds the lease.
    Lost,
}

/// One elector.
#[derive(Debug)]
pub struct Machine {
    config: Config,
    random: Arc<Random>,
    phase: Phase,
    // The Lease as last seen; none before it was, and when there is none.
    seen: Option<Seen>,
    // Nothing speaks against the server's having what was seen.
    is_current: bool,
    // While it leads: until when, unless it renews.
    leads_until: Option<Instant>,
    // The leader that was last told of.
    reported: String,
    leaving: Option<Leaving>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Waiting {
        until: Instant,
    },
    Asking {
        what: What,
        sent: Instant,
    },
    /// It was told that it no longer leads; with the next input that has come to an end.
    Stopped,
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Get,
    /// Of what was seen some time ago: when it fails, the Lease is looked at.
    UpdateUnseen,
    /// Of what was looked at just now, or that there was nothing.
    Write,
}

#[derive(Debug)]
struct Seen {
    lease: Lease,
    // When it was first seen to say this.
    since: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    end: End,
    releases: u32,
}

impl Machine {
    /// An elector that has seen nothing.
    ///
    /// - `config`: one that [`Config::check`] has nothing against.
    /// - `random`: for the jitter of a candidate.
    /// - `now`: when it begins; the first step is to be at that time or later.
    pub fn new(config: Config, random: Arc<Random>, now: Instant) -> Machine {
        Machine {
            config,
            random,
            phase: Phase::Waiting { until: now },
            seen: None,
            is_current: false,
            leads_until: None,
            reported: String::new(),
            leaving: None,
        }
    }

    /// Whether it leads, as of its last step.
    pub fn is_leading(&self) -> bool {
        self.leads_until.is_some()
    }

    /// What is to be done after `input` at `now`.
    pub fn step(&mut self, input: Input, now: Now) -> Vec<Effect> {
        let mut effects = Vec::new();
        if matches!(self.phase, Phase::Over) {
            return effects;
        }
        if matches!(self.phase, Phase::Stopped) {
            self.release(now, &mut effects);
        }
        match (input, self.phase) {
            (Input::Cancel, _) if self.leaving.is_none() => self.leave(End::Cancelled, &mut effects),
            (Input::Answer(answer), Phase::Asking { what, sent }) => {
                self.answered(what, sent, answer, now, &mut effects);
            }
            _ => {}
        }
        if self.leads_until.is_some_and(|until| until <= now.at) {
            self.leave(End::Lost, &mut effects);
        }
        if let Phase::Asking { what, sent } = self.phase
            && now.at >= sent + self.config.request_timeout()
        {
            self.answered(what, sent, Err(LeaseError::Timeout), now, &mut effects);
        }
        if let Phase::Waiting { until } = self.phase
            && now.at >= until
        {
            self.attempt(now, &mut effects);
        }
        effects.extend(self.wakes_at(now.at).map(Effect::WakeAt));
        effects
    }

    /// The next thing that time alone brings.
    fn wakes_at(&self, now: Instant) -> Option<Instant> {
        let at = match self.phase {
            Phase::Waiting { until } => until,
            Phase::Asking { sent, .. } => sent + self.config.request_timeout(),
            Phase::Stopped => now,
            Phase::Over => return None,
        };
        Some(self.leads_until.map_or(at, |until| at.min(until)))
    }

    /// Tries to acquire or to renew.
    fn attempt(&mut self, now: Now, effects: &mut Vec<Effect>) {
        match &self.seen {
            Some(seen) if self.is_leading() && self.is_current => {
                let lease = record::held(&seen.lease, &self.config, now.unix_ms);
                self.ask(What::UpdateUnseen, Effect::Update(Box::new(lease)), now, effects);
            }
            _ => self.ask(What::Get, Effect::Get, now, effects),
        }
    }

    fn ask(&mut self, what: What, request: Effect, now: Now, effects: &mut Vec<Effect>) {
        self.phase = Phase::Asking { what, sent: now.at };
        effects.push(request);
    }

    fn answered(
        &mut self,
        what: What,
        sent: Instant,
        answer: Result<Box<Lease>, LeaseError>,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        if self.leaving.is_some() {
            return self.answered_leaving(what, answer, now, effects);
        }
        match (what, answer) {
            (What::Get, Ok(lease)) => {
                self.see(*lease, now.at, effects);
                self.consider(now, effects);
            }
            (What::Get, Err(LeaseError::NotFound)) => {
                self.seen = None;
                let lease = record::new(&self.config, now.unix_ms);
                self.ask(What::Write, Effect::Create(Box::new(lease)), now, effects);
            }
            (What::UpdateUnseen | What::Write, Ok(lease)) => {
                self.see(*lease, now.at, effects);
                self.written(sent, now.at, effects);
            }
            (What::UpdateUnseen, Err(error)) => {
                effects.push(Effect::Failed(error));
                self.is_current = false;
                self.ask(What::Get, Effect::Get, now, effects);
            }
            (What::Get | What::Write, Err(error)) => {
                effects.push(Effect::Failed(error));
                self.is_current = false;
                self.wait(now.at);
            }
        }
    }

    /// Notes what the Lease says; only what it says about leadership starts its time anew, not a label.
    fn see(&mut self, lease: Lease, now: Instant, effects: &mut Vec<Effect>) {
        let holder = record::holder(&lease);
        if self.reported != holder {
            holder.clone_into(&mut self.reported);
            if !holder.is_empty() {
                effects.push(Effect::NewLeader(holder.to_owned()));
            }
        }
        self.is_current = true;
        match &mut self.seen {
            Some(seen) if seen.lease.spec == lease.spec => seen.lease = lease,
            _ => self.seen = Some(Seen { lease, since: now }),
        }
    }

    /// Decides by a Lease that was looked at just now.
    fn consider(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Some(Seen { lease, since }) = &self.seen else { return };
        let holder = record::holder(lease);
        let is_ours = holder == self.config.identity;
        if self.is_leading() && !is_ours {
            return self.leave(End::Lost, effects);
        }
        let is_free =
            is_ours || holder.is_empty() || now.at >= *since + record::duration(lease, &self.config);
        if is_free {
            let lease = record::held(lease, &self.config, now.unix_ms);
            self.ask(What::Write, Effect::Update(Box::new(lease)), now, effects);
        } else {
            self.wait(now.at);
        }
    }

    /// The Lease was written; it leads if that was so soon that it still may.
    fn written(&mut self, sent: Instant, now: Instant, effects: &mut Vec<Effect>) {
        let until = sent + self.config.renew_deadline;
        let is_ours =
            self.seen.as_ref().is_some_and(|seen| record::holder(&seen.lease) == self.config.identity);
        if self.is_leading() && !is_ours {
            return self.leave(End::Lost, effects);
        }
        if is_ours && now < until && self.leads_until.replace(until).is_none() {
            effects.push(Effect::Started);
        }
        self.wait(now);
    }

    /// Until the next attempt: a candidate waits longer, by chance.
    fn wait(&mut self, now: Instant) {
        let period = self.config.retry_period;
        let jitter = match self.is_leading() {
            true => Duration::ZERO,
            false => {
                let most = period.mul_f64(self.config.jitter).as_nanos() as u64;
                Duration::from_nanos(self.random.below(most.saturating_add(1)))
            }
        };
        self.phase = Phase::Waiting { until: now + period + jitter };
    }

    /// No longer leads, nor seeks to. A lease that it holds, or that a write under way may make its own, is
    /// given back next.
    fn leave(&mut self, end: End, effects: &mut Vec<Effect>) {
        let led = self.leads_until.take().is_some();
        if led {
            effects.push(Effect::Stopped);
        }
        let is_writing = matches!(self.phase, Phase::Asking { what: What::Write | What::UpdateUnseen, .. });
        if is_writing {
            self.is_current = false;
        }
        self.leaving = Some(Leaving { end, releases: 0 });
        match self.config.on_end {
            OnEnd::Release if led || is_writing => self.phase = Phase::Stopped,
            OnEnd::Release | OnEnd::RunOut => self.over(effects),
        }
    }

    /// Gives the lease back, or looks first whether it has it.
    fn release(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Some(leaving) = &mut self.leaving else { return };
        match &self.seen {
            Some(seen) if self.is_current && record::holder(&seen.lease) == self.config.identity => {
                leaving.releases += 1;
                let lease = record::released(&seen.lease, now.unix_ms);
                self.ask(What::Write, Effect::Update(Box::new(lease)), now, effects);
            }
            Some(_) if self.is_current => self.over(effects),
            _ => self.ask(What::Get, Effect::Get, now, effects),
        }
    }

    fn answered_leaving(
        &mut self,
        what: What,
        answer: Result<Box<Lease>, LeaseError>,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        let releases = self.leaving.map_or(0, |leaving| leaving.releases);
        match (what, answer) {
            (What::Get, Ok(lease)) => {
                self.see(*lease, now.at, effects);
                self.release(now, effects);
            }
            (What::Write | What::UpdateUnseen, Err(error)) if releases < limits::RELEASES_MAX => {
                effects.push(Effect::Failed(error));
                self.is_current = false;
                self.ask(What::Get, Effect::Get, now, effects);
            }
            (_, Err(error)) => {
                effects.push(Effect::Failed(error));
                self.over(effects);
            }
            (What::Write | What::UpdateUnseen, Ok(_)) => self.over(effects),
        }
    }

    fn over(&mut self, effects: &mut Vec<Effect>) {
        let end = self.leaving.map_or(End::Cancelled, |leaving| leaving.end);
        self.phase = Phase::Over;
        effects.push(Effect::Over(end));
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "sim_tests.rs"]
mod sim;
