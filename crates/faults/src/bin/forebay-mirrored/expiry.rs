//! A client before which history goes: its streams end, and the watch that would go on is refused once with
//! 410.
//!
//! In: a client. Out: another one, which asks the first. Never: refuses a request for a state.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use hyper::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tokio::sync::watch;

const GONE: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}"#;

type Answer = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

fn boxed<B>(body: B) -> Answer
where
    B: hyper::body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    body.map_err(Into::into).boxed_unsync()
}

#[derive(Clone, Default)]
pub struct Expiry {
    // Watches that are still to be refused.
    left: Arc<AtomicU64>,
    // How often streams were ended.
    ended: watch::Sender<u64>,
}

impl Expiry {
    /// Ends what streams there are; one watch is refused.
    pub fn expire(&self) {
        self.left.fetch_add(1, Ordering::SeqCst);
        self.ended.send_modify(|times| *times += 1);
    }

    /// The client to use instead of `client`.
    pub fn before(&self, client: Client) -> Client {
        let (namespace, expiry) = (client.default_namespace().to_owned(), self.clone());
        let service = tower::service_fn(move |request| expiry.clone().answer(client.clone(), request));
        Client::new(service, namespace)
    }

    async fn answer(self, client: Client, request: Request<Body>) -> Result<Response<Answer>, kube::Error> {
        let query = request.uri().query().unwrap_or_default();
        let is_watch = query.contains("watch=");
        if is_watch && !query.contains("sendInitialEvents") && self.takes_one() {
            let mut refused = Response::new(boxed(Full::from(GONE)));
            *refused.status_mut() = StatusCode::GONE;
            return Ok(refused);
        }
        // From before it is asked: a stream that begins while they are ended ends as well.
        let mut ended = self.ended.subscribe();
        let answer = client.send(request).await?;
        if !is_watch {
            return Ok(answer.map(boxed));
        }
        let over = async move {
            // Nobody ends streams any more: then it lasts.
            if ended.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        Ok(answer.map(|body| {
            let frames = BodyStream::new(body).take_until(Box::pin(over));
            boxed(StreamBody::new(frames))
        }))
    }

    fn takes_one(&self) -> bool {
        self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
}
