//! What is seen of a server while it works.

use std::collections::BTreeSet;
use std::time::{Duration, UNIX_EPOCH};

use forebay_apimachinery::attributes::About;
use forebay_apimachinery::{Attributes, Verb};
use forebay_flow::{
    Access, Arrival, Details, DetailsShown, Dispatcher, FlowEffect, FlowInput, LimitBounds, Opening, Setup,
};

use crate::server::{Client, Reader, Server, dispatcher};

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

#[test]
fn who_waits_for_others_holds_no_seat() {
    let bounds = LimitBounds { seats_min: 1, seats_max: 1, bytes_max: 1 << 30 };
    let setup = Setup { bounds, watch_bytes: 1 << 20, cores: 2, start: Opening::Open };
    let (mut machine, now) = (dispatcher(setup, Duration::ZERO), Duration::ZERO);
    let client = Client::new("one", "jane", &[]);
    let asked = Attributes { caller: &client.caller, verb: &Verb::List, about: About::Path("/x") };
    let arrives = |machine: &mut Dispatcher, id| {
        let details = Details::of(&asked, "/x");
        let arrival = Arrival::new(id, machine.flow(&asked), client.price, Access::Read, details);
        machine.step(FlowInput::Arrived(Box::new(arrival)), now)
    };
    assert_eq!(arrives(&mut machine, 1), [FlowEffect::Run { id: 1 }]);
    assert!(arrives(&mut machine, 2).is_empty());
    let waits = FlowInput::Begun { id: 1, cpu: Duration::ZERO };
    assert_eq!(machine.step(waits, now), [FlowEffect::Run { id: 2 }]);
    // That it was worked on later gives no seat back a second time.
    assert!(arrives(&mut machine, 3).is_empty());
    let answered = FlowInput::Answered { id: 1, cpu: client.price.cpu };
    assert!(machine.step(answered, now).is_empty());
    assert!(machine.step(FlowInput::Left { id: 1 }, now).is_empty());
    let answered = FlowInput::Answered { id: 2, cpu: client.price.cpu };
    assert_eq!(machine.step(answered, now), [FlowEffect::Run { id: 3 }]);
}
