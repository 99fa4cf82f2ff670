//! Requests over real connections: which one carries them, and what is made of its failures.
//!
//! In: a server in this process that does what the path of a request says. Out: which connection answered,
//! and the fault. Never: a time that is waited for, but of the pings.

use crate::server::{Server, Speaks};
use bytes::Bytes;
use forebay_client::reflector::Fault;
use forebay_connector::{Connected, Pool, PoolOptions, PoolStats, connect, fault_of, limits};
use forebay_rt::Duration;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;

const HTTP2: Speaks = Speaks::Http2(Some(100));

fn connected(server: &Server) -> Connected {
    connect(server.config("https"), PoolOptions::default()).expect("it can be used")
}

async fn send(client: &kube::Client, path: &str) -> Result<Response<Body>, kube::Error> {
    client.send(Request::get(path).body(Body::empty()).expect("a request")).await
}

/// The whole body: on which connection, for most paths.
async fn get(client: &kube::Client, path: &str) -> Result<String, kube::Error> {
    let body = send(client, path).await?.into_body().collect_bytes().await?;
    Ok(String::from_utf8(body.to_vec()).expect("a text"))
}

/// The beginning of an answer that goes on, which is on which connection, and the rest.
async fn watch(client: &kube::Client, number: usize) -> (String, Body) {
    let answer = send(client, &format!("/watch{number}?watch=true")).await.expect("an answer");
    let mut body = answer.into_body();
    let piece = body.frame().await.expect("a frame").expect("no fault").into_data().expect("data");
    (String::from_utf8(piece.to_vec()).expect("a text"), body)
}

async fn fault(client: &kube::Client, path: &str) -> Fault {
    fault_of(&get(client, path).await.expect_err("it fails"))
}

/// The fault that ends an answer.
async fn end_of(mut body: Body) -> Option<Fault> {
    loop {
        match body.frame().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Some(fault_of(&error)),
            None => return None,
        }
    }
}

/// Waits until the pool says so.
async fn until(pool: &Pool, is_so: impl Fn(PoolStats) -> bool) -> PoolStats {
    loop {
        let stats = pool.stats();
        if is_so(stats) {
            return stats;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn requests_share_a_connection_and_a_body_holds_its_seat_until_it_ends_or_is_dropped() {
    let server = Server::start(HTTP2).await;
    let Connected { client, pool } = connected(&server);
    let (first, second) = (send(&client, "/ok").await.expect("an answer"), watch(&client, 0).await);
    assert_eq!((pool.stats().streams, second.0.as_str()), (2, "0"));
    assert_eq!(first.into_body().collect_bytes().await.expect("a body"), "0");
    assert_eq!(pool.stats().streams, 1);
    drop(second);
    assert_eq!(pool.stats(), PoolStats { connections: 1, streams: 0, opened: 1, closed: 0 });
}

#[tokio::test]
async fn a_watch_never_takes_the_last_seat_and_a_new_connection_is_opened_when_there_is_none() {
    let server = Server::start(Speaks::Http2(Some(4))).await;
    let Connected { client, pool } = connected(&server);
    let mut watches = Vec::new();
    for number in 0..7 {
        watches.push(watch(&client, number).await);
    }
    let on: Vec<&str> = watches.iter().map(|(on, _)| on.as_str()).collect();
    assert_eq!(on, ["0", "0", "0", "1", "1", "1", "2"]);
    // The seat that was kept.
    assert_eq!(get(&client, "/ok").await.expect("an answer"), "0");
    drop(watches.remove(1));
    assert_eq!(watch(&client, 8).await.0, "0");
    assert_eq!((pool.stats().opened, server.accepted()), (3, 3));
}

#[tokio::test]
async fn a_thousand_watches_at_once_fit_on_five_connections() {
    let server = Server::start(Speaks::Http2(Some(250))).await;
    let Connected { client, pool } = connected(&server);
    let mut tasks = Vec::new();
    for number in 0..1_000 {
        let client = client.clone();
        tasks.push(tokio::spawn(async move { watch(&client, number).await.1 }));
    }
    let mut watches = Vec::new();
    for task in tasks {
        watches.push(task.await.expect("no panic"));
    }
    assert_eq!(pool.stats(), PoolStats { connections: 5, streams: 1_000, opened: 5, closed: 0 });
    assert_eq!(get(&client, "/ok").await.expect("an answer"), "0");
}

#[tokio::test]
async fn without_a_limit_of_the_server_ours_counts() {
    let server = Server::start(Speaks::Http2(None)).await;
    let Connected { client, pool } = connected(&server);
    assert_eq!(get(&client, "/ok").await.expect("an answer"), "0");
    let watches = (watch(&client, 0).await, watch(&client, 1).await);
    assert_eq!((pool.stats().connections, watches.0.0, watches.1.0), (1, "0".into(), "0".into()));
}

#[tokio::test]
async fn after_a_goaway_new_requests_go_over_a_new_connection_and_old_answers_go_on() {
    let server = Server::start(HTTP2).await;
    let Connected { client, pool } = connected(&server);
    let (_, mut old) = watch(&client, 0).await;
    assert_eq!(get(&client, "/goaway").await.expect("an answer"), "0");
    // The frame is on its way: who asks before it comes is served by the old connection, or asks again.
    while get(&client, "/ok").await.expect("an answer") != "1" {}
    assert!(is_pending(&mut old).await);
    assert_eq!(pool.stats().connections, 2);
    drop(old);
    assert_eq!(until(&pool, |it| it.closed == 1).await.connections, 1);
}

#[tokio::test]
async fn what_a_connection_that_goes_away_did_not_serve_is_sent_again_and_at_last_a_fault() {
    let server = Server::start(Speaks::GoesAway).await;
    let Connected { client, pool } = connected(&server);
    assert_eq!(fault(&client, "/ok").await, Fault::GoAway);
    assert_eq!(server.accepted() as u32, 1 + limits::RESENT_MAX);
    until(&pool, |it| it.connections == 0).await;
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_and_one_that_always_is_is_a_fault() {
    let server = Server::start(HTTP2).await;
    let Connected { client, pool } = connected(&server);
    assert_eq!(get(&client, "/refused-once").await.expect("an answer"), "0");
    assert_eq!(fault(&client, "/refused").await, Fault::StreamReset);
    assert_eq!(pool.stats(), PoolStats { connections: 1, streams: 0, opened: 1, closed: 0 });
}

#[tokio::test]
async fn a_stream_that_is_reset_is_a_fault_of_its_own() {
    let server = Server::start(HTTP2).await;
    let Connected { client, pool } = connected(&server);
    let (_, other) = watch(&client, 0).await;
    for path in ["/reset", "/reset-within"] {
        assert_eq!(fault(&client, path).await, Fault::StreamReset, "{path}");
    }
    assert_eq!((pool.stats().connections, pool.stats().streams), (1, 1));
    drop(other);
}

#[tokio::test]
async fn a_connection_that_ends_is_reset_before_a_head_and_cut_short_within_a_body() {
    let server = Server::start(HTTP2).await;
    let Connected { client, pool } = connected(&server);
    let (_, old) = watch(&client, 0).await;
    assert_eq!(fault(&client, "/cut").await, Fault::Reset);
    assert_eq!(end_of(old).await, Some(Fault::CutShort));
    assert_eq!(fault(&client, "/cut-within").await, Fault::CutShort);
    assert_eq!(get(&client, "/ok").await.expect("an answer"), "2");
    until(&pool, |it| it.closed == 2).await;
}

#[tokio::test]
async fn a_server_that_answers_no_ping_is_dead_and_a_new_connection_takes_its_place() {
    let server = Server::start(HTTP2).await;
    let short = Duration::from_millis(100);
    let options = PoolOptions { ping_interval: short, ping_timeout: 10 * short, ..PoolOptions::default() };
    let Connected { client, pool } = connect(server.config("https"), options).expect("it can be used");
    let (_, old) = watch(&client, 0).await;
    let stopped = fault(&client, "/stops").await;
    assert_eq!((stopped, end_of(old).await), (Fault::PingLost, Some(Fault::PingLost)));
    assert_eq!(get(&client, "/ok").await.expect("an answer"), "1");
    until(&pool, |it| it.closed == 1).await;
}

#[tokio::test]
async fn a_quiet_watch_lives_as_long_as_pings_are_answered() {
    let server = Server::start(HTTP2).await;
    let (short, wide) = (Duration::from_millis(5), Duration::from_secs(60));
    let options =
        PoolOptions { ping_interval: short, ping_timeout: wide, idle_max: short, ..PoolOptions::default() };
    let Connected { client, pool } = connect(server.config("https"), options).expect("it can be used");
    let (_, body) = watch(&client, 0).await;
    pool.renew();
    // Young: it stays, and is what an ordinary request goes over.
    assert_eq!(get(&client, "/ok").await.expect("an answer"), "0");
    let more: Vec<_> = futures(&client, 120).await;
    assert_eq!(pool.stats().connections, 2);
    drop(more);
    // The one without requests is closed at one of its pings, the one with the watch is not.
    assert_eq!(until(&pool, |it| it.closed == 1).await.streams, 1);
    assert_eq!(get(&client, "/ok").await.expect("an answer"), "0");
    drop(body);
}

async fn futures(client: &kube::Client, count: usize) -> Vec<Body> {
    let mut bodies = Vec::new();
    for number in 0..count {
        bodies.push(watch(client, number).await.1);
    }
    bodies
}

#[tokio::test]
async fn what_comes_after_renew_goes_over_a_new_connection_and_the_old_one_drains() {
    let server = Server::start(HTTP2).await;
    let options = PoolOptions { renew_age_min: Duration::ZERO, ..PoolOptions::default() };
    let Connected { client, pool } = connect(server.config("https"), options).expect("it can be used");
    let (_, old) = watch(&client, 0).await;
    pool.renew();
    assert_eq!(watch(&client, 1).await.0, "1");
    assert_eq!((pool.stats().connections, pool.stats().closed), (2, 0));
    drop(old);
    assert_eq!(until(&pool, |it| it.closed == 1).await.connections, 1);
}

#[tokio::test]
async fn what_the_configuration_says_of_tokens_headers_and_paths_arrives() {
    let server = Server::start(HTTP2).await;
    let mut config = server.config("https");
    config.cluster_url = format!("{}cluster/one", config.cluster_url).parse().expect("a URL");
    config.auth_info.token = Some(String::from("secret").into());
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static("test")));
    let Connected { client, .. } = connect(config, PoolOptions::default()).expect("it can be used");
    assert_eq!(
        get(&client, "/headers").await.expect("an answer"),
        "GET /cluster/one/headers Bearer secret test - - -"
    );
    let put = Request::put("/headers").header("connection", "close").body(Body::empty()).expect("a request");
    let put = client.send(put).await.expect("an answer").into_body().collect_bytes().await.expect("a body");
    assert_eq!(put, "PUT /cluster/one/headers Bearer secret test 0 - -");
}

#[tokio::test]
async fn a_body_of_a_request_goes_through_whatever_its_length_and_a_dropped_request_frees_its_seat() {
    let server = Server::start(HTTP2).await;
    let Connected { client, pool } = connected(&server);
    for bytes in [0, 1, 100_000, 3_000_000] {
        let body = Bytes::from(vec![b'x'; bytes]);
        let request = Request::post("/echo").body(Body::from(body.clone())).expect("a request");
        let answer = client.send(request).await.expect("an answer");
        let came = answer.into_body().collect_bytes().await.expect("a body");
        assert!(came == body, "{} of {bytes} bytes", came.len());
    }
    let waits = client.clone();
    let waits = tokio::spawn(async move { get(&waits, "/stops").await });
    until(&pool, |it| it.streams == 1).await;
    waits.abort();
    until(&pool, |it| it.streams == 0).await;
}

#[tokio::test]
async fn a_server_that_speaks_only_http1_gets_a_connection_for_each_request_and_keeps_it() {
    for (speaks, scheme) in [(Speaks::Http1, "https"), (Speaks::Plain, "http")] {
        let server = Server::start(speaks).await;
        let options = PoolOptions::default();
        let Connected { client, pool } = connect(server.config(scheme), options).expect("it can be used");
        for _ in 0..3 {
            assert_eq!(get(&client, "/ok").await.expect("an answer"), "0");
        }
        let request = Request::post("/echo").body(Body::from(vec![b'x'; 9])).expect("a request");
        let echo = client.send(request).await.expect("an answer").into_body();
        // While its answer is not read, the next goes over another one.
        assert_eq!(get(&client, "/ok").await.expect("an answer"), "1");
        assert_eq!(echo.collect_bytes().await.expect("a body"), "xxxxxxxxx");
        let waits = client.clone();
        let waits = tokio::spawn(async move { get(&waits, "/late").await });
        until(&pool, |it| it.streams == 1).await;
        waits.abort();
        // The connection of a request that was given up is not used again.
        until(&pool, |it| it.closed == 1).await;
        let many = (0..20).map(|_| get(&client, "/ok"));
        for answer in futures_of(many).await {
            assert!(answer.is_ok(), "{answer:?}");
        }
        assert_eq!(pool.stats().streams, 0);
        assert!(pool.stats().connections <= limits::HTTP1_CONNECTIONS_MAX);
    }
}

async fn futures_of<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut pinned: Vec<_> = futures.map(|it| (Box::pin(it), None)).collect();
    std::future::poll_fn(|cx| {
        for (future, done) in pinned.iter_mut().filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(value) = future.as_mut().poll(cx) {
                *done = Some(value);
            }
        }
        match pinned.iter().all(|(_, done)| done.is_some()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    pinned.into_iter().filter_map(|(_, done)| done).collect()
}

#[tokio::test]
async fn an_upgrade_takes_an_http1_connection_of_its_own() {
    let server = Server::start(HTTP2).await;
    let Connected { client, pool } = connected(&server);
    assert_eq!(get(&client, "/ok").await.expect("an answer"), "0");
    let request = Request::get("/exec").header("connection", "Upgrade").header("upgrade", "websocket");
    let answer = client.send(request.body(Body::empty()).expect("a request")).await.expect("an answer");
    assert_eq!((answer.status().as_u16(), server.accepted()), (101, 2));
    assert!(hyper::upgrade::on(answer).await.is_ok());
    assert_eq!(pool.stats().connections, 1);
}

#[tokio::test]
async fn connections_end_when_nobody_holds_the_pool_or_an_answer_any_more() {
    let server = Server::start(HTTP2).await;
    let Connected { client, pool } = connected(&server);
    let (_, mut body) = watch(&client, 0).await;
    drop((client, pool));
    assert!(is_pending(&mut body).await);
    assert_eq!(server.open(), 1);
    drop(body);
    while server.open() > 0 {
        tokio::task::yield_now().await;
    }
}

/// Whether nothing came, and no end.
async fn is_pending(body: &mut Body) -> bool {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(http_body::Body::poll_frame(std::pin::Pin::new(&mut *body), cx).is_pending())
    })
    .await
}
