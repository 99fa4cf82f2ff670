//! A world in which time passes by hand, on both clocks: that of the wall, and that of deadlines.

use forebay_embedded::{Engine, Options};
use forebay_registry::{Config, Identity, Registry};
use forebay_rt::{Clock, Duration, ManualClock, Random, Tasks};

use super::World;

/// A world whose server says that it is there.
pub struct Lasting {
    pub world: World,
    pub clock: Clock,
    hand: ManualClock,
}

impl Lasting {
    pub async fn new(identity: Option<Identity>) -> Lasting {
        let (clock, hand) = Clock::manual(1_700_000_000_000);
        let engine =
            Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens");
        let (config, tasks) = (Config { identity, ..Config::default() }, Tasks::new());
        let random = Random::seeded(7);
        let registry = Registry::new(config, engine.clone(), clock.clone(), random, tasks.clone());
        registry.start().await.expect("starts");
        let world = World { registry, engine, tasks };
        Lasting { world, clock, hand }
    }

    /// Lets `span` pass, on both clocks, and everything happen that is due by then.
    pub async fn pass(&self, span: Duration) {
        self.hand.advance_ms(span.as_millis() as u64);
        tokio::time::pause();
        tokio::time::advance(span).await;
        tokio::time::resume();
        // What has become due says so to the store, which is asked after it. Each round is a commit and its
        // answer.
        for _ in 0..8 {
            tokio::task::yield_now().await;
            self.world.engine.settle().await;
        }
    }
}
