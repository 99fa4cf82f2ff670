//! What is left when servers are gone: nothing. Alone in its process, as it counts what the process has.

#![cfg(target_os = "linux")]

use std::fs;

use forebay_testing::TestServer;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use tokio::task::JoinSet;

/// Servers before the first count, so that what is made once is there.
const WARM_UP: usize = 20;
const SERVERS: usize = 200;
/// A server takes a few MiB; were one in fifty kept, this would not be enough.
const GROWTH_MAX_KIB: u64 = 48 << 10;

async fn round(servers: usize) {
    for _ in 0..servers / 10 {
        let mut running = JoinSet::new();
        for _ in 0..10 {
            running.spawn(async {
                let server = TestServer::start().await.expect("started");
                let namespaces: Api<Namespace> = Api::all(server.client());
                let listed = namespaces.list(&ListParams::default()).await.expect("listed");
                assert!(!listed.items.is_empty());
                server.stop().await;
            });
        }
        running.join_all().await;
    }
}

fn entries(dir: &str) -> usize {
    fs::read_dir(dir).expect("Linux has it").count()
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[tokio::test]
async fn two_hundred_servers_leave_nothing_behind() {
    round(WARM_UP).await;
    let (threads, files, resident) = (entries("/proc/self/task"), entries("/proc/self/fd"), resident_kib());
    round(SERVERS).await;
    // Threads of the pools may still start; one for each server would be two hundred.
    assert!(entries("/proc/self/task") <= threads + 10, "more than {threads} threads");
    // A connection of a client that was dropped last may still be closing.
    assert!(entries("/proc/self/fd") <= files + 10, "more than {files} files");
    let grown = resident_kib().saturating_sub(resident);
    assert!(grown < GROWTH_MAX_KIB, "{grown} KiB more than {resident}");
}
