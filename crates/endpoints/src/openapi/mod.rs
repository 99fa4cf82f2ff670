//! `/openapi` over HTTP.
//!
//! In: a path below `/openapi`, headers and query. Out: a document in the form that the client takes, 304
//! when it has it, 301 when it asks for one that is no more. Never: YAML, or protobuf of v3, which no client
//! of ours asks for.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use forebay_apimachinery::accept::{Clause, parse_accept};
use forebay_apimachinery::options::Query;
use forebay_catalog::Catalog;
use forebay_documents::discovery::Extension;
use forebay_documents::openapi::OpenApi;
use forebay_documents::openapi::contents::Subject;
use forebay_documents::openapi::document::Name;
use forebay_documents::openapi::kept::{extended, openapi_parts, relative_url};
use forebay_documents::openapi::limits::PLAIN_BYTES;
use forebay_documents::openapi::packed::{Packed, Plain};
use forebay_transport::{BodySource, PiecewiseBody, RunOn, limits};
use http::{HeaderMap, HeaderValue, header};

use crate::answer::{self, HttpResponse};
use crate::negotiate;
use crate::response::{Content, ResponseBody};
use crate::rooms::Rooms;
use crate::status::{self, Failure};

const JSON: &str = "application/json";
const V2_PROTO: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// What clients ask for; the answer has the other name.
const V2_PROTO_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// A document of a hash never changes.
const FOREVER: HeaderValue = HeaderValue::from_static("public, immutable, max-age=31536000");

/// What watches over those who read an answer, and what they hold.
type Readers<'a> = (answer::Readers<'a>, &'a Rooms);

/// Answers a GET of `path`, which begins with `/openapi`.
///
/// - `extensions`: what other servers have documents of.
/// - `readers`: what watches over those who read an answer, and what they hold.
///
/// # Errors
/// 404 and 406.
pub async fn answer(
    (openapi, catalog, extensions): (&OpenApi, &Arc<Catalog>, &[Extension]),
    path: &str,
    headers: &HeaderMap,
    query: &Query,
    readers: Readers<'_>,
) -> Result<HttpResponse, Failure> {
    match path.strip_prefix("/openapi").unwrap_or_default() {
        "/v2" => v2((openapi, catalog, extensions), headers, readers).await,
        "/v3" => {
            let index = openapi.index(catalog).await.ok_or_else(Failure::no_such_resource)?;
            match extended(&index, extensions) {
                None => Ok(whole(&index, JSON, headers, readers)),
                Some(json) => {
                    Ok(answer::sized(status::OK, JSON, json.into(), negotiate::takes_gzip(headers)))
                }
            }
        }
        path => {
            let subject = path.strip_prefix("/v3/").and_then(subject);
            let subject = subject.ok_or_else(Failure::no_such_resource)?;
            v3(openapi, catalog, subject, headers, query, readers).await
        }
    }
}

async fn v2(
    (openapi, catalog, extensions): (&OpenApi, &Arc<Catalog>, &[Extension]),
    headers: &HeaderMap,
    readers: Readers<'_>,
) -> Result<HttpResponse, Failure> {
    let (name, content_type) = match taken(headers, &[JSON, V2_PROTO_ASKED, V2_PROTO])? {
        JSON => (Name::V2Json, JSON),
        _ => (Name::V2Proto, V2_PROTO),
    };
    let document = openapi
        .document(catalog, name, openapi_parts(extensions))
        .await
        .ok_or_else(Failure::no_such_resource)?;
    Ok(whole(&document, content_type, headers, readers))
}

async fn v3(
    openapi: &OpenApi,
    catalog: &Arc<Catalog>,
    subject: Subject,
    headers: &HeaderMap,
    query: &Query,
    readers: Readers<'_>,
) -> Result<HttpResponse, Failure> {
    taken(headers, &[JSON])?;
    let document = openapi.document(catalog, Name::V3(subject.clone()), Vec::new()).await;
    let document = document.ok_or_else(Failure::no_such_resource)?;
    match query.first("hash").filter(|hash| !hash.is_empty()) {
        None => Ok(whole(&document, JSON, headers, readers)),
        Some(hash) if *hash == *document.hash => {
            let mut response = whole(&document, JSON, headers, readers);
            response.headers_mut().insert(header::CACHE_CONTROL, FOREVER);
            Ok(response)
        }
        Some(_) => {
            let mut response = answer::response(status::MOVED, JSON, ResponseBody::whole(""));
            if let Ok(location) = HeaderValue::from_str(&relative_url(&subject.path(), &document.hash)) {
                response.headers_mut().insert(header::LOCATION, location);
            }
            Ok(response)
        }
    }
}

/// What a path below `/openapi/v3/` is about.
fn subject(path: &str) -> Option<Subject> {
    let parts: Vec<&str> = path.split('/').collect();
    Some(match parts.as_slice() {
        ["api"] => Subject::Root("api"),
        ["apis"] => Subject::Root("apis"),
        ["version"] => Subject::VersionInfo,
        ["api", version] => Subject::Version { group: String::new(), version: version.to_string() },
        ["apis", group] => Subject::Group(group.to_string()),
        ["apis", group, version] => {
            Subject::Version { group: group.to_string(), version: version.to_string() }
        }
        _ => return None,
    })
}

/// The first of `types` that the client likes best.
fn taken<'t>(headers: &HeaderMap, types: &[&'t str]) -> Result<&'t str, Failure> {
    let clauses = parse_accept(negotiate::accept(headers).unwrap_or("*/*"));
    let of = |clause: &Clause<'_>| {
        types
            .iter()
            .copied()
            .find(|name| name.split_once('/').is_some_and(|(kind, sub)| clause.takes(kind, sub)))
    };
    clauses.iter().find_map(of).ok_or_else(|| Failure::not_acceptable(types))
}

/// A document with its hash as ETag, unless the client has it.
fn whole(
    document: &Packed,
    content_type: &'static str,
    headers: &HeaderMap,
    ((stalled_readers, channel), rooms): Readers<'_>,
) -> HttpResponse {
    let etag = format!("\"{}\"", document.hash);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = if known.is_some_and(|known| known.split(',').any(|one| one.trim() == etag)) {
        answer::response(status::UNCHANGED, content_type, ResponseBody::whole(""))
    } else if negotiate::takes_gzip(headers) {
        let body = ResponseBody::whole(document.gzip.clone());
        let mut response = answer::response(status::OK, content_type, body);
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        let rest =
            PiecewiseBody::new(Box::new(Inflated(document.plain())), RunOn::Task, (stalled_readers, channel));
        let body = ResponseBody::new(Content::Long { rest, len: document.plain_len });
        let mut response = answer::response(status::OK, content_type, body);
        response.body_mut().set_lease(Some(rooms.answers.charge(PLAIN_BYTES)));
        response
    };
    let out = response.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        out.insert(header::ETAG, etag);
    }
    out.insert(header::VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    response
}

/// A document's plain bytes, a piece of a body at a time.
struct Inflated(Plain);

impl BodySource for Inflated {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        self.0.fill(limits::PIECE_BYTES, out)
    }
}
