//! The loop of a controller that works on names: notices into a queue, names out of it, each worked on alone.
//!
//! Owns the queue, the informers and the work under way; all of it ends with the task.

use std::future::Future;
use std::sync::Arc;

use forebay_object::Object;
use forebay_registry::{Informer, Notice};
use forebay_rt::{Instant, Random};

use crate::acting::ActingRegistry;
use crate::each::InFlight;
use crate::informers::any_ready;
use crate::limits;
use crate::queue::{Queue, Verdict};

/// A controller that works on one kind of name.
pub trait Named: Send + 'static {
    const NAME: &'static str;

    /// What it listens to, in the order that [`Named::observe`] counts them.
    fn informers(&self) -> Result<Vec<Informer>, forebay_apimachinery::Status>;

    /// Puts the names into the queue that a notice of the `source`th informer is about.
    fn observe(&self, source: usize, notice: &Notice, now: Instant, queue: &mut Queue<String>);

    /// The same, with the object as it was told of last: for who looks at what has changed.
    fn observe_change(
        &self,
        source: usize,
        notice: &Notice,
        _previous: Option<&Object>,
        now: Instant,
        queue: &mut Queue<String>,
    ) {
        self.observe(source, notice, now, queue);
    }

    /// Does what there is to do for `name`, from what is there now.
    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static;
}

/// Runs until it is dropped.
pub async fn run<C: Named>(controller: C, registry: ActingRegistry, random: Arc<Random>) {
    let clock = registry.clock().clone();
    let mut informers = match controller.informers() {
        Ok(informers) => informers,
        Err(status) => return tracing::error!(controller = C::NAME, why = status.message, "cannot listen"),
    };
    let mut queue: Queue<String> = Queue::new();
    let mut under_way: InFlight<(String, Verdict)> = InFlight::new();
    loop {
        for (source, informer) in informers.iter_mut().enumerate() {
            for _ in 0..limits::NOTICES_MAX {
                let Some((notice, previous)) = informer.try_next_change() else { break };
                controller.observe_change(source, &notice, previous.as_deref(), clock.now(), &mut queue);
            }
        }
        while under_way.len() < limits::WORK_MAX {
            let Some(name) = queue.next(clock.now()) else { break };
            let work = controller.sync(name.clone());
            under_way.push(async move { (name, work.await) });
        }
        let due = queue.next_due();
        let alarm = async {
            match due {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            (name, verdict) = under_way.next() => {
                if let Verdict::Retry(why) = &verdict {
                    tracing::debug!(controller = C::NAME, name, why, "to be tried again");
                }
                queue.finish(name, &verdict, clock.now(), &random);
            }
            () = any_ready(&mut informers) => {}
            () = alarm => {}
        }
    }
}
