//! Requests that are noted: in a file, at a webhook, and what becomes of them where neither takes anything.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use common::{Ask, Identity, Protocol, Scratch, Server, WAIT, text};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Flags of a policy, and of a log.
fn flags(scratch: &Scratch, rules: &str) -> (Vec<String>, PathBuf) {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}\n");
    let (policy, log) = (scratch.file("policy.yaml", &text), scratch.path().join("logs/audit.log"));
    let flags = vec![format!("--audit-policy-file={}", policy.display())];
    (flags, log)
}

async fn start(scratch: &Scratch, flags: &[String]) -> Server {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    Server::start(scratch, &flags).await
}

fn events(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).expect("a log");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The events of the request that was given this id.
fn of<'e>(events: &'e [Value], id: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["auditID"] == id).collect()
}

fn stages<'e>(events: &[&'e Value]) -> Vec<&'e str> {
    events.iter().map(|event| text(event, "/stage")).collect()
}

async fn metric(client: &common::Client, name: &str) -> u64 {
    let reply = client.get("/metrics").await;
    let line = reply.text().lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    line.unwrap_or_else(|| panic!("no {name}"))
}

#[tokio::test]
async fn what_was_sent_and_answered_is_in_the_file_once_its_client_has_the_answer() {
    let scratch = Scratch::new();
    let (mut flags, log) = flags(&scratch, "rules: [{level: RequestResponse}]");
    flags.push(format!("--audit-log-path={}", log.display()));
    let server = start(&scratch, &flags).await;
    let admin = server.admin().await;
    let map = json!({ "metadata": { "name": "one" }, "data": { "k": "<v>" } });
    let made = admin.ask(Ask::post(MAPS, &map).header("audit-id", "made").header("user-agent", "me/1")).await;
    made.expect(201);
    let events_of = |id: &str| of(&events(&log), id).into_iter().cloned().collect::<Vec<Value>>();
    let all = events_of("made");
    let [received, complete] = &all[..] else { panic!("{all:?}") };
    assert_eq!(received["stage"], "RequestReceived");
    assert_eq!(complete["stage"], "ResponseComplete");
    assert_eq!(text(complete, "/user/groups/0"), "system:masters");
    assert_eq!((text(complete, "/userAgent"), text(complete, "/sourceIPs/0")), ("me/1", "127.0.0.1"));
    assert_eq!(complete["requestObject"]["data"], json!({ "k": "<v>" }));
    assert_eq!(complete["responseObject"]["metadata"]["name"], "one");
    assert_eq!(
        complete["objectRef"],
        json!({ "resource": "configmaps", "namespace": "default", "name": "one", "apiVersion": "v1" })
    );
    assert_eq!(complete["responseStatus"], json!({ "metadata": {}, "code": 201 }));
    assert_eq!(text(complete, "/annotations/authorization.k8s.io~1decision"), "allow");
    // What failed says why, and a list is noted whole.
    admin.ask(Ask::get(format!("{MAPS}/none")).header("audit-id", "none")).await.expect(404);
    let none = events_of("none");
    assert_eq!(text(&none[1], "/responseStatus/message"), "configmaps \"none\" not found");
    assert_eq!(text(&none[1], "/responseObject/kind"), "Status");
    admin.ask(Ask::get(MAPS).header("audit-id", "all")).await.expect(200);
    assert_eq!(text(&events_of("all")[1], "/responseObject/items/0/metadata/name"), "one");
    // As many of a list are noted as are answered, however many of how old a state were asked for.
    let two = json!({ "metadata": { "name": "two" } });
    admin.post(MAPS, &two).await.expect(201);
    for (query, is_cut) in
        [("limit=1&resourceVersion=0", false), ("limit=1", true), ("resourceVersion=0", false)]
    {
        let answer = admin.ask(Ask::get(format!("{MAPS}?{query}")).header("audit-id", query)).await;
        answer.expect(200);
        let of = |list: &Value| list["items"].as_array().map_or(0, Vec::len);
        let answered: Value = serde_json::from_str(answer.text()).expect("JSON");
        let noted = &events_of(query)[1]["responseObject"];
        assert_eq!((of(&answered), of(&answered) == 1), (of(noted), is_cut), "{query}");
    }
    // What the server tells of itself in an older version is noted, and that this is on its way out.
    let statusz = "application/json;g=config.k8s.io;v=v1alpha1;as=Statusz";
    admin.ask(Ask::get("/statusz").header("accept", statusz).header("audit-id", "page")).await.expect(200);
    let page = events_of("page");
    assert_eq!(text(&page[1], "/responseObject/kind"), "Statusz");
    assert_eq!(text(&page[1], "/annotations/k8s.io~1deprecated"), "true");
    // Whoever is not known is noted once.
    let nobody = server.client(Protocol::Http1, Identity::Nobody).await;
    nobody.ask(Ask::get(MAPS).bearer("wrong").header("audit-id", "wrong")).await.expect(401);
    let wrong = events_of("wrong");
    assert_eq!(stages(&wrong.iter().collect::<Vec<_>>()), ["ResponseStarted"]);
    assert_eq!((&wrong[0]["user"], text(&wrong[0], "/responseStatus/message")), (&json!({}), "Unauthorized"));
    assert!(metric(&admin, "apiserver_audit_event_total").await >= 7);
    assert_eq!(metric(&admin, "apiserver_audit_error_total{plugin=\"log\"}").await, 0);
}

#[tokio::test]
async fn an_id_is_noted_as_it_was_given_however_long_it_is() {
    let scratch = Scratch::new();
    let (mut flags, log) = flags(&scratch, "rules: [{level: Metadata}]");
    flags.push(format!("--audit-log-path={}", log.display()));
    let server = start(&scratch, &flags).await;
    let admin = server.admin().await;
    let long = "x".repeat(100);
    admin.ask(Ask::get("/version").header("audit-id", &long)).await.expect(200);
    assert_eq!(stages(&of(&events(&log), &long)), ["RequestReceived", "ResponseComplete"]);
}

#[tokio::test]
async fn a_watch_is_noted_when_it_begins_and_when_it_ends() {
    let scratch = Scratch::new();
    let (mut flags, log) = flags(&scratch, "rules: [{level: Metadata}]");
    flags.push(format!("--audit-log-path={}", log.display()));
    let server = start(&scratch, &flags).await;
    for protocol in Protocol::BOTH {
        let client = server.admin_over(protocol).await;
        let id = format!("watch-{protocol:?}");
        let ask = Ask::get(format!("{MAPS}?watch=1&timeoutSeconds=1")).header("audit-id", &id);
        client.ask(ask).await;
        // The last is written when the answer is over, and nobody waits for it.
        client.get("/version").await.expect(200);
        let all = events(&log);
        let seen = of(&all, &id);
        assert_eq!(stages(&seen), ["RequestReceived", "ResponseStarted", "ResponseComplete"], "{protocol:?}");
        assert_eq!(seen[1]["responseStatus"], json!({ "metadata": {}, "code": 200 }));
        // Once it is over, it is told where its time went, as of all that takes more than half a second.
        let latencies = |event: &Value| -> Vec<String> {
            let all = event["annotations"].as_object().into_iter().flatten();
            let all = all.filter_map(|(key, _)| key.strip_prefix("apiserver.latency.k8s.io/"));
            all.map(str::to_owned).collect()
        };
        let told = ["apf-queue-wait", "authentication", "authorization", "total"];
        assert_eq!(latencies(seen[2]), told.map(str::to_owned), "{}", seen[2]);
        assert_eq!(latencies(seen[1]), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_disk_that_is_full_lets_requests_through_or_not_as_its_mode_says() {
    let rules = "rules: [{level: None, nonResourceURLs: ['*']}, {level: Metadata}]";
    for (mode, code) in [("blocking", 200), ("blocking-strict", 500), ("batch", 200)] {
        let scratch = Scratch::new();
        let (mut flags, _) = flags(&scratch, rules);
        // It takes nothing, ever.
        flags.push("--audit-log-path=/dev/full".to_owned());
        flags.push("--audit-log-maxsize=0".to_owned());
        flags.push(format!("--audit-log-mode={mode}"));
        let server = start(&scratch, &flags).await;
        let admin = server.admin().await;
        let reply = admin.get(MAPS).await;
        assert_eq!(reply.code, code, "{mode}");
        if code == 500 {
            assert!(reply.text().contains("failed to store audit event"), "{}", reply.text());
        }
        let rejected = metric(&admin, "apiserver_audit_requests_rejected_total").await;
        assert_eq!(rejected, u64::from(code == 500), "{mode}");
        let lost = async {
            while metric(&admin, "apiserver_audit_error_total{plugin=\"log\"}").await == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(WAIT, lost).await.unwrap_or_else(|_| panic!("{mode}: nothing is counted"));
    }
}

/// A server that keeps what is posted to it, or refuses it.
struct Webhook {
    port: u16,
    bodies: Arc<Mutex<Vec<Value>>>,
    seen: watch::Receiver<usize>,
}

impl Webhook {
    async fn start(code: u16) -> Webhook {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let bodies = Arc::<Mutex<Vec<Value>>>::default();
        let (tell, seen) = watch::channel(0);
        let (kept, tell) = (bodies.clone(), Arc::new(tell));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (kept, tell) = (kept.clone(), tell.clone());
                tokio::spawn(async move {
                    let mut text = Vec::new();
                    while let Ok(read) = stream.read_buf(&mut text).await {
                        if read == 0 {
                            return;
                        }
                        let Some(body) = body(&text) else { continue };
                        kept.lock().unwrap_or_else(PoisonError::into_inner).push(body);
                        text.clear();
                        let answer = format!("HTTP/1.1 {code} So\r\ncontent-length: 0\r\n\r\n");
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                        tell.send_modify(|seen| *seen += 1);
                    }
                });
            }
        });
        Webhook { port, bodies, seen }
    }

    fn kubeconfig(&self, scratch: &Scratch) -> String {
        let text = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}], \
             clusters: [{{name: k, cluster: {{server: 'http://127.0.0.1:{}/events'}}}}], \
             users: [{{name: u, user: {{token: secret}}}}]}}",
            self.port
        );
        let path = scratch.file(&format!("webhook-{}", self.port), &text);
        format!("--audit-webhook-config-file={}", path.display())
    }

    fn all(&self) -> Vec<Value> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The body of a request, once it is there whole.
fn body(text: &[u8]) -> Option<Value> {
    let head = String::from_utf8_lossy(text);
    let (head, _) = head.split_once("\r\n\r\n")?;
    let lower = head.to_lowercase();
    assert!(
        lower.starts_with("post /events http/1.1") && lower.contains("authorization: bearer secret"),
        "{head}"
    );
    let len = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
    let body = text.get(head.len() + 4..)?.get(..len)?;
    Some(serde_json::from_slice(body).expect("JSON"))
}

#[tokio::test]
async fn a_webhook_is_sent_lists_of_events_and_the_rest_at_the_end() {
    let scratch = Scratch::new();
    let (mut flags, _) = flags(&scratch, "rules: [{level: Metadata, verbs: [create]}]");
    let webhook = Webhook::start(200).await;
    flags.push(webhook.kubeconfig(&scratch));
    flags.push("--audit-webhook-batch-max-size=2".to_owned());
    let server = start(&scratch, &flags).await;
    let admin = server.admin().await;
    for name in ["one", "two"] {
        let map = json!({ "metadata": { "name": name } });
        admin.ask(Ask::post(MAPS, &map).header("audit-id", name)).await.expect(201);
    }
    let map = json!({ "metadata": { "name": "one" } });
    admin.ask(Ask::post(MAPS, &map).header("audit-id", "three")).await.expect(409);
    drop(admin);
    server.terminate();
    server.ended().await;
    let all = webhook.all();
    let mut seen = Vec::new();
    for list in &all {
        assert_eq!((text(list, "/kind"), text(list, "/apiVersion")), ("EventList", "audit.k8s.io/v1"));
        let items = list["items"].as_array().expect("events");
        assert!(items.len() <= 2 && items.iter().all(|event| event["kind"].is_null()), "{list}");
        seen.extend(
            items.iter().map(|event| format!("{} {}", text(event, "/auditID"), text(event, "/stage"))),
        );
    }
    for id in ["one", "two", "three"] {
        for stage in ["RequestReceived", "ResponseComplete"] {
            assert_eq!(seen.iter().filter(|one| **one == format!("{id} {stage}")).count(), 1, "{seen:?}");
        }
    }
}

#[tokio::test]
async fn a_webhook_that_takes_nothing_is_asked_five_times_and_its_mode_says_what_becomes_of_requests() {
    let rules = "rules: [{level: None, nonResourceURLs: ['*']}, {level: Metadata}]";
    for (mode, code) in [("batch", 200), ("blocking", 200), ("blocking-strict", 500)] {
        let scratch = Scratch::new();
        let (mut flags, _) = flags(&scratch, rules);
        let mut webhook = Webhook::start(503).await;
        flags.push(webhook.kubeconfig(&scratch));
        flags.push("--audit-webhook-initial-backoff=1ms".to_owned());
        flags.push("--audit-webhook-batch-max-wait=10ms".to_owned());
        flags.push(format!("--audit-webhook-mode={mode}"));
        let server = start(&scratch, &flags).await;
        let admin = server.admin().await;
        assert_eq!(admin.get(MAPS).await.code, code, "{mode}");
        timeout(WAIT, webhook.seen.wait_for(|seen| *seen >= 5)).await.expect("it is asked").expect("it runs");
        let lost = async {
            while metric(&admin, "apiserver_audit_error_total{plugin=\"webhook\"}").await == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(WAIT, lost).await.unwrap_or_else(|_| panic!("{mode}: nothing is counted"));
        assert_eq!(metric(&admin, "apiserver_audit_requests_rejected_total").await, u64::from(code == 500));
    }
}

#[tokio::test]
async fn a_file_that_is_full_is_kept_compressed_and_another_is_begun() {
    let scratch = Scratch::new();
    let (mut flags, log) = flags(&scratch, "rules: [{level: RequestResponse}]");
    flags.push(format!("--audit-log-path={}", log.display()));
    flags.push("--audit-log-maxsize=1".to_owned());
    flags.push("--audit-log-maxbackup=1".to_owned());
    flags.push("--audit-log-compress".to_owned());
    let server = start(&scratch, &flags).await;
    let admin = server.admin().await;
    for at in 0..6 {
        let map = json!({ "metadata": { "name": format!("m{at}") }, "data": { "k": "x".repeat(200 << 10) } });
        admin.post(MAPS, &map).await.expect(201);
    }
    let dir = log.parent().expect("a directory");
    let packed = async {
        loop {
            let names: Vec<String> = fs::read_dir(dir)
                .expect("listed")
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .collect();
            if names.len() == 2 && names.iter().any(|name| name.ends_with(".log.gz")) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(WAIT, packed).await.expect("one old file, compressed");
    assert!(fs::metadata(&log).expect("a log").len() <= 1 << 20);
}

#[tokio::test]
async fn a_policy_or_a_flag_that_makes_no_sense_is_told_and_nothing_starts() {
    let scratch = Scratch::new();
    let (mut flags, _) = flags(&scratch, "rules: [{level: Much}]");
    flags.push("--audit-log-path=-".to_owned());
    let given: Vec<&str> = flags.iter().map(String::as_str).collect();
    let refused = Server::try_start(&scratch, &given).await.err().expect("refused");
    assert!(refused.stderr.contains("rules[0].level: Unsupported value: \"Much\""), "{}", refused.stderr);
    let (log, webhook) = ("--audit-log-path=-", "--audit-webhook-config-file=none");
    for (used, flag, want) in [
        (log, "--audit-log-mode=maybe", "invalid audit log mode maybe, allowed modes are"),
        (log, "--audit-log-format=xml", "invalid audit log format xml, allowed formats are"),
        (log, "--audit-log-maxage=-1", "--audit-log-maxage -1 can't be a negative number"),
        (webhook, "--audit-webhook-version=audit.k8s.io/v1beta1", "invalid group version"),
    ] {
        let refused = Server::try_start(&scratch, &[used, flag]).await.err().expect("refused");
        assert!(refused.stderr.contains(want), "{}", refused.stderr);
    }
}
