//! The examples, run as a reader would, against a real server.
//!
//! In: the programs that `cargo test` builds beside this one. Out: what they print. Never: a wait without a
//! limit.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use forebay_clients::{ControlPlane, wait};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::json;

/// Longest wait for a program.
const WAIT_MAX: Duration = Duration::from_secs(120);

fn start(server: &ControlPlane, name: &str, args: &[&str]) -> Child {
    let here = std::env::current_exe().expect("this program");
    let dir: PathBuf = here.ancestors().nth(2).expect("target/<profile>").join("examples");
    let mut command = Command::new(dir.join(name));
    command.args(args).env("KUBECONFIG", server.kubeconfig()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}; `cargo test` without a target builds the examples"))
}

/// What it printed, once it has ended well.
fn output(mut child: Child) -> String {
    let end = || child.try_wait().map_err(|error| error.to_string())?.ok_or_else(|| "it runs".to_owned());
    let ended = wait::until("an example's end", WAIT_MAX, end);
    let ended = ended.unwrap_or_else(|why| {
        child.kill().expect("it is killed");
        panic!("{why}")
    });
    let output = child.wait_with_output().expect("its output");
    assert!(ended.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_does_what_it_says() {
    let server = ControlPlane::start().unwrap_or_else(|why| panic!("{why}"));
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let client = Client::try_from(config.expect("a configuration")).expect("a client");
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "here"}})).expect("the kind");
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("a namespace");
    let maps = Api::<ConfigMap>::namespaced(client, "here");
    for (name, mode) in [("one", "blue"), ("two", "red")] {
        let map = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "data": {"mode": mode}});
        maps.create(&PostParams::default(), &serde_json::from_value(map).expect("the kind"))
            .await
            .expect("made");
    }
    let metadata = output(start(&server, "metadata", &["here"]));
    assert!(metadata.contains("two has 0 owners and labels [(\"app\", \"web\")]"), "{metadata}");
    let dump = output(start(&server, "dump", &["-", "v1", "configmaps", "ConfigMap", "here", "3"]));
    let words: Vec<&str> = dump.split_whitespace().collect();
    assert_eq!(
        (words[0], words[1], words[3], words[4], words[6]),
        ("ADDED", "here/one", "ADDED", "here/two", "SYNCED")
    );
    let mut changed: Vec<String> =
        output(start(&server, "controller", &["here", "2"])).lines().map(str::to_owned).collect();
    changed.sort();
    assert_eq!(changed, ["one", "two"]);
    let two = maps.get("two").await.expect("it is there");
    assert_eq!(two.metadata.annotations.expect("annotations")["mode"], "red");
    let mut typed = start(&server, "typed", &["here"]);
    // Whenever it listens, there is a change to come.
    let mut number = 0;
    while typed.try_wait().expect("its state").is_none() {
        number += 1;
        let patch = Patch::Merge(json!({"data": {"number": number.to_string()}}));
        maps.patch("two", &PatchParams::default(), &patch).await.expect("it is patched");
    }
    let typed = output(typed);
    assert!(typed.starts_with("one is blue and has 1 entries\ntwo went from revision "), "{typed}");
}
