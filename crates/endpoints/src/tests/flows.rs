//! Who uses the server, as it says itself, through the whole server in memory.
//!
//! In: requests of several users and programs. Out: their rows.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::turns::{Answer, MAPS, Server};

const FLOWS: &str = "/debug/forebay/flows";

/// The row of a user and a resource, whatever the program.
pub fn client(flows: &Value, user: &str, resource: &str) -> Value {
    let clients = flows["clients"].as_array().expect("clients");
    let found = clients.iter().find(|client| client["user"] == user && client["resource"] == resource);
    found.cloned().unwrap_or_default()
}

fn head(path: &str, last: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer other\r\nUser-Agent: prober/1\r\n{last}\r\n"
    )
}

/// Asks one after the other on one connection.
async fn on_one_connection(server: &Server, paths: &[&str]) -> String {
    let mut stream = server.connect();
    let mut text = String::new();
    let (last, others) = paths.split_last().expect("some");
    for path in others {
        stream.write_all(head(path, "").as_bytes()).await.expect("open");
        until(&mut stream, "\"items\":").await;
    }
    stream.write_all(head(last, "Connection: close\r\n").as_bytes()).await.expect("open");
    stream.read_to_string(&mut text).await.expect("whole");
    text
}

/// Reads until that has come.
async fn until(stream: &mut DuplexStream, end: &str) {
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains(end) {
        assert!(stream.read_buf(&mut said).await.expect("open") > 0, "{}", String::from_utf8_lossy(&said));
    }
}

async fn row(server: &Server, user: &str) -> Value {
    let flows = server.get("master", FLOWS).await.json();
    let clients = flows["clients"].as_array().expect("clients");
    let is_it = |client: &&Value| client["user"] == user && client["userAgent"] == "";
    clients.iter().find(is_it).expect("a row").clone()
}

#[tokio::test]
async fn it_is_said_who_lists_and_why() {
    let server = Server::start(100).await;
    for name in ["a", "b", "c"] {
        server.post(MAPS, json!({ "metadata": { "name": name } })).await;
    }
    let before = row(&server, "other").await;
    let zero = format!("{MAPS}?resourceVersion=0");
    on_one_connection(&server, &[&zero, MAPS, &zero]).await;
    let page = server.get("other", &format!("{MAPS}?limit=1")).await.json();
    let token = page["metadata"]["continue"].as_str().expect("more");
    assert_eq!(server.get("other", &format!("{MAPS}?limit=1&continue={token}")).await.code, 200);
    let flows = server.get("master", FLOWS).await.json();
    let clients = flows["clients"].as_array().expect("clients");
    let prober = clients.iter().find(|client| client["userAgent"] == "prober/1").expect("a row");
    assert_eq!((&prober["user"], &prober["resource"]), (&json!("other"), &json!("configmaps")));
    assert_eq!(prober["flow"]["schema"], "global-default");
    let minute = &prober["minute"];
    assert_eq!((&minute["requests"], &minute["lists"]), (&json!(3), &json!({ "zero": 2, "unset": 1 })));
    assert_eq!(minute["causes"], json!({ "start": 1, "again": 2 }));
    assert!(minute["bytesSent"].as_u64().expect("bytes") > 600, "{minute}");
    assert!(minute["cpuUs"].as_u64().expect("time") >= 60, "{minute}");
    assert_eq!((&prober["total"], &prober["now"]), (minute, &json!({})));
    // Each of those had a connection of its own; a page is forced by the one before it.
    let after = row(&server, "other").await;
    assert_eq!(after["userAgent"], "");
    let grown = |of: &str, what: &str| {
        let count = |row: &Value| row["minute"][of][what].as_u64().unwrap_or(0);
        count(&after) - count(&before)
    };
    assert_eq!([grown("lists", "unset"), grown("lists", "page"), grown("causes", "start")], [1, 1, 1]);
    assert_eq!(flows["all"]["now"], json!({}), "nothing is open but this");
}

#[tokio::test]
async fn a_watch_whose_client_does_not_read_is_seen_behind_until_it_has_read() {
    let server = Server::start(100).await;
    let mut stream = server.connect();
    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    );
    stream.write_all(head(&path, "").as_bytes()).await.expect("open");
    until(&mut stream, "initial-events-end").await;
    let of = |answer: &Answer| {
        let flows = answer.json();
        let clients = flows["clients"].as_array().expect("clients").clone();
        clients.into_iter().find(|client| client["userAgent"] == "prober/1").expect("a row")
    };
    let idle = of(&server.get("master", FLOWS).await);
    assert_eq!((&idle["now"]["watches"], &idle["now"]["behind"]), (&json!(1), &Value::Null));
    assert_eq!((&idle["minute"]["watchStarts"], &idle["minute"]["watchLists"]), (&json!(1), &json!(1)));
    assert_eq!(idle["minute"]["causes"], json!({ "start": 1 }));
    let large = "x".repeat(200 << 10);
    for name in ["a", "b", "c", "d", "e"] {
        server.post(MAPS, json!({ "metadata": { "name": name }, "data": { "a": large } })).await;
    }
    server.until("master", FLOWS, |answer| of(answer)["now"]["behind"] == 1).await;
    let reader = tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await });
    server.until("master", FLOWS, |answer| of(answer)["now"].get("behind").is_none()).await;
    reader.abort();
    server.until("master", FLOWS, |answer| of(answer)["now"] == json!({})).await;
}

#[tokio::test]
async fn it_is_a_table_for_people() {
    let server = Server::start(100).await;
    on_one_connection(&server, &[MAPS, MAPS]).await;
    let table = server.get("master", &format!("{FLOWS}?output=table&sort=lists&window=10m")).await.body;
    let mut lines = table.lines();
    assert!(lines.next().expect("a header").starts_with("CPU%"), "{table}");
    assert!(
        table.contains("prober/1  configmaps") && table.contains("start 1, again 1 (rv=\"\" 2)"),
        "{table}"
    );
    assert!(lines.last().expect("a sum").contains("(all)"), "{table}");
    for (query, says) in
        [("sort=name", "sort must be"), ("window=2m", "window must be"), ("output=xml", "output must be")]
    {
        let refused = server.get("master", &format!("{FLOWS}?{query}")).await;
        assert!(refused.code == 400 && refused.body.contains(says), "{}", refused.body);
    }
    assert_eq!(server.ask("master", "POST", FLOWS, "").await.code, 404);
}

#[tokio::test]
async fn a_watch_that_goes_on_is_charged_as_cheap_and_its_state_as_what_it_is() {
    let server = Server::start(100).await;
    let words = "some words ".repeat(2_000);
    for number in 0..20 {
        let name = format!("m-{number}");
        server.post(MAPS, json!({ "metadata": { "name": name }, "data": { "a": words } })).await;
    }
    let list = server.get("master", &format!("{MAPS}?limit=1")).await.json();
    let revision = list["metadata"]["resourceVersion"].as_str().expect("a revision");
    let charged = async |agent: &str, query: &str| {
        let asked = head(&format!("{MAPS}?{query}"), "").replace("prober/1", agent);
        let mut stream = server.connect();
        stream.write_all(asked.as_bytes()).await.expect("open");
        until(&mut stream, "200 OK").await;
        let flows = server.get("master", FLOWS).await.json();
        let clients = flows["clients"].as_array().expect("clients");
        let row = clients.iter().find(|client| client["userAgent"] == agent).expect("a row");
        row["minute"]["cpuUs"].as_u64().expect("time")
    };
    let resumed = charged("resumed/1", &format!("watch=1&resourceVersion={revision}")).await;
    let state = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan";
    let state = charged("state/1", state).await;
    assert!(resumed <= 30 && state >= resumed + 20 * 12, "{resumed} us and {state} us");
}
