//! What is said of answers, by servers that are functions.

use std::convert::Infallible;

use super::*;

async fn asked(
    code: u16,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
) -> Result<Flows, TopError> {
    let service = tower::service_fn(move |request: Request<Body>| async move {
        assert_eq!(request.uri().path(), PATH);
        let answer = headers
            .iter()
            .fold(Response::builder().status(code), |answer, (name, value)| answer.header(*name, *value));
        Ok::<_, Infallible>(answer.body(Body::from(body.as_bytes().to_vec())).expect("an answer"))
    });
    let client = Client::new(service, "default");
    AskedServer::new(client, "https://there".into(), Clock::system()).flows().await
}

#[tokio::test]
async fn what_forebay_says_is_read() {
    let flows = asked(200, &[], r#"{"seconds":{"minute":5},"clients":[{"user":"a"}],"later":1}"#).await;
    assert_eq!(flows.expect("flows").clients[0].user, "a");
}

#[tokio::test]
async fn each_refusal_says_what_to_do() {
    let forbidden =
        r#"{"kind":"Status","message":"forbidden: User \"jane\" cannot get path \"/debug/forebay/flows\""}"#;
    let cases = [
        (
            403,
            forbidden,
            "forbidden: User \"jane\" cannot get path \"/debug/forebay/flows\"; whoever may \"get\" the nonResourceURL /debug/forebay/flows may see who uses the server: a rule of a ClusterRole, with nonResourceURLs: [\"/debug/forebay/flows\"] and verbs: [\"get\"]",
        ),
        (404, "", "https://there is not Forebay, or older than this command: it has no /debug/forebay/flows"),
        (
            200,
            "{\"paths\":[]}",
            "https://there is not Forebay, or older than this command: it has no /debug/forebay/flows",
        ),
        (
            200,
            "<html>",
            "https://there is not Forebay, or older than this command: it has no /debug/forebay/flows",
        ),
        (401, "{\"message\":\"Unauthorized\"}", "https://there does not know who asks (401): Unauthorized"),
        (500, "\x1b[31mno", "https://there answered 500: \u{fffd}[31mno"),
    ];
    for (code, body, says) in cases {
        let error = asked(code, &[], body).await.expect_err("a refusal");
        assert_eq!((error.line().as_str(), error.passes()), (says, code == 500));
    }
}

#[tokio::test]
async fn a_429_is_obeyed_within_reason() {
    for (retry, pause) in
        [(&[("Retry-After", "7")][..], Some(7)), (&[("Retry-After", "100000")], Some(60)), (&[], None)]
    {
        let error = asked(429, retry, "").await.expect_err("a refusal");
        assert_eq!((error.pause(), error.passes()), (pause.map(Duration::from_secs), true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up() {
    let service =
        tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>());
    let source = AskedServer::new(Client::new(service, "default"), "https://there".into(), Clock::system());
    let error = source.flows().await.expect_err("given up");
    assert_eq!((error.line().as_str(), error.passes()), ("https://there did not answer within 15 s", true));
}

#[tokio::test]
async fn who_cannot_be_reached_is_named_with_the_cause() {
    let service =
        tower::service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>("connection refused") });
    let source = AskedServer::new(Client::new(service, "default"), "https://there".into(), Clock::system());
    let line = source.flows().await.expect_err("nobody there").line();
    assert!(
        line.starts_with("cannot reach https://there: ") && line.contains("connection refused"),
        "{line}"
    );
}
