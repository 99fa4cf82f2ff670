//! Flow control through the whole server, in memory.
//!
//! In: requests of several users. Out: what each is answered while others ask for more than there is.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_controllers::follow_flow_control;
use forebay_embedded::{Engine, Options};
use forebay_registry::Registry;
use forebay_rt::{Clock, Random, Tasks};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::flows;
use super::server::{self, Setup};
use crate::config::{ApiServerConfig, TokenUser};
use crate::in_process::InProcess;
use crate::server::Backing;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
pub(super) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// What the pipe to a client holds: a watch's state is longer.
const PIPE_BYTES: usize = 1 << 10;

/// The edge's configuration with that many seats.
pub fn config(seats: usize) -> ApiServerConfig {
    let key = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    let user = |name: &str| TokenUser {
        token: name.into(),
        user: name.into(),
        uid: String::new(),
        groups: vec!["people".into()],
    };
    let mut config = server::config("", &key, &Setup::default());
    config.max_requests_inflight = Some(seats);
    config.max_mutating_requests_inflight = Some(0);
    config.tokens.extend(["greedy", "other"].map(user));
    config
}

pub(super) struct Server {
    edge: InProcess,
    tasks: Tasks,
}

pub(super) struct Answer {
    pub code: u16,
    headers: BTreeMap<String, String>,
    pub body: String,
}

impl Server {
    pub(super) async fn start(seats: usize) -> Server {
        let (clock, tasks) = (Clock::system(), Tasks::new());
        let engine =
            Engine::open_in_memory(Options { clock: clock.clone(), ..Options::default() }).expect("opens");
        let registry =
            Registry::new(Default::default(), engine, clock.clone(), Random::seeded(7), tasks.clone());
        registry.start().await.expect("starts");
        let flow_control = follow_flow_control(&registry, &tasks);
        let backing = Backing::new(Arc::new(registry), clock, Random::seeded(8));
        let edge = InProcess::new(&config(seats), Backing { flow_control, ..backing }, &tasks);
        let server = Server { edge, tasks };
        // Until the stored objects are known, the built-in ones count, which have no uid here.
        server.until("other", MAPS, |answer| answer.schema() != "").await;
        server
    }

    /// A connection.
    pub(super) fn connect(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let edge = self.edge.clone();
        self.tasks.spawn("a connection", async move { edge.speak(theirs).await });
        ours
    }

    /// A request whose answer nobody reads yet.
    pub(super) async fn open(&self, user: &str, method: &str, path: &str, body: &str) -> DuplexStream {
        let mut ours = self.connect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {user}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len(),
        );
        ours.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await.expect("open");
        ours
    }

    pub(super) async fn ask(&self, user: &str, method: &str, path: &str, body: &str) -> Answer {
        let mut stream = self.open(user, method, path, body).await;
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await.expect("whole");
        let text = String::from_utf8(text).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let mut lines = head.lines();
        let code =
            lines.next().and_then(|line| line.split(' ').nth(1)).expect("a code").parse().expect("a number");
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_string())).collect();
        Answer { code, headers, body: body.to_string() }
    }

    pub(super) async fn get(&self, user: &str, path: &str) -> Answer {
        self.ask(user, "GET", path, "").await
    }

    pub(super) async fn post(&self, path: &str, object: Value) {
        let answer = self.ask("master", "POST", path, &object.to_string()).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
    }

    /// Asks until it is as it is to be.
    pub(super) async fn until(&self, user: &str, path: &str, is_so: impl Fn(&Answer) -> bool) {
        while !is_so(&self.get(user, path).await) {
            tokio::task::yield_now().await;
        }
    }

    async fn uid(&self, path: &str) -> String {
        self.get("master", path).await.json()["metadata"]["uid"].as_str().expect("a uid").to_string()
    }

    /// `user` has a level of its own.
    async fn set_apart(&self, user: &str, response: Value) {
        let level = json!({ "metadata": { "name": user }, "spec": { "type": "Limited", "limited": {
            "nominalConcurrencyShares": 1, "limitResponse": response, "borrowingLimitPercent": 0 } } });
        self.post(LEVELS, level).await;
        let rule = json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true });
        let schema = json!({ "metadata": { "name": user }, "spec": {
            "priorityLevelConfiguration": { "name": user }, "matchingPrecedence": 10,
            "distinguisherMethod": { "type": "ByUser" },
            "rules": [{ "subjects": [{ "kind": "User", "user": { "name": user } }], "resourceRules": [rule] }] } });
        self.post(SCHEMAS, schema).await;
        let uid = self.uid(&format!("{SCHEMAS}/{user}")).await;
        self.until(user, MAPS, |answer| answer.schema() == uid).await;
    }

    /// The cells of a level in `dump_priority_levels`.
    async fn level(&self, name: &str) -> Vec<String> {
        let dump = self.get("master", "/debug/api_priority_and_fairness/dump_priority_levels").await;
        let line = dump.body.lines().find(|line| line.starts_with(name)).expect("a line").to_string();
        line.split(',').map(|cell| cell.trim().to_string()).collect()
    }
}

impl Answer {
    fn schema(&self) -> &str {
        self.headers.get("x-kubernetes-pf-flowschema-uid").map_or("", String::as_str)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

#[tokio::test]
async fn every_answer_says_by_which_objects_it_was_classified() {
    let server = Server::start(100).await;
    let uids = |name: &'static str, level: &'static str| {
        let server = &server;
        async move {
            (server.uid(&format!("{SCHEMAS}/{name}")).await, server.uid(&format!("{LEVELS}/{level}")).await)
        }
    };
    let (default, exempt) = (uids("global-default", "global-default").await, uids("exempt", "exempt").await);
    let nowhere = "/api/v1/namespaces/default/configmaps/none";
    for (user, path, code, want) in [
        ("other", MAPS, 200, &default),
        ("other", nowhere, 404, &default),
        ("master", "/version", 200, &exempt),
    ] {
        let answer = server.get(user, path).await;
        assert_eq!(answer.code, code, "{user} {path}");
        let level = &answer.headers["x-kubernetes-pf-prioritylevel-uid"];
        assert_eq!((answer.schema(), level.as_str()), (want.0.as_str(), want.1.as_str()), "{user} {path}");
    }
    let stranger = server.get("nobody", MAPS).await;
    assert_eq!((stranger.code, stranger.schema()), (401, ""));
}

#[tokio::test]
async fn the_objects_of_the_store_decide_from_when_they_are_written() {
    let server = Server::start(100).await;
    server.set_apart("greedy", json!({ "type": "Reject" })).await;
    let schema = format!("{SCHEMAS}/greedy");
    let is = |status: &'static str| {
        move |answer: &Answer| answer.json()["status"]["conditions"][0]["status"] == status
    };
    server.until("master", &schema, is("False")).await;
    let deleted = server.ask("master", "DELETE", &format!("{LEVELS}/greedy"), "").await;
    assert_eq!(deleted.code, 200, "{}", deleted.body);
    server.until("master", &schema, is("True")).await;
    let condition = server.get("master", &schema).await.json()["status"]["conditions"][0].clone();
    assert_eq!((&condition["type"], &condition["reason"]), (&json!("Dangling"), &json!("NotFound")));
    // It leads nowhere: the next one that matches counts.
    let default = server.uid(&format!("{SCHEMAS}/global-default")).await;
    assert_eq!(server.get("greedy", MAPS).await.schema(), default);
}

#[tokio::test]
async fn one_users_flood_leaves_anothers_requests_alone_and_is_told_why() {
    let server = Server::start(100).await;
    let large = "x".repeat(200 << 10);
    for name in 0..4 {
        server
            .post(MAPS, json!({ "metadata": { "name": format!("m{name}") }, "data": { "a": large } }))
            .await;
    }
    server
        .set_apart(
            "greedy",
            json!({ "type": "Queue", "queuing": { "queues": 1, "handSize": 1, "queueLengthLimit": 5 } }),
        )
        .await;
    // They read nothing of what they asked for.
    let mut still = Vec::new();
    for _ in 0..200 {
        still.push(server.open("greedy", "GET", MAPS, "").await);
    }
    let refused = server.get("greedy", &format!("{MAPS}/m0")).await;
    assert_eq!(refused.code, 429, "{}", &refused.body[..refused.body.len().min(300)]);
    let status = refused.json();
    let message = status["message"].as_str().expect("a message");
    assert!(message.contains("PriorityLevelConfiguration \"greedy\""), "{message}");
    let retry: u32 = refused.headers["retry-after"].parse().expect("whole seconds");
    assert!((1..=30).contains(&retry) && status["details"]["retryAfterSeconds"] == retry);
    assert!(refused.headers["x-forebay-flow-control"].starts_with("reason="), "{:?}", refused.headers);
    for _ in 0..50 {
        assert_eq!(server.get("other", &format!("{MAPS}/m0")).await.code, 200);
        assert_eq!(server.get("other", MAPS).await.code, 200);
    }
    let greedy = server.level("greedy,").await;
    assert!(greedy[4].parse::<u32>().expect("waiting") > 0, "{greedy:?}");
    let requests =
        server.get("master", "/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1").await;
    assert!(requests.body.lines().any(|line| line.contains("greedy") && line.contains("configmaps")));
    let queues = server.get("master", "/debug/api_priority_and_fairness/dump_queues").await;
    assert!(queues.body.lines().any(|line| line.starts_with("greedy,")), "{}", queues.body);
    let greedy = |answer: &Answer| flows::client(&answer.json(), "greedy", "configmaps");
    let flows = greedy(&server.get("master", "/debug/forebay/flows").await);
    assert!(flows["now"]["heldBytes"].as_u64().expect("bytes") > 256 << 10, "{flows}");
    assert!(flows["minute"]["refused"].as_u64().expect("429s") > 0, "{flows}");
    assert_eq!(flows["flow"], json!({ "schema": "greedy", "level": "greedy", "distinguisher": "greedy" }));
    let metrics = server.get("master", "/metrics").await.body;
    let series = "apiserver_flowcontrol_rejected_requests_total{priority_level=\"greedy\",flow_schema=\"greedy\",reason=";
    assert!(metrics.contains(series), "no {series}");
    // When they are gone, so is what they held.
    drop(still);
    server.until("greedy", MAPS, |answer| answer.code == 200).await;
    server.until("master", "/debug/forebay/flows", |answer| greedy(answer)["now"] == json!({})).await;
}

#[tokio::test]
async fn a_watch_counts_by_its_bytes_once_its_state_is_sent() {
    let server = Server::start(100).await;
    let revision = server.get("other", MAPS).await.json()["metadata"]["resourceVersion"].clone();
    let resumed = format!("{MAPS}?watch=1&resourceVersion={}", revision.as_str().expect("a revision"));
    let with_state = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    );
    let mut open = Vec::new();
    for (path, until) in [(&resumed, "\r\n\r\n"), (&with_state, "initial-events-end")] {
        let mut stream = server.open("other", "GET", path, "").await;
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains(until) {
            assert!(
                stream.read_buf(&mut said).await.expect("open") > 0,
                "{path}: {}",
                String::from_utf8_lossy(&said)
            );
        }
        open.push(stream);
    }
    let is_counted = |answer: &Answer| answer.body.contains("\nforebay_flowcontrol_watches 2\n");
    server.until("master", "/metrics", is_counted).await;
    assert_eq!(server.level("global-default,").await[5], "0", "none of them runs");
    drop(open);
    server
        .until("master", "/metrics", |answer| answer.body.contains("\nforebay_flowcontrol_watches 0\n"))
        .await;
}
