//! A client that lists, whole and in pages, of now and of then, and gets; all of it held against the model.

use std::rc::Rc;

use forebay_rt::Random;
use serde_json::Value;

use crate::client::{self, Refused, Way, list};
use crate::follower::{key_of, revision_of, same_object, same_state};
use crate::life::Life;
use crate::resources::{Collection, NAMESPACES, Selection, name};
use crate::watcher::{gone_by_age, refused};
use crate::world::World;

/// Objects of a list, with what its metadata said.
pub struct Page {
    revision: u64,
    items: Vec<(Rc<str>, u64, Value)>,
    token: String,
    remaining: Option<u64>,
}

/// Reads until nobody writes any more.
pub async fn read(world: Rc<World>, who: String) {
    let random = world.fork();
    while world.writing.get() > 0 && !world.is_settling() {
        world.pause(random.below(8_000)).await;
        let Some(life) = world.connect().await else { return };
        if random.below(3) == 0 {
            get(&world, &life, &who, &random).await;
        } else {
            one_list(&world, &life, &who, &random).await;
        }
    }
}

async fn one_list(world: &World, life: &Rc<Life>, who: &str, random: &Random) {
    let selection = Selection::draw(random);
    let (acknowledged, visible) = {
        let history = world.history.borrow();
        (history.acknowledged(), history.visible())
    };
    let then = random.below(visible.max(1)) + 1;
    let limit = 1 + random.below(4);
    let (floor, exact, query) = match random.below(7) {
        0 => (acknowledged, None, String::new()),
        1 => (0, None, "resourceVersion=0".to_string()),
        2 => (visible, None, format!("resourceVersion={visible}&resourceVersionMatch=NotOlderThan")),
        3 => (then, Some(then), format!("resourceVersion={then}&resourceVersionMatch=Exact")),
        4 => (then, Some(then), format!("resourceVersion={then}&limit={limit}")),
        _ => (acknowledged, None, format!("limit={limit}")),
    };
    let Some(first) = ask(world, life, who, random, &selection, &query).await else { return };
    let page = match first {
        Ok(page) => page,
        Err(status) => {
            if status.is("Expired")
                && let Err(cause) = gone_by_age(world, then)
            {
                world.fail(who, format_args!("LIST {query}: {cause}"));
            }
            return refused(world, who, &status);
        }
    };
    world.seen.borrow_mut().exact_lists += u64::from(exact.is_some());
    if page.revision < floor || exact.is_some_and(|exact| exact != page.revision) {
        return world.fail(who, format_args!("LIST {query} is of {}, asked for {floor}", page.revision));
    }
    go_on(world, who, random, (&selection, limit), page).await;
}

/// Asks for the other pages, and holds all of them together against the state at the first one's revision.
async fn go_on(
    world: &World,
    who: &str,
    random: &Random,
    (selection, limit): (&Selection, u64),
    first: Page,
) {
    let Page { revision, mut items, mut token, remaining } = first;
    let unfiltered = selection.label.is_none() && selection.node.is_none() && selection.name.is_none();
    if let Some(remaining) = remaining.filter(|_| unfiltered) {
        let all = world.history.borrow().state(selection, revision).len() as u64;
        if all != items.len() as u64 + remaining {
            return world.fail(who, format_args!("{remaining} remain after {} of {all}", items.len()));
        }
    }
    let stamp = world.stamp();
    while !token.is_empty() {
        // Most come for the next page at once; some when the server may have forgotten it.
        let span_ms = if random.below(8) == 0 { random.below(400_000) } else { random.below(500) };
        tokio::select! {
            biased;
            () = world.settle.raised() => {}
            () = world.pause(span_ms) => {}
        }
        let query = format!("limit={limit}&continue={token}");
        let again = match world.connect().await {
            Some(now) => now,
            None => return,
        };
        if !world.holds(stamp) {
            return;
        }
        // A token outlives the server that made it.
        let Some(answer) = ask(world, &again, who, random, selection, &query).await else { continue };
        match answer {
            Ok(page) => {
                if page.revision != revision {
                    let of = page.revision;
                    return world.fail(who, format_args!("a page of {of} in a list of {revision}"));
                }
                world.seen.borrow_mut().pages += 1;
                items.extend(page.items);
                token = page.token;
            }
            Err(status) if status.is("Expired") => {
                world.seen.borrow_mut().expired_continues += 1;
                if let Err(cause) = gone_by_age(world, revision) {
                    world.fail(who, format_args!("continue: {cause}"));
                }
                return;
            }
            Err(status) => {
                refused(world, who, &status);
                world.pause(1000).await;
            }
        }
    }
    if let Err(cause) = same_state(&world.history.borrow(), selection, revision, &items) {
        world.fail(who, format_args!("LIST: {cause}"));
    }
}

/// One LIST request, read to its end.
pub async fn ask(
    world: &World,
    life: &Life,
    who: &str,
    random: &Random,
    selection: &Selection,
    query: &str,
) -> Option<Result<Page, Refused>> {
    let way = Way::draw(random);
    // Some take one piece after the other, and some of these so slowly that they are let go of.
    let slow_ms = match random.below(12) {
        0 => 200_000,
        1..3 => 500,
        _ => 0,
    };
    let pace = async || match slow_ms {
        0 => {}
        slow_ms => within_chaos(world, random.below(slow_ms)).await,
    };
    let stamp = world.stamp();
    let answer = list(life, way, selection, query, pace).await.filter(|_| world.holds(stamp));
    let Some(answer) = answer else {
        world.seen.borrow_mut().cut_lists += 1;
        world.trace(who, format_args!("LIST {way:?} {query}: broke off"));
        return None;
    };
    let page = match answer {
        Ok(bytes) => page(selection, &bytes),
        Err(refused) => return Some(Err(refused)),
    };
    let page = match page {
        Ok(page) => page,
        Err(cause) => {
            world.fail(who, format_args!("LIST {way:?} {query}: {cause}"));
            return None;
        }
    };
    world.trace(who, format_args!("LIST {way:?} {query}: {} at {}", page.items.len(), page.revision));
    let mut seen = world.seen.borrow_mut();
    seen.lists += 1;
    seen.http_lists += u64::from(way == Way::Http);
    drop(seen);
    if page.revision > world.history.borrow().visible() {
        world.fail(who, format_args!("LIST {query} is of {}, which is to come", page.revision));
    }
    Some(Ok(page))
}

/// Waits, unless the run settles.
pub async fn within_chaos(world: &World, span_ms: u64) {
    tokio::select! {
        biased;
        () = world.settle.raised() => {}
        () = world.pause(span_ms) => {}
    }
}

fn page(selection: &Selection, bytes: &[u8]) -> Result<Page, String> {
    let list: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let revision = revision_of(&list).ok_or("no resourceVersion")?;
    let objects = list["items"].as_array().ok_or("no items")?;
    let item = |object: &Value| {
        let of = revision_of(object).ok_or("an item without resourceVersion")?;
        Ok((key_of(selection, object), of, object.clone()))
    };
    let items = objects.iter().map(item).collect::<Result<_, String>>()?;
    let metadata = &list["metadata"];
    let token = metadata["continue"].as_str().unwrap_or("").to_string();
    Ok(Page { revision, items, token, remaining: metadata["remainingItemCount"].as_u64() })
}

/// Holds a whole list against the model. Returns its revision; none when it is wrong.
pub fn hold(world: &World, who: &str, selection: &Selection, page: &Page, floor: u64) -> Option<u64> {
    let history = world.history.borrow();
    let held = if page.revision < floor {
        Err(format!("it is of {}, asked for {floor}", page.revision))
    } else {
        same_state(&history, selection, page.revision, &page.items)
    };
    held.map_err(|cause| world.fail(who, format_args!("LIST: {cause}"))).ok().map(|()| page.revision)
}

/// One GET: what it shows was there since the request was sent, or is what the client asked for at least.
async fn get(world: &World, life: &Rc<Life>, who: &str, random: &Random) {
    let resource = Collection::ALL[random.below(Collection::ALL.len() as u64) as usize];
    let (namespace, name) = (NAMESPACES[random.below(2) as usize], name(random));
    let key = resource.key(namespace, &name);
    let (acknowledged, visible) = {
        let history = world.history.borrow();
        (history.acknowledged(), history.visible())
    };
    let (floor, version) = match random.below(3) {
        0 => (0, "0".to_string()),
        1 => (visible, visible.to_string()),
        _ => (acknowledged, String::new()),
    };
    let way = Way::draw(random);
    let stamp = world.stamp();
    let answer = client::get(life, way, resource, (namespace, &name), &version).await;
    let Some(answer) = answer.filter(|_| world.holds(stamp)) else { return };
    world.seen.borrow_mut().gets += 1;
    let history = world.history.borrow();
    match answer {
        Ok(shown) => {
            let of = revision_of(&shown).unwrap_or(0);
            world.trace(who, format_args!("GET {key} rv={version:?}: {of}"));
            let entries = history.entries(resource);
            let put = entries.iter().find(|entry| entry.revision == of && *entry.key == *key);
            // What was put before the floor must have been there at the floor.
            let replaced = entries.iter().find(|entry| entry.revision > of && *entry.key == *key);
            let stale = replaced.is_some_and(|newer| newer.revision <= floor);
            match put.and_then(|entry| entry.current.as_ref()) {
                Some(_) if stale => world.fail(who, format_args!("GET {key} is of {of}, stale at {floor}")),
                Some(value) => {
                    if let Err(cause) = same_object(&shown, value, of) {
                        world.fail(who, format_args!("GET {key}: {cause}"));
                    }
                }
                None => world.fail(who, format_args!("GET {key}@{of}, which never was")),
            }
        }
        Err(why) if why.is("NotFound") => {
            world.trace(who, format_args!("GET {key} rv={version:?}: none"));
            if !history.was_absent(&key, floor) {
                world.fail(who, format_args!("GET {key} is not found, and was there since {floor}"));
            }
        }
        Err(why) => {
            drop(history);
            refused(world, who, &why);
        }
    }
}
