//! A few faults between kube-rs and ours: that the proxy, the clients, the writers and the count go together.
//!
//! In: a server in this process. Out: a verdict for each client. Never: Go, or another server; those are for
//! `forebay-faults`.

use std::time::Duration;

use forebay_faults::fault::Fault;
use forebay_faults::rivals;
use forebay_faults::run::{Plan, Stage};
use forebay_testing::TestServer;

const INFORMERS: u64 = 3;

#[test]
fn kube_rs_lists_again_after_410_and_after_nothing_else_here() {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let server = runtime.block_on(TestServer::start()).expect("a server");
    let plan = Plan {
        informers: INFORMERS as usize,
        writes_per_second: 50,
        a_while: Duration::from_millis(200),
        long: Duration::from_millis(500),
        blind_max: Duration::from_secs(120),
        equal_max: Duration::from_secs(120),
    };
    let clients =
        [rivals::named("kube-rs"), rivals::named("kube-rs-streaming")].map(|it| it.expect("it is one"));
    let mut stage = Stage::set(&server.config(), plan).expect("namespaces");
    for (fault, needed) in
        [(Fault::Refused, 0), (Fault::Eof, 0), (Fault::HalfFrame, 0), (Fault::ErrorExpired, INFORMERS)]
    {
        let outcome = stage.run(fault, &clients).expect("a run");
        for (verdict, client) in outcome.of.iter().zip(&clients) {
            assert!(verdict.equal && verdict.blind.is_some(), "{fault}: {}: {verdict:?}", client.name);
            assert!(verdict.blind >= Some(outcome.lasted), "{fault}: it sees before the fault is over");
            assert_eq!(verdict.asked.whole(), needed, "{fault}: {}: {verdict:?}", client.name);
        }
    }
}
