//! Upstream's own end-to-end specs of what an API server does, in a rig of the server, kube-scheduler,
//! kube-controller-manager and one node.
//!
//! In: `FOREBAY_E2E`, the program of them, and `FOREBAY_AGNHOST`, what their pods run; `cargo xtask e2e`
//! builds and names both, and without them there is nothing to run. `FOREBAY_E2E_FOCUS` names specs by a
//! regular expression, else it is all of sig-api-machinery and sig-auth and those of LimitRange; those of
//! `e2e/left-out.txt` are left out. `FOREBAY_E2E_ADDRESS` is the address of pods, in a network of the rig's
//! own; without it those of `e2e/needs-pods.txt` are left out, too. With
//! `FOREBAY_TEST_SERVER=kube-apiserver` upstream's own server is asked in the same rig. Out: the specs that
//! fail, held against `allowed/e2e.txt`. Never: built here.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_clients::server::{self, ControlPlane, Implementation};
use forebay_clients::{Images, ServingNode, needs};
use forebay_conformance::Allowed;
use forebay_scratch::Scratch;
use serde_json::Value;

const ALL: &str = r"sig-api-machinery|sig-auth|sig-scheduling\] LimitRange";
const LEFT_OUT: &str = include_str!("../e2e/left-out.txt");
const NEED_PODS: &str = include_str!("../e2e/needs-pods.txt");
const ALLOWED: &str = include_str!("../allowed/e2e.txt");
/// A run of all of them takes minutes.
const RUN_MAX: &str = "90m";
/// As kubeadm's clusters are: pods have accounts, nodes are kept to what is theirs, and whoever asks has
/// roles. Other tests turn all of that off.
const AS_A_CLUSTER: [&str; 3] = [
    "--disable-admission-plugins=",
    "--enable-admission-plugins=NodeRestriction",
    "--authorization-mode=Node,RBAC",
];
/// The controllers that are our server's own, which the real manager is not to run beside it.
const OWN: [&str; 17] = [
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "validatingadmissionpolicy-status-controller",
    "resourcequota-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "volumeattributesclass-protection-controller",
    "clusterrole-aggregation-controller",
    "ttl-after-finished-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "endpointslice-mirroring-controller",
    "certificatesigningrequest-signing-controller",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
];

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
    let scratch = Scratch::new();
    let peers = needs::built_peers().expect("the peers, built");
    let address = std::env::var("FOREBAY_E2E_ADDRESS").ok().map(|text| text.parse().expect("an address"));
    let server = server(peers, address, scratch.path());
    let node = address.map(|address| {
        let agnhost = std::env::var_os("FOREBAY_AGNHOST").expect("agnhost, beside the specs").into();
        let (etcd, sample_apiserver) = (peers.etcd.clone(), peers.sample_apiserver.clone());
        ServingNode::start(&server, Images { agnhost, etcd, sample_apiserver }, address).expect("a node")
    });
    let skipped = left_out(if node.is_some() { &[LEFT_OUT] } else { &[LEFT_OUT, NEED_PODS] });
    let report = server.dir().join("e2e.json");
    let focused = if focus.is_empty() { ALL } else { &focus };
    let status = run(&program, &server, focused, &skipped, &report);
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

/// The server that is asked for, with the controllers that specs wait for: ours has its own, and those that
/// it lacks from the real manager.
///
/// - `address`: in the rig's own network, where no route leads out and tells which one it is.
/// - `dir`: where certificates of the rig are kept.
fn server(peers: &needs::Peers, address: Option<Ipv4Addr>, dir: &Path) -> ControlPlane {
    let mut flags = AS_A_CLUSTER.map(str::to_owned).to_vec();
    flags.extend(address.map(|address| format!("--advertise-address={address}")));
    let (server, wanted) = match Implementation::asked().expect("a server's name") {
        Implementation::Forebay => {
            flags.push("--controllers=*".to_owned());
            (ControlPlane::start_told(flags), format!("*,-{}", OWN.join(",-")))
        }
        Implementation::KubeApiserver => {
            flags.extend(server::front_proxy(dir).expect("certificates"));
            // There is no proxy of services here, so it goes to the pods behind them.
            flags.push("--enable-aggregator-routing=true".to_owned());
            (ControlPlane::start_rival_with(flags), "*".to_owned())
        }
    };
    let mut server = server.expect("a server");
    server.start_controllers(peers, &wanted).expect("the controllers");
    server
}

/// Runs the specs, whose own output is shown, and says how the program ended.
fn run(program: &Path, server: &ControlPlane, focus: &str, skipped: &str, report: &Path) -> String {
    let mut command = Command::new(program);
    command.current_dir(server.dir()).arg("--provider=skeleton");
    command.arg(format!("--kubeconfig={}", server.kubeconfig().display()));
    if let Some(kubectl) = needs::kubectl() {
        command.arg(format!("--kubectl-path={}", kubectl.display()));
    }
    command.arg(format!("--ginkgo.focus={focus}")).arg(format!("--ginkgo.skip={skipped}"));
    command.arg(format!("--ginkgo.json-report={}", report.display()));
    command.args(["--ginkgo.no-color", "--ginkgo.v"]).arg(format!("--ginkgo.timeout={RUN_MAX}"));
    command.status().expect("the program starts").to_string()
}

/// One regular expression of all that is left out.
fn left_out(lists: &[&str]) -> String {
    let lines = lists.iter().flat_map(|list| list.lines()).map(str::trim);
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
    for list in [LEFT_OUT, NEED_PODS] {
        Allowed::parse(list).expect("a reason above each");
    }
    let all = left_out(&[LEFT_OUT, NEED_PODS]);
    assert!(all.starts_with("Etcd failure|") && all.contains("|AdmissionWebhook|"), "{all}");
    assert!(!all.contains("because") && !all.contains('#'), "{all}");
}
