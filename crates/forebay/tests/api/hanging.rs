//! What hundreds of requests behind a webhook that hangs do to those of others.
//!
//! In: writes that wait for the webhook, and reads of what it converts, or that are refused as too many do,
//! by what is counted of them. Out: those of others, answered meanwhile. Never: waits for a time.

use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

use super::CONFIG_MAPS;
use super::webhooks::{CONFIGURATIONS, validating};
use crate::common::{Ask, Client, Hook, Reply, Scratch, Server, tabs, text};

/// Anything that takes longer than this does not come.
const WAIT: Duration = Duration::from_secs(120);
/// Writes of one connection: it has more streams.
const OF_ONE_CONNECTION: usize = 100;
/// So many come at once: of more a level, or the room for large bodies, would have some come again.
const WAVE: usize = 25;
const WAVE_OF_LARGE: usize = 5;
/// More never wait.
const STUCK_MAX: usize = 1_000;
const LARGE_BYTES: usize = 900 << 10;

/// Waits until so many wait for somebody else, or were refused as too many do.
pub async fn have_come(client: &Client, count: usize) {
    let all_there = async {
        while away(client, "waited").await + away(client, "refused").await < count {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, all_there).await.expect("in time");
}

/// What is counted of those.
pub async fn away(client: &Client, what: &str) -> usize {
    metric(client, &format!("forebay_room_{what}_total{{class=\"away\"}} ")).await
}

async fn metric(client: &Client, name: &str) -> usize {
    let metrics = client.get("/metrics").await;
    let value = metrics.text().lines().find_map(|line| line.strip_prefix(name)).expect("the metric");
    value.parse().expect("a count")
}

/// A server on which eight requests may be worked on at once, and writes behind a webhook that hangs.
struct Behind {
    server: Server,
    client: Client,
    hook: Hook,
    stuck: JoinSet<()>,
    told: mpsc::Sender<Reply>,
    /// To those that were refused, or whose time was up.
    answers: mpsc::Receiver<Reply>,
}

impl Behind {
    async fn start(scratch: &Scratch) -> Behind {
        // Whoever is known may do everything.
        let flags = [
            "--max-requests-inflight=4",
            "--max-mutating-requests-inflight=4",
            "--authorization-mode=AlwaysAllow",
        ];
        let server = Server::start(scratch, &flags).await;
        let (client, hook) = (server.admin().await, Hook::start().await);
        hook.answers("hang", json!({ "hang": true }));
        client.post(CONFIGURATIONS, &validating(&hook, "hang")).await.expect(201);
        let (told, answers) = mpsc::channel(STUCK_MAX);
        Behind { server, client, hook, stuck: JoinSet::new(), told, answers }
    }

    /// So many writes of some users come.
    async fn come(&mut self, count: usize, bytes: usize) {
        let mut client = self.client.clone();
        let wave = if bytes < LARGE_BYTES { WAVE } else { WAVE_OF_LARGE };
        for n in 0..count {
            if n % OF_ONE_CONNECTION == 0 {
                client = self.server.admin().await;
            }
            let (client, user) = (client.clone(), format!("alice-{}", n % 4));
            let metadata = json!({ "name": format!("stuck-{n}"), "labels": { "asked": "yes" } });
            let map = json!({ "metadata": metadata, "data": { "k": "x".repeat(bytes) } });
            let ask = Ask::post(CONFIG_MAPS, &map).header("impersonate-user", user);
            let told = self.told.clone();
            self.stuck.spawn(async move { drop(told.send(client.ask(ask).await).await) });
            if (n + 1) % wave == 0 || n + 1 == count {
                have_come(&self.client, n + 1).await;
            }
        }
    }

    /// Some users read what only the webhook can make.
    async fn read_converted(&mut self, which: std::ops::Range<usize>) {
        for n in which {
            let ask = Ask::get(format!("{TABS_V2}/a")).header("impersonate-user", format!("alice-{}", n % 4));
            let (client, told) = (self.client.clone(), self.told.clone());
            self.stuck.spawn(async move { drop(told.send(client.ask(ask).await).await) });
            if (n + 1) % WAVE_OF_LARGE == 0 {
                have_come(&self.client, n + 1).await;
            }
        }
    }

    /// So many are told that there was no room for them, in whose name, and when to come back.
    async fn are_told(&mut self, count: usize, whom: &str) {
        let mut left = count;
        while left > 0 {
            let answer = timeout(WAIT, self.answers.recv()).await.expect("in time").expect("an answer");
            if answer.code == 500 {
                // The machine is very slow, and its time was up.
                continue;
            }
            let (status, why) = (answer.expect(429), "too many requests wait for it to answer");
            assert_eq!(text(&status, "/message"), format!("{whom}: {why}"));
            assert_eq!(text(&status, "/reason"), "TooManyRequests");
            let seconds: u64 = answer.header("retry-after").parse().expect("when to come back");
            assert!((1..=8).contains(&seconds), "{seconds}");
            left -= 1;
        }
    }

    /// Writes that nobody is asked about, of somebody else and of one who waits.
    async fn others_write(&self, count: usize, bytes: usize) {
        for (n, user) in ["bob", "alice-0"].into_iter().cycle().take(count).enumerate() {
            let metadata = json!({ "name": format!("free-{bytes}-{n}") });
            let map = json!({ "metadata": metadata, "data": { "k": "x".repeat(bytes) } });
            let ask = Ask::post(CONFIG_MAPS, &map).header("impersonate-user", user);
            self.client.ask(ask).await.expect(201);
        }
    }
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABS_V1: &str = "/apis/example.com/v1/namespaces/default/tabs";
const TABS_V2: &str = "/apis/example.com/v2/namespaces/default/tabs";
const TAB_BYTES: usize = 300 << 10;

/// What those that wait for somebody else hold.
async fn held_away(client: &Client) -> usize {
    metric(client, "forebay_room_held_bytes{class=\"away\"} ").await
}

#[tokio::test]
async fn reads_behind_a_hanging_conversion_hold_what_was_charged_and_one_more_is_refused_in_its_name() {
    let scratch = Scratch::new();
    let mut behind = Behind::start(&scratch).await;
    behind.hook.answers("convert", json!({ "hang": true }));
    let definition = tabs::definition(&format!("{}/c/convert", behind.hook.url()), &behind.hook.authority);
    behind.client.post(CRDS, &definition).await.expect(201);
    let host_port = format!("{}:1", "h".repeat(TAB_BYTES));
    let tab = json!({
        "apiVersion": "example.com/v1", "kind": "Tab", "metadata": { "name": "a" },
        "spec": { "hostPort": host_port },
    });
    behind.client.post(TABS_V1, &tab).await.expect(201);

    behind.read_converted(0..5).await;
    let held = held_away(&behind.client).await / 5;
    assert!((4 * TAB_BYTES..8 * TAB_BYTES).contains(&held), "a tree, another, and two texts: {held}");
    assert_eq!(away(&behind.client, "refused").await, 0, "there is room for those");
    behind.read_converted(5..50).await;
    let refused = away(&behind.client, "refused").await;
    assert!((10..50).contains(&refused), "{refused}");
    // Other reads go on, of the same object, too.
    for (path, user) in
        [(format!("{TABS_V1}/a"), "bob"), (TABS_V1.into(), "alice"), (CONFIG_MAPS.into(), "bob")]
    {
        let ask = Ask::get(path).header("impersonate-user", user);
        behind.client.ask(ask).await.expect(200);
    }
    behind.others_write(4, 1).await;
    behind.are_told(refused, "conversion webhook for tabs.example.com failed").await;
    // Whoever goes takes along what it held.
    behind.stuck.abort_all();
    let all_gone = async {
        while held_away(&behind.client).await > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, all_gone).await.expect("in time");
}

async fn small_writes_wait_and_others_go_on(count: usize) {
    let scratch = Scratch::new();
    let mut behind = Behind::start(&scratch).await;
    behind.come(count, 1).await;
    assert_eq!(away(&behind.client, "refused").await, 0, "there is room for all of them");
    let held = held_away(&behind.client).await;
    assert!(held / count < 24 << 10, "each holds what it needs: {held}");
    behind.others_write(40, 1).await;
    behind.others_write(4, LARGE_BYTES).await;
    while let Ok(answer) = behind.answers.try_recv() {
        // The machine is very slow, and its time was up.
        answer.expect(500);
    }
}

#[tokio::test]
async fn hundreds_of_writes_behind_a_hanging_webhook_take_no_turn_from_others() {
    small_writes_wait_and_others_go_on(300).await;
}

#[tokio::test]
async fn a_thousand_clients_behind_a_hanging_webhook_leave_other_writes_as_they_are() {
    small_writes_wait_and_others_go_on(STUCK_MAX).await;
}

#[tokio::test]
async fn large_writes_behind_a_hanging_webhook_are_refused_in_its_name_and_those_of_others_go_on() {
    let scratch = Scratch::new();
    let mut behind = Behind::start(&scratch).await;
    behind.come(50, LARGE_BYTES).await;
    let refused = away(&behind.client, "refused").await;
    assert!((20..50).contains(&refused), "{refused}");
    behind.others_write(4, LARGE_BYTES).await;
    behind.others_write(20, 1).await;
    behind.are_told(refused, "failed calling webhook \"w.example.com\"").await;
    // Who waits for another webhook finds room.
    behind.hook.answers("fine", json!({ "allowed": true }));
    let mut other = validating(&behind.hook, "fine");
    other["metadata"]["name"] = "other".into();
    other["webhooks"][0]["objectSelector"]["matchLabels"]["asked"] = "other".into();
    behind.client.post(CONFIGURATIONS, &other).await.expect(201);
    for (n, bytes) in [1, LARGE_BYTES].into_iter().enumerate() {
        let metadata = json!({ "name": format!("other-{n}"), "labels": { "asked": "other" } });
        let map = json!({ "metadata": metadata, "data": { "k": "x".repeat(bytes) } });
        behind.client.post(CONFIG_MAPS, &map).await.expect(201);
    }
}
