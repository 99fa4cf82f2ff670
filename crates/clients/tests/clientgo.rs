//! client-go, as controllers use it: informers with its defaults, of which the watch list is one.
//!
//! In: the Go module `go/`, built by the first test, and a server a test that ends it or one for all others. Out: the verdict
//! of each Go test as one of ours.
//! Never: Go's own tests run without a server.

use std::sync::{Mutex, OnceLock, PoisonError};

use forebay_clients::{Detector, Scenario, Server};

/// Runs the Go test `name` on the server that these tests share.
fn shared(name: &str) {
    // Statics are not dropped: the watchdog ends this server with the test process.
    static SERVER: OnceLock<Result<Mutex<Server>, String>> = OnceLock::new();
    let Some(scenario) = Scenario::built() else { return };
    let server = SERVER.get_or_init(|| Server::start().map(Mutex::new)).as_ref();
    let server = server.unwrap_or_else(|why| panic!("{why}"));
    let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
    scenario.run(name, &mut server, Detector::On);
}

#[test]
fn dynamic_informer_sees_the_initial_and_the_later_events() {
    shared("TestDynamicInformer");
}

#[test]
fn metadata_informer_sees_metadata_only() {
    shared("TestMetadataInformer");
}

#[test]
fn typed_informer_takes_json_and_what_it_prefers() {
    shared("TestTypedInformerInProtobufOrJSON");
}

#[test]
fn pages_show_one_state() {
    shared("TestTwoHundredObjectsInPages");
}

#[test]
fn an_informer_outlives_the_server() {
    let Some(scenario) = Scenario::built() else { return };
    let mut server = Server::start().unwrap_or_else(|why| panic!("{why}"));
    scenario.run("TestInformerOutlivesTheServer", &mut server, Detector::On);
}
