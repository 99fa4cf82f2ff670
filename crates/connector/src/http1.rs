//! One HTTP/1.1 connection: one request at a time, and the next when its answer was read.
//!
//! In: what was dialled, requests. Out: answers. Never: two requests at once, a request sent again that may
//! have been served.

use std::sync::{Arc, Mutex, PoisonError};

use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri, Version};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use kube::client::Body as RequestBody;

use crate::Error;
use crate::dial::Stream;
use crate::unserved::Unserved;

/// What requests are given to. Who has the seat takes the sender and puts it back; nobody else looks.
#[derive(Clone, Debug)]
pub(crate) struct Http1(Arc<Mutex<Option<SendRequest<RequestBody>>>>);

pub(crate) type Driver = Connection<TokioIo<Box<dyn Stream>>, RequestBody>;

/// Begins a connection. Nothing is sent yet.
pub(crate) async fn open(io: Box<dyn Stream>) -> Result<(Http1, Driver), Error> {
    let (sender, driver) = Builder::new().handshake(TokioIo::new(io)).await.map_err(Error::Begin1)?;
    Ok((Http1(Arc::new(Mutex::new(Some(sender)))), driver))
}

impl Http1 {
    /// Sends a request and waits for the head of its answer. Cancel-safe: the connection is closed.
    pub async fn send(&self, request: Request<RequestBody>) -> Result<Response<Incoming>, Unserved> {
        let gone = |again| Unserved { error: Error::Gone, again: Some(again) };
        let Some(mut sender) = self.slot().take() else { return Err(gone(request)) };
        if let Err(error) = sender.ready().await {
            return Err(Unserved { error: Error::Head1(error), again: Some(request) });
        }
        let url = request.uri().clone();
        let sent = sender.try_send_request(with_host(request)).await;
        match sent {
            Ok(answer) => {
                *self.slot() = Some(sender);
                Ok(answer)
            }
            Err(mut failed) => {
                let again = failed.take_message().map(|mut request| {
                    *request.uri_mut() = url;
                    request
                });
                Err(Unserved { error: Error::Head1(failed.into_error()), again })
            }
        }
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<SendRequest<RequestBody>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The head as HTTP/1.1 has it: the authority is a header.
fn with_host(mut request: Request<RequestBody>) -> Request<RequestBody> {
    if let Some(host) = request.uri().authority().and_then(|it| HeaderValue::from_str(it.as_str()).ok()) {
        request.headers_mut().entry(HOST).or_insert(host);
    }
    let path = request.uri().path_and_query().map_or("/", |it| it.as_str());
    // The path of a valid URL always parses as a URL.
    let path = path.parse::<Uri>().unwrap_or_default();
    *request.uri_mut() = path;
    *request.version_mut() = Version::HTTP_11;
    request
}
