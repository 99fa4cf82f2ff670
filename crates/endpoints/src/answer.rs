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
