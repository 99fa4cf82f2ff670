//! A client that asks for watches from where the server's window ends: one step below it, at it, one above.

use std::cell::RefCell;
use std::rc::Rc;

use forebay_rt::Random;

use crate::client::{Way, watch, within};
use crate::follower::Follower;
use crate::resources::{Collection, Selection};
use crate::watcher::{gone_by_age, hear, refused};
use crate::world::World;

/// How far back the window reaches.
const WINDOW_MS: u64 = 300_000;
/// What it may reach back further: it is looked after now and then.
const LATE_MS: u64 = 20_000;

/// Probes until nobody writes any more.
pub async fn probe(world: Rc<World>, who: String) {
    let random = world.fork();
    while world.writing.get() > 0 && !world.is_settling() {
        world.pause(1_000 + random.below(30_000)).await;
        let resource = Collection::ALL[random.below(3) as usize];
        if let Some(after) = edge(&world, resource, &random) {
            one(&world, &who, &random, resource, after).await;
        }
    }
}

/// A revision near the end of the window.
fn edge(world: &World, resource: Collection, random: &Random) -> Option<u64> {
    let end_ms = world.now_ms().checked_sub(WINDOW_MS)?;
    let history = world.history.borrow();
    let old = history.entries(resource).iter().filter(|entry| entry.at_ms <= end_ms + LATE_MS);
    let near: Vec<u64> = old.rev().take(8).map(|entry| entry.revision).collect();
    let drawn = near.get(random.below(near.len() as u64) as usize)?;
    Some((drawn + random.below(3)).saturating_sub(1).max(1))
}

async fn one(world: &World, who: &str, random: &Random, resource: Collection, after: u64) {
    let Some(life) = world.connect().await else { return };
    let selection = Selection::everything(resource);
    let stamp = world.stamp();
    let query = format!("watch=true&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={after}");
    let mut frames = match watch(&life, Way::draw(random), &selection, &query).await {
        None => return,
        Some(Err(why)) => return refused(world, who, &why),
        Some(Ok(frames)) => frames,
    };
    world.trace(who, format_args!("watch after {after}"));
    world.seen.borrow_mut().edge_probes += 1;
    let follower = RefCell::new(Follower::new(selection));
    follower.borrow_mut().begin_after(&world.history.borrow(), after);
    let mut bytes = Vec::new();
    while let Some(more) = within(&life, frames.next(4096, &mut bytes)).await {
        if !world.holds(stamp) {
            return;
        }
        match hear(world, who, &follower, &mut bytes) {
            Ok(Some(reason)) => {
                if reason == "Expired"
                    && let Err(cause) = gone_by_age(world, after)
                {
                    world.fail(who, format_args!("{cause}"));
                }
                return;
            }
            Ok(None) if more => {}
            Ok(None) => return,
            Err(cause) => return world.fail(who, format_args!("after {after}: {cause}")),
        }
    }
}
