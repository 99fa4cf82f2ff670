//! The cache against a plain model: the state at every revision, kept whole. Random changes; watchers from
//! random revisions with random interests, read now and then; past states; the tree and its index.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_apimachinery::selector::LabelSelector;
use forebay_apimachinery::{Key, Revision};
use forebay_object::Object;
use forebay_rt::{Duration, Random};

use crate::interest::{FieldSource, FieldTerm};
use crate::limits::{PACE, Pace};
use crate::tests::{PREFIX, World};
use crate::{Cacher, EventKind, Interest, Reach, WatchStep, Watcher};

const EAGER: Pace = Pace { cool_ms: 0, late_ms: 0, period: Duration::from_millis(1), recent: 6 };

/// A pod, as the model knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Pod {
    node: String,
    app: String,
    revision: u64,
}

/// `namespace/name` -> pod.
type State = BTreeMap<String, Pod>;

/// What is looked at, in the model's words.
#[derive(Clone, Debug, Default)]
struct Filter {
    namespace: Option<String>,
    name: Option<String>,
    node: Option<(bool, String)>,
    app: Option<String>,
}

struct Model {
    world: World,
    random: Random,
    pace: Pace,
    // states[n] is the state at revision n + 1.
    states: Vec<State>,
}

/// A watcher of a cache and what it is still to be given, oldest first.
struct Watched {
    cacher: Cacher,
    watcher: Watcher,
    filter: Filter,
    after: u64,
    given: Vec<String>,
}

impl Filter {
    fn random(random: &Random) -> Filter {
        let one_in = |count| random.below(count) == 0;
        Filter {
            namespace: one_in(3).then(|| namespace(random)),
            name: one_in(4).then(|| name(random)),
            node: one_in(2).then(|| (!one_in(5), node(random))),
            app: one_in(4).then(|| app(random)),
        }
    }

    fn holds(&self, place: &str, pod: &Pod) -> bool {
        let (namespace, name) = place.split_once('/').expect("namespace/name");
        self.namespace.as_ref().is_none_or(|wanted| wanted == namespace)
            && self.name.as_ref().is_none_or(|wanted| wanted == name)
            && self.node.as_ref().is_none_or(|(equal, wanted)| (*wanted == pod.node) == *equal)
            && self.app.as_ref().is_none_or(|wanted| *wanted == pod.app)
    }

    /// As a request is planned.
    fn interest(&self) -> Interest {
        let reach = match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => Reach::One(format!("{PREFIX}{namespace}/{name}").into()),
            (Some(namespace), None) => Reach::Below(format!("{PREFIX}{namespace}/").into()),
            (None, _) => Reach::Below(PREFIX.into()),
        };
        let term = |field, equal, value: &String| FieldTerm { field, equal, value: value.clone() };
        let node = FieldSource::Indexed { fields: Box::new([0]), absent: "" };
        let mut fields = Vec::new();
        fields.extend(self.node.as_ref().map(|(equal, value)| term(node, *equal, value)));
        fields.extend(self.name.as_ref().map(|value| term(FieldSource::Name, true, value)));
        let labels = self.app.as_ref().map(|app| format!("app={app}")).unwrap_or_default();
        let labels = LabelSelector::parse(&labels).expect("a selector");
        Interest { reach, labels: Arc::new(labels), fields: fields.into() }
    }
}

fn namespace(random: &Random) -> String {
    ["a", "ab", "b"][random.below(3) as usize].to_string()
}

fn name(random: &Random) -> String {
    format!("p{}", random.below(5))
}

fn node(random: &Random) -> String {
    ["", "n1", "n2", "n3"][random.below(4) as usize].to_string()
}

fn app(random: &Random) -> String {
    ["web", "db"][random.below(2) as usize].to_string()
}

impl Model {
    async fn new(seed: u64) -> Model {
        // Every second one seals whatever it can, all the time.
        let pace = if seed.is_multiple_of(2) { PACE } else { EAGER };
        let (world, random) = (World::paced(pace).await, Random::seeded(seed));
        Model { world, random, pace, states: vec![State::new()] }
    }

    fn current(&self) -> u64 {
        self.states.len() as u64
    }

    fn state(&self, revision: u64) -> &State {
        &self.states[revision as usize - 1]
    }

    async fn change(&mut self) {
        let place = format!("{}/{}", namespace(&self.random), name(&self.random));
        let mut state = self.state(self.current()).clone();
        let revision = if state.contains_key(&place) && self.random.below(3) == 0 {
            state.remove(&place);
            self.world.delete(&place).await
        } else {
            let (node, app) = (node(&self.random), app(&self.random));
            let revision = self.world.put_on(&place, &format!("app={app}"), &node).await;
            state.insert(place, Pod { node, app, revision: revision.get() });
            revision
        };
        self.states.push(state);
        assert_eq!(revision.get(), self.current());
    }

    /// What a watcher is told of the changes after `after`.
    fn events(&self, filter: &Filter, after: u64) -> Vec<String> {
        let told = |revision: u64| {
            let (before, now) = (self.state(revision - 1), self.state(revision));
            let changed =
                before.keys().chain(now.keys()).find(|place| before.get(*place) != now.get(*place))?;
            let matches = |pod: &&Pod| filter.holds(changed, pod);
            let kind = match (before.get(changed).filter(matches), now.get(changed).filter(matches)) {
                (None, Some(_)) => EventKind::Added,
                (Some(_), Some(_)) => EventKind::Modified,
                (Some(_), None) => EventKind::Deleted,
                (None, None) => return None,
            };
            Some(format!("{kind:?} {changed}@{revision}"))
        };
        (after + 1..=self.current()).filter_map(told).collect()
    }

    fn matching(&self, filter: &Filter, revision: u64) -> Vec<String> {
        let shown = self.state(revision).iter().filter(|(place, pod)| filter.holds(place, pod));
        shown.map(|(place, pod)| format!("{place}@{}", pod.revision)).collect()
    }

    /// Another cache of the same store, as after a restart; watchers of the one before go on with that.
    async fn restart(&mut self) {
        let World { engine, clock, tasks, .. } = &self.world;
        self.world.cacher = World::start_paced(engine.clone(), clock, tasks, self.pace);
        self.world.cacher.wait_ready().await;
    }

    /// A revision that there was, which the cache reaches back to.
    async fn past(&self) -> u64 {
        let revision = 1 + self.random.below(self.current());
        self.world.cacher.reach_back(Revision::from_log(revision)).await.expect("there is history");
        revision
    }

    async fn watch(&self) -> Watched {
        let (filter, after) = (Filter::random(&self.random), self.past().await);
        let watcher = self.world.cacher.watch(filter.interest(), Revision::from_log(after)).expect("held");
        Watched { cacher: self.world.cacher.clone(), watcher, filter, after, given: Vec::new() }
    }

    async fn watch_list(&self) -> Watched {
        let filter = Filter::random(&self.random);
        let at = Revision::from_log(self.past().await);
        let snapshot = self.world.cacher.exact(at, self.world.soon()).await.expect("held");
        let mut watcher = self.world.cacher.watch_list(filter.interest(), snapshot).expect("ready");
        let mut initial = Vec::new();
        loop {
            match watcher.try_next().expect("the initial state does not wait") {
                WatchStep::Event { kind: EventKind::Added, object, .. } => initial.push(shown(&object)),
                WatchStep::InitialEventsEnd(end) => {
                    assert_eq!(end, at);
                    break;
                }
                step => panic!("{step:?}"),
            }
        }
        assert_eq!(initial, self.matching(&filter, at.get()));
        Watched { cacher: self.world.cacher.clone(), watcher, filter, after: at.get(), given: Vec::new() }
    }

    /// Reads some of what there is.
    fn read(&self, watched: &mut Watched, max: u64) {
        for _ in 0..max {
            match watched.watcher.try_next() {
                Some(WatchStep::Event { kind, object, revision }) => {
                    shown(&object);
                    watched.given.push(format!(
                        "{kind:?} {}/{}@{revision}",
                        object.namespace(),
                        object.name()
                    ));
                }
                Some(step) => panic!("{step:?}"),
                None => break,
            }
        }
        let expected = self.events(&watched.filter, watched.after);
        let (given, filter) = (&watched.given, &watched.filter);
        assert!(expected.starts_with(given), "{filter:?} after {}: {given:?} {expected:?}", watched.after);
    }

    /// A bookmark says that everything up to it was given out.
    async fn bookmark(&self, watched: &mut Watched) {
        let Some(revision) = watched.watcher.bookmark(self.world.soon()).await else { return };
        assert_eq!(watched.given, self.events(&watched.filter, watched.after));
        assert_eq!(revision.get(), self.current(), "it was asked for after everything else");
    }

    /// A past state, as a LIST reads it page by page.
    async fn list(&self) {
        let (filter, at) = (Filter::random(&self.random), self.past().await);
        let snapshot =
            self.world.cacher.exact(Revision::from_log(at), self.world.soon()).await.expect("held");
        let (interest, limit) = (filter.interest(), 1 + self.random.below(4) as usize);
        let (mut pages, mut after): (Vec<String>, Option<Key>) = (Vec::new(), None);
        loop {
            let rest = snapshot.candidates(&interest, after.as_ref());
            let page = rest.filter(|object| interest.matches(object)).take(limit).cloned();
            let page: Vec<Arc<Object>> = page.collect();
            pages.extend(page.iter().map(shown));
            let Some(last) = page.last() else { break };
            after = Some(last.key().clone());
        }
        assert_eq!(pages, self.matching(&filter, at), "{filter:?} at {at}");
        let bytes: usize =
            snapshot.range(&Reach::Below(PREFIX.into()), None).map(|object| object.cost_bytes()).sum();
        assert_eq!((snapshot.len(), snapshot.bytes()), (self.state(at).len(), bytes));
        let held = snapshot.held();
        assert_eq!(held.plain + held.blocks + held.headers, bytes);
        assert_eq!(held.total() - held.places, bytes);
        assert_eq!(snapshot.index_len(), snapshot.len());
        // Places between keys, too, and of other namespaces.
        let place = format!("{PREFIX}{}/{}", namespace(&self.random), name(&self.random));
        let place = [None, Some(Key::from(place.as_str())), Some(Key::from(place + "-"))];
        let place = &place[self.random.below(3) as usize];
        let rest: Vec<&Arc<Object>> = snapshot.range(&interest.reach, place.as_ref()).collect();
        let keys = self.state(at).keys().map(|place| Key::from(format!("{PREFIX}{place}")));
        let reached = |key: &Key| interest.reach.contains(key) && Some(key) > place.as_ref();
        assert!(
            rest.iter().map(|object| object.key().clone()).eq(keys.filter(reached)),
            "{filter:?} {place:?}"
        );
        assert_eq!(snapshot.range(&interest.reach, place.as_ref()).len(), rest.len());
        let plain: usize = rest.iter().map(|object| object.body_len()).sum();
        assert_eq!(snapshot.plain_bytes(&interest.reach, place.as_ref()), plain);
    }
}

fn shown(object: &Arc<Object>) -> String {
    let body = String::from_utf8(object.body().to_vec()).expect("text");
    let (name, version) = (object.name(), object.revision());
    let head = format!(r#""metadata":{{"name":"{name}","namespace":"{}","uid":"u""#, object.namespace());
    assert!(body.starts_with(&head) && body.contains(&format!(r#""resourceVersion":"{version}""#)), "{body}");
    format!("{}/{}@{}", object.namespace(), object.name(), object.revision())
}

#[tokio::test]
async fn a_cache_is_what_its_model_is() {
    let mut sealed = 0;
    for seed in 0..25 {
        let mut model = Model::new(seed).await;
        let mut watched: Vec<Watched> = Vec::new();
        for _ in 0..250 {
            match model.random.below(10) {
                0..=4 => model.change().await,
                5 if watched.len() < 12 => watched.push(model.watch().await),
                6 if watched.len() < 12 => watched.push(model.watch_list().await),
                7 => model.list().await,
                8 if !watched.is_empty() => {
                    let one = model.random.below(watched.len() as u64) as usize;
                    match model.random.below(6) {
                        0 => drop(watched.swap_remove(one)),
                        1 => model.bookmark(&mut watched[one]).await,
                        _ => model.read(&mut watched[one], model.random.below(20)),
                    }
                }
                9 if model.random.below(6) == 0 => model.restart().await,
                _ => {}
            }
        }
        let last = model.world.cacher.fresh(model.world.soon()).await.expect("fresh");
        sealed += last.range(&Reach::Below(PREFIX.into()), None).filter(|it| it.is_sealed()).count();
        for one in &mut watched {
            one.cacher.fresh(model.world.soon()).await.expect("fresh");
            model.read(one, u64::MAX);
            assert_eq!(
                one.given,
                model.events(&one.filter, one.after),
                "seed {seed}: {:?} after {}",
                one.filter,
                one.after
            );
        }
    }
    assert!(sealed > 0, "some of it was at rest");
}
