//! Where a member of the cluster is.

use std::fmt;

/// A URL of `--etcd-servers`: `https://host:2379`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub tls: bool,
    /// Without brackets.
    pub host: String,
    pub port: u16,
}

/// What is not such a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not the URL of an etcd member, such as https://10.0.0.1:2379")]
pub struct NotAnEndpoint {
    pub text: String,
}

/// etcd's port.
const PORT: u16 = 2379;

impl std::str::FromStr for Endpoint {
    type Err = NotAnEndpoint;

    fn from_str(text: &str) -> Result<Endpoint, NotAnEndpoint> {
        let refused = || NotAnEndpoint { text: text.to_string() };
        let (tls, place) = match text.split_once("://") {
            Some(("https", place)) => (true, place),
            Some(("http", place)) => (false, place),
            Some(_) => return Err(refused()),
            None => (false, text),
        };
        let place = place.strip_suffix('/').unwrap_or(place);
        let (host, port) = match place.strip_prefix('[') {
            Some(place) => {
                let (host, port) = place.split_once(']').ok_or_else(refused)?;
                (host, port.strip_prefix(':').or(port.is_empty().then_some("")).ok_or_else(refused)?)
            }
            None => place.split_once(':').unwrap_or((place, "")),
        };
        let port = if port.is_empty() { Ok(PORT) } else { port.parse() };
        let port = port.map_err(|_| refused())?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.is_empty() || !host.chars().all(plain) {
            return Err(refused());
        }
        Ok(Endpoint { tls, host: host.to_string(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_members_are_read() {
        let cases = [
            ("https://a.b:1", Some("https://a.b:1")),
            ("http://10.0.0.1:2379/", Some("http://10.0.0.1:2379")),
            ("https://etcd-0", Some("https://etcd-0:2379")),
            ("https://[::1]:99", Some("https://[::1]:99")),
            ("https://[::1]", Some("https://[::1]:2379")),
            ("127.0.0.1:2379", Some("http://127.0.0.1:2379")),
            ("unix:///x", None),
            ("https://", None),
            ("https://a:b", None),
            ("https://[::1", None),
            ("https://u@a:1", None),
            ("https://a:1/path", None),
        ];
        for (text, read) in cases {
            let endpoint = text.parse::<Endpoint>().ok().map(|endpoint| endpoint.to_string());
            assert_eq!(endpoint.as_deref(), read, "{text}");
        }
    }
}
