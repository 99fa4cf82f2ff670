//! What is seen of a server while it works.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use forebay_flow::{DetailsShown, Opening};

use crate::server::{Client, Reader, Server};

#[test]
fn dumps_and_metrics_say_who_runs() {
    let mut server = Server::new(2, 0.0, Opening::Open);
    let mut client = Client::new("one", "jane", &[]);
    client.reader = Reader::StandsStill;
    server.asks(client, Duration::from_millis(1_500));
    server.run_until(Duration::from_secs(2));
    let levels = server.dispatcher.dump_priority_levels();
    let row = levels.lines().find(|line| line.starts_with("global-default,")).unwrap();
    let cells: Vec<&str> = row.split(',').map(str::trim).collect();
    assert_eq!(cells, ["global-default", "0", "false", "false", "0", "1", "1", "0", "0", "0"]);
    let requests = server.dispatcher.dump_requests(UNIX_EPOCH, DetailsShown::Yes);
    let cells: Vec<&str> = requests.lines().nth(1).unwrap().split(',').map(str::trim).collect();
    assert_eq!(cells[..2], ["global-default", "global-default"]);
    assert_eq!(
        cells[3..],
        [
            "-1",
            "jane",
            "1970-01-01T00:00:01.5Z",
            "1",
            "0",
            "0s",
            "1970-01-01T00:00:01.5Z",
            "jane",
            "get",
            "/api/v1",
            "",
            "",
            "v1",
            "pods",
            "",
        ]
    );
    let queues = server.dispatcher.dump_queues();
    assert_eq!(queues.lines().count(), 1 + 64 + 64 + 16 + 128 * 3);
    let measures = server.dispatcher.metrics();
    let names: BTreeSet<&str> = measures.iter().map(|measure| measure.name).collect();
    assert_eq!(names.len(), measures.len(), "a metric of one name stands once");
    assert!(names.contains("apiserver_flowcontrol_nominal_limit_seats"));
}
