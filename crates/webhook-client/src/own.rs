//! Calls to a webhook that is behind this server itself, where an APIService leads on to it.
//!
//! In: a request, and who answers it within this process. Out: its answer on its way. Never: a connection
//! that leaves the process; a secret: who asks is known by the way it takes, which nobody else has.
//!
//! Source: apiserver v0.36.3 `pkg/util/webhook/authentication.go`, kube-aggregator v0.36.3
//! `pkg/apiserver/resolvers.go` (`NewLoopbackServiceResolver`).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use forebay_authorities::{CutIn, go_answer_words};
use forebay_rt::{CutOnDrop, Tasks};
use forebay_webhooks::Destination;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;

use crate::limits::OWN_STREAM_BYTES;

/// Answers what comes over a stream as this server answers itself; `None` where it does not serve.
pub type OwnServer =
    Arc<dyn Fn(DuplexStream) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> + Send + Sync>;

/// An answer, and what it is read over: both sides of it end with this.
pub struct OwnAnswer {
    pub answer: Response<Incoming>,
    pub connection: CutOnDrop,
}

/// Whether it is the service by which clients find this server.
pub fn is_own(destination: &Destination) -> bool {
    let Destination::Service { namespace, name, port, .. } = destination else { return false };
    (&**namespace, &**name, *port) == ("default", "kubernetes", 443)
}

/// Sends a request to this server itself. Cancel-safe: it is given up. Both sides are tasks of their own, so
/// that what asks itself about what it asks is as deep as any other call.
///
/// # Errors
/// Why there is no answer, in the words of Go's HTTP client.
pub async fn send(own: &OwnServer, mut request: Request<Full<Bytes>>) -> Result<OwnAnswer, String> {
    let (near, far) = tokio::io::duplex(OWN_STREAM_BYTES);
    let served = own(far).ok_or_else(|| "dial tcp: connect: connection refused".to_owned())?;
    let host = request.uri().host().and_then(|host| HeaderValue::from_str(host).ok());
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    request.headers_mut().extend(host.map(|host| (HOST, host)));
    let tasks = Tasks::new();
    let connection = tasks.cut_on_drop();
    tasks.spawn("this server, asked by itself", served);
    let words = |why: hyper::Error| go_answer_words(&why, CutIn::Head);
    let (mut sender, driver) = http1::handshake(TokioIo::new(near)).await.map_err(words)?;
    tasks.spawn("connection to this server itself", async move {
        // Its request was told what went wrong.
        let _ = driver.await;
    });
    let answer = sender.send_request(request).await.map_err(words)?;
    Ok(OwnAnswer { answer, connection })
}
