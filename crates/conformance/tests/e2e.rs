//! Upstream's own end-to-end specs, of what an API server does without nodes.
//!
//! In: `FOREBAY_E2E`, the program of them, which `cargo xtask e2e` builds and names; without it there is
//! nothing to run. `FOREBAY_E2E_FOCUS` names specs by a regular expression, else it is all of
//! sig-api-machinery; those of `e2e/left-out.txt` are left out. With `FOREBAY_TEST_SERVER=kube-apiserver`
//! upstream's own server is asked. Out: the specs that fail, held against `allowed/e2e.txt`. Never: built
//! here.

use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_clients::needs;
use forebay_clients::server::{ControlPlane, Implementation};
use forebay_conformance::Allowed;
use serde_json::Value;

const ALL: &str = "sig-api-machinery";
const LEFT_OUT: &str = include_str!("../e2e/left-out.txt");
const ALLOWED: &str = include_str!("../allowed/e2e.txt");
/// A run of all of them takes minutes.
const RUN_MAX: &str = "40m";

/// What became of the specs of a run.
#[derive(Default)]
struct Outcome {
    passed: usize,
    failed: Vec<String>,
}

#[test]
fn upstreams_own_specs_pass() {
    let Some(program) = std::env::var_os("FOREBAY_E2E").map(PathBuf::from) else { return };
    let focus = std::env::var("FOREBAY_E2E_FOCUS").unwrap_or_default();
    let server = server();
    let report = server.dir().join("e2e.json");
    let focused = if focus.is_empty() { ALL } else { &focus };
    let status = run(&program, &server, focused, &report);
    let text = std::fs::read_to_string(&report).unwrap_or_else(|why| panic!("no report, {status}: {why}"));
    let Outcome { passed, failed } = outcome(&serde_json::from_str(&text).expect("the report"));
    println!("figure: {passed} of {} specs pass", passed + failed.len());
    assert!(passed + failed.len() > 0, "no spec has a name like {focused}");
    let is_ours = server.implementation() == Implementation::Forebay;
    let mut allowed = Allowed::parse(if is_ours { ALLOWED } else { "" }).expect("the allowed failures");
    let unexpected: Vec<&String> = failed.iter().filter(|spec| !allowed.permits(spec)).collect();
    assert!(unexpected.is_empty(), "{status}: {unexpected:#?}");
    // A part of them need not have all that fails.
    let stale = if focus.is_empty() { allowed.stale() } else { Vec::new() };
    assert!(stale.is_empty(), "these pass by now: {stale:#?}");
}

/// The server that is asked for, with the controllers that specs wait for: our own, or the real ones.
fn server() -> ControlPlane {
    match Implementation::asked().expect("a server's name") {
        Implementation::Forebay => ControlPlane::start_told(vec!["--controllers=*".to_owned()]),
        Implementation::KubeApiserver => {
            ControlPlane::with_controllers(needs::built_peers().expect("the peers, built"))
        }
    }
    .expect("a server")
}

/// Runs the specs, whose own output is shown, and says how the program ended.
fn run(program: &Path, server: &ControlPlane, focus: &str, report: &Path) -> String {
    let mut command = Command::new(program);
    command.current_dir(server.dir()).arg("--provider=skeleton");
    command.arg(format!("--kubeconfig={}", server.kubeconfig().display()));
    if let Some(kubectl) = needs::kubectl() {
        command.arg(format!("--kubectl-path={}", kubectl.display()));
    }
    command.arg(format!("--ginkgo.focus={focus}")).arg(format!("--ginkgo.skip={}", left_out()));
    command.arg(format!("--ginkgo.json-report={}", report.display()));
    command.args(["--ginkgo.no-color", "--ginkgo.v"]).arg(format!("--ginkgo.timeout={RUN_MAX}"));
    command.status().expect("the program starts").to_string()
}

/// One regular expression of all that is left out.
fn left_out() -> String {
    let lines = LEFT_OUT.lines().map(str::trim);
    let named =
        lines.filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("because "));
    named.collect::<Vec<_>>().join("|")
}

/// - `report`: Ginkgo's.
fn outcome(report: &Value) -> Outcome {
    let mut outcome = Outcome::default();
    let suites = report.as_array().into_iter().flatten();
    for spec in suites.flat_map(|suite| suite["SpecReports"].as_array().into_iter().flatten()) {
        match spec["State"].as_str().unwrap_or_default() {
            "passed" => outcome.passed += 1,
            // Not named, or left out by itself: it says of a server that it lacks what the spec is about.
            "skipped" | "pending" => {}
            _ => outcome.failed.push(named(spec)),
        }
    }
    outcome
}

/// The whole name of a spec, and what it is if it has none: what runs before and after all of them.
fn named(spec: &Value) -> String {
    let above = spec["ContainerHierarchyTexts"].as_array().into_iter().flatten();
    let texts =
        above.chain([&spec["LeafNodeText"]]).filter_map(Value::as_str).filter(|text| !text.is_empty());
    let name = texts.collect::<Vec<_>>().join(" ");
    if name.is_empty() { spec["LeafNodeType"].as_str().unwrap_or_default().to_owned() } else { name }
}

#[test]
fn a_spec_that_is_neither_passed_nor_skipped_has_failed() {
    let spec = |state: &str, name: &str| serde_json::json!({ "State": state, "ContainerHierarchyTexts": ["[sig] A"], "LeafNodeText": name, "LeafNodeType": "It" });
    let report = serde_json::json!([{ "SpecReports": [
        spec("passed", "a"), spec("skipped", "b"), spec("failed", "c"), spec("timedout", "d"),
        { "State": "panicked", "LeafNodeText": "", "LeafNodeType": "SynchronizedBeforeSuite" },
    ] }]);
    let Outcome { passed, failed } = outcome(&report);
    assert_eq!(
        (passed, failed),
        (1, vec!["[sig] A c".into(), "[sig] A d".into(), "SynchronizedBeforeSuite".into()])
    );
}

#[test]
fn what_is_left_out_has_a_reason_and_is_one_expression() {
    Allowed::parse(LEFT_OUT).expect("a reason above each");
    let all = left_out();
    assert!(all.starts_with("AdmissionWebhook|") && !all.contains("because"), "{all}");
}
