//! Equal lists: what is made for one is what the others read.
//!
//! In: readers that come, read, stand still and leave in every order, and requests through the whole edge.
//! Out: bytes, and how much was made for them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::read::GzDecoder;
use forebay_api::{Api, Body as Incoming};
use forebay_apimachinery::accept::{AsKind, Media};
use forebay_apimachinery::options::{CreateOptions, ListOptions, Query};
use forebay_catalog::Target;
use forebay_catalog::counts::ListCount;
use forebay_embedded::{Engine, Options};
use forebay_pieces::limits::{LONE_BYTES_MAX, SHARED_ANSWER_WAIT, SHARED_LISTS_SHARE};
use forebay_pieces::{ListAnswer, ListContent, ListReader, MadeFor, SharedLists, Totals};
use forebay_reads::{As, Encoding, Estimate, IncludeObject, ListBody, ListPlan, Planned, Shown, Weight};
use forebay_registry::Registry;
use forebay_rt::{Clock, Random, Tasks};
use forebay_transport::BodySource as _;
use futures_util::future::join_all;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::flows::client;
use super::server::{self, Setup};
use crate::config::FlowControl;
use crate::flow_control::ListMeter;
use crate::in_process::InProcess;
use crate::list_answer::begin;
use crate::negotiate::Form;
use crate::server::Backing;

/// Long enough for several pieces of the shortest of its forms but Tables.
const OBJECTS: usize = 80;

const NOW: u64 = 1_700_000_000_000;

async fn registry(clock: &Clock) -> Registry {
    let engine =
        Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens");
    let registry = Registry::new(Default::default(), engine, clock.clone(), Random::seeded(7), Tasks::new());
    registry.start().await.expect("starts");
    for number in 0..OBJECTS {
        put(&registry, number).await;
    }
    registry
}

/// A ConfigMap of 4 kB that do not shrink much; three of four have the label `app`.
async fn put(registry: &Registry, number: usize) {
    let noise = Random::seeded(number as u64);
    let text: String = (0..400).map(|_| format!("{:010}", noise.below(10_000_000_000))).collect();
    let labels = if number.is_multiple_of(4) { json!({}) } else { json!({ "app": "web" }) };
    let object = json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": { "name": format!("o-{number:04}"), "labels": labels }, "data": { "text": text },
    });
    let made = registry.create(&target(registry), &Incoming::Value(object), &CreateOptions::default()).await;
    assert!(made.is_ok(), "{number}");
}

fn target(registry: &Registry) -> Target {
    let served = registry.catalog().resource("", "v1", "configmaps").expect("served").clone();
    Target::of_server(served, Some("default".into()), None)
}

/// A list, and how it is answered.
#[derive(Clone, Copy, Debug)]
struct Asked {
    query: &'static str,
    form: Form,
    takes_gzip: bool,
}

/// Every form, of all objects and of some.
fn forms() -> Vec<Asked> {
    let plain = |media| Form::plain(media);
    let kind = |media, as_kind| Form { as_kind, ..Form::plain(media) };
    let forms = [
        plain(Media::Json),
        Form { pretty: true, ..plain(Media::Json) },
        plain(Media::Yaml),
        plain(Media::Protobuf),
        kind(Media::Json, AsKind::Table),
        kind(Media::Yaml, AsKind::Table),
        kind(Media::Json, AsKind::PartialObjectMetadataList),
        kind(Media::Protobuf, AsKind::PartialObjectMetadataList),
    ];
    let queries = ["", "labelSelector=app%3Dweb", "labelSelector=app%3Dweb&limit=50"];
    let mut all = Vec::new();
    for form in forms {
        for query in queries {
            all.extend([false, true].map(|takes_gzip| Asked { query, form, takes_gzip }));
        }
    }
    all
}

impl Asked {
    /// What its options and its form ask for.
    fn options(self) -> (ListOptions, Shown) {
        let what = match self.form.as_kind {
            AsKind::Object => As::Object,
            AsKind::Table => As::Table(IncludeObject::Object),
            AsKind::PartialObjectMetadata | AsKind::PartialObjectMetadataList => As::PartialMetadata,
        };
        let encoding = if self.form.media == Media::Protobuf { Encoding::Protobuf } else { Encoding::Json };
        let shown = Shown { what, meta: self.form.meta, drops: self.form.drops, encoding };
        (ListOptions::from_query(&Query::parse(self.query)).expect("options"), shown)
    }

    async fn list(self, registry: &Registry) -> ListBody {
        let (options, shown) = self.options();
        registry.list(&target(registry), &options, shown).await.expect("lists")
    }

    fn planned(self, registry: &Registry) -> Planned<ListPlan, Shown> {
        let (options, shown) = self.options();
        Api::list(registry, &target(registry), &options, shown).expect("in order")
    }

    /// The answer, as it is shared with those who asked before.
    async fn open(self, registry: &Registry, lists: &SharedLists) -> Reading {
        let list = self.list(registry).await;
        assert!(list.is_shared(), "long enough");
        let Asked { form, takes_gzip, .. } = self;
        let weight = Weight {
            of: Estimate { objects: OBJECTS, bytes: 1 << 20, ..Estimate::default() },
            ..Weight::default()
        };
        let begin = async |list| begin(list, (form, takes_gzip), weight, &ListMeter::default()).await;
        let answer = lists.open(list, (form, takes_gzip), begin).await;
        let (answer, made_for) = answer.expect("begins");
        Reading::of(answer, made_for)
    }

    /// What one reads who is alone, and how many pieces are made for that.
    async fn alone(self, registry: &Registry) -> (Vec<u8>, u64) {
        let lists = SharedLists::new(Clock::system(), None);
        let mut reading = self.open(registry, &lists).await;
        while reading.go_on() {}
        let totals = lists.totals();
        assert_eq!(totals.shared, 0, "{self:?}");
        (reading.text, totals.made)
    }

    /// An answer as its reader sees it: what is deflated differs with what the cache has at rest meanwhile.
    fn plain(self, text: &[u8]) -> Vec<u8> {
        if self.takes_gzip && text.starts_with(&[0x1f, 0x8b]) { read(text) } else { text.to_vec() }
    }
}

/// What a reader of gzip makes of it, to the last byte.
fn read(member: &[u8]) -> Vec<u8> {
    let (mut plain, mut reader) = (Vec::new(), GzDecoder::new(member));
    reader.read_to_end(&mut plain).expect("gzip");
    assert!(reader.into_inner().is_empty(), "one member, and nothing behind it");
    plain
}

/// Somebody who reads an answer.
struct Reading {
    text: Vec<u8>,
    rest: Option<ListReader>,
    made_for: MadeFor,
}

impl Reading {
    fn of(answer: ListAnswer<ListReader>, made_for: MadeFor) -> Reading {
        let (text, rest) = match answer.content {
            ListContent::Whole(bytes, _) => (bytes.to_vec(), None),
            ListContent::Pieces { source, .. } => (Vec::new(), Some(source)),
        };
        Reading { text, rest, made_for }
    }

    /// Takes a piece; false when there is none left.
    fn go_on(&mut self) -> bool {
        let Some(rest) = &mut self.rest else { return false };
        let piece = rest.made().or_else(|| rest.piece());
        self.text.extend_from_slice(piece.as_deref().unwrap_or_default());
        if piece.is_none() {
            self.rest = None;
        }
        piece.is_some()
    }
}

fn counted(registry: &Registry) -> ListCount {
    let store = target(registry).served.store.clone().expect("stored");
    store.lists.read().get("").copied().unwrap_or_default()
}

#[tokio::test]
async fn a_thousand_equal_lists_are_made_once_whatever_their_form() {
    let (clock, _hand) = Clock::manual(NOW);
    let registry = registry(&clock).await;
    for asked in forms() {
        let before = counted(&registry);
        let (want, pieces) = asked.alone(&registry).await;
        let alone = counted(&registry);
        let lists = SharedLists::new(clock.clone(), None);
        let mut readings = join_all((0..1_000).map(|_| asked.open(&registry, &lists))).await;
        while !readings.is_empty() {
            readings.retain_mut(|reading| {
                let more = reading.go_on();
                assert!(more || reading.text == want, "{asked:?}");
                more
            });
        }
        let Totals { made, shared, .. } = lists.totals();
        // A state may be published anew while they come.
        assert!(made <= 2 * pieces && made + shared == 1_000 * pieces, "{asked:?}: {made} of {pieces}");
        // What is looked at is looked at for all of them, and each was sent all of it.
        let all = counted(&registry);
        assert!(all.fetched - alone.fetched <= 2 * (alone.fetched - before.fetched), "{asked:?}");
        assert_eq!(all.returned - alone.returned, 1_000 * (alone.returned - before.returned), "{asked:?}");
        assert_eq!(all.lists - alone.lists, 1_000);
    }
}

#[tokio::test]
async fn every_reader_reads_what_it_would_alone_however_they_come_and_go() {
    let (clock, hand) = Clock::manual(NOW);
    let registry = registry(&clock).await;
    // Room for six pieces or so.
    let bytes_max = 450 << 10;
    let lists = SharedLists::new(clock.clone(), Some(bytes_max as u64 * SHARED_LISTS_SHARE));
    let forms = forms();
    // Ages in a Table are of the second in which it was asked for.
    let mut alone = BTreeMap::new();
    let (random, mut readings, mut ended) = (Random::seeded(3), Vec::new(), 0);
    for _ in 0..8_000 {
        let at = random.below(readings.len().max(1) as u64) as usize;
        match random.below(100) {
            0..6 if readings.len() < 60 => {
                // JSON, indented JSON in gzip, protobuf, and a Table as YAML in gzip.
                let form = random.below(4) as usize * 11;
                let is_table = forms[form].form.as_kind == AsKind::Table;
                let second = if is_table { clock.unix_ms() / 1_000 } else { 0 };
                if let Entry::Vacant(new) = alone.entry((form, second)) {
                    new.insert(forms[form].alone(&registry).await.0);
                }
                readings.push(((form, second), forms[form].open(&registry, &lists).await));
            }
            6 if !readings.is_empty() => drop(readings.swap_remove(at)),
            7 => lists.let_go(random.below(8) == 0),
            8 => hand.advance_ms(random.below(300)),
            // The later ones are slower.
            _ if !readings.is_empty() && random.below(1 + at as u64 / 6) == 0 => {
                let (form, reading) = &mut readings[at];
                if !reading.go_on() {
                    let (asked, alone) = (forms[form.0], &alone[form]);
                    assert!(asked.plain(&reading.text) == asked.plain(alone), "{asked:?}");
                    readings.swap_remove(at);
                    ended += 1;
                }
            }
            _ => {}
        }
        let kept = lists.totals().bytes;
        assert!(kept <= bytes_max, "{kept}");
    }
    let totals = lists.totals();
    assert!(ended > 100 && totals.shared > 100 && totals.made > 100, "{ended} {totals:?}");
    drop(readings);
    hand.advance_ms(SHARED_ANSWER_WAIT.as_millis() as u64);
    lists.let_go(false);
    assert_eq!(lists.totals().bytes, 0, "nobody reads them");
}

/// A state of which every answer but those of metadata is more than a lone reader keeps.
async fn long_registry(clock: &Clock) -> Registry {
    let registry = registry(clock).await;
    for number in 0..30 {
        let noise = Random::seeded(1_000 + number);
        let text: String = (0..10_000).map(|_| format!("{:010}", noise.below(10_000_000_000))).collect();
        let object = json!({
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": { "name": format!("x-{number:02}") }, "data": { "text": text },
        });
        let options = CreateOptions::default();
        let made = registry.create(&target(&registry), &Incoming::Value(object), &options).await;
        assert!(made.is_ok(), "{number}");
    }
    registry
}

/// All objects as JSON, plain and in gzip, and indented; as YAML, protobuf and a Table.
fn long_forms() -> Vec<Asked> {
    let forms = forms();
    [0, 1, 6, 12, 18, 25].map(|form| forms[form]).to_vec()
}

#[tokio::test]
async fn a_lone_reader_keeps_the_first_of_its_answer_and_then_nothing() {
    let (clock, _hand) = Clock::manual(NOW);
    let registry = long_registry(&clock).await;
    for asked in long_forms() {
        let lists = SharedLists::new(clock.clone(), None);
        let mut reading = asked.open(&registry, &lists).await;
        let (mut first, mut rest) = (0, 0);
        while reading.go_on() {
            match lists.totals().bytes {
                0 => rest += 1,
                _ => first = reading.text.len(),
            }
        }
        let Totals { made, shared, bytes } = lists.totals();
        // A piece more makes it too much.
        assert!(first > LONE_BYTES_MAX / 2 && first <= LONE_BYTES_MAX, "{asked:?}: {first}");
        assert!(rest > 1 && made > rest && (shared, bytes) == (0, 0), "{asked:?}: {rest} of {made}");
    }
}

#[tokio::test]
async fn who_comes_when_a_lone_reader_was_far_begins_what_all_others_read() {
    let (clock, _hand) = Clock::manual(NOW);
    let registry = long_registry(&clock).await;
    for asked in long_forms() {
        let (want, pieces) = asked.alone(&registry).await;
        let want = asked.plain(&want);
        let lists = SharedLists::new(clock.clone(), None);
        let mut first = asked.open(&registry, &lists).await;
        while first.go_on() {}
        let mut others = join_all((0..20).map(|_| asked.open(&registry, &lists))).await;
        others.iter_mut().for_each(|other| while other.go_on() {});
        let mut last = asked.open(&registry, &lists).await;
        while last.go_on() {}
        assert_eq!(lists.totals().made, 2 * pieces, "{asked:?}");
        assert_eq!(lists.totals().shared, 20 * pieces, "{asked:?}");
        let made_for = [&first, &others[0], &others[1], &last].map(|reading| reading.made_for);
        assert_eq!(made_for, [MadeFor::This, MadeFor::Several, MadeFor::Another, MadeFor::Another]);
        others.extend([first, last]);
        assert!(others.iter().all(|other| asked.plain(&other.text) == want), "{asked:?}");
    }
}

#[tokio::test]
async fn that_somebody_asked_for_a_list_is_forgotten_in_time() {
    let (clock, hand) = Clock::manual(NOW);
    let registry = long_registry(&clock).await;
    let (json, lists) = (forms()[0], SharedLists::new(clock, None));
    for (pause, is_alone) in
        [(Duration::ZERO, true), (SHARED_ANSWER_WAIT, true), (SHARED_ANSWER_WAIT / 2, false)]
    {
        hand.advance_ms(pause.as_millis() as u64);
        let mut reading = json.open(&registry, &lists).await;
        while reading.go_on() {}
        assert_eq!((lists.totals().bytes == 0, lists.totals().shared), (is_alone, 0));
    }
}

#[tokio::test]
async fn who_comes_before_a_reader_is_far_reads_what_that_one_makes() {
    let (clock, _hand) = Clock::manual(NOW);
    let registry = long_registry(&clock).await;
    for asked in long_forms() {
        let (_, pieces) = asked.alone(&registry).await;
        let lists = SharedLists::new(clock.clone(), None);
        let mut first = asked.open(&registry, &lists).await;
        assert!(first.go_on());
        let mut second = asked.open(&registry, &lists).await;
        while first.go_on() {}
        while second.go_on() {}
        let Totals { made, shared, bytes } = lists.totals();
        assert_eq!((made, shared), (pieces, pieces), "{asked:?}");
        assert!(bytes > first.text.len() && first.text == second.text, "{asked:?}");
    }
}

#[tokio::test]
async fn lists_that_differ_share_nothing() {
    let (clock, hand) = Clock::manual(NOW);
    let registry = registry(&clock).await;
    let lists = SharedLists::new(clock.clone(), None);
    let forms = forms();
    let mut texts = Vec::new();
    for asked in &forms {
        let mut reading = asked.open(&registry, &lists).await;
        while reading.go_on() {}
        texts.push(reading.text);
    }
    assert_eq!(lists.totals().shared, 0);
    let again = async |asked: Asked| {
        let before = lists.totals().shared;
        let mut reading = asked.open(&registry, &lists).await;
        while reading.go_on() {}
        (lists.totals().shared > before, reading.text)
    };
    let (json, table) = (forms[0], forms[24]);
    assert_eq!((table.form.as_kind, table.query), (AsKind::Table, ""));
    for (asked, text) in forms.iter().zip(texts) {
        let (is_shared, again) = again(*asked).await;
        assert!(is_shared && again == text, "{asked:?}");
    }
    // Ages in a Table are of its second.
    hand.advance_ms(1_000);
    assert!(again(json).await.0 && !again(table).await.0 && again(table).await.0);
    put(&registry, OBJECTS).await;
    assert!(!again(json).await.0, "of another state");
    assert!(again(json).await.0);
    hand.advance_ms(SHARED_ANSWER_WAIT.as_millis() as u64);
    assert!(!again(json).await.0, "it was long ago");
}

#[tokio::test]
async fn it_is_known_before_a_list_is_begun_whether_its_answer_is_there() {
    let (clock, hand) = Clock::manual(NOW);
    let registry = registry(&clock).await;
    let lists = SharedLists::new(clock.clone(), None);
    let has = |asked: Asked| {
        let planned = asked.planned(&registry).sought().expect("long enough");
        lists.has(&planned, (asked.form, asked.takes_gzip))
    };
    let forms = forms();
    for (number, asked, other) in [(OBJECTS, forms[0], forms[1]), (OBJECTS + 1, forms[24], forms[26])] {
        // Then the cache has what was written.
        drop(asked.list(&registry).await);
        assert!(!has(asked));
        let mut reading = asked.open(&registry, &lists).await;
        assert!(has(asked) && !has(other), "{asked:?}: it is being made");
        while reading.go_on() {}
        assert!(has(asked));
        put(&registry, number).await;
        drop(asked.list(&registry).await);
        assert!(!has(asked), "{asked:?}: of another state");
        drop(asked.open(&registry, &lists).await);
        assert!(has(asked));
        hand.advance_ms(SHARED_ANSWER_WAIT.as_millis() as u64);
        assert!(!has(asked), "{asked:?}: it was long ago");
    }
}

#[tokio::test]
async fn a_reader_that_stands_still_costs_its_place_and_no_more() {
    let (clock, hand) = Clock::manual(NOW);
    let registry = registry(&clock).await;
    let lists = SharedLists::new(clock.clone(), None);
    let json = forms()[0];
    let mut still = json.open(&registry, &lists).await;
    assert!(still.go_on());
    let mut quick = json.open(&registry, &lists).await;
    while quick.go_on() {}
    let all = lists.totals().bytes;
    assert!(all > quick.text.len());
    hand.advance_ms(SHARED_ANSWER_WAIT.as_millis() as u64);
    lists.let_go(false);
    let rest = lists.totals().bytes;
    assert!(rest > 0 && rest < all, "what it is yet to come to is kept: {rest} of {all}");
    lists.let_go(true);
    assert_eq!(lists.totals().bytes, 0, "and is not while memory is short");
    while still.go_on() {}
    assert!(still.text == quick.text);
}

/// Asks `edge` as `user`: the whole answer but its head's names of the request.
async fn ask(edge: &InProcess, tasks: &Tasks, user: &str, path: &str, headers: &str) -> Vec<u8> {
    let (mut ours, theirs) = tokio::io::duplex(64 << 10);
    let served = edge.clone();
    tasks.spawn("a connection", async move { served.speak(theirs).await });
    let head = format!("GET {path} HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {user}\r\n{headers}\r\n");
    ours.write_all(head.as_bytes()).await.expect("open");
    let mut text = Vec::new();
    ours.read_to_end(&mut text).await.expect("whole");
    let end = text.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    assert!(text.starts_with(b"HTTP/1.0 200"), "{}", String::from_utf8_lossy(&text[..end]));
    text.split_off(end + 4)
}

/// The whole edge of `registry`, and what its tasks run in.
fn edge(registry: &Registry, clock: Clock) -> (InProcess, Tasks) {
    let key = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let setup = Setup { flow_control: FlowControl::MaxInFlight, ..Setup::default() };
    let (config, tasks) = (server::config("", &key, &setup), Tasks::new());
    let backing = Backing::new(Arc::new(registry.clone()), clock, Random::seeded(8));
    (InProcess::new(&config, backing, &tasks), tasks)
}

#[tokio::test]
async fn who_is_sent_what_another_has_made_is_put_down_with_what_that_takes() {
    let (clock, _hand) = Clock::manual(NOW);
    let registry = registry(&clock).await;
    let (edge, tasks) = edge(&registry, clock);
    let headers = "Accept: application/json;as=Table;g=meta.k8s.io;v=v1\r\n";
    let configmaps = "/api/v1/namespaces/default/configmaps";
    // Once this is answered the cache has all of it, by which they are priced.
    ask(&edge, &tasks, "master", configmaps, "").await;
    let total = async |user: &str| {
        let flows = ask(&edge, &tasks, "master", "/debug/forebay/flows", "").await;
        let flows = serde_json::from_slice(&flows).expect("JSON");
        client(&flows, user, "configmaps")["total"]["cpuUs"].as_u64().unwrap_or(0)
    };
    let put_down = async |user: &str| {
        let before = total(user).await;
        ask(&edge, &tasks, user, &format!("{configmaps}?includeObject=Object"), headers).await;
        total(user).await - before
    };
    // What such lists take here is known from the first, in a build that takes its time.
    put_down("somebody").await;
    put(&registry, OBJECTS).await;
    let (makes, follows) = (put_down("somebody").await, put_down("master").await);
    assert!(follows > 0 && follows < makes, "{follows} of {makes}");
}

#[tokio::test]
async fn through_the_whole_edge_users_share_what_is_made_of_equal_lists() {
    let (clock, _hand) = Clock::manual(NOW);
    let registry = registry(&clock).await;
    let (edge, tasks) = edge(&registry, clock);
    let made = async || {
        let text = ask(&edge, &tasks, "somebody", "/metrics", "").await;
        let text = String::from_utf8(text).expect("text");
        let series =
            ["made", "shared"].map(|how| format!("forebay_shared_list_pieces_total{{how=\"{how}\"}} "));
        series.map(|series| {
            let line = text.lines().find_map(|line| line.strip_prefix(series.as_str()));
            line.and_then(|count| count.parse::<u64>().ok()).expect("a count")
        })
    };
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let path = "/api/v1/namespaces/default/configmaps";
    let mut number = OBJECTS;
    for accept in
        ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml", table, metadata]
    {
        for more in ["", "Accept-Encoding: gzip\r\n"] {
            // So that nothing was asked for before.
            put(&registry, number).await;
            number += 1;
            let headers = format!("Accept: {accept}\r\n{more}");
            let path = format!("{path}?labelSelector=app%3Dweb");
            let before = made().await;
            let want = ask(&edge, &tasks, "somebody", &path, &headers).await;
            let [alone, shared] = made().await;
            assert!(alone > before[0] && shared == before[1], "{headers}");
            // A hundred at a time, as there is room for.
            for _ in 0..10 {
                let users = ["somebody", "master"].into_iter().cycle().take(100);
                let answers = join_all(users.map(|user| ask(&edge, &tasks, user, &path, &headers))).await;
                assert!(answers.iter().all(|answer| *answer == want), "{headers}");
            }
            let [all, shared_by_all] = made().await;
            let (pieces, more) = (alone - before[0], all - alone);
            assert!(more <= pieces && more + shared_by_all - shared == 1_000 * pieces, "{headers}: {more}");
        }
    }
}
