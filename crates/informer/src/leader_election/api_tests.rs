//! What goes over the wire, and what its answers mean; a function stands for the server.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::super::config::Config;
use super::super::record;
use super::*;

/// Method, path and body of each request.
type Asked = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A client whose server answers everything with this.
fn client(code: u16, answer: Value) -> (kube::Client, Asked) {
    let asked = Asked::default();
    let seen = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (seen, answer) = (seen.clone(), answer.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.expect("a body");
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let path = head.uri.path().to_owned();
            seen.lock().expect("nobody panics in here").push((head.method.to_string(), path, body));
            let body = Body::from(answer.to_string().into_bytes());
            Ok::<_, std::io::Error>(Response::builder().status(code).body(body).expect("a response"))
        }
    });
    (kube::Client::new(service, "elsewhere"), asked)
}

fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "as it is", "reason": reason, "code": code})
}

fn lease() -> Lease {
    let mut lease = record::new(&Config::new("ns", "it", "me"), 1_500);
    lease.metadata.resource_version = Some("7".into());
    lease
}

#[tokio::test]
async fn a_lease_is_read_made_and_replaced_where_it_is() {
    let said = serde_json::to_value(lease()).expect("it is JSON");
    let (client, asked) = client(200, said.clone());
    assert_eq!(LeaseApi::get(&client, "ns", "it").await.expect("an answer"), lease());
    assert_eq!(LeaseApi::create(&client, lease()).await.expect("an answer"), lease());
    assert_eq!(LeaseApi::update(&client, lease()).await.expect("an answer"), lease());
    let asked = asked.lock().expect("nobody panics in here").clone();
    let of = |method: &str, name: &str, body: &Value| {
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/ns/leases{name}");
        (method.to_owned(), path, body.clone())
    };
    assert_eq!(asked, [of("GET", "/it", &Value::Null), of("POST", "", &said), of("PUT", "/it", &said)]);
    assert_eq!(said["spec"]["renewTime"], "1970-01-01T00:00:01.500000Z");
    assert_eq!(said["metadata"]["resourceVersion"], "7");
}

#[tokio::test]
async fn an_answer_means_what_its_code_says() {
    for (code, reason, wanted) in [
        (404, "NotFound", "there is no such lease"),
        (409, "Conflict", "somebody else wrote the lease first"),
        (409, "AlreadyExists", "somebody else wrote the lease first"),
        (401, "Unauthorized", "not allowed: as it is"),
        (403, "Forbidden", "not allowed: as it is"),
        (504, "Timeout", "not answered in time"),
        (500, "InternalError", "the request failed"),
        (422, "Invalid", "the request failed"),
    ] {
        let (client, asked) = client(code, status(code, reason));
        let error = LeaseApi::update(&client, lease()).await.expect_err("no lease");
        assert_eq!(error.to_string(), wanted, "{code}");
        assert_eq!(error.source().is_some(), matches!(error, LeaseError::Other(_)), "{code}");
        assert_eq!(asked.lock().expect("nobody panics in here").len(), 1, "{code}: nobody tries again here");
    }
}

#[tokio::test]
async fn what_is_no_lease_is_no_answer() {
    let (client, _) = client(200, json!(["no", "lease"]));
    let error = LeaseApi::get(&client, "ns", "it").await.expect_err("no lease");
    assert!(matches!(error, LeaseError::Other(_)), "{error}");
}
