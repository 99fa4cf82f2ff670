//! Connections to what runs in pods, as far as no kubelet is needed: which methods and paths there are, what
//! options say, and what is wrong with the pod, told by ours and by kube-apiserver.
//!
//! In: requests. Out: differences, of which there may be none.

use forebay_clients::needs;
use forebay_conformance::{Pair, Peer};
use http::Method;
use serde_json::json;

const PODS: &str = "/api/v1/namespaces/default/pods";
const STREAMS: [&str; 3] = ["exec", "attach", "portforward"];

/// A pod of one container, one of two, neither of which has a node.
async fn make_pods(peer: &Peer) {
    for (name, containers) in [("one", &["a"][..]), ("two", &["a", "b"][..])] {
        let containers: Vec<_> =
            containers.iter().map(|name| json!({ "name": name, "image": "i" })).collect();
        let spec = json!({ "containers": containers, "initContainers": [{ "name": "first", "image": "i" }] });
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec });
        let made = peer.send(Method::POST, PODS, Some(&pod)).await.expect("an answer");
        assert_eq!(made.code, 201, "{}", made.body);
    }
}

async fn are_alike(requests: impl IntoIterator<Item = (Method, String)>) {
    if !needs::peers_or_skip() {
        return;
    }
    let pair = Pair::start().await.expect("both servers");
    for peer in [&pair.ours, &pair.theirs] {
        make_pods(peer).await;
    }
    let requests = requests.into_iter().map(|(method, path)| (method, format!("{PODS}/{path}")));
    let faults = pair.differences(requests).await;
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_have_the_same_methods_and_paths() {
    let methods = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::HEAD,
        Method::OPTIONS,
    ];
    let of = |subresource: &'static str| methods.clone().map(|method| (method, format!("one/{subresource}")));
    let mut requests: Vec<(Method, String)> = ["log"].into_iter().chain(STREAMS).flat_map(of).collect();
    for path in ["one/exec/a/b", "one/attach/a", "one/portforward/a", "one/log/a", "one/exec/", "one/log/"] {
        requests.push((Method::GET, path.to_owned()));
    }
    requests.push((Method::TRACE, "one/proxy/".to_owned()));
    are_alike(requests).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_of_connections_are_judged_alike() {
    let logs = [
        "tailLines=-1",
        "limitBytes=0",
        "sinceSeconds=0",
        "sinceSeconds=0&sinceTime=null",
        "sinceSeconds=1&sinceTime=2026-01-02T03:04:05Z",
        "stream=Stdout",
        "stream",
        "tailLines=abc",
        "tailLines=abc&sinceTime=now",
        "sinceTime=now",
        "limitBytes=9223372036854775808",
        "tailLines=-1&limitBytes=0&sinceSeconds=-5&stream=All",
        "follow=False&previous=yes&timestamps&sinceTime=&tailLines=0&limitBytes=1",
        "dryRun=All",
    ];
    let logs = logs.into_iter().map(|query| format!("one/log?{query}"));
    let others = ["none/log?tailLines=-1", "one/portforward?ports=x", "one/portforward?ports=x&dryRun=All"];
    let all = logs.chain(others.map(str::to_owned));
    are_alike(all.map(|path| (Method::GET, path))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_pod_without_a_node_there_is_no_log_and_no_way_into_it() {
    let mut requests = Vec::new();
    for pod in ["one", "two", "none"] {
        for subresource in ["log"].into_iter().chain(STREAMS) {
            for query in ["", "?container=a", "?container=first", "?container=x"] {
                requests.push((Method::GET, format!("{pod}/{subresource}{query}")));
            }
        }
        requests
            .extend(STREAMS.map(|subresource| (Method::POST, format!("{pod}/{subresource}?container=a"))));
    }
    are_alike(requests).await;
}
