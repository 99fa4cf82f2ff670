//! Drops protobuf messages that nobody asks for any more.
//!
//! In: the published state and its window. Out: their objects, without the messages that were not asked for
//! since the last round. So a client that reads everything once does not leave its messages behind for ever.
//! Messages of objects that only a reader holds go with the reader. Never: changes an object.

use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_object::{MessageBytes, Object};
use forebay_rt::Clock;
use tokio::sync::watch;

use crate::commands::Commands;
use crate::interest::Reach;
use crate::limits;
use crate::published::{Published, Window};
use crate::snapshot::Snapshot;

/// Looks at all messages every [`limits::MESSAGE_PERIOD`], for ever. Costs nothing while there are none.
///
/// - `told`: wakes it when memory is short, so that all messages are dropped.
pub(crate) async fn let_go(
    published: watch::Receiver<Published>,
    all: Reach,
    counted: Arc<MessageBytes>,
    told: Arc<Commands>,
    clock: Clock,
) {
    loop {
        let is_pressed = tokio::select! {
            () = clock.sleep(limits::MESSAGE_PERIOD) => false,
            () = told.pressed() => true,
        };
        let (snapshot, window) = match &*published.borrow() {
            Published::Ready { snapshot, window } if counted.get() > 0 => (snapshot.clone(), window.clone()),
            _ => continue,
        };
        // The second round drops messages that were asked for before the first one.
        for _ in 0..1 + usize::from(is_pressed) {
            round(&snapshot, &all).await;
            past(&window).await;
        }
    }
}

async fn round(snapshot: &Snapshot, all: &Reach) {
    let mut after: Option<Key> = None;
    loop {
        let batch = snapshot.range(all, after.as_ref()).take(limits::LET_GO_BATCH);
        let mut last: Option<&Arc<Object>> = None;
        batch.for_each(|object| {
            object.let_go_of_messages();
            last = Some(object);
        });
        let Some(last) = last else { return };
        after = Some(last.key().clone());
        tokio::task::yield_now().await;
    }
}

/// Looks at objects that were replaced, and so are only in the window.
async fn past(window: &Window) {
    let mut seq = 0;
    loop {
        let (events, next) = window.log.page(seq, limits::LET_GO_BATCH);
        if events.is_empty() {
            return;
        }
        events.iter().filter_map(|event| event.previous.as_ref()).for_each(|old| old.let_go_of_messages());
        seq = next;
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use forebay_object::Keep;
    use forebay_rt::Duration;

    use super::*;
    use crate::tests::{PREFIX, World};

    #[tokio::test]
    async fn messages_that_nobody_asks_for_are_let_go_of() {
        let world = World::new().await;
        let names = ["a", "b", "c"];
        for name in names {
            world.put(&format!("ns/{name}"), "").await;
        }
        let snapshot = world.cacher.fresh(world.soon()).await.expect("fresh");
        // From here on time passes only here: while the store's thread works it would pass by itself.
        tokio::time::pause();
        let counted = world.cacher.message_bytes().clone();
        let ask = |name: &str| {
            let object = snapshot.get(&Key::from(format!("{PREFIX}ns/{name}"))).expect("is there");
            drop(object.message(1, (&counted, Keep::IfRoom), || vec![0; 1000]));
        };
        names.iter().for_each(|name| ask(name));
        let all = counted.get();
        assert!(all > 3000);
        let period = limits::MESSAGE_PERIOD + Duration::from_secs(1);
        world.clock.sleep(period).await;
        assert_eq!(counted.get(), all, "they were asked for since");
        ask("b");
        world.clock.sleep(period).await;
        assert_eq!(counted.get(), all / 3);
        world.clock.sleep(period).await;
        assert_eq!(counted.get(), 0);
        ask("a");
        let _put = world.put("ns/a", "x=y").await;
        let now = world.cacher.fresh(world.soon()).await.expect("fresh");
        let new = now.get(&Key::from(format!("{PREFIX}ns/a"))).expect("is there");
        assert!(new.message_made(1).is_none(), "another object has messages of its own");
        drop((snapshot, now));
        world.clock.sleep(2 * period).await;
        assert_eq!(counted.get(), 0, "the window has the old one, without its message");
        assert!(world.tasks.stop(Duration::from_secs(5)).await);
    }
}
