//! From content to an HTTP response: media type, indentation, compression, headers.
//!
//! In: JSON or protobuf, whole or as it is made, and the form that the client wants. Out: a response. Content whose end is known is
//! sent with its length; a long list is sent as it is made.

use bytes::Bytes;
use forebay_apimachinery::Status;
use forebay_apimachinery::accept::Media;
use forebay_apimachinery::options::Query;
use forebay_registry::ListBody;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::gzip::{self, Gzip};
use crate::limits::{CHUNK_BYTES, GZIP_BYTES_MIN};
use crate::line::Line;
use crate::member::Member;
use crate::negotiate::{self, Form};
use crate::pins::Pins;
use crate::pretty;
use crate::protobuf;
use crate::response::{Content, ResponseBody};
use crate::room::Held;
use crate::rooms::Rooms;
use crate::source::{Pretty, Resumed, Source, Written, read_ahead};
use crate::status::Failure;
use crate::yaml::{self, YamlList};

pub type HttpResponse = Response<ResponseBody>;

/// What kube-apiserver sends with everything: answers are about now and for this client.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("no-cache, private");

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
pub fn object(
    code: StatusCode,
    json: Bytes,
    form: Form,
    headers: &HeaderMap,
) -> Result<HttpResponse, Failure> {
    let bytes = match (form.media, form.pretty) {
        (Media::Yaml, _) => Bytes::from(yaml::from_json(&json).map_err(Status::internal)?),
        (Media::Protobuf, _) => Bytes::from(protobuf::from_json(&json).map_err(Status::internal)?),
        (_, true) => Bytes::from(pretty::indent(&json)),
        (_, false) => json,
    };
    Ok(sized(code, form.media.content_type(), bytes, headers))
}

/// The answer to a write: in its form if there is room for that at once, as the write is done and neither waits nor fails.
/// Else it is JSON as it is there, which is YAML as well.
///
/// # Errors
/// JSON of ours that is none.
pub fn of_write(
    code: StatusCode,
    json: Bytes,
    form: Form,
    headers: &HeaderMap,
    rooms: &Rooms,
) -> Result<HttpResponse, Failure> {
    let Some((room, _tree)) = rooms.try_to_show(&json, form) else {
        return Ok(sized(code, form.media.content_type(), json, headers));
    };
    let mut response = object(code, json, form, headers)?;
    if let Some(room) = room {
        hold_room(&mut response, room);
    }
    Ok(response)
}

/// Lets an answer that is there whole hold what it takes of the room that was asked for to make it.
pub fn hold_room(response: &mut HttpResponse, mut room: Held) {
    if let Some(len) = response.body().exact_len().filter(|len| *len < room.bytes()) {
        room.set(len);
    }
    response.body_mut().hold_room(Some(room));
}

/// One object from the cache, as it was written for this form.
///
/// # Errors
/// JSON of ours that is none.
pub fn written(
    code: StatusCode,
    bytes: Bytes,
    form: Form,
    headers: &HeaderMap,
) -> Result<HttpResponse, Failure> {
    match form.media {
        Media::Protobuf => Ok(sized(code, form.media.content_type(), bytes, headers)),
        Media::Json | Media::Yaml => object(code, bytes, form, headers),
    }
}

/// Bytes that are there, compressed when that is worth it.
pub fn sized(
    code: StatusCode,
    content_type: &'static str,
    bytes: Bytes,
    headers: &HeaderMap,
) -> HttpResponse {
    if bytes.len() < GZIP_BYTES_MIN || !gzip::is_taken(headers) {
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

/// A list, read as far as needed to know whether it is a long one.
pub fn list(list: ListBody, form: Form, headers: &HeaderMap, pins: &Pins) -> HttpResponse {
    if form.media == Media::Json && !form.pretty && list.is_of_blocks() && gzip::is_taken(headers) {
        return of_blocks(list, headers, pins);
    }
    let source: Box<dyn Source> = match (form.media, form.pretty) {
        (Media::Yaml, _) => Box::new(YamlList::new(Written(list))),
        (Media::Json, true) => Box::new(Pretty::new(Written(list))),
        (Media::Json, false) | (Media::Protobuf, _) => Box::new(Written(list)),
    };
    let content_type = form.media.content_type();
    let takes_gzip = gzip::is_taken(headers);
    let ahead = if takes_gzip { GZIP_BYTES_MIN } else { CHUNK_BYTES };
    match read_ahead(source, ahead) {
        Ok(all) => sized(StatusCode::OK, content_type, all.into(), headers),
        Err(Resumed { ahead, rest }) if takes_gzip => {
            zipped(streamed(content_type, Box::new(Gzip::new(ahead, rest)), pins))
        }
        Err(rest) => {
            Line::current().send_only();
            streamed(content_type, Box::new(rest), pins)
        }
    }
}

/// A list in gzip that needs little compressing, because the cache has it so.
fn of_blocks(mut list: ListBody, headers: &HeaderMap, pins: &Pins) -> HttpResponse {
    let content_type = Media::Json.content_type();
    let mut ahead = Vec::new();
    while ahead.len() < GZIP_BYTES_MIN {
        if !list.next_chunk(CHUNK_BYTES, &mut ahead) {
            return sized(StatusCode::OK, content_type, ahead.into(), headers);
        }
    }
    Line::current().send_only();
    zipped(streamed(content_type, Box::new(Gzip::new(ahead, list)), pins))
}

fn streamed(content_type: &'static str, source: Box<dyn Source>, pins: &Pins) -> HttpResponse {
    response(StatusCode::OK, content_type, ResponseBody::new(Content::List(pins.pin(source))))
}

/// A failure, in a form that the client takes.
pub fn failure(failure: &Failure, headers: &HeaderMap, query: &Query) -> HttpResponse {
    let form = negotiate::failure(headers, query);
    let mut json = failure.to_json();
    if !form.pretty {
        json.push(b'\n');
    }
    let made = object(failure.code(), json.into(), form, &HeaderMap::new());
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
        let answered = |form: Form| {
            of_write(StatusCode::CREATED, json.clone(), form, &HeaderMap::new(), &rooms).expect("an answer")
        };
        let held = || rooms.answers.totals().held;
        let pretty = answered(indented);
        let len = pretty.body().exact_len().expect("whole");
        assert!(len > 200 * json.len() && held() == len, "{len} of {}", held());
        drop(pretty);
        assert!(held() == 0 && rooms.bodies.totals().held == 0);
        let _all = rooms.answers.charge(ANSWERS_ROOM_BYTES);
        for form in [indented, Form::plain(Media::Yaml), Form::plain(Media::Json)] {
            let plain = answered(form);
            assert_eq!(plain.status(), StatusCode::CREATED);
            assert_eq!(plain.headers()[header::CONTENT_TYPE], form.media.content_type());
            let body = plain.into_body().collect().await.expect("whole").to_bytes();
            assert!(body == json, "{form:?}");
        }
        let small = of_write(StatusCode::OK, "{\"a\":1}".into(), indented, &HeaderMap::new(), &rooms);
        let small = small.expect("an answer").into_body().collect().await;
        assert_eq!(small.expect("whole").to_bytes(), "{\n  \"a\": 1\n}");
    }
}
