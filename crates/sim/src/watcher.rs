//! A client that watches as an informer does: from a state, on through every event, and again from where it
//! was when the stream ends. It reads at once, slowly, or not at all for a while, and goes away in the
//! middle.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use forebay_rt::Random;
use serde_json::Value;

use crate::client::{Frames, Refused, Way, watch};
use crate::follower::{Follower, Said};
use crate::life::Life;
use crate::reader;
use crate::resources::{Selection, marker};
use crate::world::World;

/// What an answer may take.
const ANSWER_MS: u64 = 5_000;

/// One stream.
struct Stream {
    frames: Frames,
    // Bytes of a frame that is not whole yet.
    bytes: Vec<u8>,
    // Which past of the store it was begun in.
    epoch: u64,
    // It asked for what comes after a revision that never was.
    of_no_past: bool,
}

/// Why a stream is over.
enum Over {
    /// The client goes on from where it was.
    Again,
    /// It begins anew.
    Expired,
    Failed(String),
}

/// Watches until the run is over.
pub async fn follow(world: Rc<World>, who: String, follower: Rc<RefCell<Follower>>) {
    let random = world.fork();
    let mut life_before = None;
    while let Some(life) = world.connect().await {
        let restarted = life_before.replace(life.number) != Some(life.number);
        if let Some(stream) = open(&world, &life, &who, &follower, &random, restarted).await {
            match read(&world, &life, &who, &follower, &random, stream).await {
                Over::Again => {}
                Over::Expired => follower.borrow_mut().revision = None,
                Over::Failed(cause) => return world.fail(&who, format_args!("{cause}")),
            }
        }
        if follower.borrow().revision.is_none() {
            // The state of a stream that broke off is no state.
            follower.borrow_mut().begin_with_state(0);
        }
        let span_ms = if world.is_settling() { 20 } else { 1 + random.below(400) };
        world.pause(span_ms).await;
    }
}

/// Asks for a stream, from where the client was or from a state.
async fn open(
    world: &World,
    life: &Rc<Life>,
    who: &str,
    follower: &RefCell<Follower>,
    random: &Random,
    restarted: bool,
) -> Option<Stream> {
    let (selection, known) = {
        let follower = follower.borrow();
        (follower.selection.clone(), follower.revision)
    };
    // While the caches may not have noticed that the store went back, nobody can say what they will answer.
    let epoch = world.stamp()?;
    let of_no_past = known.is_some() && follower.borrow().epoch != epoch;
    // A server that was there when the store was at that revision knows that it never was.
    let is_known = world.has_forgotten() && follower.borrow().epoch + 1 == epoch;
    if of_no_past && (known <= Some(world.history.borrow().visible()) || !is_known) {
        // The number means something else by now, or nothing yet.
        follower.borrow_mut().revision = None;
        return None;
    }
    let timeout = match random.below(3) {
        0 => format!("&timeoutSeconds={}", 1 + random.below(600)),
        _ => String::new(),
    };
    let common = format!("watch=true&allowWatchBookmarks=true{timeout}{}", selection.query());
    let query = match known {
        Some(revision) => {
            let mut seen = world.seen.borrow_mut();
            seen.resumes += 1;
            seen.resumes_after_restart += u64::from(restarted);
            // Of keys that expired together it may have been told one; what comes after that revision is what
            // it asks for.
            follower.borrow_mut().begin_after(&world.history.borrow(), revision);
            format!("{common}&resourceVersion={revision}")
        }
        None => begin(world, life, who, follower, &selection, random)
            .await
            .map(|from| format!("{common}{from}"))?,
    };
    let way = Way::draw(random);
    match watch(life, way, &selection, &query).await? {
        Ok(frames) => {
            world.trace(who, format_args!("watch {way:?} {query}"));
            let mut seen = world.seen.borrow_mut();
            seen.watches += 1;
            seen.http_watches += u64::from(way == Way::Http);
            follower.borrow_mut().epoch = epoch;
            Some(Stream { frames, bytes: Vec::new(), epoch, of_no_past })
        }
        Err(why) => {
            refused(world, who, &why);
            None
        }
    }
}

/// Chooses a state to begin with. Returns what says so in the query.
async fn begin(
    world: &World,
    life: &Rc<Life>,
    who: &str,
    follower: &RefCell<Follower>,
    selection: &Selection,
    random: &Random,
) -> Option<String> {
    let (acknowledged, visible) = {
        let history = world.history.borrow();
        (history.acknowledged(), history.visible())
    };
    const STATE: &str = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let (floor, from) = match random.below(6) {
        0 => (acknowledged, STATE.to_string()),
        1 => (0, format!("{STATE}&resourceVersion=0")),
        2 => (visible, format!("{STATE}&resourceVersion={visible}")),
        3 => (acknowledged, String::new()),
        _ => {
            let query = if random.below(2) == 0 { "resourceVersion=0" } else { "" };
            let floor = if query.is_empty() { acknowledged } else { 0 };
            let page = reader::ask(world, life, who, random, selection, query).await?;
            let page = page.map_err(|why| refused(world, who, &why)).ok()?;
            let revision = reader::hold(world, who, selection, &page, floor)?;
            follower.borrow_mut().begin_after(&world.history.borrow(), revision);
            return Some(format!("&resourceVersion={revision}"));
        }
    };
    follower.borrow_mut().begin_with_state(floor);
    Some(from)
}

/// The server asks the client to come again.
pub fn refused(world: &World, who: &str, why: &Refused) {
    world.trace(who, format_args!("refused: {} {}", why.reason, why.message));
    world.seen.borrow_mut().refused_for_now += 1;
}

async fn read(
    world: &World,
    life: &Life,
    who: &str,
    follower: &RefCell<Follower>,
    random: &Random,
    mut stream: Stream,
) -> Over {
    // Some clients leave after a while without a word.
    let mut leaves = random.below(3) == 0;
    let leaves_at = world.clock.now() + Duration::from_millis(random.below(90_000));
    while !world.is_over() {
        leaves &= !world.is_settling();
        if !world.is_settling() {
            dawdle(world, random).await;
        }
        let next = stream.frames.next(1 + random.below(2000) as usize, &mut stream.bytes);
        let more = tokio::select! {
            biased;
            () = life.ended.raised() => return Over::Again,
            () = world.clock.sleep_until(leaves_at), if leaves => {
                world.seen.borrow_mut().vanished_clients += 1;
                return Over::Again;
            }
            more = next => more,
        };
        if stream.of_no_past || stream.epoch != world.epoch() {
            match hear_out(world, &follower.borrow(), &stream) {
                Ok(false) if more => continue,
                Ok(_) => return Over::Expired,
                Err(cause) => return Over::Failed(cause),
            }
        }
        match hear(world, who, follower, &mut stream.bytes) {
            Ok(None) if more => {}
            Ok(None) => {
                world.trace(who, format_args!("end of stream"));
                return Over::Again;
            }
            Ok(Some(reason)) => return ended(world, &follower.borrow(), &reason),
            Err(cause) => return Over::Failed(cause),
        }
    }
    Over::Again
}

/// What still comes of a past that never was. Returns whether the client was told so.
fn hear_out(world: &World, follower: &Follower, stream: &Stream) -> Result<bool, String> {
    let Some(back) = world.went_back() else { return Ok(true) };
    if follower.revision.is_none_or(|revision| revision <= back.revision) && !stream.of_no_past {
        // It has seen nothing of what never was, nor need the cache have: this may go on. It begins anew all
        // the same.
        return Ok(true);
    }
    for line in stream.bytes.split(|byte| *byte == b'\n') {
        let Ok(frame) = serde_json::from_slice::<Value>(line) else { continue };
        if frame["type"] == "ERROR" {
            let told = frame["object"]["reason"] == "Expired";
            world.seen.borrow_mut().told_of_going_back += u64::from(told);
            return Ok(true);
        }
        let is_new = marker(&frame["object"]).is_some_and(|number| number > back.number);
        if stream.of_no_past || is_new {
            return Err(format!("the store went back, and the watch goes on with {frame}"));
        }
    }
    Ok(false)
}

/// A slow client.
async fn dawdle(world: &World, random: &Random) {
    let span_ms = match random.below(30) {
        0 => {
            world.seen.borrow_mut().parked_clients += 1;
            random.below(420_000)
        }
        1..5 => random.below(3_000),
        _ => return,
    };
    tokio::select! {
        biased;
        () = world.settle.raised() => {}
        () = world.pause(span_ms) => {}
    }
}

/// Takes whole frames out of `bytes`. Returns the reason of an ERROR event.
pub fn hear(
    world: &World,
    who: &str,
    follower: &RefCell<Follower>,
    bytes: &mut Vec<u8>,
) -> Result<Option<String>, String> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut error = None;
    for line in bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let frame: Value =
            serde_json::from_slice(line).map_err(|error| format!("a frame is no JSON: {error}"))?;
        if error.is_some() {
            return Err(format!("{frame} after an ERROR event"));
        }
        let said = follower.borrow_mut().hear(&world.history.borrow(), &frame)?;
        world.trace(who, format_args!("{said:?} {:?}", follower.borrow().revision));
        let mut seen = world.seen.borrow_mut();
        match said {
            Said::Initial => {}
            Said::InitialEnd => seen.initial_states += 1,
            Said::Bookmark => seen.bookmarks += 1,
            Said::Event { transition } => {
                seen.events += 1;
                seen.selector_transitions += u64::from(transition);
            }
            Said::Error(reason) => error = Some(reason),
        }
    }
    bytes.drain(..whole);
    Ok(error)
}

/// The stream's last word.
fn ended(world: &World, follower: &Follower, reason: &str) -> Over {
    if reason != "Expired" {
        return Over::Again;
    }
    world.seen.borrow_mut().expired_watches += 1;
    match follower.revision.map_or(Ok(()), |revision| gone_by_age(world, revision)) {
        Ok(()) => Over::Expired,
        Err(cause) => Over::Failed(cause),
    }
}

/// What comes after `revision` may be said to be gone only when it is old.
///
/// # Errors
/// It is not.
pub fn gone_by_age(world: &World, revision: u64) -> Result<(), String> {
    if world.has_forgotten() {
        return Ok(());
    }
    let Some(superseded_ms) = world.history.borrow().superseded_ms(revision) else {
        return Err(format!("what comes after {revision} is gone, and nothing came after it"));
    };
    let age_ms = world.now_ms() - superseded_ms;
    if age_ms + ANSWER_MS < world.history_ms {
        return Err(format!("what comes after {revision} is gone after {age_ms} ms"));
    }
    Ok(())
}
