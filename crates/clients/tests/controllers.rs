//! The real kube-controller-manager and kube-scheduler on our server, with a test that plays the kubelets.
//!
//! In: the Go module `go/` and the peers, built; one server with both beside it for all tests. Out: the
//! verdict of each Go test as one of ours. Never: a controller of our own at work.

use std::sync::{Mutex, OnceLock, PoisonError};

use forebay_clients::{ControlPlane, Detector, Scenario, needs};

fn run(name: &str) {
    // Statics are not dropped: the watchdog ends all three with the test process.
    static SERVER: OnceLock<Result<Mutex<ControlPlane>, String>> = OnceLock::new();
    let (Some(scenario), Some(peers)) = (Scenario::built(), needs::built_peers()) else { return };
    let server = SERVER.get_or_init(|| ControlPlane::with_controllers(peers).map(Mutex::new)).as_ref();
    let server = server.unwrap_or_else(|why| panic!("{why}"));
    let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
    scenario.run(name, &mut server, Detector::Off);
    server.beside_alive().unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn a_deployment_is_scaled_rolled_out_and_bound_to_nodes() {
    run("TestClusterRunsADeployment");
}

#[test]
fn a_job_completes_and_its_pods_are_collected() {
    run("TestClusterCompletesAJob");
}

#[test]
fn what_is_owned_is_collected_in_all_three_ways() {
    run("TestClusterCollectsWhatIsOwned");
}

#[test]
fn a_namespace_ends_with_all_that_is_in_it() {
    run("TestClusterEndsANamespace");
}

#[test]
fn a_stateful_set_is_made_in_order_with_its_volumes() {
    run("TestClusterRunsAStatefulSet");
}

#[test]
fn a_daemon_set_is_found_by_its_service_and_counted_by_its_budget() {
    run("TestClusterServesADaemonSet");
}

#[test]
fn quotas_are_counted_and_finished_jobs_go() {
    run("TestClusterKeepsCount");
}

#[test]
fn the_scheduler_says_why_a_pod_waits() {
    run("TestClusterSchedulerSaysWhy");
}

#[test]
fn both_ask_the_server_who_calls_them() {
    run("TestClusterPortsAskTheServer");
}

#[test]
fn both_outlive_the_server() {
    run("TestClusterOutlivesTheServer");
}

#[test]
fn both_leaders_hold_their_leases() {
    run("TestClusterLeadersHoldLeases");
}
