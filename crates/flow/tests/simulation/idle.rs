//! Who comes while its level has room is not refused, whatever was known of how slowly the level goes.

use std::time::Duration;

use forebay_flow::Opening;

use crate::server::{Client, Server};

/// A level that was busy for seconds with what takes long, and whose queues are known to drain slowly.
fn busy(server: &mut Server, until: u64) {
    for at in 0..until * 20 {
        let mut client = Client::new("slow", &format!("user-{}", at % 50), &[]);
        client.price.cpu = Duration::from_millis(400);
        client.obeys = false;
        server.asks(client, Duration::from_millis(at * 50));
    }
}

#[test]
fn nobody_is_refused_by_a_level_that_idles() {
    let mut server = Server::new(2, 0.0, Opening::Open);
    busy(&mut server, 10);
    // 80 s of work for two cores: it waits 15 s at most, then all is over.
    server.run_until(Duration::from_secs(120));
    let slow = &server.outcomes["slow"];
    assert!(slow.refused > 50, "{}", slow.refused);
    let refused = server.rejections.len();
    for second in 0..20 {
        for user in 0..4 {
            let mut client = Client::new("quick", &format!("user-{user}"), &[]);
            // As if it took long: by its price it would wait for more than 3 s.
            client.price.cpu = Duration::from_secs(4);
            server.asks(client, Duration::from_secs(120 + 10 * second));
        }
    }
    server.run_until(Duration::from_secs(360));
    assert_eq!((server.rejections.len(), server.outcomes["quick"].latencies.len()), (refused, 80));
}

#[test]
fn nobody_is_refused_while_its_levels_share_is_free_beside_one_that_has_too_much() {
    let mut server = Server::new(2, 0.0, Opening::Open);
    busy(&mut server, 10);
    // Another level: few requests, each within its share.
    for at in 0..100 {
        let mut node = Client::new("node", "system:node:a", &["system:nodes"]);
        node.price.cpu = Duration::from_millis(2);
        server.asks(node, Duration::from_millis(at * 100));
    }
    server.run_until(Duration::from_secs(60));
    let node = &server.outcomes["node"];
    assert!(server.outcomes["slow"].refused > 50);
    assert_eq!((node.refused, node.latencies.len()), (0, 100));
}
