//! One request as it goes over the wire in HTTP/1.1. Nothing in it is checked: that is what it is for.

/// Where somebody without rights may send a body.
pub const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

pub const JSON: &str = "application/json";
pub const YAML: &str = "application/yaml";
pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Vec<u8>>,
}

impl Request {
    pub fn new(method: &str, path: impl Into<String>) -> Request {
        Request { method: method.to_owned(), path: path.into(), headers: Vec::new(), body: None }
    }

    pub fn get(path: impl Into<String>) -> Request {
        Request::new("GET", path)
    }

    pub fn post(path: impl Into<String>, kind: &str, body: impl Into<Vec<u8>>) -> Request {
        Request::new("POST", path).body(kind, body)
    }

    pub fn patch(path: impl Into<String>, kind: &str, body: impl Into<Vec<u8>>) -> Request {
        Request::new("PATCH", path).body(kind, body)
    }

    /// Asks who the asker is, in `kind`.
    pub fn review(kind: &str, body: impl Into<Vec<u8>>) -> Request {
        Request::post(REVIEWS, kind, body)
    }

    pub fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Request {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn body(mut self, kind: &str, body: impl Into<Vec<u8>>) -> Request {
        self.body = Some(body.into());
        self.header("Content-Type", kind)
    }

    /// The whole request. `token` is a bearer token, for those who come with one.
    pub fn bytes(&self, host: &str, token: Option<&str>) -> Vec<u8> {
        let mut bytes = format!("{} {} HTTP/1.1\r\nHost: {host}\r\n", self.method, self.path).into_bytes();
        let mut line = |name: &str, value: &[u8]| {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        };
        if let Some(token) = token {
            line("Authorization", format!("Bearer {token}").as_bytes());
        }
        for (name, value) in &self.headers {
            line(name, value);
        }
        if let Some(body) = &self.body {
            line("Content-Length", body.len().to_string().as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_as_it_was_put_together() {
        let request = Request::post("/a", JSON, "{}").header("X", vec![0xff]);
        let bytes = request.bytes("h", Some("t"));
        let (head, tail) = (b"POST /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\n", b"X: \xff\r\n");
        assert!(bytes.starts_with(head) && bytes.windows(tail.len()).any(|part| part == tail));
        assert!(bytes.ends_with(b"Content-Length: 2\r\n\r\n{}"));
    }
}
