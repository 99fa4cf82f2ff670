//! A call until it has its answer: sent on where its webhook says that it is elsewhere, and sent again where
//! it asks for that.
//!
//! In: a call, and who sends one request of it. Out: the answer that counts, whole. Never: a request to
//! another host than the one that is configured; a turn that is kept while nothing is under way.
//!
//! Source: client-go v0.36.3 `rest/with_retry.go`; Go's `net/http` (`Client`).

use std::future::Future;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use forebay_apimachinery::json::go_quote;
use forebay_rt::{Clock, Duration};
use forebay_webhooks::limits::ANSWER_BYTES_MAX;
use forebay_webhooks::{Answered, Calling, NoAnswer};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::BodyExt as _;

use crate::limits::{AGAIN_MAX, AGAIN_PAUSE_MAX, PASSED_BODY_BYTES, SENT_ON_MAX};
use crate::routes::Route;

/// What a call takes its way by.
pub struct Exchange<'w> {
    pub clock: &'w Clock,
    pub route: &'w Route,
    pub url: &'w Uri,
    /// The header, if something is shown.
    pub authorization: Option<&'w str>,
}

/// The answer to a call.
///
/// - `send`: sends one request; what it gives beside the answer is kept while that is read.
/// - `words`: what goes wrong with a body, as Go says it.
///
/// # Errors
/// [`NoAnswer`].
pub async fn exchanged<R, B, K, F>(
    way: &Exchange<'_>,
    calling: &Calling,
    send: impl Fn(Request<R>) -> F,
    words: impl Fn(&B::Error) -> String,
) -> Result<Answered, NoAnswer>
where
    R: From<Vec<u8>>,
    B: Body<Data = Bytes> + Unpin,
    F: Future<Output = Result<(Response<B>, K), NoAnswer>>,
{
    let mut again = 0;
    loop {
        let turn = way.route.turn(calling.holds).await.map_err(NoAnswer::Busy)?;
        calling.begun.store(true, Ordering::Relaxed);
        let (answer, keeps) = sent_on(way, calling, &send).await?;
        let Some(pause) = pause(&answer).filter(|_| again < AGAIN_MAX) else {
            return read(answer, calling, words).await;
        };
        again += 1;
        pass(answer).await;
        drop((keeps, turn));
        way.clock.sleep(pause).await;
    }
}

/// The answer of who has it at last.
async fn sent_on<R, B, K, F>(
    way: &Exchange<'_>,
    calling: &Calling,
    send: &impl Fn(Request<R>) -> F,
) -> Result<(Response<B>, K), NoAnswer>
where
    R: From<Vec<u8>>,
    B: Body<Data = Bytes> + Unpin,
    F: Future<Output = Result<(Response<B>, K), NoAnswer>>,
{
    let (mut url, mut method, mut told) = (way.url.clone(), Method::POST, String::new());
    for _ in 0..SENT_ON_MAX {
        let request = request(calling, (&method, &url), way.authorization);
        let (answer, keeps) = send(request).await?;
        let Some(to) = text(answer.headers(), LOCATION).filter(|_| is_elsewhere(answer.status())) else {
            return Ok((answer, keeps));
        };
        let Some(next) = resolved(&url, to) else { return Ok((answer, keeps)) };
        if !matches!(answer.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
            method = Method::GET;
        }
        to.clone_into(&mut told);
        url = next;
        pass(answer).await;
    }
    Err(NoAnswer::Unread(format!("Post {}: stopped after {SENT_ON_MAX} redirects", go_quote(&told))))
}

fn request<R: From<Vec<u8>>>(
    calling: &Calling,
    (method, url): (&Method, &Uri),
    authorization: Option<&str>,
) -> Request<R> {
    // Who is sent on by a plain redirect asks without a body, as browsers do.
    let body = if *method == Method::POST { calling.parts.concat() } else { Vec::new() };
    let mut request = Request::new(R::from(body));
    *request.method_mut() = method.clone();
    *request.uri_mut() = url.clone();
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
    headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"));
    // Of a secret that no header can have nothing is shown.
    if let Some(mut value) = authorization.and_then(|text| HeaderValue::from_str(text).ok()) {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    request
}

fn is_elsewhere(number: StatusCode) -> bool {
    matches!(number.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where `to` is, seen from `url`; none where that is another host, which nobody vouches for.
fn resolved(url: &Uri, to: &str) -> Option<Uri> {
    let to = to.split('#').next().unwrap_or_default();
    let (scheme, authority) = (url.scheme_str()?, url.authority()?);
    let whole = if to.contains("://") {
        to.to_owned()
    } else if to.starts_with("//") {
        format!("{scheme}:{to}")
    } else if to.starts_with('/') {
        format!("{scheme}://{authority}{to}")
    } else {
        let path = url.path();
        let before = &path[..path.rfind('/').map_or(0, |at| at + 1)];
        format!("{scheme}://{authority}{before}{to}")
    };
    let next: Uri = whole.parse().ok()?;
    let port = |of: &Uri| of.port_u16().unwrap_or(443);
    let is_same = next.scheme_str() == Some(scheme)
        && next.host()?.eq_ignore_ascii_case(url.host()?)
        && port(&next) == port(url);
    is_same.then_some(next)
}

/// How long the webhook wants to be left alone before it is asked again, if it says so.
fn pause<B>(answer: &Response<B>) -> Option<Duration> {
    let number = answer.status();
    if number != StatusCode::TOO_MANY_REQUESTS && number.as_u16() < 500 {
        return None;
    }
    let seconds: i64 = text(answer.headers(), RETRY_AFTER)?.parse().ok()?;
    Some(Duration::from_secs(seconds.max(0).unsigned_abs()).min(AGAIN_PAUSE_MAX))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

/// Reads what is left of an answer that does not count, so that its connection can be used again.
async fn pass<B: Body<Data = Bytes> + Unpin>(answer: Response<B>) {
    let (mut body, mut left) = (answer.into_body(), PASSED_BODY_BYTES);
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        if length > left {
            return;
        }
        left -= length;
    }
}

async fn read<B: Body<Data = Bytes> + Unpin>(
    answer: Response<B>,
    calling: &Calling,
    words: impl Fn(&B::Error) -> String,
) -> Result<Answered, NoAnswer> {
    let code = answer.status().as_u16();
    let content_type = text(answer.headers(), CONTENT_TYPE).unwrap_or_default().to_owned();
    let mut body = answer.into_body();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            const BEFORE: &str = "unexpected error when reading response body. Please retry. Original error:";
            NoAnswer::Unread(format!("{BEFORE} {}", words(&error)))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > ANSWER_BYTES_MAX {
            return Err(NoAnswer::Failed(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes")));
        }
        // Twice: a buffer that grows is copied.
        calling.lease.charge(2 * data.len()).map_err(|why| NoAnswer::Failed(why.to_string()))?;
        whole.extend_from_slice(&data);
    }
    Ok(Answered { code, content_type, body: Bytes::from(whole) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_sent_on_stays_at_the_host_that_is_vouched_for() {
        let url: Uri = "https://svc.ns.svc:443/a/b?timeout=10s".parse().expect("a URL");
        for (to, there) in [
            ("/a/b/", Some("https://svc.ns.svc:443/a/b/")),
            ("c?x=y#z", Some("https://svc.ns.svc:443/a/c?x=y")),
            ("https://svc.ns.svc/a", Some("https://svc.ns.svc/a")),
            ("//SVC.ns.svc:443/a", Some("https://SVC.ns.svc:443/a")),
            ("http://svc.ns.svc:443/a", None),
            ("https://svc.ns.svc:8443/a", None),
            ("https://other.ns.svc/a", None),
            ("https://svc.ns.svc@other/a", None),
        ] {
            assert_eq!(resolved(&url, to).map(|uri| uri.to_string()).as_deref(), there, "{to}");
        }
    }

    #[test]
    fn only_what_says_when_is_asked_again() {
        let of = |number: u16, after: &str| {
            pause(&Response::builder().status(number).header(RETRY_AFTER, after).body(()).expect("an answer"))
        };
        assert_eq!(of(429, "2"), Some(Duration::from_secs(2)));
        assert_eq!(of(503, "-1"), Some(Duration::ZERO));
        assert_eq!(of(599, "99999999999"), Some(AGAIN_PAUSE_MAX));
        assert_eq!((of(400, "1"), of(503, "soon"), of(503, "")), (None, None, None));
    }
}
