//! What is told of a request as a span: its name, what is said of it, whose trace it is part of.
//!
//! In: a request whose asker is known. Out: an open span, if it is told of. Never: the name of an object in
//! that of a span, of which there are few.
//!
//! Source: apiserver v0.36.3 `endpoints/filters/traces.go`.

use forebay_apimachinery::caller::MASTERS;
use forebay_rt::Instant;
use forebay_spans::{OpenSpan, RequestSpan};
use http::{HeaderMap, Uri, header};

use crate::handler::{Handler, Head};
use crate::request_info::RequestInfo;

/// Who looks after the server, beside those who may do everything.
const MONITORING: &str = "system:monitoring";

/// The span of `head`, which came for `target`.
pub fn begin(handler: &Handler, head: &Head, started: Instant, target: &Uri) -> Option<OpenSpan> {
    let tracer = handler.tracer.as_ref()?;
    // Nobody is known whose credentials were refused.
    head.usage.as_ref()?;
    let caller = head.asker.caller();
    let remote = text(&head.headers, "traceparent");
    let is_trusted = [MASTERS, MONITORING].iter().any(|group| caller.is_in(group));
    let name = name(head.method.as_str(), &head.info);
    let mut span = tracer.begin(RequestSpan { name, remote, is_trusted, started })?;
    span.set("http.request.method", head.method.to_string());
    span.set("http.target", target.path_and_query().map_or("", |target| target.as_str()).to_owned());
    span.set("audit-id", audit_id(head.audit_id.as_bytes()));
    if let Some(agent) = text(&head.headers, header::USER_AGENT.as_str()) {
        span.set("user_agent.original", agent.to_owned());
    }
    Some(span)
}

/// The id as spans have it: no longer than upstream has it in its own log. What is no text of it is replaced.
fn audit_id(given: &[u8]) -> String {
    const BYTES_MAX: usize = 64;
    String::from_utf8_lossy(&given[..given.len().min(BYTES_MAX)]).into_owned()
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// `GET /api/v1/namespaces/{:namespace}/pods/{:name}`; of what is no resource the method.
fn name(method: &str, info: &RequestInfo) -> String {
    if !info.is_resource {
        return method.to_owned();
    }
    let mut name = format!("{method} /{}", info.prefix);
    let mut part = |part: &str, is_there: bool| {
        if is_there {
            name.push('/');
            name.push_str(part);
        }
    };
    part(&info.group, !info.group.is_empty());
    part(&info.version, true);
    part("namespaces/{:namespace}", !info.namespace.is_empty());
    part(&info.resource, true);
    part("{:name}", !info.name.is_empty());
    part(&info.subresource, !info.subresource.is_empty());
    name
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::options::Query;
    use http::Method;

    use super::*;

    #[test]
    fn spans_are_named_by_what_is_asked_for_and_not_of_whom() {
        for (path, want) in [
            ("/api/v1/namespaces/x/pods/p/status", "/api/v1/namespaces/{:namespace}/pods/{:name}/status"),
            ("/apis/apps/v1/deployments", "/apis/apps/v1/deployments"),
            ("/api/v1/nodes/n", "/api/v1/nodes/{:name}"),
        ] {
            let info = RequestInfo::parse(&Method::GET, path, &Query::parse("")).expect("a request");
            assert_eq!(name("GET", &info), format!("GET {want}"));
        }
        let info = RequestInfo::parse(&Method::GET, "/metrics", &Query::parse("")).expect("a request");
        assert_eq!(name("GET", &info), "GET");
    }
}
