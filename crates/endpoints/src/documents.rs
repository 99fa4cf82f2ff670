//! What describes the server: discovery, OpenAPI, health, version, metrics.
//!
//! In: a request that is about no resource. Out: a document. Those that are long and change only with the
//! catalog have an ETag.

use bytes::Bytes;
use forebay_apimachinery::accept::{Media, aggregated_discovery};
use forebay_audit::Audit;
use forebay_auth::tokens::openid::{CONFIGURATION_PATH, KEYS_PATH};
use forebay_documents::discovery::{self, aggregated, legacy};
use forebay_documents::health::{CheckResult, Endpoint, Reasons};
use forebay_documents::metrics;
use forebay_documents::zpages::{self, PageForm, Zpage};
use forebay_schema::builtin;
use http::header;
use http::{HeaderValue, Method};
use sha2::{Digest, Sha256};

use crate::answer::{self, HttpResponse};
use crate::flow_control;
use crate::flows;
use crate::handler::{Handler, Head};
use crate::negotiate::{self, Form};
use crate::openapi;
use crate::resource;
use crate::response::ResponseBody;
use crate::status::{self, Failure, OFFERED};

/// The types of aggregated discovery; clients compare them as a whole.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// What the older documents come in.
const TYPES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// Answers a request that is about no resource.
///
/// # Errors
/// 404, 405 and 406.
pub async fn answer(handler: &Handler, head: &Head) -> Result<HttpResponse, Failure> {
    let path = head.info.path.as_str();
    if let Some((endpoint, check)) = Endpoint::of(path) {
        return Ok(health(handler, head, endpoint, check).await);
    }
    let catalog = handler.api.catalog();
    if !matches!(head.method, Method::GET | Method::HEAD) {
        let is_known = matches!(
            path.split('/').nth(1),
            Some(
                "" | "api"
                    | "apis"
                    | "openapi"
                    | "openid"
                    | "version"
                    | "metrics"
                    | "statusz"
                    | "flagz"
                    | ".well-known"
            )
        );
        return Err(if is_known { Failure::no_such_method() } else { Failure::no_such_resource() });
    }
    let parts = segments(path);
    let extensions = handler.aggregation.extensions.now();
    match parts.as_slice() {
        [""] => {
            let openid = handler.accounts.openid().map(|_| [CONFIGURATION_PATH, KEYS_PATH]);
            let others = others(handler);
            let others = others.iter().map(String::as_str).chain(["/statusz"]);
            let others = others.chain(openid.into_iter().flatten());
            let json = discovery::root_paths(&catalog, &extensions, others);
            Ok(answer::sized(status::OK, "application/json", json.into(), head.takes_gzip()))
        }
        ["version"] => {
            negotiate::any_of(negotiate::accept(&head.headers), &TYPES[..1])?;
            let json = handler.documents.version.clone();
            Ok(answer::sized(status::OK, "application/json", json, head.takes_gzip()))
        }
        ["metrics"] => {
            let text = handler.metrics.render(
                &catalog,
                (&handler.inflight, handler.flow_control.as_ref(), handler.neighbourhood.as_deref()),
                (&handler.memory, &handler.rooms, &handler.stalled_readers),
                (&handler.event_blocks, &handler.shared_lists),
                (&handler.aggregation.availability, handler.audit.as_deref().map(Audit::counts)),
            );
            Ok(answer::sized(status::OK, metrics::CONTENT_TYPE, text.into(), head.takes_gzip()))
        }
        ["metrics", "slis"] => {
            let text = handler.documents.checks.slis().render();
            Ok(answer::sized(status::OK, metrics::CONTENT_TYPE, text.into(), head.takes_gzip()))
        }
        ["statusz"] => zpage(handler, head, Zpage::Statusz),
        ["flagz"] => zpage(handler, head, Zpage::Flagz),
        ["debug", "api_priority_and_fairness", name] => {
            let control = handler.flow_control.as_ref().ok_or_else(Failure::no_such_resource)?;
            let text =
                flow_control::dump(control, name, &head.query).ok_or_else(Failure::no_such_resource)?;
            Ok(answer::text(status::OK, text))
        }
        ["debug", "forebay", "flows"] => flows::answer(handler, head).await,
        ["api"] => match aggregated_discovery(negotiate::accept(&head.headers), &OFFERED) {
            Some(media) => with_etag(
                head,
                media,
                aggregated::group_discovery_list(&catalog, &extensions, aggregated::GroupsPart::Core),
            ),
            None => typed(head, legacy::core_versions(&catalog, &handler.documents.address)),
        },
        ["apis"] => match aggregated_discovery(negotiate::accept(&head.headers), &OFFERED) {
            Some(media) => with_etag(
                head,
                media,
                aggregated::group_discovery_list(&catalog, &extensions, aggregated::GroupsPart::Named),
            ),
            None => json(head, legacy::group_list(&catalog, &extensions)),
        },
        ["openapi", "v2" | "v3", ..] => {
            let readers = ((&handler.stalled_readers, &head.channel), &handler.rooms);
            let documents = (&handler.documents.openapi, &catalog, &extensions[..]);
            openapi::answer(documents, path, &head.headers, &head.query, readers).await
        }
        [".well-known", "openid-configuration"] => public_document(
            head,
            "application/json",
            handler.accounts.openid().map(|own| own.configuration).as_ref(),
            handler.accounts.openid_age_max(),
        ),
        ["openid", "v1", "jwks"] => public_document(
            head,
            "application/jwk-set+json",
            handler.accounts.openid().map(|own| own.keys).as_ref(),
            handler.accounts.openid_age_max(),
        ),
        ["api", version] => typed(head, found(legacy::resource_list(&catalog, "", version))?),
        ["apis", group] => json(head, found(legacy::group(&catalog, &extensions, group))?),
        ["apis", group, version] => {
            let document = found(legacy::resource_list(&catalog, group, version))?;
            let is_builtin = builtin::table().resources().iter().any(|built| built.group == *group);
            if is_builtin { typed(head, document) } else { json(head, document) }
        }
        _ => Err(Failure::no_such_resource()),
    }
}

/// The segments of a path that is compared as it is, the slash in front of it apart. Of documents that
/// upstream serves as it serves resources, those of APIs, OpenID and the version, slashes at the end do not
/// count.
///
/// Source: apiserver v0.36.3 `pkg/server/handler.go` (`director`), `mux/pathrecorder.go`.
fn segments(path: &str) -> Vec<&str> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let is_service =
        matches!(path.split('/').next(), Some("api" | "apis" | "version" | ".well-known" | "openid"));
    let path = if is_service { path.trim_end_matches('/') } else { path };
    path.split('/').collect()
}

/// The paths that are no API's and do not depend on who vouches for accounts.
fn others(handler: &Handler) -> Vec<String> {
    let dumps = handler.flow_control.iter().flat_map(|_| flow_control::DUMPS);
    let fixed = ["/flagz", "/metrics", "/metrics/slis", flows::PATH].into_iter().chain(dumps);
    handler.documents.checks.paths().into_iter().chain(fixed.map(String::from)).collect()
}

/// `/statusz` or `/flagz`.
fn zpage(handler: &Handler, head: &Head, page: Zpage) -> Result<HttpResponse, Failure> {
    let (pages, now) = (&handler.documents.zpages, handler.timestamp());
    let paths = others(handler);
    let paths = paths.iter().map(String::as_str).chain(["/version"]);
    let Some(form) = page.wanted(negotiate::accept(&head.headers)) else {
        // Told in JSON, whatever its client takes.
        let mut headers = head.headers.clone();
        headers.remove(header::ACCEPT);
        return Ok(answer::failure(&negotiate::takes_none_of(&zpages::TYPES), &headers, &head.query));
    };
    let PageForm::Structured(media, version) = form else {
        let delimiter = zpages::DELIMITERS[handler.random.below(zpages::DELIMITERS.len() as u64) as usize];
        return Ok(answer::text(status::OK, pages.text(page, delimiter, now, paths)));
    };
    let pretty = negotiate::is_pretty(&head.headers, &head.query);
    let json = Bytes::from(pages.json(page, version, now, paths));
    head.answers(&json);
    let form = Form { pretty, ..Form::plain(media) };
    let mut response = answer::object(status::OK, json, form, head.takes_gzip())?;
    if let Ok(content_type) = HeaderValue::from_str(&page.content_type(media, version)) {
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    }
    let warning = page.warning(version);
    if warning.is_some() {
        head.note("k8s.io/deprecated", "true");
    }
    resource::add_warnings(&mut response, warning.as_slice());
    Ok(response)
}

/// A document for everybody, which may be kept for so many seconds.
fn public_document(
    head: &Head,
    content_type: &'static str,
    document: Option<&Bytes>,
    age_max: u64,
) -> Result<HttpResponse, Failure> {
    let document = document.ok_or_else(Failure::no_such_resource)?;
    negotiate::any_of(negotiate::accept(&head.headers), &[content_type])?;
    let mut response = answer::sized(status::OK, content_type, document.clone(), head.takes_gzip());
    if let Ok(kept) = HeaderValue::from_str(&format!("public, max-age={age_max}")) {
        response.headers_mut().insert(header::CACHE_CONTROL, kept);
    }
    Ok(response)
}

fn found(document: Option<Vec<u8>>) -> Result<Vec<u8>, Failure> {
    document.ok_or_else(Failure::no_such_resource)
}

/// A document of the core group or of a built-in version: as with their resources, the path has types of its
/// own. The documents of groups, and those of custom resources, have no such layer.
fn typed(head: &Head, document: Vec<u8>) -> Result<HttpResponse, Failure> {
    negotiate::any_of(negotiate::accept(&head.headers), &TYPES)?;
    json(head, document)
}

/// A document in the form that the client takes.
fn json(head: &Head, document: Vec<u8>) -> Result<HttpResponse, Failure> {
    let form = negotiate::document(&head.headers, &head.query)?;
    let document = Bytes::from(document);
    head.answers(&document);
    answer::object(status::OK, document, form, head.takes_gzip())
}

/// Aggregated discovery, unless the client has it already.
fn with_etag(head: &Head, media: Media, document: Vec<u8>) -> Result<HttpResponse, Failure> {
    let etag = etag(&document);
    let content_type = match media {
        Media::Json => AGGREGATED,
        Media::Protobuf => AGGREGATED_PROTOBUF,
        Media::Yaml => media.content_type(),
    };
    let mut response = if has(head, &etag) {
        answer::response(status::UNCHANGED, content_type, ResponseBody::whole(Bytes::new()))
    } else {
        let document = Bytes::from(document);
        head.answers(&document);
        answer::object(status::OK, document, Form::plain(media), head.takes_gzip())?
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    Ok(response)
}

/// A document's ETag, in quotes.
pub fn etag(document: &[u8]) -> String {
    let digest = Sha256::digest(document);
    let hex: String = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("\"{hex}\"")
}

/// Whether the client says that it has the document.
pub fn has(head: &Head, etag: &str) -> bool {
    let known = head.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    known.is_some_and(|known| known.split(',').any(|one| one.trim() == etag))
}

async fn health(handler: &Handler, head: &Head, endpoint: Endpoint, check: Option<&str>) -> HttpResponse {
    match handler.documents.checks.ask(endpoint, check, &head.query) {
        CheckResult::Well(text) => answer::text(status::OK, text),
        CheckResult::Ill(text) => answer::text(status::BROKEN, text),
        CheckResult::Failed(why) => {
            // Who is asked whether somebody may is asked once more only where there is something to tell.
            let about = (&head.info.verb, head.info.about());
            let reasons = match handler.access.may_hear_why(&head.asker, about.0, about.1).await {
                true => Reasons::Told,
                false => Reasons::Withheld,
            };
            answer::text(status::BROKEN, reasons.tell(&why))
        }
        CheckResult::Unknown => answer::text(status::NO_SUCH_CHECK.0, status::NO_SUCH_CHECK.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_compared_as_it_was_authorized() {
        for (path, want) in [
            ("/", &[""][..]),
            ("//", &["", ""]),
            ("/metrics", &["metrics"]),
            ("/metrics/", &["metrics", ""]),
            ("//metrics", &["", "metrics"]),
            ("/metrics/slis/", &["metrics", "slis", ""]),
            ("/openapi/v2/", &["openapi", "v2", ""]),
            ("/version/", &["version"]),
            ("//version", &["", "version"]),
            ("/api/v1//", &["api", "v1"]),
            ("/apis/", &["apis"]),
            ("/openid/v1/jwks/", &["openid", "v1", "jwks"]),
        ] {
            assert_eq!(segments(path), want, "{path}");
        }
    }
}
