//! A PUT of a kind that it may create, while somebody else deletes and makes the same object.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_backend::{Backend, BoxFuture, Expect, Layer, Op, Txn, TxnError, TxnResponse};
use forebay_embedded::{Engine, Options};
use forebay_rt::Clock;
use serde_json::json;

use crate::World;

const PATH: &str = "@v1/events/default/e";

/// A store in which an event is gone at the moment when it would be changed, once, and there again after it.
struct Meddled {
    engine: Arc<Engine>,
    is_to_come: AtomicBool,
}

impl Layer for Meddled {
    fn below(&self) -> Arc<dyn Backend> {
        self.engine.clone()
    }

    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        let is_change = txn.key.as_str().starts_with("/registry/events/") && txn.expect != Expect::Absent;
        if !is_change || !self.is_to_come.swap(false, Ordering::SeqCst) {
            return Backend::commit(&*self.engine, txn);
        }
        Box::pin(async move {
            let key = txn.key.clone();
            let there = Backend::get(&*self.engine, &key).await.expect("reads").expect("is there");
            let gone = Txn { key: key.clone(), expect: txn.expect, op: Op::Delete };
            let gone = Backend::commit(&*self.engine, gone).await;
            assert!(matches!(gone, Ok(TxnResponse::Committed(_))), "{gone:?}");
            let answer = Backend::commit(&*self.engine, txn).await;
            let again = Txn { key, expect: Expect::Absent, op: Op::Put { value: there.value, ttl: None } };
            let again = Backend::commit(&*self.engine, again).await;
            assert!(matches!(again, Ok(TxnResponse::Committed(_))), "{again:?}");
            answer
        })
    }
}

#[tokio::test]
async fn a_put_that_may_create_is_never_told_that_there_is_nothing() {
    let (clock, _hand) = Clock::manual(1_700_000_000_000);
    let options = Options { clock: clock.clone(), ..Options::default() };
    let engine = Engine::open_in_memory(options).expect("opens");
    let store = Arc::new(Meddled { engine: engine.clone(), is_to_come: AtomicBool::new(false) });
    let world = World::behind(store.clone(), engine, clock).await;
    let event = |message: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e", "namespace": "default" },
            "involvedObject": { "kind": "Pod", "name": "p", "namespace": "default" }, "message": message,
        })
    };
    world.create("@v1/events/default", event("first")).await.expect("is created");
    store.is_to_come.store(true, Ordering::SeqCst);
    let put = world.update(PATH, event("second")).await.expect("is put, over what was there or anew");
    assert!(!store.is_to_come.load(Ordering::SeqCst));
    assert_eq!(put["message"], "second");
    assert_eq!(world.get(PATH).await.expect("is there")["message"], "second");
}
