//! For tests of this crate: the built-in resources on a store in memory, into which objects are put as they
//! are stored.

mod tabs;

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;
use forebay_backend::{Backend as _, Expect, Op, Txn, TxnResponse};
use forebay_catalog::store::Mode;
use forebay_catalog::{Opener, Target, table};
use forebay_embedded::{Engine, Options};
use forebay_rt::{Clock, ManualClock, Random, Tasks};
use forebay_watchcache::limits::{LOOSE_BYTES_MAX, PACE};
use forebay_watchcache::{EarlyReaders, History, Room};
use serde_json::{Value, json};

use crate::frames::EventForm;
use crate::{As, ListBody, Planned, Planner, WatchBody, WatchPlan, status_without_code};
pub(crate) use tabs::Tabs;

pub(crate) struct World {
    pub(crate) planner: Planner,
    pub(crate) clock: Clock,
    /// Moves the time of day.
    pub(crate) hand: ManualClock,
    /// The ConfigMaps, of a namespace or of all.
    pub(crate) target: Target,
}

/// A world without ConfigMaps, and those of `namespace` as its target.
pub(crate) async fn config_maps(namespace: Option<&str>) -> World {
    let (clock, hand) = Clock::manual(1_700_000_000_000);
    let backend =
        Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens");
    let opener = Opener {
        storage_prefix: "/registry".into(),
        pace: PACE,
        history: History::Own,
        room: Arc::new(Room::new(LOOSE_BYTES_MAX)),
        early: Arc::new(EarlyReaders::held_back()),
        backend,
        clock: clock.clone(),
        tasks: Tasks::new(),
    };
    let catalog = table::catalog(&opener, |_| None);
    let served = catalog.resource("", "v1", "configmaps").expect("served").clone();
    served.store.as_ref().expect("stored").cacher.wait_ready().await;
    let target = Target::of_server(served, namespace.map(str::to_owned), None);
    let planner = Planner::new(clock.clone(), Arc::new(Random::seeded(7)), 0, Duration::from_secs(1_800));
    World { planner, clock, hand, target }
}

impl World {
    /// Puts a ConfigMap into `default`: its metadata besides its name and namespace, and its data.
    pub(crate) async fn put(&self, name: &str, mut metadata: Value, data: Value) {
        metadata["name"] = name.into();
        metadata["namespace"] = "default".into();
        // Its resourceVersion is put in beside these.
        metadata["uid"] = format!("uid-of-{name}").into();
        metadata["creationTimestamp"] = "2023-11-14T22:13:20Z".into();
        let object = json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data });
        let (served, store) = (&self.target.served, self.target.served.stored().expect("stored"));
        let value = served.encode(object).expect("is of its kind");
        let made = store.create(store.key("default", name), value, None, Mode::Commit).await;
        assert!(made.is_ok(), "{name}");
    }

    pub(crate) async fn delete(&self, name: &str) {
        let store = self.target.served.stored().expect("stored");
        let key = store.key("default", name);
        let found = store.backend.get(&key).await.expect("read").expect("is there");
        let gone = Txn { key, expect: Expect::At(found.revision), op: Op::Delete };
        assert!(matches!(store.backend.commit(gone).await, Ok(TxnResponse::Committed(_))), "{name}");
    }

    pub(crate) async fn list(&self, options: &ListOptions) -> Result<ListBody, Status> {
        Ok(self.planner.list(&self.target, options, As::Object.into())?.run(()).await?.body)
    }

    pub(crate) fn plan_watch(
        &self,
        options: &ListOptions,
        shown: impl Into<EventForm>,
    ) -> Result<Planned<WatchPlan, EventForm>, Status> {
        self.planner.watch(&self.target, options, shown.into(), false)
    }

    pub(crate) async fn watch(
        &self,
        options: &ListOptions,
        shown: impl Into<EventForm>,
    ) -> Result<WatchBody, Status> {
        Ok(self.plan_watch(options, shown)?.run((), status_without_code).await?.body)
    }
}
