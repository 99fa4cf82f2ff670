//! Versions that another server serves, as clients of this one meet them.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::hanging::{away, have_come};
use crate::common::aggregated::{API_SERVICE, Aggregated, FLUNDERS, GROUP, KEPT, VERSION};
use crate::common::{Ask, Client, Protocol, Scratch, Server, WAIT, text};

const PUBLISHED: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const AGGREGATED_DISCOVERY: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// A server, and another behind it that is there.
struct World {
    server: Server,
    admin: Client,
    aggregated: Aggregated,
    _scratch: Scratch,
}

impl World {
    async fn new() -> World {
        World::with(&["--authorization-mode=AlwaysAllow"]).await
    }

    async fn with(flags: &[&str]) -> World {
        let scratch = Scratch::new();
        let server = Server::start(&scratch, flags).await;
        let admin = server.admin().await;
        let proxies = admin.get(PUBLISHED).await.expect(200);
        let aggregated = Aggregated::start(text(&proxies, "/data/requestheader-client-ca-file")).await;
        World { server, admin, aggregated, _scratch: scratch }
    }

    async fn register(&self) {
        for (path, object) in self.aggregated.objects() {
            self.admin.post(path, &object).await.expect(201);
        }
        self.is("True", "Passed").await;
    }

    /// Waits until its condition is so, and returns what it says.
    async fn is(&self, status: &str, reason: &str) -> String {
        let named = format!("fieldSelector=metadata.name={VERSION}.{GROUP}");
        let path = format!("/apis/apiregistration.k8s.io/v1/apiservices?watch=1&{named}");
        let mut watch = self.admin.watch(&path).await;
        loop {
            let object = watch.event().await.object;
            let condition = &object["status"]["conditions"][0];
            if (text(condition, "/status"), text(condition, "/reason")) == (status, reason) {
                assert_eq!(condition["type"], "Available");
                return text(condition, "/message").to_owned();
            }
        }
    }

    /// Waits until the metrics have a line.
    async fn is_counted(&self, line: &str) {
        let asked = async {
            while !self.admin.get("/metrics").await.text().lines().any(|known| known == line) {
                tokio::task::yield_now().await;
            }
        };
        timeout(WAIT, asked).await.unwrap_or_else(|_| panic!("never: {line}"));
    }

    /// Asks until the answer is as it is to be.
    async fn until(&self, path: &str, accept: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let asked = async {
            loop {
                let reply = self.admin.ask(Ask::get(path).accept(accept)).await;
                if reply.code == 200 && is_it(&reply.json()) {
                    return reply.json();
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(WAIT, asked).await.expect("in time")
    }
}

/// Bytes that the server has in memory.
async fn resident(client: &Client) -> f64 {
    let metrics = client.get("/metrics").await;
    let line = metrics.text().lines().find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    line.expect("a figure").parse().expect("a number")
}

#[tokio::test]
async fn another_server_is_asked_in_the_name_of_who_asks_and_of_nobody_else() {
    let world = World::new().await;
    world.register().await;
    for protocol in Protocol::BOTH {
        let admin = world.server.admin_over(protocol).await;
        let asked = Ask::get(format!("{FLUNDERS}?limit=5"))
            .header("x-remote-user", "root")
            .header("x-remote-group", "gods")
            .header("x-remote-extra-scope", "all")
            .header("x-forwarded-for", "10.1.2.3")
            .header("x-forwarded-proto", "gopher")
            .header("x-custom", "stays");
        let reply = admin.ask(asked).await;
        assert_eq!(reply.expect(200)["kind"], "FlunderList");
        assert_eq!((reply.header("x-own"), reply.header("keep-alive")), ("here", ""));
        assert!(!reply.header("audit-id").is_empty());
        let [told] = &world.aggregated.asked()[..] else { panic!("asked once") };
        assert_eq!(told.line, format!("GET {FLUNDERS}?limit=5 HTTP/1.1"));
        assert_eq!(told.all("x-remote-user"), ["kubernetes-admin"]);
        assert_eq!(told.all("x-remote-group"), ["system:masters", "system:authenticated"]);
        assert!(told.all("x-remote-extra-scope").is_empty() && told.all("authorization").is_empty());
        assert_eq!(told.all("x-custom"), ["stays"]);
        assert_eq!(told.all("audit-id"), [reply.header("audit-id")]);
        assert_eq!(told.all("x-forwarded-for"), ["10.1.2.3, 127.0.0.1"]);
        assert_eq!(told.all("x-forwarded-uri"), [FLUNDERS]);
        assert_eq!(
            (told.all("x-forwarded-proto"), told.all("x-forwarded-host")),
            (vec!["https"], told.all("host"))
        );
        // Who believes this server is not sent elsewhere by another, nor are other sites let in.
        let elsewhere = admin.get(&format!("{FLUNDERS}/elsewhere")).await;
        let why = "the backend attempted to redirect this request, which is not permitted";
        assert_eq!((elsewhere.code, elsewhere.text(), elsewhere.header("location")), (502, why, ""));
        let open = admin.get(&format!("{FLUNDERS}/open")).await;
        assert_eq!((open.code, open.header("access-control-allow-origin")), (200, ""));
        assert_eq!(world.aggregated.asked().len(), 2);
        // As somebody else, if one may.
        let asked = Ask::get(FLUNDERS).header("impersonate-user", "bob");
        assert_eq!(admin.ask(asked).await.code, 200);
        let [told] = &world.aggregated.asked()[..] else { panic!("asked once") };
        assert_eq!(told.all("x-remote-user"), ["bob"]);
        assert!(told.all("impersonate-user").is_empty());
        // What is sent arrives, and what comes back is what it says.
        let flunder = json!({ "kind": "Flunder", "metadata": { "name": "f" }, "big": "x".repeat(200_000) });
        assert_eq!(admin.post(FLUNDERS, &flunder).await.expect(201), flunder);
        assert_eq!(world.aggregated.asked().len(), 1);
    }
}

#[tokio::test]
async fn what_another_server_keeps_in_a_namespace_goes_with_it_in_the_name_of_the_controller() {
    // Of RBAC, too: the role of the controller is for all groups.
    let world = World::with(&["--authorization-mode=RBAC", "--controllers=namespace-controller"]).await;
    world.aggregated.keeps(2);
    world.register().await;
    let x = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "x" } });
    let end_namespace = async || {
        world.admin.post("/api/v1/namespaces", &x).await.expect(201);
        world.aggregated.asked();
        world.admin.delete("/api/v1/namespaces/x").await.expect(200);
        let gone = async {
            while world.admin.get("/api/v1/namespaces/x").await.code != 404 {
                tokio::task::yield_now().await;
            }
        };
        timeout(WAIT, gone).await.expect("in time");
        assert_eq!(world.aggregated.kept(), 0);
        world.aggregated.asked()
    };
    let asked = end_namespace().await;
    assert!(
        asked
            .iter()
            .any(|asked| asked.line == format!("DELETE {KEPT}?propagationPolicy=Background HTTP/1.1"))
    );
    let account = "system:serviceaccount:kube-system:namespace-controller";
    assert!(asked.iter().all(|asked| asked.all("x-remote-user") == [account]));
    world.aggregated.keeps(3);
    world.aggregated.deletes_only_singly();
    let asked = end_namespace().await;
    let of_one = format!("DELETE {KEPT}/f");
    assert_eq!(asked.iter().filter(|asked| asked.line.starts_with(&of_one)).count(), 3);
}

#[tokio::test]
async fn what_another_server_serves_is_discovered_here() {
    let world = World::new().await;
    world.register().await;
    let group = |document: &Value| {
        let items = document["items"].as_array().expect("groups").iter();
        items.clone().find(|item| item["metadata"]["name"] == GROUP).cloned()
    };
    let is_there = |document: &Value| {
        group(document).is_some_and(|group| group["versions"][0]["freshness"] == "Current")
    };
    let document = world.until("/apis", AGGREGATED_DISCOVERY, is_there).await;
    let version = group(&document).expect("it is there")["versions"][0].clone();
    assert_eq!(version["resources"][0]["resource"], "flunders");
    assert_eq!(version["resources"][0]["categories"], json!(["fish"]));
    let groups = world.admin.get("/apis").await.expect(200);
    let groups = groups["groups"].as_array().expect("groups").iter();
    assert_eq!(groups.filter(|group| group["name"] == GROUP).count(), 1);
    let alone = world.admin.get(&format!("/apis/{GROUP}")).await.expect(200);
    assert_eq!(alone["preferredVersion"]["version"], VERSION);
    let resources = world.admin.get(&format!("/apis/{GROUP}/{VERSION}")).await.expect(200);
    assert_eq!(resources["resources"][0]["shortNames"], json!(["fl"]));
    let index = world.admin.get("/openapi/v3").await.expect(200);
    let url = index["paths"][format!("apis/{GROUP}/{VERSION}")]["serverRelativeURL"].clone();
    assert!(index["paths"]["api/v1"].is_object(), "ours are there, too");
    let document = world.admin.get(url.as_str().expect("a URL")).await.expect(200);
    assert_eq!(document["of"], "wardle");
    let merged = world.admin.get("/openapi/v2").await.expect(200);
    let path = format!("{FLUNDERS}/{{name}}");
    let of = |value: &Value| text(value, "/get/responses/200/schema/$ref").to_owned();
    assert_eq!(of(&merged["paths"][path]), "#/definitions/wardle.Flunder");
    let metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta_v2";
    let flunder = &merged["definitions"]["wardle.Flunder"]["properties"]["metadata"];
    assert_eq!(text(flunder, "/$ref"), format!("#/definitions/{metadata}"));
    assert_eq!(merged["definitions"][metadata]["description"], "bare");
    assert!(merged["definitions"].get("Other").is_none(), "it is of no version that is served here");
    assert!(merged["paths"].get("/api/v1/pods").is_some(), "ours are there, too");
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let message = world.admin.ask(Ask::get("/openapi/v2").accept(accept)).await;
    let has = |word: &str| message.body.windows(word.len()).any(|part| part == word.as_bytes());
    assert!(message.code == 200 && has("wardle.Flunder") && has(metadata));
}

/// Who lets an object hold up its owner's end may set finalizers on that, whoever serves it.
#[tokio::test]
async fn owners_may_be_of_kinds_that_another_server_serves() {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let world = World::with(&["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"]).await;
    world.register().await;
    let is_known = |document: &Value| document.to_string().contains("flunders");
    world.until("/apis", AGGREGATED_DISCOVERY, is_known).await;
    let rule = |group: &str, resource: &str, verb: &str| json!({ "apiGroups": [group], "resources": [resource], "verbs": [verb] });
    let role = |name: &str, rule: Value| json!({ "metadata": { "name": name }, "rules": [rule] });
    let binding = |name: &str| {
        let reference = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name });
        let bob = json!([{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob" }]);
        json!({ "metadata": { "name": name }, "roleRef": reference, "subjects": bob })
    };
    let grant = async |name: &str, rule: Value| {
        world.admin.post(&format!("{RBAC}/roles"), &role(name, rule)).await.expect(201);
        world.admin.post(&format!("{RBAC}/rolebindings"), &binding(name)).await.expect(201);
    };
    grant("maps", rule("", "configmaps", "create")).await;
    let owned_by = async |kind: &str| {
        let owner = json!([{
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": kind, "name": "f", "uid": "u", "blockOwnerDeletion": true,
        }]);
        let map = json!({ "metadata": { "name": "m", "ownerReferences": owner } });
        let ask = Ask::post("/api/v1/namespaces/default/configmaps", &map);
        world.admin.ask(ask.header("impersonate-user", "bob")).await
    };
    let refused = owned_by("Flunder").await.expect(403);
    let why =
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on";
    assert!(text(&refused, "/message").contains(why), "{refused}");
    let unknown = owned_by("Other").await.expect(403);
    assert!(text(&unknown, "/message").contains("no matches for kind \"Other\""), "{unknown}");
    grant("finalizers", rule(GROUP, "flunders/finalizers", "update")).await;
    owned_by("Flunder").await.expect(201);
}

#[tokio::test]
async fn a_server_without_the_newer_discovery_is_discovered_by_the_older() {
    let world = World::new().await;
    world.aggregated.is_modern(false);
    world.register().await;
    let flunders = |document: &Value| {
        let mut items = document["items"].as_array().expect("groups").iter();
        let group = items.find(|item| item["metadata"]["name"] == GROUP)?;
        Some(group["versions"][0]["resources"].as_array()?.first()?.clone())
    };
    let document = world.until("/apis", AGGREGATED_DISCOVERY, |it| flunders(it).is_some()).await;
    let resource = flunders(&document).expect("it is there");
    assert_eq!(
        (&resource["scope"], &resource["responseKind"]["kind"]),
        (&"Namespaced".into(), &"Flunder".into())
    );
}

#[tokio::test]
async fn a_server_is_there_however_much_it_says_of_itself_and_however_long_that_takes() {
    let world = World::new().await;
    world.aggregated.rambles();
    world.register().await;
    assert_eq!(world.admin.get(FLUNDERS).await.expect(200)["kind"], "FlunderList");
    let is_stale = |document: &Value| {
        let mut items = document["items"].as_array().expect("groups").iter();
        let group = items.find(|item| item["metadata"]["name"] == GROUP);
        group.is_some_and(|group| group["versions"][0]["freshness"] == "Stale")
    };
    world.until("/apis", AGGREGATED_DISCOVERY, is_stale).await;
}

/// As generic-admission-server registers itself: no pod has to know who this server is.
#[tokio::test]
async fn a_webhook_behind_this_server_is_asked_by_it_as_itself() {
    let world = World::new().await;
    world.register().await;
    let service = json!({
        "namespace": "default", "name": "kubernetes", "port": 443, "path": format!("{FLUNDERS}/admits"),
    });
    let rules = json!([{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                         "resources": ["configmaps"] }]);
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "behind" },
        "webhooks": [{
            "name": "behind.example.com", "clientConfig": { "service": service }, "rules": rules,
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    world.admin.post(path, &configuration).await.expect(201);
    let map = json!({ "metadata": { "name": "m" } });
    let denied = world.admin.post(super::CONFIG_MAPS, &map).await.json();
    let why = "admission webhook \"behind.example.com\" denied the request: not here";
    assert_eq!(text(&denied, "/message"), why);
    let [told] = &world.aggregated.asked()[..] else { panic!("asked once") };
    assert_eq!(told.line, format!("POST {FLUNDERS}/admits?timeout=10s HTTP/1.1"));
    assert_eq!(told.all("x-remote-user"), ["system:apiserver"]);
    assert_eq!(told.all("x-remote-group"), ["system:masters", "system:authenticated"]);
    assert!(told.all("authorization").is_empty());
}

#[tokio::test]
async fn a_watch_is_passed_through_and_breaks_off_as_its_server_does() {
    let world = World::new().await;
    world.register().await;
    for protocol in Protocol::BOTH {
        world.aggregated.happens();
        let admin = world.server.admin_over(protocol).await;
        let mut watch = admin.watch(&format!("{FLUNDERS}?watch=1")).await;
        let first = watch.event().await;
        assert_eq!(first.short(), "ADDED f1");
        world.aggregated.happens();
        while watch.event().await.short() != "ADDED f2" {}
    }
    let mut watches = Vec::new();
    for protocol in Protocol::BOTH {
        let admin = world.server.admin_over(protocol).await;
        watches.push(admin.watch(&format!("{FLUNDERS}?watch=1")).await);
    }
    world.aggregated.dies();
    for watch in &mut watches {
        let ended = loop {
            match watch.next().await {
                Ok(Some(_)) => {}
                ended => break ended,
            }
        };
        assert!(ended.is_err(), "it is not as if that was all");
    }
}

#[tokio::test]
async fn a_connection_that_is_upgraded_carries_bytes_both_ways_until_one_side_ends() {
    let world = World::new().await;
    world.register().await;
    let admin = world.server.admin_over(Protocol::Http1).await;
    let mut stream = admin.raw(64 << 10).await;
    let asked = format!(
        "POST {FLUNDERS}/upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
         X-Remote-User: root\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(asked.as_bytes()).await.expect("open");
    let mut heard = Vec::new();
    while !heard.windows(4).any(|four| four == b"\r\n\r\n") {
        assert!(timeout(WAIT, stream.read_buf(&mut heard)).await.expect("in time").expect("open") > 0);
    }
    let head = String::from_utf8(heard).expect("text").to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 switching protocols\r\n"), "{head}");
    assert!(head.contains("upgrade: spdy/3.1") && head.contains("connection: upgrade"), "{head}");
    for word in ["hello", "again"] {
        stream.write_all(word.as_bytes()).await.expect("open");
        let mut said = vec![0; word.len()];
        timeout(WAIT, stream.read_exact(&mut said)).await.expect("in time").expect("open");
        assert_eq!(said, word.to_ascii_uppercase().as_bytes());
    }
    stream.write_all(b"bye").await.expect("open");
    let mut rest = Vec::new();
    timeout(WAIT, stream.read_to_end(&mut rest)).await.expect("in time").expect("an end");
    assert!(rest.is_empty());
    let [told] = &world.aggregated.asked()[..] else { panic!("asked once") };
    assert_eq!(told.all("x-remote-user"), ["kubernetes-admin"]);
}

#[tokio::test]
async fn a_server_that_answers_nothing_good_is_told_of_and_holds_up_nobody() {
    let world = World::new().await;
    world.register().await;
    let hangs = world.admin.ask(Ask::get(format!("{FLUNDERS}/hang?timeout=1s")));
    let others = async {
        for (wish, why) in [("cut", "EOF\n"), ("vanish", "EOF\n"), ("nonsense", ""), ("long-head", "")] {
            let reply = world.admin.get(&format!("{FLUNDERS}/{wish}")).await;
            assert_eq!(reply.code, 503, "{wish}: {}", reply.text());
            let why = format!("error trying to reach service: {why}");
            assert!(reply.text().starts_with(&why) && reply.text().len() < 200, "{wish}: {}", reply.text());
        }
        let lied = world.admin.try_ask(Ask::get(format!("{FLUNDERS}/lies"))).await;
        assert!(lied.is_err(), "it is not as if that was all: {lied:?}");
        world.admin.get("/api/v1/namespaces").await.expect(200);
    };
    let (hung, ()) = tokio::join!(hangs, others);
    assert_eq!(hung.expect(504)["reason"], "Timeout");
    let dots = world.admin.get(&format!("{FLUNDERS}/../../../../v1/x")).await;
    assert_eq!(dots.code, 400);
}

#[tokio::test]
async fn hundreds_of_requests_behind_a_server_that_hangs_take_neither_turn_nor_room_from_others() {
    const STUCK: usize = 300;
    let world = World::new().await;
    world.register().await;
    let large = json!({ "metadata": { "name": "large" }, "data": { "k": "x".repeat(300 << 10) } });
    world.admin.post(super::CONFIG_MAPS, &large).await.expect(201);
    let mut stuck = tokio::task::JoinSet::new();
    let mut client = world.server.admin().await;
    for n in 0..STUCK {
        if n % 100 == 99 {
            client = world.server.admin().await;
        }
        let ask = Ask::get(format!("{FLUNDERS}/hang")).header("impersonate-user", format!("alice-{}", n % 4));
        let client = client.clone();
        stuck.spawn(async move { client.try_ask(ask).await });
        if (n + 1) % 25 == 0 {
            have_come(&world.admin, n + 1).await;
        }
    }
    for (n, user) in ["bob", "alice-0"].into_iter().cycle().take(20).enumerate() {
        let ask = Ask::get(format!("{}/large", super::CONFIG_MAPS));
        world.admin.ask(ask.header("impersonate-user", user)).await.expect(200);
        let map = json!({ "metadata": { "name": format!("free-{n}") } });
        let ask = Ask::post(super::CONFIG_MAPS, &map);
        world.admin.ask(ask.header("impersonate-user", user)).await.expect(201);
    }
    // One more than may wait for it is told so at once.
    let mut left = away(&world.admin, "refused").await;
    assert!((1..STUCK / 2).contains(&left), "{left}");
    while left > 0 {
        let answer = timeout(WAIT, stuck.join_next()).await.expect("in time").expect("one more");
        let answer = answer.expect("it ends").expect("an answer");
        if answer.code != 504 {
            let why = format!("too many requests wait for {GROUP}/{VERSION} to answer");
            assert_eq!(text(&answer.expect(429), "/message"), why);
            left -= 1;
        }
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_read_as_far_as_its_reader_reads() {
    let world = World::new().await;
    world.register().await;
    use http_body_util::BodyExt as _;
    for protocol in Protocol::BOTH {
        let admin = world.server.admin_over(protocol).await;
        let reply = admin.open_reply(Ask::get(format!("{FLUNDERS}/flood"))).await.expect("an answer");
        let mut body = reply.into_body();
        let mut read = 0;
        while read < 8 << 20 {
            let frame = timeout(WAIT, body.frame()).await.expect("in time").expect("more").expect("whole");
            read += frame.into_data().expect("data").len();
        }
        drop(body);
    }
    // Who reads nothing holds a buffer, and the server goes on.
    let admin = world.server.admin_over(Protocol::Http1).await;
    let before = resident(&admin).await;
    let mut stalled = Vec::new();
    for _ in 0..32 {
        let mut stream = admin.raw(4096).await;
        let asked = format!("GET {FLUNDERS}/flood HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(asked.as_bytes()).await.expect("open");
        stalled.push(stream);
    }
    for stream in &mut stalled {
        let mut first = [0; 15];
        timeout(WAIT, stream.read_exact(&mut first)).await.expect("in time").expect("open");
        assert_eq!(&first, b"HTTP/1.1 200 OK");
    }
    let grown = resident(&admin).await - before;
    assert!(grown < 48e6, "{grown}");
    admin.get("/api/v1/namespaces").await.expect(200);
}

#[tokio::test]
async fn who_is_not_there_is_told_of_in_upstreams_words() {
    let world = World::new().await;
    let [(namespaces, namespace), (services, service), (api_services, api_service)] =
        world.aggregated.objects();
    world.admin.post(namespaces, &namespace).await.expect(201);
    let created = world.admin.post(api_services, &api_service).await;
    assert_eq!(created.expect(201)["status"], json!({}));
    assert!(created.warnings().is_empty());
    assert_eq!(world.is("False", "ServiceNotFound").await, "service/api in \"wardle\" is not present");
    let refused = world.admin.get(FLUNDERS).await;
    assert_eq!((refused.code, refused.text()), (503, "service unavailable\n"));
    assert_eq!(refused.header("content-type"), "text/plain; charset=utf-8");
    world.is_counted(&format!("aggregator_unavailable_apiservice{{name=\"{VERSION}.{GROUP}\"}} 1")).await;

    let mut inside = service.clone();
    inside["spec"] = json!({ "ports": [{ "port": 1 }] });
    world.admin.post(services, &inside).await.expect(201);
    let port = world.aggregated.port;
    let message = world.is("False", "ServicePortError").await;
    assert_eq!(message, format!("service/api in \"wardle\" is not listening on port {port}"));
    let path = format!("{services}/api");
    let ports = json!({ "spec": { "ports": [{ "port": port, "name": "https" }] } });
    let ports = Ask::patch(&path, "application/merge-patch+json", ports.to_string());
    world.admin.ask(ports).await.expect(200);
    let message = world.is("False", "EndpointsNotFound").await;
    assert_eq!(message, "cannot find endpointslices for service/api in \"wardle\"");
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "api-1", "labels": { "kubernetes.io/service-name": "api" } },
        "endpoints": [{ "addresses": ["192.0.2.1"] }], "ports": [{ "name": "http", "port": 1 }],
    });
    world.admin.post("/apis/discovery.k8s.io/v1/namespaces/wardle/endpointslices", &slice).await.expect(201);
    let message = world.is("False", "MissingEndpoints").await;
    let why = "have no addresses with port name \"https\"";
    assert_eq!(message, format!("endpointslices for service/api in \"wardle\" {why}"));

    // Once it is there it is found without anybody asking, and lost again.
    world.admin.delete(&path).await.expect(200);
    world.aggregated.is_ill(true);
    world.admin.post(services, &service).await.expect(201);
    let message = world.is("False", "FailedDiscoveryCheck").await;
    let url = format!("https://localhost:{port}/apis/{GROUP}/{VERSION}");
    assert_eq!(message, format!("failing or missing response from {url}: bad status from {url}: 500"));
    world.aggregated.is_ill(false);
    assert_eq!(world.is("True", "Passed").await, "all checks passed");
    assert_eq!(world.admin.get(FLUNDERS).await.code, 200);
    world.admin.delete(&path).await.expect(200);
    world.is("False", "ServiceNotFound").await;
    let lost = format!("{{name=\"{VERSION}.{GROUP}\",reason=\"ServiceNotFound\"}} 1");
    world.is_counted(&format!("aggregator_unavailable_apiservice_total{lost}")).await;
    let local = json!({ "spec": { "service": null, "caBundle": null } });
    let local = Ask::patch(API_SERVICE, "application/merge-patch+json", local.to_string());
    world.admin.ask(local).await.expect(200);
    assert_eq!(world.is("True", "Local").await, "Local APIServices are always available");
    world.admin.delete(API_SERVICE).await.expect(200);
    let gone = timeout(WAIT, async {
        while world.admin.get(FLUNDERS).await.code != 404 {
            tokio::task::yield_now().await;
        }
    });
    gone.await.expect("in time");
}

#[tokio::test]
async fn a_server_whose_certificate_nobody_vouches_for_is_not_asked() {
    let world = World::new().await;
    let stranger = Aggregated::start(&world.server.authority).await;
    for (path, mut object) in world.aggregated.objects() {
        if path.ends_with("/apiservices") {
            object["spec"]["caBundle"] = stranger.authority.clone().into();
        }
        world.admin.post(path, &object).await.expect(201);
    }
    let message = world.is("False", "FailedDiscoveryCheck").await;
    let why = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert!(message.ends_with(why), "{message}");
    assert!(world.aggregated.asked().is_empty());
    let trusted = json!({ "spec": { "caBundle": world.aggregated.authority } });
    let trusted = Ask::patch(API_SERVICE, "application/merge-patch+json", trusted.to_string());
    world.admin.ask(trusted).await.expect(200);
    world.is("True", "Passed").await;
}

#[tokio::test]
async fn what_tells_who_asks_is_kept_published() {
    let world = World::new().await;
    let published = world.admin.get(PUBLISHED).await.expect(200)["data"].clone();
    assert_eq!(published["requestheader-allowed-names"], "[\"front-proxy-client\"]");
    assert_eq!(published["requestheader-username-headers"], "[\"X-Remote-User\"]");
    assert_eq!(published["requestheader-uid-headers"], "[\"X-Remote-Uid\"]");
    assert_eq!(published["requestheader-group-headers"], "[\"X-Remote-Group\"]");
    assert_eq!(published["requestheader-extra-headers-prefix"], "[\"X-Remote-Extra-\"]");
    let wrong = json!({ "data": { "client-ca-file": "", "requestheader-client-ca-file": "" } });
    world
        .admin
        .ask(Ask::patch(PUBLISHED, "application/merge-patch+json", wrong.to_string()))
        .await
        .expect(200);
    let is_back = |map: &Value| map["data"] == published;
    world.until(PUBLISHED, "application/json", is_back).await;
    world.admin.delete(PUBLISHED).await.expect(200);
    world.until(PUBLISHED, "application/json", is_back).await;
}
