//! A cache that is told its states: by a script, against a model.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use forebay_apimachinery::{Key, Revision};
use forebay_backend::{
    Backend, BoxFuture, Change, Feed, FeedError, GiveWay, Range, RangePage, ReadError, Rewrite, Size, Tell,
    Told, Txn, TxnError, TxnResponse, Versioned,
};
use forebay_object::{Came, Form, Marks, Packed};
use forebay_rt::{Clock, Random, Tasks};
use tokio::sync::mpsc;

use crate::interest::Reach;
use crate::limits::PACE;
use crate::tests::{PREFIX, World};
use crate::{Cacher, Changed, EarlyReaders, Followed, Follower, History, Interest};

/// Lines of a script that are not told yet.
const LINES_MAX: usize = 256;

type Lines = mpsc::Receiver<Result<Told, FeedError>>;

/// A store that tells what a test says.
pub(crate) struct Scripted(Mutex<Option<Lines>>, Arc<AtomicUsize>, Way);

/// What a script says next of what is held.
type Way = Arc<Mutex<Option<GiveWay>>>;

/// Its lines, and what it was told last of what is held.
struct Script(Lines, Arc<AtomicUsize>, Way);

impl Tell for Script {
    fn poll_told(&mut self, context: &mut Context<'_>, told: &mut Vec<Told>) -> Poll<Result<(), FeedError>> {
        match std::task::ready!(self.0.poll_recv(context)) {
            None => Poll::Ready(Err(FeedError::Closed)),
            Some(line) => Poll::Ready(line.map(|line| told.push(line))),
        }
    }

    fn held(&mut self, bytes: usize) -> Option<GiveWay> {
        self.1.store(bytes, Ordering::Relaxed);
        self.2.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What no cache that is told asks for.
fn never<T>() -> T {
    panic!("a cache that is told asks for nothing else")
}

impl Backend for Scripted {
    fn commit(&self, _txn: Txn) -> BoxFuture<'_, Result<TxnResponse, TxnError>> {
        never()
    }
    fn get<'a>(&'a self, _key: &'a Key) -> BoxFuture<'a, Result<Option<Versioned>, ReadError>> {
        never()
    }
    fn range(&self, _range: Range) -> BoxFuture<'_, Result<RangePage, ReadError>> {
        never()
    }
    fn barrier(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        never()
    }
    fn oldest(&self) -> BoxFuture<'_, Result<Revision, ReadError>> {
        never()
    }
    fn oldest_known(&self) -> Revision {
        Revision::FIRST
    }
    fn feed<'a>(&'a self, _prefix: &'a str, _after: Revision) -> BoxFuture<'a, Result<Feed, FeedError>> {
        never()
    }
    fn tell(&self, _prefix: &str) -> Option<Box<dyn Tell>> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let lines = lines.unwrap_or_else(|| mpsc::channel(LINES_MAX).1);
        Some(Box::new(Script(lines, self.1.clone(), self.2.clone())))
    }
    fn size(&self) -> Size {
        Size::default()
    }
}

pub(crate) struct Scene {
    pub(crate) cacher: Cacher,
    tell: mpsc::Sender<Result<Told, FeedError>>,
    store: Arc<Scripted>,
    clock: Clock,
    _tasks: Tasks,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene::of(Form::Typed)
    }

    fn of(form: Form) -> Scene {
        let (clock, _hand) = Clock::manual(1_000_000);
        let (tell, lines) = mpsc::channel(LINES_MAX);
        let store = Arc::new(Scripted(Mutex::new(Some(lines)), Arc::default(), Arc::default()));
        let tasks = Tasks::new();
        let mut pods = World::pods(PACE, History::Own, Arc::new(EarlyReaders::admitted()));
        pods.layout.form = form;
        let cacher = Cacher::start(pods, store.clone(), clock.clone(), &tasks);
        Scene { cacher, tell, store, clock, _tasks: tasks }
    }

    pub(crate) fn say(&self, told: Told) {
        self.tell.try_send(Ok(told)).expect("it listens");
    }

    pub(crate) fn begin(&self, may_go_back: bool) {
        self.say(Told::StateBegins { may_go_back });
    }

    pub(crate) fn put(&self, place: &str, revision: u64) {
        let (key, revision) = (key(place), at(revision));
        self.say(Told::Change(Change { key, revision, value: Some(pod(place).into()) }));
    }

    pub(crate) fn delete(&self, place: &str, revision: u64) {
        self.say(Told::Change(Change { key: key(place), revision: at(revision), value: None }));
    }

    pub(crate) fn end(&self, revision: u64) {
        self.say(Told::StateEnds(at(revision)));
    }

    /// A state of `objects`.
    pub(crate) fn state(&self, objects: &[(&str, u64)], revision: u64) {
        self.begin(false);
        for (place, revision) in objects {
            self.put(place, *revision);
        }
        self.end(revision);
    }

    /// Answers so when the cache says next what it holds: behind a line, `revision` is nothing new.
    pub(crate) fn give_way(&self, way: GiveWay) {
        *self.store.2.lock().unwrap_or_else(PoisonError::into_inner) = Some(way);
        self.say(Told::Progress(at(1)));
    }

    /// Waits until all lines were taken, and what was to be answered was.
    pub(crate) async fn listened(&self) {
        let is_open = || self.store.2.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        while self.tell.capacity() < LINES_MAX || is_open() {
            tokio::task::yield_now().await;
        }
    }

    /// Bytes that the cache said last that it holds.
    pub(crate) fn held(&self) -> usize {
        self.store.1.load(Ordering::Relaxed)
    }

    pub(crate) fn follower(&self) -> Follower {
        self.cacher.follow(Interest::all(Reach::Below(PREFIX.into())))
    }

    /// What is shown once `revision` is.
    pub(crate) async fn shown(&self, revision: u64) -> Vec<String> {
        self.cacher.wait_ready().await;
        let deadline = self.clock.now() + forebay_rt::Duration::from_secs(3);
        let shown = self.cacher.at_least(at(revision), deadline).await.expect("it comes");
        let all = Reach::Below(PREFIX.into());
        shown
            .range(&all, None)
            .map(|object| format!("{}@{}", place(object.key()), object.revision()))
            .collect()
    }
}

pub(crate) fn at(revision: u64) -> Revision {
    Revision::new(revision).expect("a revision")
}

pub(crate) fn key(place: &str) -> Key {
    Key::from(format!("{PREFIX}{place}"))
}

fn place(key: &Key) -> &str {
    &key.as_str()[PREFIX.len()..]
}

pub(crate) fn pod(place: &str) -> String {
    let (namespace, name) = place.split_once('/').expect("namespace/name");
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"u"}},"spec":{{}}}}"#
    )
}

/// What was told, in short.
fn short(told: &Followed) -> String {
    let shown =
        |object: &Arc<forebay_object::Object>| format!("{}@{}", place(object.key()), object.revision());
    match told {
        Followed::Change(Changed { previous: None, current: Some(new), .. }) => format!("+{}", shown(new)),
        Followed::Change(Changed { previous: Some(old), current: Some(new), .. }) => {
            format!("~{} to {}", shown(old), new.revision())
        }
        Followed::Change(Changed { previous: Some(old), current: None, .. }) => format!("-{}", shown(old)),
        Followed::Change(Changed { previous: None, current: None, .. }) => "nothing".into(),
        Followed::Synced(revision) => format!("synced {revision}"),
        Followed::Relisted(states) => format!("relisted {}", states.differences),
        Followed::LetGo => "let go".into(),
        Followed::Ended => "ended".into(),
    }
}

pub(crate) async fn told(follower: &mut Follower, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    while lines.len() < count {
        lines.push(short(&follower.next().await));
    }
    lines
}

#[tokio::test]
async fn a_state_is_shown_whole_with_what_changed_on_top_of_it() {
    let scene = Scene::new();
    scene.begin(false);
    scene.put("b/two", 4);
    scene.put("a/one", 3);
    scene.put("a/gone", 5);
    scene.put("a/one", 7);
    scene.delete("a/gone", 8);
    assert!(scene.cacher.snapshot().is_err(), "nothing of half a state is shown");
    scene.end(9);
    assert_eq!(scene.shown(9).await, ["a/one@7", "b/two@4"]);
    scene.put("a/three", 11);
    assert_eq!(scene.shown(11).await, ["a/one@7", "a/three@11", "b/two@4"]);
}

#[tokio::test]
async fn an_unchanged_state_is_told_of_to_nobody_and_keeps_its_objects() {
    let scene = Scene::new();
    scene.state(&[("a/one", 3), ("b/two", 4)], 9);
    let mut follower = scene.follower();
    assert_eq!(told(&mut follower, 3).await, ["+a/one@3", "+b/two@4", "synced 9"]);
    let before = scene.cacher.snapshot().expect("ready");
    scene.state(&[("b/two", 4), ("a/one", 3)], 20);
    assert_eq!(told(&mut follower, 1).await, ["relisted 0"]);
    let after = scene.cacher.snapshot().expect("ready");
    assert_eq!(after.revision(), at(20));
    for place in ["a/one", "b/two"] {
        let (before, after) = (before.get(&key(place)), after.get(&key(place)));
        assert!(Arc::ptr_eq(before.expect("there"), after.expect("there")));
    }
}

#[tokio::test]
async fn what_differs_is_told_in_order_and_what_is_gone_with_its_last_state() {
    let scene = Scene::new();
    scene.state(&[("a/gone", 2), ("a/one", 3), ("b/two", 4)], 9);
    let mut follower = scene.follower();
    told(&mut follower, 4).await;
    scene.state(&[("c/new", 15), ("b/two", 12), ("a/one", 3)], 20);
    let lines = told(&mut follower, 4).await;
    assert_eq!(lines, ["~b/two@4 to 12", "+c/new@15", "-a/gone@2", "relisted 3"]);
    scene.put("a/one", 21);
    assert_eq!(told(&mut follower, 1).await, ["~a/one@3 to 21"]);
}

#[tokio::test]
async fn nothing_stays_of_a_state_that_was_given_up() {
    let scene = Scene::new();
    scene.begin(false);
    scene.put("a/dropped", 2);
    scene.state(&[("a/one", 3)], 9);
    assert_eq!(scene.shown(9).await, ["a/one@3"]);
    let mut follower = scene.follower();
    told(&mut follower, 2).await;
    scene.begin(false);
    scene.put("a/dropped", 12);
    scene.put("a/one", 11);
    scene.put("a/stays", 13);
    scene.state(&[("a/one", 14), ("a/stays", 13)], 20);
    assert_eq!(scene.shown(20).await, ["a/one@14", "a/stays@13"]);
    assert_eq!(told(&mut follower, 3).await, ["+a/stays@13", "~a/one@3 to 14", "relisted 2"]);
}

#[tokio::test]
async fn an_older_object_takes_no_place_unless_the_store_was_put_back() {
    let scene = Scene::new();
    scene.state(&[("a/one", 8), ("a/two", 9)], 9);
    let mut follower = scene.follower();
    told(&mut follower, 3).await;
    scene.state(&[("a/one", 3), ("a/two", 9)], 10);
    assert_eq!(told(&mut follower, 1).await, ["relisted 0"]);
    scene.begin(true);
    scene.put("a/one", 3);
    scene.end(5);
    assert_eq!(told(&mut follower, 3).await, ["~a/one@8 to 3", "-a/two@9", "relisted 2"]);
    assert_eq!(scene.shown(5).await, ["a/one@3"]);
    scene.put("a/two", 6);
    assert_eq!(told(&mut follower, 1).await, ["+a/two@6"], "it goes on from there");
}

#[tokio::test]
async fn what_was_not_told_yet_when_the_store_went_back_is_told_as_it_is_then() {
    let scene = Scene::new();
    scene.state(&[("a/one", 3), ("a/two", 4)], 9);
    scene.shown(9).await;
    let mut follower = scene.follower();
    assert_eq!(told(&mut follower, 1).await, ["+a/one@3"], "the other one is still to be told");
    scene.begin(true);
    scene.put("a/one", 3);
    scene.put("a/two", 4);
    scene.end(5);
    while scene.cacher.snapshot().is_ok_and(|shown| shown.revision() != at(5)) {
        tokio::task::yield_now().await;
    }
    assert_eq!(told(&mut follower, 2).await, ["+a/two@4", "synced 5"]);
}

#[tokio::test(start_paused = true)]
async fn who_cannot_tell_any_more_is_replaced_and_nobody_is_told_what_has_not_changed() {
    let mut scene = Scene::new();
    scene.state(&[("a/one", 3), ("a/two", 4)], 9);
    let mut follower = scene.follower();
    told(&mut follower, 3).await;
    let (tell, lines) = mpsc::channel(LINES_MAX);
    *scene.store.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines);
    let failed = scene.tell.try_send(Err(FeedError::Failed { cause: "the connection is gone".into() }));
    failed.expect("it listens");
    scene.tell = tell;
    scene.state(&[("a/one", 3), ("a/two", 12)], 20);
    // Behind the pause before the store is asked again.
    assert_eq!(told(&mut follower, 2).await, ["~a/two@4 to 12", "relisted 2"]);
}

/// Random states and changes: what is shown is what was told, and a follower's tale adds up to it, whether it
/// listens all the time or hardly ever.
#[tokio::test]
async fn whatever_is_told_adds_up_for_the_quick_and_for_the_slow() {
    for seed in 0..40 {
        let random = Random::seeded(seed);
        let scene = Scene::new();
        let (mut model, mut revision) = (BTreeMap::<String, u64>::new(), 1);
        let mut tales: Vec<Tale> = Vec::new();
        for round in 0..30 {
            match random.below(if round == 0 { 1 } else { 4 }) {
                0 => {
                    let goes_back = round > 0 && random.below(4) == 0;
                    revision = if goes_back { revision / 2 + 1 } else { revision + 10 };
                    model = state(&random, &scene, &model, revision, goes_back);
                }
                _ => {
                    revision += 1;
                    let place = format!("a/{}", random.below(6));
                    if model.remove(&place).is_some() && random.below(2) == 0 {
                        scene.delete(&place, revision);
                    } else {
                        scene.put(&place, revision);
                        model.insert(place, revision);
                    }
                }
            }
            let cacher = scene.cacher.clone();
            cacher.wait_ready().await;
            let all: Vec<String> =
                model.iter().map(|(place, revision)| format!("{place}@{revision}")).collect();
            // A state that goes back is shown when it is what is shown.
            let is_there = async || {
                scene.shown(1).await == all
                    && cacher.snapshot().is_ok_and(|now| now.revision() == at(revision))
            };
            for turn in 0.. {
                if is_there().await {
                    break;
                }
                assert!(
                    turn < 1_000_000,
                    "seed {seed}, round {round}: {:?} instead of {all:?}",
                    scene.shown(1).await
                );
                tokio::task::yield_now().await;
            }
            if random.below(3) == 0 {
                tales.push(Tale {
                    follower: scene.follower(),
                    told: BTreeMap::new(),
                    is_slow: random.below(2) == 0,
                });
            }
            for tale in tales.iter_mut().filter(|tale| !tale.is_slow || random.below(8) == 0) {
                tale.listen(seed).await;
                assert_eq!(tale.told, model, "seed {seed}, round {round}");
            }
        }
        for tale in &mut tales {
            tale.listen(seed).await;
            assert_eq!(tale.told, model, "seed {seed}");
        }
    }
}

/// Tells a state that has most of `model`, and something new; now and then it is begun twice.
fn state(
    random: &Random,
    scene: &Scene,
    model: &BTreeMap<String, u64>,
    revision: u64,
    goes_back: bool,
) -> BTreeMap<String, u64> {
    scene.begin(goes_back);
    if random.below(3) == 0 {
        for number in 0..4 {
            scene.put(&format!("given-up/{number}"), revision - 1);
        }
        scene.begin(goes_back);
    }
    let mut next = BTreeMap::new();
    for number in 0..6 {
        let place = format!("a/{number}");
        let held = model.get(&place).copied().filter(|held| *held < revision && random.below(4) > 0);
        let put = match (held, random.below(3)) {
            (Some(held), 0 | 1) => held,
            (None, 0) => continue,
            _ => revision - 1,
        };
        scene.put(&place, put);
        next.insert(place, put);
    }
    scene.end(revision);
    next
}

struct Tale {
    follower: Follower,
    told: BTreeMap<String, u64>,
    is_slow: bool,
}

impl Tale {
    /// Takes everything that there is, and holds each change against what was told before it.
    async fn listen(&mut self, seed: u64) {
        loop {
            while let Some(next) = self.follower.try_next() {
                let Followed::Change(Changed { previous, current, .. }) = next else { continue };
                let object = current.as_ref().or(previous.as_ref()).expect("one of them");
                let place = place(object.key()).to_owned();
                let before = match &current {
                    Some(current) => self.told.insert(place, current.revision().get()),
                    None => self.told.remove(&place),
                };
                let previous = previous.map(|previous| previous.revision().get());
                assert_eq!(previous, before, "seed {seed}: what was there before is what was told of it");
                assert_ne!(
                    before,
                    current.map(|current| current.revision().get()),
                    "seed {seed}: it differs"
                );
            }
            if std::future::poll_fn(|context| {
                let ready = std::pin::pin!(self.follower.ready());
                Poll::Ready(ready.poll(context).is_pending())
            })
            .await
            {
                return;
            }
        }
    }
}

/// Objects as they came in one run; each is about 9 KB.
fn packed(objects: &[(&str, u64)]) -> Packed {
    let (mut plain, mut places) = (Vec::new(), Vec::new());
    for (place, revision) in objects {
        let (namespace, name) = place.split_once('/').expect("namespace/name");
        let note = "the same in all of them ".repeat(400);
        let metadata =
            format!(r#"{{"name":"{name}","namespace":"{namespace}","resourceVersion":"{revision}"}}"#);
        let text = format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{metadata},"note":"{note}"}}"#);
        let at = |part: &str| {
            let from = text.find(part).expect("it is there") as u32;
            from..from + part.len() as u32
        };
        let digits = at(&format!(r#""resourceVersion":"{revision}""#));
        let marks = Marks {
            metadata: at(&metadata),
            revision: digits.start + 19..digits.end - 1,
            labels: 0..0,
            api_version: at("v1"),
        };
        let span = plain.len()..plain.len() + text.len();
        plain.extend_from_slice(text.as_bytes());
        plain.push(b'\n');
        places.push(Came { key: key(place), revision: self::at(*revision), span, marks });
    }
    let mut deflated = Vec::with_capacity(plain.len());
    let mut coder = flate2::Compress::new(flate2::Compression::fast(), false);
    coder.compress_vec(&plain, &mut deflated, flate2::FlushCompress::Full).expect("it shrinks");
    Packed::new(plain.into(), deflated.into(), places).expect("neighbours")
}

#[tokio::test]
async fn what_comes_packed_is_kept_so_where_it_is_new_and_differs_later_one_by_one() {
    let scene = Scene::of(Form::Whole);
    let (mut told_all, all) = (scene.follower(), Reach::Below(PREFIX.into()));
    scene.begin(false);
    scene.say(Told::Packed(packed(&[("a/a", 5), ("a/b", 6), ("a/c", 7), ("a/d", 8)])));
    // One of these is there already, so none of them is kept so.
    scene.say(Told::Packed(packed(&[("a/d", 9), ("a/e", 4), ("a/f", 3), ("a/g", 2)])));
    scene.put("a/h", 10);
    scene.end(10);
    let want = ["a/a@5", "a/b@6", "a/c@7", "a/d@9", "a/e@4", "a/f@3", "a/g@2", "a/h@10"];
    assert_eq!(scene.shown(10).await, want);
    let deadline = scene.clock.now() + forebay_rt::Duration::from_secs(3);
    let first = scene.cacher.at_least(at(10), deadline).await.expect("it is there");
    let in_block =
        |place: &str| first.get(&key(place)).and_then(|object| object.place().map(|(place, _)| place));
    assert_eq!(["a/a", "a/b", "a/c"].map(in_block), [Some(0), Some(1), Some(2)]);
    assert!(first.range(&all, None).all(|object| object.body().starts_with(b"{\"kind\":\"Pod\"")));
    assert_eq!(told(&mut told_all, 9).await.last().map(String::as_str), Some("synced 10"));
    scene.begin(false);
    scene.say(Told::Packed(packed(&[("a/a", 5), ("a/b", 12), ("a/c", 7), ("a/d", 9)])));
    scene.say(Told::Packed(packed(&[("a/e", 4), ("a/g", 2), ("a/h", 10), ("a/i", 11)])));
    scene.end(12);
    let want = ["a/a@5", "a/b@12", "a/c@7", "a/d@9", "a/e@4", "a/g@2", "a/h@10", "a/i@11"];
    assert_eq!(scene.shown(12).await, want);
    let mut differences = told(&mut told_all, 3).await;
    differences.sort();
    assert_eq!(differences, ["+a/i@11", "-a/f@3", "~a/b@6 to 12"]);
    let now = scene.cacher.at_least(at(12), scene.clock.now()).await.expect("it is there");
    let same = |place: &str| {
        first.get(&key(place)).zip(now.get(&key(place))).is_some_and(|(a, b)| Arc::ptr_eq(a, b))
    };
    assert!(["a/a", "a/c", "a/d", "a/h"].into_iter().all(same), "what did not change was not touched");
}

#[tokio::test]
async fn what_came_packed_counts_as_held_and_is_rewritten_like_the_rest() {
    let scene = Scene::of(Form::Whole);
    scene.begin(false);
    scene.say(Told::Packed(packed(&[("a/a", 5), ("a/b", 6), ("a/c", 7), ("a/d", 8)])));
    scene.end(10);
    assert_eq!(scene.shown(10).await.len(), 4);
    scene.say(Told::Progress(at(1)));
    scene.listened().await;
    assert!(scene.held() > 0);
    scene.give_way(GiveWay::Rewrite(Rewrite::new(|body| {
        let text = std::str::from_utf8(body).ok()?;
        // A value has no resourceVersion: the store gives it.
        let (head, _) = text.split_once(r#","resourceVersion":"#)?;
        Some(format!("{}}}}}", head.replace("Pod", "Cut")).into_bytes())
    })));
    scene.listened().await;
    // Behind what rewrote it.
    scene.delete("a/d", 11);
    assert_eq!(scene.shown(11).await, ["a/a@5", "a/b@6", "a/c@7"]);
    let now = scene.cacher.at_least(at(11), scene.clock.now()).await.expect("it is there");
    let all = Reach::Below(PREFIX.into());
    assert!(now.range(&all, None).all(|object| object.body().starts_with(b"{\"kind\":\"Cut\"")));
}
