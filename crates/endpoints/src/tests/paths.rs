//! What is answered where there is nothing.

use serde_json::{Value, json};

use super::server::{Server, Setup};

#[tokio::test]
async fn a_part_that_a_custom_resource_lacks_is_told_as_an_object_that_is_not_there() {
    let server = Server::start(Setup::default()).await;
    let names = json!({ "plural": "tests", "singular": "test", "kind": "Test", "listKind": "TestList" });
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "tests.cli.example.com" },
        "spec": {
            "group": "cli.example.com", "scope": "Namespaced", "names": names,
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    });
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let json_body = "Content-Type: application/json\r\n";
    let (code, answer) = server.ask("POST", crds, json_body, &definition.to_string()).await;
    assert_eq!(code, 201, "{answer}");
    let path = "/apis/cli.example.com/v1/namespaces/default/tests/alpha";
    for (method, part) in [("GET", "status"), ("GET", "scale"), ("PUT", "status"), ("POST", "other")] {
        let (code, answer) = server.ask(method, &format!("{path}/{part}"), json_body, "{}").await;
        let status: Value = serde_json::from_str(&answer).expect("a Status");
        assert_eq!(code, 404, "{method} {part}");
        assert_eq!(status["message"], r#"tests.cli.example.com "alpha" not found"#, "{method} {part}");
        let details = json!({ "name": "alpha", "group": "cli.example.com", "kind": "tests" });
        assert_eq!((&status["reason"], &status["details"]), (&json!("NotFound"), &details));
    }
    let built_in = "/api/v1/namespaces/default/configmaps/alpha/status";
    let (code, answer) = server.ask("GET", built_in, "", "").await;
    let status: Value = serde_json::from_str(&answer).expect("a Status");
    let want = "the server could not find the requested resource";
    assert_eq!((code, &status["message"]), (404, &json!(want)));
}
