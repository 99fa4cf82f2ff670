//! A client that creates, changes and deletes, and is told what became of it.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use forebay_api::Body;
use forebay_apimachinery::options::CreateOptions;
use forebay_apimachinery::{Key, Reason, Revision};
use forebay_backend::{Backend, Expect, Op, Txn, TxnResponse};
use forebay_rt::Random;
use serde_json::{Value, json};

use crate::client::{self, Change, Way, at, within};
use crate::follower::revision_of;
use crate::life::{EVENT_TTL, Life};
use crate::resources::{Collection, NAMESPACES, name, object};
use crate::world::{Pending, World};

/// How a write ended.
enum Ended {
    Committed(u64),
    /// Done, at a revision that the answer does not say.
    Deleted,
    Refused,
    Unknown(String),
}

/// What is written.
struct Write {
    resource: Collection,
    namespace: &'static str,
    name: String,
    number: u64,
    // `None` deletes.
    value: Option<Value>,
}

/// Writes `count` times and ends.
pub async fn write(world: Rc<World>, who: String, count: usize) {
    let random = world.fork();
    for _ in 0..count {
        world.pause(pace(&random)).await;
        let Some(life) = world.connect().await else { break };
        let write = draw(&world, &random);
        send(&world, &life, Way::draw(&random), &who, write).await;
    }
    world.writing.set(world.writing.get() - 1);
}

/// Writes one object of each resource, for everybody to notice.
pub async fn last_words(world: &World, who: &str, random: &Random) {
    for resource in Collection::ALL {
        for namespace in NAMESPACES {
            let Some(life) = world.connect().await else { return };
            let (number, name) = (world.number(), name(random));
            let value = Some(object(resource, namespace, &name, number, random));
            let write = Write { resource, namespace, name, number, value };
            send(world, &life, Way::draw(random), who, write).await;
        }
    }
}

/// Makes sure that the namespaces exist. False when the server went away meanwhile.
pub async fn prepare(world: &World, life: &Life) -> bool {
    for namespace in NAMESPACES {
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        let target = at(&life.registry, "namespaces", None, None);
        let (body, options) = (Body::Value(body), CreateOptions::default());
        match within(life, life.registry.create(&target, &body, &options)).await {
            None => return false,
            Some(Err(status)) if status.reason != Reason::AlreadyExists => {
                world.trace("prepare", format_args!("{namespace}: {}", status.message));
            }
            Some(_) => {}
        }
    }
    true
}

/// Mostly in bursts, now and then after a while.
fn pace(random: &Random) -> u64 {
    match random.below(40) {
        0 => random.below(240_000),
        1..4 => random.below(20_000),
        4..20 => random.below(300),
        _ => 0,
    }
}

fn draw(world: &World, random: &Random) -> Write {
    let resource = match random.below(8) {
        0..3 => Collection::ConfigMaps,
        3..7 => Collection::Pods,
        _ => Collection::Events,
    };
    let (namespace, name, number) = (NAMESPACES[random.below(2) as usize], name(random), world.number());
    let delete =
        random.below(4) == 0 && world.history.borrow().now(&resource.key(namespace, &name)).is_some();
    let value = (!delete).then(|| object(resource, namespace, &name, number, random));
    Write { resource, namespace, name, number, value }
}

async fn send(world: &World, life: &Life, way: Way, who: &str, write: Write) {
    let Write { resource, namespace, name, number, value } = write;
    let key = resource.key(namespace, &name);
    let verb = if value.is_some() { "put" } else { "delete" };
    world.send(number, Pending { key: key.clone(), marker: value.as_ref().map(|_| number) });
    let now = world.history.borrow().now(&key).map(|version| version.revision);
    let call = async {
        match resource {
            Collection::ConfigMaps => through_verbs(life, way, (namespace, &name), value, now).await,
            Collection::Pods | Collection::Events => into_store(life, resource, &key, value, now).await,
        }
    };
    let stamp = world.stamp();
    let ended = within(life, call).await.unwrap_or(Ended::Unknown("the server is gone".to_string()));
    let mut seen = world.seen.borrow_mut();
    match ended {
        Ended::Committed(revision) => {
            world.trace(who, format_args!("{verb} {key} #{number}: {revision}"));
            seen.writes += 1;
            if world.holds(stamp) {
                acknowledged(world, who, &key, revision);
            }
            world.resolve(number);
        }
        Ended::Deleted => {
            world.trace(who, format_args!("{verb} {key} #{number}: done"));
            seen.writes += 1;
            world.resolve(number);
        }
        Ended::Refused => {
            world.trace(who, format_args!("{verb} {key} #{number}: refused"));
            seen.conflicts += 1;
            world.resolve(number);
        }
        Ended::Unknown(cause) => {
            world.trace(who, format_args!("{verb} {key} #{number}: {cause}"));
            seen.unanswered += 1;
        }
    }
}

/// What was acknowledged is what the store has shown.
fn acknowledged(world: &World, who: &str, key: &str, revision: u64) {
    let mut history = world.history.borrow_mut();
    let Some(resource) = Collection::of(key) else { return };
    let place = history.place_after(resource, revision - 1);
    let shown = history.entries(resource).get(place).is_some_and(|entry| *entry.key == *key);
    if revision > history.visible() || !shown {
        drop(history);
        return world.fail(who, format_args!("{key}@{revision} was acknowledged and is not there"));
    }
    history.acknowledge(revision);
}

async fn through_verbs(
    life: &Life,
    way: Way,
    place: (&str, &str),
    value: Option<Value>,
    now: Option<u64>,
) -> Ended {
    let change = match (value, now) {
        (None, _) => Change::Delete,
        (Some(value), Some(_)) => Change::Update(value),
        (Some(value), None) => Change::Create(value),
    };
    match client::change(life, way, Collection::ConfigMaps, place, change).await {
        Some(Ok(object)) => revision_of(&object).map_or(Ended::Deleted, Ended::Committed),
        Some(Err(refused)) if ["AlreadyExists", "NotFound", "Conflict"].iter().any(|no| refused.is(no)) => {
            Ended::Refused
        }
        Some(Err(refused)) => Ended::Unknown(refused.message),
        None => Ended::Unknown("the connection broke".to_string()),
    }
}

async fn into_store(
    life: &Life,
    resource: Collection,
    key: &str,
    value: Option<Value>,
    now: Option<u64>,
) -> Ended {
    let expect = now.and_then(Revision::new).map_or(Expect::Absent, Expect::At);
    let ttl: Option<Duration> = (resource == Collection::Events).then_some(EVENT_TTL);
    let op = match value {
        Some(value) => Op::Put { value: Bytes::from(value.to_string()), ttl },
        None => Op::Delete,
    };
    match life.store.commit(Txn { key: Key::new(key), expect, op }).await {
        Ok(TxnResponse::Committed(revision)) => Ended::Committed(revision.get()),
        Ok(TxnResponse::Conflict(_)) => Ended::Refused,
        Err(error) => Ended::Unknown(error.to_string()),
    }
}
