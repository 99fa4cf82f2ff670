//! Answers in gzip say what they say without, whatever is at rest, has just changed, or changes while they
//! are read.

use std::io::Read;
use std::time::Duration;

use flate2::read::GzDecoder;
use forebay_api::Caches as _;
use forebay_embedded::faults::Machine;
use forebay_rt::{BlockingAsTasks, Clock, Random};
use http::{Method, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::life::Life;

const SEEDS: u64 = 3;
const ROUNDS: usize = 6;
const PATH: &str = "/api/v1/namespaces/a/configmaps";
const WATCH_LIST: &str =
    "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const MEDIA: [&str; 6] = [
    "application/json",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    TABLE,
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
];

const WATCHED: [&str; 2] = ["application/json", "application/vnd.kubernetes.protobuf;stream=watch"];

/// A server, and who writes to it.
struct World {
    clock: Clock,
    random: Random,
    life: Life,
    // Numbers of the objects that are there.
    there: Vec<u64>,
    next: u64,
}

/// How many answers were compared.
#[derive(Debug, Default)]
struct Compared {
    plain: usize,
    gzip: usize,
    changed_meanwhile: usize,
    watches: usize,
}

impl World {
    async fn new(seed: u64) -> World {
        let (clock, random) = (Clock::steady(1_700_000_000_000), Random::seeded(seed));
        let opened = Life::begin(1, &Machine::new(), &clock, 300_000, &random).await;
        let (life, ..) = opened.expect("an empty disk");
        let mut world = World { clock, random, life, there: Vec::new(), next: 0 };
        while world.life.registry.unready() > 0 {
            world.pass(10).await;
        }
        world.send(Method::POST, "/api/v1/namespaces", &json!({"metadata": {"name": "a"}})).await;
        for _ in 0..60 + world.random.below(140) {
            world.create().await;
        }
        world
    }

    /// Lets the store and the server work meanwhile.
    async fn with<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.clock.sleep(Duration::from_millis(1)) => drop(self.life.step().expect("goes on")),
            }
        }
    }

    async fn pass(&self, ms: u64) {
        self.with(self.clock.sleep(Duration::from_millis(ms))).await;
    }

    async fn send(&self, method: Method, path: &str, body: &Value) {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let response = self.with(self.life.network.send(method, path, body)).await.expect("an answer");
        assert!(response.status().is_success(), "{path}: {}", response.status());
        self.with(response.into_body().collect()).await.expect("whole");
    }

    fn object(&self, number: u64) -> Value {
        let random = &self.random;
        let lines: Vec<String> = (0..random.below(60))
            .map(|line| format!("what every object says in line {line}, and {:x}", random.below(1 << 20)))
            .collect();
        let noise: String = match random.below(12) {
            // What does not shrink stays plain.
            0 => (0..400).map(|_| format!("{:016x}", random.next_u64())).collect(),
            _ => String::new(),
        };
        json!({
            "metadata": {"name": name(number), "labels": {"half": format!("{}", number % 2), "few": format!("{}", number % 17)}},
            "data": {"text": lines.join("\n"), "noise": noise},
        })
    }

    async fn create(&mut self) {
        self.next += 1;
        // Between others, in the order of keys.
        let number = self.next * 7_919 % 100_003;
        self.send(Method::POST, PATH, &self.object(number)).await;
        self.there.push(number);
    }

    async fn write(&mut self) {
        let at = self.random.below(self.there.len() as u64) as usize;
        match self.random.below(6) {
            0 => self.create().await,
            1 if self.there.len() > 20 => {
                let number = self.there.swap_remove(at);
                self.send(Method::DELETE, &format!("{PATH}/{}", name(number)), &Value::Null).await;
            }
            _ => {
                let number = self.there[at];
                self.send(Method::PUT, &format!("{PATH}/{}", name(number)), &self.object(number)).await;
            }
        }
    }

    async fn ask(&self, query: &str, media: &str, encoding: &str) -> Response<Incoming> {
        let (path, headers) = (format!("{PATH}?{query}"), [("accept", media), ("accept-encoding", encoding)]);
        let response = self.with(self.life.network.send_with(Method::GET, &path, &headers, Vec::new())).await;
        let response = response.expect("an answer");
        assert_eq!(response.status(), 200, "{path} {media}");
        response
    }

    /// Both bodies of one request, without and with gzip, read piece by piece while others write.
    async fn both(&mut self, query: &str, media: &str, compared: &mut Compared) -> Vec<u8> {
        let (plain, gzip) = (self.ask(query, media, "identity").await, self.ask(query, media, "gzip").await);
        assert!(!plain.headers().contains_key("content-encoding"));
        let is_gzip = gzip.headers().get("content-encoding").is_some_and(|value| value == "gzip");
        // Ages are those of when a row is made.
        let changes = media != TABLE && media != WATCHED[1] && self.random.below(2) == 0;
        let mut bodies = [(plain.into_body(), Vec::new(), false), (gzip.into_body(), Vec::new(), false)];
        let mut pieces = 0;
        while let Some(one) = {
            let open: Vec<usize> = (0..2).filter(|one| !bodies[*one].2).collect();
            (!open.is_empty()).then(|| open[self.random.below(open.len() as u64) as usize])
        } {
            let (body, read, is_over) = &mut bodies[one];
            match self.with(body.frame()).await {
                Some(frame) => {
                    read.extend_from_slice(&frame.expect("goes on").into_data().unwrap_or_default())
                }
                None => *is_over = true,
            }
            pieces += 1;
            if changes && pieces % 9 == 1 && pieces < 60 {
                self.write().await;
                self.pass(self.random.below(400)).await;
            }
        }
        let [(_, plain, _), (_, gzip, _)] = bodies;
        let inflated = if is_gzip { inflate(&gzip) } else { gzip };
        if query.starts_with(WATCH_LIST) {
            // Each ends when its time is over, and has its bookmarks when it is time for them.
            assert!(is_same_watch(&plain, &inflated, media), "{query} {media}");
        } else {
            assert!(plain == inflated, "{query} {media}: {} and {} bytes", plain.len(), inflated.len());
        }
        compared.plain += usize::from(!is_gzip);
        compared.gzip += usize::from(is_gzip);
        compared.changed_meanwhile += usize::from(is_gzip && changes);
        plain
    }

    async fn compare(&mut self, compared: &mut Compared) {
        let media = MEDIA[self.random.below(MEDIA.len() as u64) as usize];
        let filter = [
            "",
            "",
            "&labelSelector=half%3D1",
            "&labelSelector=few+in+(1,2,3)",
            "&fieldSelector=metadata.name!%3Dm-00007",
        ];
        let mut query = String::from(["pretty=0", "pretty=0", "pretty=1"][self.random.below(3) as usize]);
        query += filter[self.random.below(filter.len() as u64) as usize];
        if media != MEDIA[0] || self.random.below(2) == 0 {
            self.both(&query, media, compared).await;
            return;
        }
        query += &format!("&limit={}", 1 + self.random.below(self.there.len() as u64));
        let first: Value = serde_json::from_slice(&self.both(&query, media, compared).await).expect("JSON");
        if let Some(token) = first["metadata"]["continue"].as_str() {
            self.both(&format!("{query}&continue={token}"), media, compared).await;
        }
    }
}

/// Whether one watch was told what another was, as far as it goes. Bookmarks come when it is time for them.
fn is_same_watch(one: &[u8], other: &[u8], media: &str) -> bool {
    if media != WATCHED[0] {
        return one.starts_with(other) || other.starts_with(one);
    }
    let events = |body: &[u8]| -> Vec<String> {
        let lines = std::str::from_utf8(body).expect("JSON").lines();
        lines.filter(|line| !line.starts_with("{\"type\":\"BOOKMARK\"")).map(String::from).collect()
    };
    let (one, other) = (events(one), events(other));
    one.starts_with(&other) || other.starts_with(&one)
}

fn name(number: u64) -> String {
    format!("m-{number:05}")
}

/// What a reader of one member makes of it: checksum and length are looked at, and nothing may come behind
/// it.
fn inflate(member: &[u8]) -> Vec<u8> {
    let (mut plain, mut reader) = (Vec::new(), GzDecoder::new(member));
    reader.read_to_end(&mut plain).expect("gzip");
    assert!(reader.into_inner().is_empty(), "one member, and nothing behind it");
    plain
}

async fn run(seed: u64, compared: &mut Compared) {
    let mut world = World::new(seed).await;
    for _ in 0..ROUNDS {
        for _ in 0..world.random.below(12) {
            world.write().await;
        }
        // Not yet sealed, half sealed, all at rest.
        world.pass([0, 350, 3_000][world.random.below(3) as usize]).await;
        world.compare(compared).await;
        if world.random.below(3) == 0 {
            let query = format!("{WATCH_LIST}&timeoutSeconds={}", 1 + world.random.below(4));
            let before = compared.gzip;
            let media = WATCHED[world.random.below(2) as usize];
            world.both(&query, media, compared).await;
            compared.watches += compared.gzip - before;
        }
    }
    world.life.end();
}

#[test]
fn an_answer_in_gzip_inflates_to_what_it_is_without() {
    let mut compared = Compared::default();
    for seed in 0..SEEDS {
        let _alone = BlockingAsTasks::on_this_thread();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(run(seed, &mut compared));
    }
    let Compared { gzip, changed_meanwhile, watches, .. } = compared;
    assert!(gzip > 8 && changed_meanwhile > 1 && watches > 1, "{compared:?}");
}
