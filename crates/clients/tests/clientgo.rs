//! client-go, as controllers use it: informers with its defaults, of which the watch list is one.
//!
//! In: the Go module `go/`, built by the first test, and a server a test that ends it or one for all others.
//! Out: the verdict of each Go test as one of ours. Never: Go's own tests run without a server.

use std::sync::{Mutex, OnceLock, PoisonError};

use forebay_clients::{ControlPlane, Detector, Scenario};

/// Runs the Go test `name` on the server that these tests share.
fn shared(name: &str) {
    // Statics are not dropped: the watchdog ends this server with the test process.
    static SERVER: OnceLock<Result<Mutex<ControlPlane>, String>> = OnceLock::new();
    let Some(scenario) = Scenario::built() else { return };
    let server = SERVER.get_or_init(|| ControlPlane::start().map(Mutex::new)).as_ref();
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
fn what_comes_in_gzip_is_read_as_it_comes() {
    shared("TestGzip");
}

#[test]
fn an_informer_outlives_the_server() {
    let Some(scenario) = Scenario::built() else { return };
    let mut server = ControlPlane::start().unwrap_or_else(|why| panic!("{why}"));
    scenario.run("TestInformerOutlivesTheServer", &mut server, Detector::On);
}

#[test]
fn typed_objects_come_back_as_they_were_sent() {
    shared("TestTypedObjects");
}

#[test]
fn writers_of_one_object_retry_until_all_are_through() {
    shared("TestWritersRetryOnConflict");
}

#[test]
fn typed_patches_of_each_kind_apply() {
    shared("TestTypedPatches");
}

#[test]
fn server_side_apply_says_whose_a_field_is() {
    shared("TestTypedApply");
}

#[test]
fn a_deployment_is_scaled_through_its_scale() {
    shared("TestTypedScale");
}

#[test]
fn typed_clients_speak_protobuf() {
    shared("TestTypedClientsSpeakProtobuf");
}

#[test]
fn leadership_passes_on_when_the_holder_goes() {
    shared("TestLeaderElection");
}

#[test]
fn events_told_again_are_counted() {
    shared("TestCoreEventsAreCounted");
}

#[test]
fn events_told_again_become_a_series() {
    shared("TestEventsBecomeSeries");
}

#[test]
fn listers_of_a_factory_agree_with_the_server() {
    shared("TestListersAgreeWithTheServerUnderAWriter");
}

#[test]
fn a_factory_resumes_after_restarts_without_listing_again() {
    let Some(scenario) = Scenario::built() else { return };
    let mut server = ControlPlane::start().unwrap_or_else(|why| panic!("{why}"));
    // The detector lists.
    scenario.run("TestInformersResumeAfterARestart", &mut server, Detector::Off);
}

#[test]
fn fifty_informers_across_kills_ask_for_nothing_again() {
    let Some(scenario) = Scenario::built() else { return };
    let mut server = ControlPlane::start().unwrap_or_else(|why| panic!("{why}"));
    // The detector lists.
    scenario.run("TestFiftyInformersAcrossKills", &mut server, Detector::Off);
}

#[test]
fn an_eviction_asks_the_disruption_budget() {
    shared("TestTypedEviction");
}
