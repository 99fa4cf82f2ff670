//! Helm's libraries, of Helm 3 and of Helm 4: releases of a chart with objects of built-in kinds, a kind of
//! its own and a hook.
//!
//! In: the Go modules `helm/` and `helm4/`, each built by its first test; one server for all. Out: the
//! verdict of each Go test as one of ours. What Helm 4 leaves is what it left on kube-apiserver:
//! `helm4/left/`.

use std::sync::{Mutex, OnceLock, PoisonError};

use forebay_clients::{ControlPlane, Detector, Scenario};

fn run(scenario: Option<Scenario>, name: &str) {
    // Statics are not dropped: the watchdog ends this server with the test process.
    static SERVER: OnceLock<Result<Mutex<ControlPlane>, String>> = OnceLock::new();
    let Some(scenario) = scenario else { return };
    let server = SERVER.get_or_init(|| ControlPlane::start().map(Mutex::new)).as_ref();
    let server = server.unwrap_or_else(|why| panic!("{why}"));
    let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
    scenario.run(name, &mut server, Detector::Off);
}

#[test]
fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() {
    run(Scenario::helm(), "TestRelease");
}

#[test]
fn an_installation_waits_until_all_is_ready() {
    run(Scenario::helm(), "TestReleaseWaits");
}

#[test]
fn a_release_by_server_side_apply_shares_conflicts_and_rolls_back() {
    run(Scenario::helm4(), "TestReleaseByServerSideApply");
}

#[test]
fn a_release_of_before_moves_to_server_side_apply() {
    run(Scenario::helm4(), "TestReleaseMovesToServerSideApply");
}
