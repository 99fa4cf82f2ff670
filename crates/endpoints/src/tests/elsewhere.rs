//! A resource that is answered from elsewhere: what a stranger writes for it, and what its clients see.

use std::sync::Arc;

use forebay_api::{Api, Awaited, Eventual, Read};
use forebay_apimachinery::Revision;
use forebay_catalog::Target;
use forebay_reads::Freshness;
use forebay_registry::Registry;
use serde_json::json;

use super::server::{Server, Setup};

/// From here to the next comment it is all that is written.
struct NodesFromElsewhere(Registry);

impl Api for NodesFromElsewhere {
    fn otherwise(&self) -> &dyn Api {
        &self.0
    }

    fn get<'a>(&'a self, target: &'a Target, freshness: Freshness) -> Awaited<'a, Read> {
        if !target.served.is("", "nodes") {
            return self.otherwise().get(target, freshness);
        }
        let node = json!({
            "kind": "Node", "apiVersion": "v1",
            "metadata": {
                "name": target.name(), "uid": "far-away", "creationTimestamp": "2023-11-14T22:13:20Z",
            },
        });
        Eventual::Now(target.object(node, Revision::FIRST).map(Read::Object))
    }
}

// The test.

#[tokio::test]
async fn one_resource_is_answered_from_elsewhere_and_the_rest_as_before() {
    let server =
        Server::start_with(Setup::default(), |registry| Arc::new(NodesFromElsewhere(registry))).await;
    let get = async |path: &str| server.ask("GET", path, "", "").await;
    let (code, node) = get("/api/v1/nodes/far").await;
    assert!(code == 200 && node.contains(r#""metadata":{"name":"far""#), "{code} {node}");
    let table = "Accept: application/json;as=Table;g=meta.k8s.io;v=v1\r\n";
    let (code, table) = server.ask("GET", "/api/v1/nodes/far", table, "").await;
    assert!(code == 200 && table.contains(r#""kind":"Table""#) && table.contains("Roles"), "{code} {table}");
    let (code, refused) = get("/api/v1/nodes/far?resourceVersion=x").await;
    assert!(code == 500 && refused.contains("invalid syntax"), "{code} {refused}");
    let (code, namespace) = get("/api/v1/namespaces/default").await;
    assert!(code == 200 && namespace.contains(r#""kind":"Namespace""#), "{code} {namespace}");
    let (code, nodes) = get("/api/v1/nodes").await;
    assert!(code == 200 && nodes.contains(r#""items":[]"#), "{code} {nodes}");
    let (code, connected) = get("/api/v1/namespaces/default/pods/p/exec").await;
    assert!(code == 405 && connected.contains("pods/exec is answered by"), "{code} {connected}");
}
