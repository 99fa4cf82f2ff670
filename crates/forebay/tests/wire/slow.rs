//! Clients that do not read: what they cost, what they miss, and when they are given up.

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::common::{Protocol, Scratch, Server, rv};
use crate::raw::Raw;
use crate::{CONFIG_MAPS, churn, open_watches};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const PARKED: usize = 150;

/// What a parked watcher may cost more than an idle one: a batch of frames and a TLS record, and what the
/// allocator adds.
const BYTES_EACH_MAX: usize = 56 << 10;
/// What a parked stream may cost: a batch of frames of 16 KiB and what the allocator adds, and its task.
const STREAM_BYTES_EACH_MAX: usize = 56 << 10;
/// What the kernel may keep for it, as it counts payload: a buffer of 32 KiB, and the segment that filled it.
const KERNEL_BYTES_EACH_MAX: u64 = 64 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parked_watchers_cost_little_and_miss_nothing() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (admin, http1) = (server.admin().await, server.admin_over(Protocol::Http1).await);
    let start = churn(&admin, CONFIG_MAPS, "busy", 16 << 10, 1).await;
    let before_churn = churn(&admin, CONFIG_MAPS, "busy", 16 << 10, 300).await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={start}");
    // One that reads everything, before it is measured: what serving costs once is not what each one costs.
    let mut fast = Raw::watch(&http1, &path).await;
    let seen = fast.revisions_up_to(before_churn).await;
    assert_eq!(seen.len(), 300);
    // Nor what a connection costs that waits for events.
    let path_now = format!("{CONFIG_MAPS}?watch=true&resourceVersion={before_churn}");
    let mut idle = Vec::new();
    let before = resident_bytes(&server);
    for _ in 0..PARKED {
        idle.push(Raw::watch(&http1, &path_now).await);
    }
    let idle_each = resident_bytes(&server).saturating_sub(before) / PARKED;
    let before = resident_bytes(&server);
    let mut parked = Vec::new();
    for _ in 0..PARKED {
        parked.push(Raw::watch(&http1, &path).await);
    }
    let each = resident_bytes(&server).saturating_sub(before) / PARKED;
    let newest = churn(&admin, CONFIG_MAPS, "busy", 16 << 10, 50).await;
    let kernel = sent_unread(&server, &parked);
    println!(
        "an idle watcher: {idle_each} B resident; a parked one: {each} B resident, at most {kernel} B in the kernel"
    );
    assert!(each <= idle_each + BYTES_EACH_MAX, "{each} B each");
    assert!(kernel <= KERNEL_BYTES_EACH_MAX, "{kernel} B in the kernel");
    // The others are not held up, and those that were parked go on where they were.
    let later = fast.revisions_up_to(newest).await;
    assert_eq!(later.len(), 50);
    let all: Vec<u64> = seen.into_iter().chain(later).collect();
    for mut one in parked.into_iter().step_by(6) {
        assert_eq!(one.revisions_up_to(newest).await, all);
    }
}

/// Streams of one connection, whose client reads none of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parked_streams_cost_little_and_miss_nothing() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (admin, reader) = (server.admin().await, server.admin().await);
    let start = churn(&admin, CONFIG_MAPS, "busy", 16 << 10, 1).await;
    let before_churn = churn(&admin, CONFIG_MAPS, "busy", 16 << 10, 600).await;
    let path = |from: u64| format!("{CONFIG_MAPS}?watch=true&resourceVersion={from}");
    let _warm = reader.watch(&path(start)).await.events(600).await;
    let before = resident_bytes(&server);
    let mut parked = Vec::new();
    for _ in 0..PARKED {
        parked.push(reader.watch(&path(start)).await);
    }
    // The server goes on with others.
    let mut other = admin.watch(&path(before_churn)).await;
    let newest = churn(&admin, CONFIG_MAPS, "busy", 16 << 10, 20).await;
    assert_eq!(other.events(20).await.last().map(|event| rv(&event.object)), Some(newest));
    let each = resident_bytes(&server).saturating_sub(before) / PARKED;
    println!("a parked stream: {each} B resident");
    assert!(each <= STREAM_BYTES_EACH_MAX, "{each} B each");
    // They share the room of their connection, so they are read together.
    parked.truncate(5);
    let reading = parked.into_iter().map(|mut one| async move {
        one.events(620).await.iter().map(|event| rv(&event.object)).collect::<Vec<u64>>()
    });
    let seen = reading.collect::<JoinSet<_>>().join_all().await;
    assert_eq!(seen[0].last(), Some(&newest));
    assert!(seen.iter().all(|one| *one == seen[0]));
}

/// Takes more than a minute: that is how long nobody is given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_falls_out_of_the_window_is_told_so_or_reset() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let (admin, http1) = (server.admin().await, server.admin_over(Protocol::Http1).await);
    let start = churn(&admin, CONFIG_MAPS, "busy", 900 << 10, 1).await;
    // One that stays in the window is not given up, however long it reads nothing.
    let quiet_start = churn(&admin, SECRETS, "quiet", 1, 1).await;
    let mut patient =
        Raw::watch(&http1, &format!("{SECRETS}?watch=true&resourceVersion={quiet_start}")).await;
    let quiet = churn(&admin, SECRETS, "quiet", 100 << 10, 10).await;
    // 64 MiB of replaced objects are held: these are almost as many, and those behind them more. To write
    // them all takes longer than who takes nothing is waited for, on a slow machine.
    churn(&admin, CONFIG_MAPS, "busy", 900 << 10, 60).await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={start}");
    let (mut told, reset) = (Raw::watch(&http1, &path).await, Raw::watch(&http1, &path).await);
    let mut stream = server.admin().await.watch(&path).await;
    churn(&admin, CONFIG_MAPS, "busy", 900 << 10, 30).await;
    assert_eq!(open_watches(&admin).await, 4);

    let mut last = None;
    while let Some(event) = told.event().await.expect("a reset, not an ERROR") {
        last = Some(event);
    }
    let last = last.expect("events");
    assert_eq!((&last["type"], &last["object"]["code"]), (&"ERROR".into(), &410.into()), "{last}");
    assert_eq!(last["object"]["reason"], "Expired");

    assert!(reset.is_reset(Duration::from_secs(120)).await, "it is still waited for");
    while open_watches(&admin).await > 1 {}
    let metrics = admin.get("/metrics").await;
    let fallen = r#"apiserver_terminated_watchers_total{group="",resource="configmaps"} 3"#;
    assert!(metrics.text().contains(fallen), "{}", metrics.text());
    let broken = loop {
        match stream.next().await {
            Ok(Some(event)) => assert_ne!(event.kind, "ERROR"),
            Ok(None) => panic!("its stream ended as if it were whole"),
            Err(why) => break why,
        }
    };
    println!("the stream was reset: {broken}");
    assert_eq!(patient.revisions_up_to(quiet).await.len(), 10);
    let after = churn(&admin, SECRETS, "quiet", 1, 1).await;
    assert_eq!(patient.revisions_up_to(after).await, [after]);
    assert_eq!(open_watches(&admin).await, 1);
}

fn resident_bytes(server: &Server) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).expect("its status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}

/// The most that the kernel holds for one of `clients` on the server's side.
fn sent_unread(server: &Server, clients: &[Raw]) -> u64 {
    let ports: HashSet<u16> =
        clients.iter().map(|raw| raw.stream.get_ref().0.local_addr().expect("an address").port()).collect();
    let table = fs::read_to_string("/proc/net/tcp").expect("the table");
    let port = |end: &str| u16::from_str_radix(end.split(':').nth(1)?, 16).ok();
    let queued = table.lines().skip(1).filter_map(|row| {
        let fields: Vec<&str> = row.split_ascii_whitespace().collect();
        let ours = port(fields[1])? == server.port && ports.contains(&port(fields[2])?);
        ours.then(|| u64::from_str_radix(fields[4].split(':').next()?, 16).ok())?
    });
    queued.max().expect("connections")
}
