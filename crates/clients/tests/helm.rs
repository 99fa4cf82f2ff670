//! Helm's library: releases of a chart with objects of built-in kinds, a kind of its own and a hook.
//!
//! In: the Go module `helm/`, built by the first test; one server for all. Out: the verdict of each Go test as one of ours.

use std::sync::{Mutex, OnceLock, PoisonError};

use forebay_clients::{Detector, Scenario, Server};

fn run(name: &str) {
    // Statics are not dropped: the watchdog ends this server with the test process.
    static SERVER: OnceLock<Result<Mutex<Server>, String>> = OnceLock::new();
    let Some(scenario) = Scenario::helm() else { return };
    let server = SERVER.get_or_init(|| Server::start().map(Mutex::new)).as_ref();
    let server = server.unwrap_or_else(|why| panic!("{why}"));
    let mut server = server.lock().unwrap_or_else(PoisonError::into_inner);
    scenario.run(name, &mut server, Detector::Off);
}

#[test]
fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() {
    run("TestRelease");
}

#[test]
fn an_installation_waits_until_all_is_ready() {
    run("TestReleaseWaits");
}
