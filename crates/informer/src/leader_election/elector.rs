//! An elector that runs: the machine's requests made, its news told.
//!
//! In: a [`LeaseApi`], and a flag that ends it. Out: calls of [`Callbacks`]. Owns the one request that is
//! under way. Never: decides anything, starts a task (but for [`Work`], which is what leaders do).

use std::pin::Pin;
use std::sync::Arc;

use forebay_rt::{Clock, CutOnDrop, Duration, Instant, Random, Shutdown, Tasks};
use k8s_openapi::api::coordination::v1::Lease;

use super::api::{LeaseApi, LeaseError};
use super::config::{Config, ConfigError};
use super::machine::{Effect, End, Input, Machine, Now};

/// Who hears of leadership. All of it is called by the elector's own task, which renews nothing meanwhile.
pub trait Callbacks: Send {
    /// This elector leads. To return at once: what takes long goes into a task.
    fn started_leading(&mut self);

    /// It no longer leads; called only after [`Callbacks::started_leading`]. Whatever may only run at a
    /// leader is to have ended when this ends, which is to be before the lease runs out: lease duration less
    /// renew deadline, 5 s by default, less what clocks may differ. Only after that is the lease given back.
    fn stopped_leading(&mut self) -> impl Future<Output = ()> + Send;

    /// Somebody else leads than was last said, perhaps this elector.
    fn new_leader(&mut self, _identity: &str) {}

    /// A request failed; it will be tried again, unless it was to give the lease back.
    fn request_failed(&mut self, _error: &LeaseError) {}
}

/// Seeks to lead, once.
#[derive(Debug)]
pub struct Elector<A> {
    api: A,
    config: Config,
    clock: Clock,
    random: Arc<Random>,
}

/// Work that is done only while leading: a task that begins with leadership, and is cut at its next await
/// point and joined when that ends. Work that ends by itself does not end leadership.
#[derive(Debug)]
pub struct Work<F> {
    work: F,
    stop_timeout: Duration,
    under_way: Option<(Tasks, CutOnDrop)>,
}

impl<A: LeaseApi> Elector<A> {
    /// An elector that has not begun.
    ///
    /// # Errors
    /// When the configuration is not one that keeps leaders apart, see [`Config::check`].
    pub fn new(api: A, config: Config, clock: Clock, random: Arc<Random>) -> Result<Elector<A>, ConfigError> {
        config.check()?;
        Ok(Elector { api, config, clock, random })
    }

    /// Seeks to lead until it did and no longer does, or until `cancel` is raised. Whoever wants to lead
    /// again runs it again.
    ///
    /// Not cancel-safe: dropped while it leads it tells nobody, and the lease runs out. [`Work`] ends with it
    /// all the same.
    ///
    /// Source: client-go `tools/leaderelection/leaderelection.go`, `Run`.
    pub async fn run(&self, callbacks: &mut impl Callbacks, cancel: &Shutdown) -> End {
        let Config { namespace, name, .. } = &self.config;
        let mut machine = Machine::new(self.config.clone(), self.random.clone(), self.clock.now());
        let mut under_way: Option<Request<'_>> = None;
        let (mut is_cancelled, mut input) = (false, Input::Tick);
        loop {
            let mut wakes_at = None;
            for effect in machine.step(input, self.now()) {
                match effect {
                    Effect::Get => under_way = Some(Box::pin(self.api.get(namespace, name))),
                    Effect::Create(lease) => under_way = Some(Box::pin(self.api.create(*lease))),
                    Effect::Update(lease) => under_way = Some(Box::pin(self.api.update(*lease))),
                    Effect::Started => callbacks.started_leading(),
                    Effect::Stopped => {
                        under_way = None;
                        callbacks.stopped_leading().await;
                    }
                    Effect::NewLeader(identity) => callbacks.new_leader(&identity),
                    Effect::Failed(error) => callbacks.request_failed(&error),
                    Effect::WakeAt(at) => wakes_at = Some(at),
                    Effect::Over(end) => return end,
                }
            }
            input = tokio::select! {
                biased;
                () = cancel.raised(), if !is_cancelled => {
                    is_cancelled = true;
                    Input::Cancel
                }
                answer = answer(&mut under_way) => {
                    under_way = None;
                    Input::Answer(answer.map(Box::new))
                }
                () = self.wait(wakes_at) => Input::Tick,
            };
        }
    }

    async fn wait(&self, until: Option<Instant>) {
        match until {
            Some(at) => self.clock.sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn now(&self) -> Now {
        Now { at: self.clock.now(), unix_ms: self.clock.unix_ms() }
    }
}

type Request<'a> = Pin<Box<dyn Future<Output = Result<Lease, LeaseError>> + Send + 'a>>;

/// What is said to the request under way; waits for ever when there is none.
async fn answer(under_way: &mut Option<Request<'_>>) -> Result<Lease, LeaseError> {
    match under_way {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}

impl<F, W> Work<F>
where
    F: FnMut() -> W + Send,
    W: Future<Output = ()> + Send + 'static,
{
    /// - `config`: the elector's, which says how long work has to end.
    /// - `work`: called each time leadership begins.
    pub fn new(config: &Config, work: F) -> Work<F> {
        Work { work, stop_timeout: config.stop_timeout(), under_way: None }
    }
}

impl<F, W> Callbacks for Work<F>
where
    F: FnMut() -> W + Send,
    W: Future<Output = ()> + Send + 'static,
{
    fn started_leading(&mut self) {
        let tasks = Tasks::new();
        tasks.spawn("leads", (self.work)());
        let cut = tasks.cut_on_drop();
        self.under_way = Some((tasks, cut));
    }

    async fn stopped_leading(&mut self) {
        let Some((tasks, _cut)) = self.under_way.take() else { return };
        if !tasks.stop(self.stop_timeout).await {
            tracing::error!("a leader's work goes on after its lease has run out");
        }
    }

    fn new_leader(&mut self, identity: &str) {
        tracing::info!(identity, "new leader");
    }

    fn request_failed(&mut self, error: &LeaseError) {
        tracing::warn!(%error, "a request for the lease failed");
    }
}

#[cfg(test)]
#[path = "elector_tests.rs"]
mod tests;
