//! Three servers on one etcd, and clients who all came to the first: where they are after a while, and what
//! it cost them.

use std::time::Duration;

use forebay_clients::etcd::{Cluster, Security};
use forebay_clients::https::{Call, KeptConnection};
use forebay_clients::relay::Relay;
use forebay_clients::wait::until;
use forebay_clients::{ControlPlane, needs};

use super::ADVERTISED;

const CLIENTS: usize = 45;
/// Each its third, and what is within a quarter of it.
const SHARE: std::ops::RangeInclusive<usize> = 11..=19;

/// About two seconds for each that moves; on a machine that does other things as well.
const SPREAD_MAX: Duration = Duration::from_secs(300);

/// A value of `/metrics`, 0 if it is not there.
fn metric(server: &ControlPlane, series: &str) -> usize {
    let answer = server.ask(Call { method: "GET", path: "/metrics", body: "" }).expect("answers");
    let line = answer.body.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0, |value| value.parse().expect("a number"))
}

#[test]
fn clients_of_one_of_three_servers_come_to_all_of_them_and_lose_no_answer() {
    if needs::built_peers().is_none() {
        return;
    }
    let cluster = Cluster::start(1, Security::Plain).expect("starts");
    let servers: Vec<_> = ADVERTISED
        .iter()
        .map(|address| {
            let mut flags = cluster.flags();
            flags.push(format!("--cert-dir={}", cluster.dir().join("pki").display()));
            flags.push(format!("--advertise-address={address}"));
            ControlPlane::start_told(flags).unwrap_or_else(|why| panic!("{why}"))
        })
        .collect();
    let credentials = servers[0].credentials().expect("a kubeconfig");
    let balancer = Relay::between(servers.iter().map(ControlPlane::port).collect()).expect("starts");
    let open = |port| Some(KeptConnection::open(port, &credentials).expect("a connection"));
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| open(servers[0].port())).collect();
    until("all hold their share", SPREAD_MAX, || {
        for client in &mut clients {
            let kept = client.take().or_else(|| open(balancer.port())).expect("a connection");
            let (answer, kept) = kept.get("/version").expect("every answer is whole");
            assert_eq!(answer.code, 200, "{}", answer.body);
            *client = kept;
        }
        // One of them is the connection that asks.
        let held: Vec<_> = servers
            .iter()
            .map(|server| metric(server, "forebay_connections_open{client=\"known\"}") - 1)
            .collect();
        match held.iter().all(|held| SHARE.contains(held)) {
            true => Ok(()),
            false => Err(format!("{held:?}")),
        }
    })
    .expect("spread");
    assert!(metric(&servers[0], "forebay_connections_told_to_go_total{reason=\"share\"}") >= CLIENTS / 2);
    for server in &servers {
        assert_eq!(metric(server, "forebay_neighbours{says=\"true\"}"), 2);
    }
}
