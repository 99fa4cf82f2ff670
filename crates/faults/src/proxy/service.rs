//! One request through a proxy.
//!
//! In: a request and the state. Out: the server's answer, or a fault's; watches go through [`carry`]. Never:
//! an error of its own that is taken for the server's: what is not to be had from it is 502.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap};
use hyper::{Request, Response, StatusCode};

use super::asked::RequestInfo;
use super::effects::OfRequest;
use super::frames::{ErrorStatus, Serialization};
use super::state::State;
use super::upstream::Upstream;
use super::watches::{Bookmarks, Broken, carry};

/// What carries an answer, be it the server's or a fault's.
pub(super) type AnswerBody = UnsyncBoxBody<Bytes, Broken>;

/// Answers a request.
pub async fn answer(
    state: Arc<State>,
    upstream: Arc<Upstream>,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    let born = state.subscribe().borrow().number;
    let asked = RequestInfo::of(request.method(), request.uri());
    let user_agent = text(request.headers(), header::USER_AGENT).to_owned();
    let serialization = Serialization::of(text(request.headers(), header::ACCEPT));
    let bookmarks = match state.ask(&asked, &user_agent) {
        OfRequest::Refused(status) => return refused(&status),
        OfRequest::Gateway(code) => return gateway(code),
        OfRequest::Empty => return empty(serialization),
        OfRequest::ForwardedWithoutBookmarks => Bookmarks::None,
        OfRequest::Forwarded | OfRequest::IfNotExpired => Bookmarks::All,
    };
    let Ok(answer) = upstream.forward(request).await else { return gateway(502) };
    let (mut head, body) = answer.into_parts();
    for hop in [header::CONNECTION, header::TRANSFER_ENCODING] {
        head.headers.remove(hop);
    }
    let is_watch = asked.watches() && head.status == StatusCode::OK;
    let body = match is_watch {
        true => {
            let serialization = Serialization::of(text(&head.headers, header::CONTENT_TYPE));
            carry(&state, body, serialization, bookmarks, born).boxed_unsync()
        }
        false => body.map_err(|_| Broken).boxed_unsync(),
    };
    Response::from_parts(head, body)
}

fn refused(status: &ErrorStatus) -> Response<AnswerBody> {
    let mut answer = whole(status.code, "application/json", status.json());
    if let Some(after) = status.retry_after {
        answer.headers_mut().insert(header::RETRY_AFTER, after.into());
    }
    answer
}

fn gateway(code: u16) -> Response<AnswerBody> {
    whole(code, "text/html", format!("<html><body><h1>{code}</h1></body></html>"))
}

fn empty(serialization: Serialization) -> Response<AnswerBody> {
    let content_type = match serialization {
        Serialization::Json => "application/json;stream=watch",
        Serialization::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
    };
    let mut answer = whole(200, content_type, String::new());
    *answer.body_mut() = Empty::new().map_err(|never| match never {}).boxed_unsync();
    answer
}

fn whole(code: u16, content_type: &'static str, body: String) -> Response<AnswerBody> {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(header::CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    answer
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
