//! What the servers of a store tell each other: a key of each, `forebay/servers/<name of the server>` below
//! the storage's prefix, with its word (`docs/formats/neighbours.md`), which ends when it says nothing more.
//!
//! In: this server's word, each time that it is another. Out: what the others say. Who keeps an identity
//! Lease in kube-system and says nothing, as kube-apiserver, is among them: it counts as full. Owner: one
//! task, until the server withdraws or ends. Where nobody else can be on the store nothing is said, and
//! nobody heard.
//!
//! No resource has this place: the name of a CRD's group has a dot. kube-apiserver does not look there.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision, Status};
use forebay_backend::{Expect, Op, Range, Txn, TxnResponse};
use forebay_catalog::errors;
use forebay_catalog::limits::ROUNDS_MAX;
use forebay_neighbours::limits::{HEAR_PERIOD, NEIGHBOURS_MAX, STEP, TELL_PERIOD, WORD_LEASE};
use forebay_neighbours::{Heard, Neighbour, Word};
use forebay_rt::Instant;
use tokio::sync::watch;

use crate::context::Context;
use crate::identity::lease;

/// Tells the others what `own` says from now on, once it says anything. Returns what they say.
pub(crate) fn follow(context: &Arc<Context>, own: watch::Receiver<Option<Word>>) -> watch::Receiver<Heard> {
    let (heard, follower) = watch::channel(Heard::default());
    if let Some(name) = own_name(context).filter(|_| !context.is_alone()) {
        context.tasks.spawn("neighbours", tell_and_hear(context.clone(), name, own, heard));
    }
    follower
}

/// Takes this server's word back, which goes.
pub(crate) async fn end(context: &Arc<Context>) -> Result<(), Status> {
    let Some(name) = own_name(context) else { return Ok(()) };
    write(context, &name, &mut None, || Op::Delete).await
}

fn own_name(context: &Context) -> Option<String> {
    context.config.identity.as_ref().map(|identity| identity.name.clone())
}

/// What was told last, and when.
struct Told {
    word: Word,
    at: Instant,
}

async fn tell_and_hear(
    context: Arc<Context>,
    name: String,
    own: watch::Receiver<Option<Word>>,
    heard: watch::Sender<Heard>,
) {
    let clock = &context.clock;
    let (mut told, mut written): (Option<Told>, Option<Revision>) = (None, None);
    let (mut next_hearing, mut heard_at) = (clock.now(), clock.now());
    loop {
        let (now, word) = (clock.now(), *own.borrow());
        let is_due = |word: Word| {
            let is_known =
                |told: &Told| !word.is_news_after(told.word) && now.duration_since(told.at) < TELL_PERIOD;
            !told.as_ref().is_some_and(is_known)
        };
        if let Some(word) = word.filter(|word| is_due(*word)) {
            match tell(&context, &name, word, &mut written).await {
                Ok(()) => told = Some(Told { word, at: now }),
                Err(status) => {
                    tracing::debug!(
                        why = status.message,
                        "the other servers are not told what this one holds"
                    );
                }
            }
        }
        if now >= next_hearing {
            next_hearing = now + HEAR_PERIOD;
            match hear(&context, &name).await {
                Ok(said) => {
                    heard_at = now;
                    publish(&heard, said);
                }
                Err(status) => tracing::debug!(why = status.message, "the other servers are not heard"),
            }
        }
        if now.duration_since(heard_at) > WORD_LEASE {
            publish(&heard, Heard::default());
        }
        clock.sleep(STEP).await;
    }
}

fn publish(heard: &watch::Sender<Heard>, said: Heard) {
    heard.send_if_modified(|before| {
        let is_other = *before != said;
        *before = said;
        is_other
    });
}

async fn tell(
    context: &Arc<Context>,
    name: &str,
    word: Word,
    written: &mut Option<Revision>,
) -> Result<(), Status> {
    let Some(_turn) = context.kubernetes.turn_to_stay().await else { return Ok(()) };
    write(context, name, written, || Op::Put { value: word.encode().into(), ttl: Some(WORD_LEASE) }).await
}

/// Does `op` to this server's key, whatever is there.
///
/// - `written`: when that was put, as far as it is known, before and after.
async fn write(
    context: &Arc<Context>,
    name: &str,
    written: &mut Option<Revision>,
    op: impl Fn() -> Op,
) -> Result<(), Status> {
    let key = Key::from(format!("{}{name}", words(context)));
    for _ in 0..ROUNDS_MAX {
        let expect = written.map_or(Expect::Absent, Expect::At);
        let op = op();
        if matches!((&expect, &op), (Expect::Absent, Op::Delete)) {
            let found = context.backend.get(&key).await.map_err(|error| errors::read(&error))?;
            let Some(found) = found else { return Ok(()) };
            *written = Some(found.revision);
            continue;
        }
        let is_put = matches!(op, Op::Put { .. });
        let committed = context.backend.commit(Txn { key: key.clone(), expect, op }).await;
        match committed.map_err(|error| errors::txn(&error))? {
            TxnResponse::Committed(revision) => {
                *written = is_put.then_some(revision);
                return Ok(());
            }
            TxnResponse::Conflict(found) => *written = found.map(|found| found.revision),
        }
    }
    Err(Status::internal(format!("somebody else keeps the word of {name}")))
}

/// What all others say.
async fn hear(context: &Arc<Context>, own: &str) -> Result<Heard, Status> {
    let mut heard = Heard::default();
    let prefix = words(context);
    let mut rest = Range { prefix: prefix.clone(), start_after: None, limit: NEIGHBOURS_MAX + 1, at: None };
    // A page may be far shorter than its limit.
    loop {
        let page = context.backend.range(rest.clone()).await.map_err(|error| errors::read(&error))?;
        for (key, found) in &page.items {
            let name = &key.as_str()[prefix.as_str().len()..];
            if name != own {
                heard.note(name, Word::decode(&found.value).map_or(Neighbour::Silent, Neighbour::Tells));
            }
        }
        rest.limit = rest.limit.saturating_sub(page.items.len());
        if !page.more || page.items.is_empty() || rest.limit == 0 {
            break;
        }
        rest.pass(&page);
    }
    for name in lease::present(context)? {
        if name != own && !heard.is_known(&name) {
            heard.note(&name, Neighbour::Silent);
        }
    }
    Ok(heard)
}

fn words(context: &Context) -> Key {
    Key::from(format!("{}/forebay/servers/", context.config.storage_prefix))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use forebay_api::Body;
    use forebay_apimachinery::options::CreateOptions;
    use forebay_backend::{Backend, BoxFuture, Layer, RangePage, ReadError, TxnError};
    use forebay_catalog::Target;
    use forebay_embedded::{Engine, Options};
    use forebay_rt::{Clock, ManualClock, Random, Tasks};
    use forebay_watchcache::History;
    use serde_json::json;

    use std::time::Duration;

    use super::*;
    use crate::config::{Config, ServicesConfig};
    use crate::{Identity, Registry};

    /// A store that servers share, which can be out of reach, and in which no word stays for ever.
    struct Shared {
        engine: Arc<Engine>,
        is_gone: AtomicBool,
    }

    impl Layer for Shared {
        fn below(&self) -> Arc<dyn Backend> {
            self.engine.clone()
        }

        fn range(&self, range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
            if self.is_gone.load(Ordering::Relaxed) && range.prefix.as_str().contains("/forebay/") {
                return Box::pin(async { Err(ReadError::Unanswered { cause: "gone".into() }) });
            }
            self.engine.range(range)
        }

        fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
            if let Op::Put { ttl, .. } = &txn.op
                && txn.key.as_str().starts_with("/registry/forebay/servers/apiserver-")
            {
                assert_eq!(*ttl, Some(WORD_LEASE));
            }
            self.engine.commit(txn)
        }
    }

    struct World {
        store: Arc<Shared>,
        clock: Clock,
        hand: ManualClock,
        tasks: Tasks,
    }

    impl World {
        fn new() -> World {
            let (clock, hand) = Clock::manual(1_700_000_000_000);
            let options = Options { clock: clock.clone(), ..Options::default() };
            let engine = Engine::open_in_memory(options).expect("opens");
            let store = Arc::new(Shared { engine, is_gone: AtomicBool::new(false) });
            World { store, clock, hand, tasks: Tasks::new() }
        }

        async fn server(&self, number: u8) -> Registry {
            let endpoint = Some(([192, 0, 2, number].into(), 6443));
            let config = Config {
                history: History::Shared { check_every: Duration::from_secs(3_600) },
                identity: Some(Identity::new("node-1", Some(&number.to_string()))),
                services: ServicesConfig { endpoint, ..ServicesConfig::default() },
                ..Config::default()
            };
            let (clock, random) = (self.clock.clone(), Random::seeded(u64::from(number)));
            let registry = Registry::new(config, self.store.clone(), clock, random, self.tasks.clone());
            registry.start().await.expect("starts");
            registry
        }
    }

    fn name(server: &Registry) -> String {
        own_name(&server.0).expect("it has one")
    }

    async fn says(server: &Registry, connections: u64) {
        let word = Word { connections, room: 100 };
        tell(&server.0, &name(server), word, &mut None).await.expect("told");
    }

    async fn heard(server: &Registry) -> Vec<(String, Neighbour)> {
        // Leases of others are in the cache then.
        let leases = server.0.built_in("coordination.k8s.io", "v1", "leases").expect("served");
        server.0.fresh(&leases).await.expect("read");
        let heard = hear(&server.0, &name(server)).await.expect("heard");
        heard.servers().map(|(name, said)| (name.to_owned(), said)).collect()
    }

    #[tokio::test]
    async fn servers_hear_each_others_last_words_until_they_go() {
        let world = World::new();
        let (one, other) = (world.server(1).await, world.server(2).await);
        assert_eq!(
            heard(&one).await,
            [(name(&other), Neighbour::Silent)],
            "it is there and says nothing yet"
        );
        for connections in [7, 9] {
            says(&other, connections).await;
            let word = Word { connections, room: 100 };
            assert_eq!(heard(&one).await, [(name(&other), Neighbour::Tells(word))]);
        }
        let key = Key::from(format!("/registry/forebay/servers/{}", name(&other)));
        let found = world.store.engine.get(&key).await.expect("open").expect("there").revision;
        let op = Op::Put { value: r#"{"version":2}"#.into(), ttl: None };
        world.store.engine.commit(Txn { key, expect: Expect::At(found), op }).await.expect("open");
        assert_eq!(heard(&one).await, [(name(&other), Neighbour::Silent)], "of a version that is not known");
        says(&other, 9).await;
        other.withdraw().await;
        assert_eq!(heard(&one).await, []);
        says(&other, 9).await;
        assert_eq!(heard(&one).await, [], "one that goes says nothing any more");
        one.withdraw().await;
        assert!(world.tasks.stop(Duration::from_secs(60)).await, "every task ends");
    }

    #[tokio::test]
    async fn a_kube_apiserver_beside_them_is_there_and_says_nothing() {
        let world = World::new();
        let one = world.server(1).await;
        let served = one.catalog().resource("coordination.k8s.io", "v1", "leases").cloned();
        let target = Target::of_server(served.expect("served"), Some("kube-system".to_owned()), None);
        let renewed = one.timestamp().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        for (name, component) in [("apiserver-real", "kube-apiserver"), ("scheduler", "kube-scheduler")] {
            let lease = json!({
                "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
                "metadata": { "name": name, "labels": { "apiserver.kubernetes.io/identity": component } },
                "spec": { "holderIdentity": name, "leaseDurationSeconds": 3600, "renewTime": renewed },
            });
            one.create(&target, &Body::Value(lease), &CreateOptions::default()).await.expect("created");
        }
        assert_eq!(heard(&one).await, [("apiserver-real".to_owned(), Neighbour::Silent)]);
        world.hand.advance_ms(60_000);
        assert_eq!(heard(&one).await, [], "it has not renewed its Lease");
        assert!(world.tasks.stop(Duration::from_secs(60)).await, "every task ends");
    }

    #[tokio::test]
    async fn what_was_heard_is_forgotten_when_nothing_more_can_be_read() {
        let world = World::new();
        let (one, other) = (world.server(1).await, world.server(2).await);
        tokio::time::pause();
        let (own, says) = watch::channel(None);
        let _silent = other.follow_neighbours(says);
        let (_none, nothing) = watch::channel(None);
        let mut heard = one.follow_neighbours(nothing);
        let word = Word { connections: 3, room: 4 };
        own.send_replace(Some(word));
        heard.wait_for(|heard| heard.words().any(|one| one == word)).await.expect("it goes on");
        world.store.is_gone.store(true, Ordering::Relaxed);
        heard.wait_for(|heard| heard.servers().count() == 0).await.expect("it goes on");
        assert!(world.tasks.stop(Duration::from_secs(60)).await, "every task ends");
    }
}
