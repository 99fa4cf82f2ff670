//! For tests of this crate: a registry in memory.

use forebay_embedded::{Engine, Options};
use forebay_rt::{Clock, Random, Tasks};

use crate::config::Config;
use crate::registry::Registry;
use forebay_catalog::Target;

/// A lone server's, and its ConfigMaps of `namespace`.
pub(crate) async fn config_maps(namespace: Option<&str>) -> (Registry, Target) {
    let (clock, _hand) = Clock::manual(1_700_000_000_000);
    let options = Options { clock: clock.clone(), ..Options::default() };
    let engine = Engine::open_in_memory(options).expect("opens");
    let registry = Registry::new(Config::default(), engine, clock, Random::seeded(7), Tasks::new());
    registry.start().await.expect("starts");
    let served = registry.catalog().resource("", "v1", "configmaps").expect("served").clone();
    let namespace = namespace.map(str::to_owned);
    (registry, Target::of_server(served, namespace, None))
}
