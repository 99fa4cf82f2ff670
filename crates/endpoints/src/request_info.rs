//! What a request is about: verb, group, version, resource, namespace, name, subresource.
//!
//! In: a method, a path and a query. Out: [`RequestInfo`], for every request, known resource or not.
//! Authorization, metrics and routing read the same one. Never: looks anything up.
//!
//! Source: apiserver v1.36.3 `endpoints/request/requestinfo.go`.

use std::sync::Arc;

use forebay_apimachinery::options::{ListOptions, Query};
use forebay_apimachinery::selector::{FieldRequirement, FieldSelector, LabelRequirement, LabelSelector};
use forebay_apimachinery::{About, ResourceAttributes, Verb};
use http::Method;

/// A request, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whether it is about a resource; else only `verb` and `path` mean something.
    pub is_resource: bool,
    /// Decoded.
    pub path: String,
    /// Of a request that is not about a resource its method.
    pub verb: Verb,
    /// `api` or `apis`.
    pub prefix: String,
    pub group: String,
    pub version: String,
    pub namespace: String,
    pub resource: String,
    pub subresource: String,
    /// The name in the path, or the one that a LIST's field selector asks for.
    pub name: String,
    /// What follows resource, name and subresource: a path to proxy to.
    pub rest: Vec<String>,
    /// Named by its path, not by a field selector.
    pub named_in_path: bool,
    /// The deprecated `/watch/` form.
    pub path_form: bool,
    /// A segment is empty, which no resource's path has; but what follows `proxy` may.
    pub is_malformed: bool,
    /// What it is confined to, as far as that can be read; none for most.
    pub confined: Option<Arc<Confined>>,
}

/// What a LIST, a WATCH or a DELETE of a collection is confined to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Confined {
    pub fields: Box<[FieldRequirement]>,
    pub labels: Box<[LabelRequirement]>,
}

/// Why a path makes no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A `%` that is no escape, or bytes that are no text.
    #[error("invalid URL escape")]
    Escape,
    /// `/api/v1/watch`: nothing to watch.
    #[error("unable to determine kind and namespace from url, {0}")]
    Incomplete(String),
}

/// Subresources of a namespace; what else follows a namespace's name is a resource in it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

impl RequestInfo {
    /// Takes a request apart.
    ///
    /// # Errors
    /// [`PathError`].
    pub fn parse(method: &Method, path: &str, query: &Query) -> Result<RequestInfo, PathError> {
        let path = decode(path)?;
        let mut info = RequestInfo { verb: Verb::of_method(method.as_str()), ..RequestInfo::default() };
        let trimmed = path.trim_matches('/');
        let parts: Vec<&str> = if trimmed.is_empty() { Vec::new() } else { trimmed.split('/').collect() };
        let rest = match parts.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => {
                (info.prefix, info.version) = ("api".into(), (*version).into());
                rest
            }
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                (info.prefix, info.group, info.version) = ("apis".into(), (*group).into(), (*version).into());
                rest
            }
            _ => {
                info.path = path;
                return Ok(info);
            }
        };
        info.is_resource = true;
        let rest = info.read_verb(method, rest).ok_or_else(|| PathError::Incomplete(path.clone()))?;
        info.read_parts(rest);
        // What follows `proxy` is a path of whoever is asked there.
        let of_theirs = if info.subresource == "proxy" { info.rest.len() } else { 0 };
        let own = &parts[..parts.len() - of_theirs];
        let ends_badly = path.ends_with("//") && info.subresource != "proxy";
        info.is_malformed = path.starts_with("//") || ends_badly || own.iter().any(|part| part.is_empty());
        info.complete_verb(query);
        info.confine(query);
        info.path = path;
        Ok(info)
    }

    fn read_verb<'p>(&mut self, method: &Method, rest: &'p [&'p str]) -> Option<&'p [&'p str]> {
        let special = match rest.first() {
            Some(&"watch") => Some(Verb::Watch),
            Some(&"proxy") => Some(Verb::Proxy),
            _ => None,
        };
        if let Some(special) = special {
            self.verb = special;
            self.path_form = true;
            let rest = &rest[1..];
            return (!rest.is_empty()).then_some(rest);
        }
        self.verb = match method.as_str() {
            "POST" => Verb::Create,
            "GET" | "HEAD" => Verb::Get,
            "PUT" => Verb::Update,
            "PATCH" => Verb::Patch,
            "DELETE" => Verb::Delete,
            _ => Verb::None,
        };
        Some(rest)
    }

    fn read_parts(&mut self, mut parts: &[&str]) {
        if let ["namespaces", namespace, rest @ ..] = parts {
            self.namespace = (*namespace).into();
            if rest.first().is_some_and(|next| !NAMESPACE_SUBRESOURCES.contains(next)) {
                parts = rest;
            }
        }
        let mut parts = parts.iter().map(|part| (*part).to_string());
        self.resource = parts.next().unwrap_or_default();
        self.name = parts.next().unwrap_or_default();
        self.named_in_path = !self.name.is_empty();
        if self.verb != Verb::Proxy {
            self.subresource = parts.next().unwrap_or_default();
        }
        self.rest = parts.collect();
    }

    /// A GET without a name is a LIST or a WATCH, a DELETE without one is about the collection.
    fn complete_verb(&mut self, query: &Query) {
        if !self.name.is_empty() {
            return;
        }
        match self.verb {
            Verb::Get => {
                // Only `0` and `false` are false, as for every boolean option.
                let watches = query
                    .first("watch")
                    .is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"));
                self.verb = if watches { Verb::Watch } else { Verb::List };
                self.name = selected_name(query).unwrap_or_default();
            }
            Verb::Delete => self.verb = Verb::DeleteCollection,
            _ => {}
        }
    }

    /// Notes its selectors: those of the deprecated forms do not count. One that cannot be read counts as
    /// none, and is told of where the request is answered.
    fn confine(&mut self, query: &Query) {
        if self.path_form || !matches!(self.verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
            return;
        }
        let (fields, labels) = (query.first("fieldSelector"), query.first("labelSelector"));
        if fields.is_none() && labels.is_none() {
            return;
        }
        let fields = fields.and_then(|text| FieldSelector::parse(text).ok()).unwrap_or_default();
        let labels = labels.and_then(|text| LabelSelector::parse(text).ok()).unwrap_or_default();
        self.confined = Some(Arc::new(Confined {
            fields: fields.requirements().into(),
            labels: labels.requirements().into(),
        }));
    }

    /// What an authorizer is told that it is about.
    pub fn about(&self) -> About<'_> {
        if !self.is_resource {
            return About::Path(&self.path);
        }
        About::Resource(ResourceAttributes {
            group: &self.group,
            version: &self.version,
            namespace: &self.namespace,
            resource: &self.resource,
            subresource: &self.subresource,
            name: &self.name,
            fields: self.confined.as_deref().map_or(&[][..], |confined| &*confined.fields),
            labels: self.confined.as_deref().map_or(&[][..], |confined| &*confined.labels),
        })
    }

    /// Whether the request may take as long as it likes: it is not held to the timeout or the limits in
    /// flight.
    pub fn is_long_running(&self) -> bool {
        self.is_resource
            && (matches!(self.verb, Verb::Watch | Verb::Proxy)
                || matches!(self.subresource.as_str(), "attach" | "exec" | "proxy" | "log" | "portforward"))
    }
}

/// The name that a field selector pins: none where one of the options cannot be read, whichever it is.
fn selected_name(query: &Query) -> Option<String> {
    query.first("fieldSelector")?;
    let options = ListOptions::from_query(query).ok()?;
    let name = options.field_selector.exact("metadata.name")?;
    let is_segment = !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
    is_segment.then(|| name.to_string())
}

/// Decodes `%XX`.
///
/// # Errors
/// A `%` that is no escape, or bytes that are no text.
pub fn decode(path: &str) -> Result<String, PathError> {
    if !path.contains('%') {
        return Ok(path.to_string());
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (&[high, low], tail) = rest.split_first_chunk().ok_or(PathError::Escape)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(PathError::Escape);
        decoded.push((digit(high)? << 4 | digit(low)?) as u8);
        rest = tail;
    }
    String::from_utf8(decoded).map_err(|_| PathError::Escape)
}

/// What is wrong with a name as a segment of a path.
pub fn segment_fault(name: &str) -> Option<&'static str> {
    match name {
        "." => Some("may not be '.'"),
        ".." => Some("may not be '..'"),
        name if name.contains('/') => Some("may not contain '/'"),
        name if name.contains('%') => Some("may not contain '%'"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `verb group/version namespace/resource/subresource name rest`, or `verb path`.
    fn shown(method: &str, target: &str) -> String {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        match RequestInfo::parse(&method, path, &Query::parse(query)) {
            Err(error) => error.to_string(),
            Ok(info) if !info.is_resource => format!("{} {}", info.verb, info.path),
            Ok(info) => format!(
                "{} {}/{} {}/{}/{} {}{}{}{}",
                info.verb,
                info.group,
                info.version,
                info.namespace,
                info.resource,
                info.subresource,
                info.name,
                if info.path_form { " path-form" } else { "" },
                if info.is_malformed { " malformed" } else { "" },
                if info.rest.is_empty() { String::new() } else { format!(" +{}", info.rest.join("/")) },
            ),
        }
    }

    #[test]
    fn requests_are_taken_apart_as_kube_apiserver_does_it() {
        for (method, target, want) in [
            ("GET", "/", "get /"),
            ("POST", "/healthz", "post /healthz"),
            ("GET", "/api", "get /api"),
            ("GET", "/api/v1", "get /api/v1"),
            ("GET", "/api/v1/", "get /api/v1/"),
            ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
            ("GET", "/api/v1/pods", "list /v1 /pods/ "),
            ("HEAD", "/api/v1/pods/", "list /v1 /pods/ "),
            ("GET", "/api/v1/pods?watch", "watch /v1 /pods/ "),
            ("GET", "/api/v1/pods?watch=false", "list /v1 /pods/ "),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da", "list /v1 /pods/ a"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3D..", "list /v1 /pods/ "),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da&limit=x", "list /v1 /pods/ "),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da&labelSelector=a%20in", "list /v1 /pods/ "),
            (
                "GET",
                "/api/v1/pods?fieldSelector=metadata.name%3Da&timeoutSeconds=&watch=1",
                "watch /v1 /pods/ ",
            ),
            ("GET", "/api/v1/namespaces", "list /v1 /namespaces/ "),
            ("GET", "/api/v1/namespaces/a", "get /v1 a/namespaces/ a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update /v1 a/namespaces/finalize a"),
            ("GET", "/api/v1/namespaces/a/pods", "list /v1 a/pods/ "),
            ("POST", "/apis/apps/v1/namespaces/a/deployments", "create apps/v1 a/deployments/ "),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/d/scale",
                "patch apps/v1 a/deployments/scale d",
            ),
            ("GET", "/api/v1/namespaces/a/pods/p?watch=1", "get /v1 a/pods/ p"),
            ("DELETE", "/api/v1/nodes", "deletecollection /v1 /nodes/ "),
            ("DELETE", "/api/v1/nodes/n", "delete /v1 /nodes/ n"),
            ("OPTIONS", "/api/v1/nodes", " /v1 /nodes/ "),
            ("GET", "/api/v1/watch/pods", "watch /v1 /pods/  path-form"),
            ("GET", "/apis/g.io/v1/watch/namespaces/a/bars/b", "watch g.io/v1 a/bars/ b path-form"),
            ("GET", "/api/v1/watch", "unable to determine kind and namespace from url, /api/v1/watch"),
            ("GET", "/api/v1/namespaces/a/pods/p/proxy/x/y", "get /v1 a/pods/proxy p +x/y"),
            ("GET", "/api/v1/namespaces/a/pods/p/proxy//x//y//", "get /v1 a/pods/proxy p +/x//y"),
            ("GET", "/api/v1/namespaces/a/pods/p/proxy//", "get /v1 a/pods/proxy p"),
            ("GET", "/api/v1/namespaces//pods/p/proxy/x", "get /v1 /pods/proxy p malformed +x"),
            ("GET", "/api/v1/namespaces/a/pods/p/log//x", "get /v1 a/pods/log p malformed +/x"),
            ("GET", "/api/v1/namespaces/a/pods/p%2Flog", "get /v1 a/pods/log p"),
            ("GET", "/api/v1/namespaces/a/secrets/%C3%A9", "get /v1 a/secrets/ é"),
            ("GET", "/api/v1/namespaces/a/secrets/%zz", "invalid URL escape"),
            ("GET", "/api/v1/namespaces/a/secrets/%FF", "invalid URL escape"),
            ("GET", "/api//v1/pods", "get / /v1/ pods malformed"),
            ("GET", "//api/v1/pods", "list /v1 /pods/  malformed"),
        ] {
            assert_eq!(shown(method, target), want, "{method} {target}");
        }
    }

    #[test]
    fn what_collections_are_confined_to_is_known_as_far_as_it_can_be_read() {
        for (method, target, want) in [
            ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Da&labelSelector=b", "spec.nodeName=a; b"),
            ("GET", "/api/v1/pods?watch=1&labelSelector=b%20in%20(c)", "; b"),
            ("DELETE", "/api/v1/namespaces/n/pods?labelSelector=b", "; b"),
            ("GET", "/api/v1/pods?fieldSelector=a&labelSelector=b", "; b"),
            ("GET", "/api/v1/namespaces/n/pods/p?fieldSelector=a%3Db", "none"),
            ("GET", "/api/v1/watch/pods?fieldSelector=a%3Db", "none"),
            ("GET", "/api/v1/pods", "none"),
        ] {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let info = RequestInfo::parse(&method, path, &Query::parse(query)).expect("a path");
            let shown = info.confined.map_or("none".to_owned(), |confined| {
                let fields: Vec<String> = confined.fields.iter().map(ToString::to_string).collect();
                let labels: Vec<&str> = confined.labels.iter().map(LabelRequirement::key).collect();
                format!("{}; {}", fields.join(","), labels.join(","))
            });
            assert_eq!(shown, want, "{target}");
        }
    }

    #[test]
    fn long_running_requests_are_known() {
        for (target, want) in [
            ("/api/v1/pods?watch=1", true),
            ("/api/v1/watch/pods", true),
            ("/api/v1/namespaces/a/pods/p/log", true),
            ("/api/v1/namespaces/a/pods/p/exec", true),
            ("/api/v1/pods", false),
            ("/api/v1/namespaces/a/pods/p/status", false),
            ("/watch", false),
        ] {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let info = RequestInfo::parse(&Method::GET, path, &Query::parse(query)).expect("a path");
            assert_eq!(info.is_long_running(), want, "{target}");
        }
    }
}
