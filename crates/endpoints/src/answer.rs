//! From content to an HTTP response: media type, indentation, compression, headers.
//!
//! In: JSON or protobuf that is there whole, and the form that the client wants. Out: a response, with its
//! length. Lists are [`crate::list_answer`]'s.

use bytes::Bytes;
use forebay_apimachinery::Status;
use forebay_apimachinery::accept::Media;
use forebay_apimachinery::options::Query;
use forebay_pieces::{Member, indent};
use forebay_room::Held;
use forebay_schema::builtin::protobuf;
use forebay_transport::{ResponseChannel, RunOn, StalledReaders};
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::limits::GZIP_BYTES_MIN;
use crate::negotiate::{self, Form};
use crate::offload;
use crate::response::ResponseBody;
use crate::rooms::Rooms;
use crate::status::Failure;

pub type HttpResponse = Response<ResponseBody>;

/// Where a long answer is watched over, and what it is written to.
pub type Readers<'a> = (&'a StalledReaders, &'a ResponseChannel);

/// What kube-apiserver sends with everything: answers are about now and for this client.
pub const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("no-cache, private");

/// A response of `code` with a body of `content_type`.
pub fn response(code: StatusCode, content_type: &'static str, body: ResponseBody) -> HttpResponse {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, CACHE_CONTROL);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Plain text.
pub fn text(code: StatusCode, text: impl Into<Bytes>) -> HttpResponse {
    let mut response = response(code, "text/plain; charset=utf-8", ResponseBody::whole(text));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// One object, whose JSON is there.
///
/// # Errors
/// JSON of ours that is none.
pub fn object(code: StatusCode, json: Bytes, form: Form, takes_gzip: bool) -> Result<HttpResponse, Failure> {
    let bytes = match (form.media, form.pretty) {
        (Media::Yaml, _) => Bytes::from(forebay_yaml::from_json(&json).map_err(Status::internal)?),
        (Media::Protobuf, _) => Bytes::from(protobuf::from_json(&json).map_err(Status::internal)?),
        (_, true) => Bytes::from(indent(&json)),
        (_, false) => json,
    };
    Ok(sized(code, form.media.content_type(), bytes, takes_gzip))
}

/// The answer to a write: in its form if there is room for that at once, as the write is done and does not
/// wait for any. Else it is JSON as it is there, which is YAML as well. What is large waits for its turn to
/// be made, for as long as the request may take.
///
/// # Errors
/// JSON of ours that is none; see [`offload::done`].
pub async fn of_write(
    code: StatusCode,
    json: Bytes,
    form: Form,
    takes_gzip: bool,
    rooms: &Rooms,
) -> Result<HttpResponse, Failure> {
    let shown = rooms.try_to_show(&json, form);
    let is_there = form.is_plain_json() || shown.is_none();
    let (room, tree) = shown.unwrap_or_default();
    // It may wait for long with what it has.
    let charged = || is_zipped(&json, takes_gzip).then(|| rooms.answers.charge(json.len()));
    let room = room.or_else(charged);
    made((code, json, form), is_there, takes_gzip, (room, tree)).await
}

/// Lets an answer that is there whole keep what it takes of the lease that it was made on.
pub fn set_lease(response: &mut HttpResponse, mut lease: Held) {
    if let Some(len) = response.body().exact_len().filter(|len| *len < lease.bytes()) {
        lease.set(len);
    }
    response.body_mut().set_lease(Some(lease));
}

/// One object from the cache, as it was written for this form.
///
/// - `room`: for the answer, and for the tree that it takes to make it.
///
/// # Errors
/// JSON of ours that is none.
pub async fn written(
    code: StatusCode,
    bytes: Bytes,
    form: Form,
    takes_gzip: bool,
    (room, tree): (Held, Option<Held>),
) -> Result<HttpResponse, Failure> {
    let is_there = form.is_plain_json() || form.media == Media::Protobuf;
    made((code, bytes, form), is_there, takes_gzip, (Some(room), tree)).await
}

/// An answer, with its room. What it takes to make it is kept until it is made, even when nobody waits for it
/// any more.
///
/// - `is_there`: the bytes need not be brought into the form.
async fn made(
    (code, bytes, form): (StatusCode, Bytes, Form),
    is_there: bool,
    takes_gzip: bool,
    (room, tree): (Option<Held>, Option<Held>),
) -> Result<HttpResponse, Failure> {
    let run_on = match is_there && !is_zipped(&bytes, takes_gzip) {
        true => RunOn::Task,
        false => offload::run_on(room.as_ref().map_or(0, Held::bytes).max(bytes.len())),
    };
    let make = move || {
        let mut response = match is_there {
            true => sized(code, form.media.content_type(), bytes, takes_gzip),
            false => object(code, bytes, form, takes_gzip)?,
        };
        if let Some(room) = room {
            set_lease(&mut response, room);
        }
        drop(tree);
        Ok(response)
    };
    offload::done(run_on, make).await?
}

/// Whether what is there whole is compressed.
pub fn is_zipped(bytes: &[u8], takes_gzip: bool) -> bool {
    takes_gzip && bytes.len() >= GZIP_BYTES_MIN
}

/// Bytes that are there, compressed when that is worth it.
pub fn sized(code: StatusCode, content_type: &'static str, bytes: Bytes, takes_gzip: bool) -> HttpResponse {
    if !is_zipped(&bytes, takes_gzip) {
        return response(code, content_type, ResponseBody::whole(bytes));
    }
    zipped(response(code, content_type, ResponseBody::whole(Member::whole(&bytes))))
}

/// What says that its body is in gzip.
pub fn zipped(mut response: HttpResponse) -> HttpResponse {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

/// A failure, in a form that the client takes.
pub fn failure(failure: &Failure, headers: &HeaderMap, query: &Query) -> HttpResponse {
    let form = negotiate::failure(headers, query);
    let mut json = failure.to_json();
    if !form.pretty {
        json.push(b'\n');
    }
    let made = object(failure.code(), json.into(), form, false);
    let mut response = made.unwrap_or_else(|_| text(failure.code(), failure.status.message.clone()));
    let seconds = failure.status.retry_after_seconds;
    if seconds > 0 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Names the request in the audit trail.
pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

#[cfg(test)]
mod tests {
    use forebay_rt::Clock;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::limits::ANSWERS_ROOM_BYTES;

    #[tokio::test]
    async fn a_write_is_answered_without_indentation_where_there_is_no_room_for_it() {
        // 19 kB that become 8 MB.
        let json = Bytes::from(format!("{}{}0{}", "[".repeat(480), "0,".repeat(9_000), "]".repeat(480)));
        let indented = Form { pretty: true, ..Form::plain(Media::Json) };
        let rooms = Rooms::new(Clock::system());
        let answered = async |form: Form| {
            let made = of_write(StatusCode::CREATED, json.clone(), form, false, &rooms).await;
            made.expect("an answer")
        };
        let held = || rooms.answers.totals().held;
        let pretty = answered(indented).await;
        let len = pretty.body().exact_len().expect("whole");
        assert!(len > 200 * json.len() && held() == len, "{len} of {}", held());
        drop(pretty);
        assert!(held() == 0 && rooms.bodies.totals().held == 0);
        let _all = rooms.answers.charge(ANSWERS_ROOM_BYTES);
        for form in [indented, Form::plain(Media::Yaml), Form::plain(Media::Json)] {
            let plain = answered(form).await;
            assert_eq!(plain.status(), StatusCode::CREATED);
            assert_eq!(plain.headers()[header::CONTENT_TYPE], form.media.content_type());
            let body = plain.into_body().collect().await.expect("whole").to_bytes();
            assert!(body == json, "{form:?}");
        }
        let small = of_write(StatusCode::OK, "{\"a\":1}".into(), indented, false, &rooms).await;
        let small = small.expect("an answer").into_body().collect().await;
        assert_eq!(small.expect("whole").to_bytes(), "{\n  \"a\": 1\n}");
    }
}
