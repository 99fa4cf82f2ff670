//! Services as clients meet them: the `kubernetes` Service, what a Service is given, and a server that is
//! killed meanwhile.

mod common;

use std::collections::BTreeMap;

use common::{Ask, Client, Scratch, Server, text};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

fn service(name: &str, spec: &Value) -> Value {
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": { "ports": [{ "port": 80 }] },
    });
    for (name, value) in spec.as_object().expect("a spec") {
        service["spec"][name] = value.clone();
    }
    service
}

async fn items(client: &Client, path: &str) -> Vec<Value> {
    client.get(path).await.expect(200)["items"].as_array().expect("items").clone()
}

/// Address -> Service, of the IPAddresses.
async fn claims(client: &Client) -> BTreeMap<String, String> {
    let claims = items(client, ADDRESSES).await;
    let of = |claim: &Value| text(claim, "/spec/parentRef/name").to_owned();
    claims.iter().map(|claim| (text(claim, "/metadata/name").to_owned(), of(claim))).collect()
}

/// Address -> Service, of the Services. Panics when two have the same.
async fn holdings(client: &Client) -> BTreeMap<String, String> {
    let mut holdings = BTreeMap::new();
    for service in items(client, "/api/v1/services").await {
        let name = text(&service, "/metadata/name").to_owned();
        let addresses = service["spec"]["clusterIPs"].as_array().cloned().unwrap_or_default();
        for address in addresses {
            let address = address.as_str().expect("a text").to_owned();
            assert_eq!(holdings.insert(address.clone(), name.clone()), None, "{address} is {name}'s, too");
        }
    }
    holdings
}

/// Waits until claims are repaired: before that, no Service is given anything.
async fn repaired(client: &Client) {
    client.post(SERVICES, &service("first", &json!({}))).await.expect(201);
    client.delete(&format!("{SERVICES}/first")).await.expect(200);
}

#[tokio::test]
async fn the_kubernetes_service_is_there_with_the_first_answer_and_leads_to_the_server() {
    let scratch = Scratch::new();
    let mut uid = None;
    for restart in 0..2 {
        let server = Server::start(&scratch, &["--service-cluster-ip-range=10.96.0.0/16"]).await;
        let client = server.admin().await;
        let found = client.get(&format!("{SERVICES}/kubernetes")).await.expect(200);
        assert_eq!(text(&found, "/spec/clusterIP"), "10.96.0.1");
        assert_eq!(found["spec"]["ports"][0]["port"], 443);
        assert_eq!(found["spec"]["ports"][0]["targetPort"], server.port, "restart {restart}");
        assert_eq!(uid.get_or_insert(found["metadata"]["uid"].clone()), &found["metadata"]["uid"]);
        let path = "/api/v1/namespaces/default/endpoints/kubernetes";
        let endpoints = client.get(path).await.expect(200);
        assert_eq!(endpoints["subsets"][0]["ports"][0]["port"], server.port);
        let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
        let slice = client.get(path).await.expect(200);
        assert_eq!(slice["ports"][0]["port"], server.port);
        assert_eq!(slice["endpoints"][0]["addresses"], json!(["127.0.0.1"]), "all that it knows of itself");
        assert_eq!(
            claims(&client).await,
            BTreeMap::from([("10.96.0.1".to_owned(), "kubernetes".to_owned())])
        );
        let cidr = client.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await.expect(200);
        assert_eq!(cidr["spec"]["cidrs"], json!(["10.96.0.0/16"]));
        server.kill().await;
    }
}

#[tokio::test]
async fn a_service_is_given_what_its_type_needs_and_gives_it_back() {
    let scratch = Scratch::new();
    let flags = [
        "--service-cluster-ip-range=10.0.0.0/28,fd00::/120",
        "--service-node-port-range=31000-31001",
        "--advertise-address=192.0.2.7",
    ];
    let server = Server::start(&scratch, &flags).await;
    let client = server.admin().await;
    let slice = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";
    let slice = client.get(slice).await.expect(200);
    assert_eq!(slice["endpoints"][0]["addresses"], json!(["192.0.2.7"]));

    let made = client.post(SERVICES, &service("a", &json!({ "type": "NodePort" }))).await.expect(201);
    let port = made["spec"]["ports"][0]["nodePort"].as_i64().expect("a node port");
    assert!((31_000..=31_001).contains(&port), "{port}");
    let address = text(&made, "/spec/clusterIP").to_owned();
    let claim = client.get(&format!("{ADDRESSES}/{address}")).await.expect(200);
    assert_eq!(
        claim["metadata"]["labels"],
        json!({ "ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io" })
    );
    assert_eq!(
        claim["spec"]["parentRef"],
        json!({ "resource": "services", "namespace": "default", "name": "a" })
    );

    let refused = client.post(SERVICES, &service("b", &json!({ "clusterIP": address }))).await.expect(422);
    assert_eq!(
        text(&refused, "/message"),
        format!(
            r#"Service "b" is invalid: spec.clusterIPs: Invalid value: ["{address}"]: failed to allocate IP {address}: provided IP is already allocated"#
        )
    );
    let two = json!([{ "name": "x", "port": 1 }, { "name": "y", "port": 2 }]);
    let two = json!({ "type": "NodePort", "ports": two });
    let refused = client.post(SERVICES, &service("b", &two)).await.expect(500);
    let why = "Internal error occurred: failed to allocate a nodePort: range is full";
    assert_eq!(text(&refused, "/message"), why);

    // What kubectl apply and kubectl patch send.
    let merge = |body: Value| {
        Ask::patch(
            format!("{SERVICES}/a"),
            "application/strategic-merge-patch+json",
            body.to_string().into_bytes(),
        )
    };
    let dual =
        client.ask(merge(json!({ "spec": { "ipFamilyPolicy": "PreferDualStack" } }))).await.expect(200);
    assert_eq!(dual["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert!(text(&dual, "/spec/clusterIPs/1").starts_with("fd00::"), "{dual}");
    let put = client.put(&format!("{SERVICES}/a"), &service("a", &json!({ "type": "NodePort" }))).await;
    assert_eq!(put.expect(200)["spec"], dual["spec"], "what is left out stays");
    let patch = json!({ "spec": { "type": "ExternalName", "externalName": "x.y" } });
    let external = client.ask(merge(patch)).await.expect(200);
    assert_eq!(
        (&external["spec"]["clusterIP"], &external["spec"]["ports"][0]["nodePort"]),
        (&Value::Null, &Value::Null)
    );
    assert!(!claims(&client).await.contains_key(&address));
    let both = client.post(SERVICES, &service("b", &two)).await.expect(201);
    assert_ne!(both["spec"]["ports"][0]["nodePort"], both["spec"]["ports"][1]["nodePort"]);
    for name in ["a", "b"] {
        let gone = client.delete(&format!("{SERVICES}/{name}")).await.expect(200);
        assert_eq!(text(&gone, "/metadata/name"), name);
    }
    assert_eq!(claims(&client).await.len(), 1, "only that of the kubernetes Service is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_while_services_come_and_go_it_has_neither_doubles_nor_leaks_afterwards() {
    let scratch = Scratch::new();
    for round in 0..4 {
        let server = Server::start(&scratch, &["--service-cluster-ip-range=10.0.0.0/26"]).await;
        let client = server.admin().await;
        repaired(&client).await;
        let (claimed, held) = (claims(&client).await, holdings(&client).await);
        assert_eq!(claimed, held, "round {round}");
        let mut writers = JoinSet::new();
        for writer in 0..4 {
            let client = client.clone();
            writers.spawn(async move {
                for number in 0.. {
                    let name = format!("s-{round}-{writer}-{number}");
                    let new = Ask::post(SERVICES, &service(&name, &json!({ "type": "NodePort" })));
                    let gone = Ask::delete(format!("{SERVICES}/{name}"));
                    for ask in [Some(new), (number % 3 > 0).then_some(gone)].into_iter().flatten() {
                        if client.try_ask(ask).await.is_err() {
                            return;
                        }
                    }
                }
            });
        }
        let enough = claimed.len() + 8;
        while claims(&client).await.len() < enough {}
        server.kill().await;
        while let Some(ended) = writers.join_next().await {
            ended.expect("a writer");
        }
    }
    let server = Server::start(&scratch, &["--service-cluster-ip-range=10.0.0.0/26"]).await;
    let client = server.admin().await;
    repaired(&client).await;
    let held = holdings(&client).await;
    assert_eq!(claims(&client).await, held);
    // What is free can be had, to the last address.
    let free = 62 - held.len();
    for number in 0..free {
        let spec = json!({ "selector": { "a": "b" } });
        client.post(SERVICES, &service(&format!("last-{number}"), &spec)).await.expect(201);
    }
    let refused = client.post(SERVICES, &service("none", &json!({}))).await.expect(500);
    let why = r#"Internal error occurred: failed to allocate a serviceIP for Service "none": range is full"#;
    assert_eq!(text(&refused, "/message"), why);
}
