//! Python's `kubernetes`: objects, errors, pages, patches, watches, custom and discovered kinds, manifests.
//!
//! In: the tests in `python/` and the client that `cargo xtask peers` installed; one server for all. Out: the
//! verdict of each as one of ours.

use std::sync::OnceLock;

use forebay_clients::{ControlPlane, Python};

fn run(name: &str) {
    // Statics are not dropped: the watchdog ends this server with the test process.
    static SERVER: OnceLock<Result<ControlPlane, String>> = OnceLock::new();
    let Some(python) = Python::installed() else { return };
    let server = SERVER.get_or_init(ControlPlane::start).as_ref().unwrap_or_else(|why| panic!("{why}"));
    python.run(name, server);
}

#[test]
fn python_creates_reads_changes_and_deletes() {
    run("test_objects.Objects.test_python_creates_reads_changes_and_deletes");
}

#[test]
fn python_is_told_errors_as_status() {
    run("test_objects.Objects.test_python_is_told_errors_as_status");
}

#[test]
fn python_lists_in_pages() {
    run("test_objects.Objects.test_python_lists_in_pages");
}

#[test]
fn python_patches() {
    run("test_objects.Objects.test_python_patches");
}

#[test]
fn python_scales() {
    run("test_objects.Objects.test_python_scales");
}

#[test]
fn python_deletes_collections_and_with_preconditions() {
    run("test_objects.Objects.test_python_deletes_collections_and_with_preconditions");
}

#[test]
fn python_watches_the_state_and_resumes() {
    run("test_watch.Watches.test_python_watches_the_state_and_resumes");
}

#[test]
fn python_gets_bookmarks_and_the_end_of_the_initial_events() {
    run("test_watch.Watches.test_python_gets_bookmarks_and_the_end_of_the_initial_events");
}

#[test]
fn python_is_told_once_that_history_is_gone() {
    run("test_watch.Watches.test_python_is_told_once_that_history_is_gone");
}

#[test]
fn python_handles_custom_objects() {
    run("test_dynamic.Kinds.test_python_handles_custom_objects");
}

#[test]
fn python_discovers_kinds() {
    run("test_dynamic.Kinds.test_python_discovers_kinds");
}

#[test]
fn python_creates_from_yaml() {
    run("test_dynamic.Kinds.test_python_creates_from_yaml");
}

#[test]
fn python_watches_over_websocket() {
    run("test_websocket.WebSockets.test_python_watches_over_websocket");
}

#[test]
fn python_gets_protobuf_over_websocket() {
    run("test_websocket.WebSockets.test_python_gets_protobuf_over_websocket");
}

#[test]
fn python_is_refused_a_websocket() {
    run("test_websocket.WebSockets.test_python_is_refused_a_websocket");
}
