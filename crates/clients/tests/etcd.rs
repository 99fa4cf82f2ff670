//! Ours on a real etcd.

use forebay_clients::etcd::{Cluster, Security};
use forebay_clients::{Detector, Kind, Scenario, Server, needs};

fn start(kind: Kind, cluster: &Cluster) -> Server {
    Server::start_on(kind, cluster).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn fifty_informers_across_kills_on_etcd_ask_for_nothing_again() {
    let (Some(_), Some(scenario)) = (needs::built_peers(), Scenario::built()) else { return };
    let cluster = Cluster::start(1, Security::Mutual).expect("starts");
    let mut server = start(Kind::Forebay, &cluster);
    scenario.run("TestFiftyInformersAcrossKills", &mut server, Detector::Off);
}
