//! The scenarios of overload at size 10 against our own server on an etcd: they run, and what they say adds
//! up.
//!
//! In: the `forebay` binary that cargo put beside this test, and the peers, for etcd; without them the tests
//! are left out, loudly.

mod small;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_bench::client::Protocol;
use forebay_bench::contender::Contender;
use forebay_bench::forebay::Forebay;
use forebay_bench::lab::Lab;
use forebay_bench::overload::Overload;
use forebay_bench::scenarios::{Results, Scenario};
use forebay_clients::needs;
use forebay_scratch::Scratch;

use crate::small::{forebay, lab};

fn overloaded(peers: PathBuf) -> Lab {
    let overload = Overload {
        pods: 10,
        readers: 10,
        informers: 0,
        writes: 20,
        nodes: 10,
        watches: 20,
        standing: 4,
        list_mb: 2,
        peers,
        span: Duration::from_millis(200),
        cage: 3 << 30,
    };
    Lab { overload, ..lab(Protocol::Http1) }
}

/// Runs `scenario` once; `None` after a skip was announced.
async fn run(scenario: Scenario) -> Option<Results> {
    run_on(scenario, &forebay()).await
}

async fn run_on(scenario: Scenario, who: &Contender) -> Option<Results> {
    if !needs::peers_or_skip() {
        return None;
    }
    let etcd = needs::peers().expect("they are there").etcd.clone();
    let lab = overloaded(etcd.parent().expect("it is in a directory").to_owned());
    Some(scenario.run(&lab, who).await.unwrap_or_else(|why| panic!("{why}")))
}

fn only(results: &Results, name: &str) -> f64 {
    let metric = results.metrics.iter().find(|metric| metric.name == name);
    metric.unwrap_or_else(|| panic!("{name} is missing: {results:?}")).samples[0]
}

#[tokio::test]
async fn avalanche_at_size_ten() {
    let Some(results) = run(Scenario::Avalanche).await else { return };
    for blow in ["killed", "killed again", "fullest killed", "all begin anew"] {
        assert_eq!(only(&results, &format!("{blow}: not synced in time")), 0.0, "{blow}");
        assert_eq!(only(&results, &format!("{blow}: heartbeats missed")), 0.0, "{blow}");
    }
    // Whoever lost a connection asks again; whoever begins anew asks for all.
    assert!(only(&results, "killed: requests") > 0.0);
    assert_eq!(only(&results, "all begin anew: lists and watch-lists"), 10.0);
    assert_eq!(only(&results, "servers that died by themselves"), 0.0);
    assert!(only(&results, "peak memory of a server") > 1.0);
    let phases: Vec<&str> = results.waves[0].iter().map(|wave| wave.phase).collect();
    assert_eq!(phases, ["killed", "killed again", "fullest killed", "all begin anew"]);
}

#[tokio::test]
async fn fairness_at_size_ten() {
    let Some(results) = run(Scenario::Fairness).await else { return };
    for way in ["with", "without"] {
        assert!(only(&results, &format!("{way}, goodput: the best")) >= 0.0);
        assert!(only(&results, &format!("{way}, goodput at 3 times")) >= 0.0);
        assert_eq!(only(&results, &format!("{way}, beside the greedy: deaths")), 0.0);
        assert!(only(&results, &format!("{way}, the greedy: watches")) > 0.0);
        assert!(only(&results, &format!("{way}: peak memory")) > 1.0);
    }
}

/// Ours, where with flow control it is killed once, as soon as it was asked for a Secret.
fn killed_once(dir: &Path) -> Contender {
    let Contender::Forebay(forebay) = forebay() else { unreachable!("it is ours") };
    let (policy, script) = (dir.join("policy.json"), dir.join("killed-once"));
    let noted = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata"}]}"#;
    fs::write(&policy, noted).expect("the policy");
    let ours = forebay.program.display();
    let policy = policy.display();
    let text = format!(
        "#!/bin/sh\n\
         log=$PWD/audit.log\n\
         case \"$*\" in *fairness=false*) exec {ours} \"$@\";; esac\n\
         [ -e killed ] && exec {ours} \"$@\"\n\
         (until grep -q /secrets \"$log\"; do kill -0 $$ || exit; sleep 0.05; done; >killed; kill -9 $$) 2>/dev/null &\n\
         exec {ours} \"$@\" --audit-log-path=\"$log\" --audit-policy-file={policy}\n"
    );
    fs::write(&script, text).expect("the script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it may be run");
    Contender::Forebay(Forebay { program: script, ..forebay })
}

#[tokio::test]
async fn in_fairness_a_server_that_dies_is_a_figure_and_the_other_way_is_measured() {
    let scratch = Scratch::new();
    let Some(results) = run_on(Scenario::Fairness, &killed_once(scratch.path())).await else { return };
    assert_eq!(only(&results, "with: deaths"), 1.0);
    let told = &results.mishaps;
    assert!(told.iter().any(|told| told.starts_with("with flow control: died after")), "{told:?}");
    assert_eq!(only(&results, "without: deaths"), 0.0);
    assert!(only(&results, "without, the greedy: watches") > 0.0);
    assert!(!told.iter().any(|told| told.starts_with("without")), "{told:?}");
}
