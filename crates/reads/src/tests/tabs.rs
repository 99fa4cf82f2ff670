//! Custom resources that somebody converts, for tests of this crate.
//!
//! In: objects as they are stored, in `v1`. Out: a target that shows them in `v2`. Never: a webhook.

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::{Lease, Reason, Revision, Status};
use forebay_backend::{Backend as _, Expect, Op, Txn, TxnResponse};
use forebay_catalog::crd::LayoutKey;
use forebay_catalog::{Converting, Converts, Opener, Store, Target, WebhookConversion, custom_served};
use forebay_embedded::{Engine, Options};
use forebay_rt::{Clock, Random, Tasks};
use forebay_watchcache::limits::{LOOSE_BYTES_MAX, PACE};
use forebay_watchcache::{EarlyReaders, History, Room};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::Planner;

/// See the module's doc.
pub(crate) struct Tabs {
    pub(crate) planner: Planner,
    pub(crate) clock: Clock,
    pub(crate) target: Target,
    pub(crate) converts: Arc<Bad>,
    store: Arc<Store>,
}

/// Converts everything but what is `bad`: that is begun, and fails once it may.
#[derive(Default)]
pub(crate) struct Bad {
    pub(crate) begun: Notify,
    pub(crate) fails: Notify,
}

impl Converts for Bad {
    fn convert<'a>(&'a self, objects: Vec<Value>, to: &'a str, _lease: &'a Lease) -> Converting<'a> {
        Box::pin(async move {
            if objects.iter().any(|object| object["spec"]["text"] == "bad") {
                self.begun.notify_one();
                self.fails.notified().await;
                return Err(Status::new(Reason::Unknown, "it is bad"));
            }
            let shown = objects.into_iter().map(|mut object| {
                object["apiVersion"] = to.into();
                object
            });
            Ok(shown.collect())
        })
    }
}

fn definition() -> Value {
    let version = |name: &str| {
        let spec = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        json!({ "name": name, "served": true, "storage": name == "v1", "schema": { "openAPIV3Schema": schema } })
    };
    json!({
        "metadata": { "name": "tabs.g.io", "uid": "u" },
        "spec": {
            "group": "g.io", "scope": "Cluster", "names": { "plural": "tabs", "kind": "Tab" },
            "versions": [version("v1"), version("v2")], "conversion": { "strategy": "Webhook" },
        },
    })
}

impl Tabs {
    /// None yet.
    pub(crate) async fn new() -> Tabs {
        let clock = Clock::system();
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
        let crd = definition();
        let store = Arc::new(LayoutKey::of(&crd).open(&crd, &opener));
        store.cacher.wait_ready().await;
        let converts = Arc::<Bad>::default();
        let conversion = WebhookConversion { converts: converts.clone(), opener, is_mixed: false };
        let served = custom_served(&crd, (&store, &[]), Revision::FIRST, Some(&conversion));
        let target = Target::of_server(served[1].clone(), None, None);
        let planner = Planner::new(clock.clone(), Arc::new(Random::seeded(7)), 0, Duration::from_secs(1_800));
        Tabs { planner, clock, target, converts, store }
    }

    pub(crate) async fn put(&self, name: &str, text: &str) {
        let object = json!({
            "apiVersion": "g.io/v1", "kind": "Tab", "metadata": { "name": name, "uid": name },
            "spec": { "text": text },
        });
        let (key, value) = (self.store.key("", name), object.to_string().into());
        let txn = Txn { key, expect: Expect::Absent, op: Op::Put { value, ttl: None } };
        let done = self.store.backend.commit(txn).await;
        assert!(matches!(done, Ok(TxnResponse::Committed(_))), "{name}");
    }
}
