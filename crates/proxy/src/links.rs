//! Links of what runs behind an object, so that they lead back through this server.
//!
//! In: where a request was sent and the path that leads there, URLs and headers of its answer. Out: the same
//! URL below that path, if it is of the same host. Never: a URL of another host touched, or one that is
//! relative, which is right as it is.
//!
//! Source: apimachinery v0.36.3 `pkg/util/proxy/transport.go`, `upgradeaware.go`.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION,
};
use http::response::Parts;
use http::{HeaderMap, HeaderValue};

/// See the module's doc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// The path that leads there, up to and with `proxy`.
    pub prefix: String,
    /// Where the request was sent, as a URL has it.
    pub host: String,
    /// By which host the client knows this server.
    pub asked_host: String,
}

/// A URL, taken apart as far as it matters here.
struct Parted<'u> {
    /// Scheme and host with their slashes; empty where there is none.
    origin: &'u str,
    host: &'u str,
    path: &'u str,
    /// Query and fragment.
    rest: &'u str,
}

impl Links {
    /// `path` below the prefix, without `.` and `..`, which lead nowhere above it.
    pub fn joined(&self, path: &str) -> String {
        let mut joined = self.prefix.trim_end_matches('/').to_owned();
        joined.push_str(&cleaned(path));
        joined
    }

    /// `url` as a client has to ask for it; `None` where it is right as it is.
    pub fn rewritten(&self, url: &str) -> Option<String> {
        let Parted { origin, host, path, rest } = parted(url)?;
        let is_ours = host == self.asked_host;
        let is_elsewhere = !host.is_empty() && host != self.host && !is_ours;
        if is_elsewhere || !path.starts_with('/') {
            return None;
        }
        // By the name of this server it is asked for already, wherever that is.
        let origin = if is_ours { origin } else { "" };
        let path = match path.starts_with(&self.prefix) {
            true if host.is_empty() || is_ours => return None,
            true => path.to_owned(),
            false => self.joined(path),
        };
        Some(format!("{origin}{path}{rest}"))
    }

    /// Makes an answer's headers lead back here. Whether the links of its body are to do so, too.
    pub fn mend(&self, head: &mut Parts) -> bool {
        let headers = &mut head.headers;
        without_origins(headers);
        if let Some(location) = headers.get(LOCATION).filter(|location| !location.is_empty()) {
            let rewritten = location.to_str().ok().and_then(|location| self.rewritten(location));
            if let Some(value) = rewritten.and_then(|location| HeaderValue::from_str(&location).ok()) {
                headers.insert(LOCATION, value);
            }
            return false;
        }
        // What is compressed in spite of what was asked for goes on as it is.
        let is_mended = is_html(headers) && !headers.contains_key(CONTENT_ENCODING);
        if is_mended {
            headers.remove(CONTENT_LENGTH);
        }
        is_mended
    }
}

/// Takes away what lets pages of other sites read an answer: that is for this server to say.
pub fn without_origins(headers: &mut HeaderMap) {
    for name in [
        ACCESS_CONTROL_ALLOW_CREDENTIALS,
        ACCESS_CONTROL_ALLOW_HEADERS,
        ACCESS_CONTROL_ALLOW_METHODS,
        ACCESS_CONTROL_ALLOW_ORIGIN,
    ] {
        headers.remove(name);
    }
}

fn is_html(headers: &HeaderMap) -> bool {
    let sort = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    sort.split(';').next().unwrap_or_default().trim() == "text/html"
}

/// `None`: it is of a scheme that has no host, such as `data:`.
fn parted(url: &str) -> Option<Parted<'_>> {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (before, rest) = url.split_at(end);
    let slashes = match before.find("//") {
        Some(0) => 0,
        Some(at) if before[..at].ends_with(':') && !before[..at].contains('/') => at,
        _ => {
            // A colon in the first part names a scheme.
            let first = before.split('/').next().unwrap_or_default();
            let is_path = !first.contains(':');
            return is_path.then_some(Parted { origin: "", host: "", path: before, rest });
        }
    };
    let from = slashes + 2;
    let host_end = before[from..].find('/').map_or(before.len(), |at| from + at);
    let authority = &before[from..host_end];
    let host = authority.rsplit('@').next().unwrap_or_default();
    Some(Parted { origin: &before[..host_end], host, path: &before[host_end..], rest })
}

/// The path from the root, without `.`, `..` and empty parts; with its last slash.
pub fn cleaned(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut cleaned = String::with_capacity(path.len() + 1);
    for part in &parts {
        cleaned.push('/');
        cleaned.push_str(part);
    }
    if parts.is_empty() || path.ends_with('/') {
        cleaned.push('/');
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "/api/v1/namespaces/ns/pods/p/proxy";

    fn links() -> Links {
        Links {
            prefix: PREFIX.to_owned(),
            host: "10.0.0.1:8080".to_owned(),
            asked_host: "server:6443".to_owned(),
        }
    }

    #[test]
    fn urls_of_the_same_host_lead_back_through_the_server() {
        for (url, want) in [
            ("/", Some(format!("{PREFIX}/"))),
            ("/a/b/?x=1#y", Some(format!("{PREFIX}/a/b/?x=1#y"))),
            ("/a/../../b", Some(format!("{PREFIX}/b"))),
            ("http://10.0.0.1:8080/a", Some(format!("{PREFIX}/a"))),
            ("//10.0.0.1:8080/a", Some(format!("{PREFIX}/a"))),
            ("https://server:6443/a", Some(format!("https://server:6443{PREFIX}/a"))),
            ("https://other/a", None),
            ("http://10.0.0.1:8080", None),
            ("a/b", None),
            ("?x=/a", None),
            ("#x", None),
            ("", None),
            ("data:text/html,//x", None),
            ("mailto:a@b", None),
            ("/api/v1/namespaces/ns/pods/p/proxy/a", None),
            ("http://10.0.0.1:8080/api/v1/namespaces/ns/pods/p/proxy/a", Some(format!("{PREFIX}/a"))),
        ] {
            assert_eq!(links().rewritten(url), want, "{url}");
        }
    }

    #[test]
    fn headers_lead_back_and_let_no_other_site_in() {
        let answer = http::Response::builder()
            .header("location", "/there")
            .header("access-control-allow-origin", "*")
            .header("content-type", "text/html; charset=utf-8")
            .body(())
            .expect("an answer");
        let (mut head, ()) = answer.into_parts();
        assert!(!links().mend(&mut head), "who is sent on reads no body");
        assert_eq!(head.headers[LOCATION], format!("{PREFIX}/there"));
        assert!(!head.headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
        head.headers.remove(LOCATION);
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("10"));
        assert!(links().mend(&mut head) && !head.headers.contains_key(CONTENT_LENGTH));
        head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(!links().mend(&mut head));
    }

    #[test]
    fn a_path_is_cleaned_from_its_root() {
        for (path, want) in [("", "/"), ("/", "/"), ("/a/./b/", "/a/b/"), ("/../..", "/"), ("a/../b", "/b")] {
            assert_eq!(cleaned(path), want, "{path}");
        }
    }
}
