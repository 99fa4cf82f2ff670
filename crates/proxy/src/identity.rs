//! Who asks, as a server that believes this one is told: `X-Remote-User` and its kin.
//!
//! In: a caller, a request's headers. Out: headers that say who it is, and nothing that the client said of
//! the kind. Never: a header left out because it cannot be written: then there is no request.
//!
//! Source: client-go v0.36.3 `transport/round_trippers.go`.

use forebay_apimachinery::Caller;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::error::ProxyError;

const USER: HeaderName = HeaderName::from_static("x-remote-user");
const UID: HeaderName = HeaderName::from_static("x-remote-uid");
const GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const EXTRA: &str = "x-remote-extra-";
/// What those of this kind begin with, and those by which somebody is made somebody else.
const PREFIXES: [&str; 2] = ["x-remote-", "impersonate-"];

/// What servers are told by besides, as they were configured: no client's word may stand there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spoken {
    pub names: Vec<HeaderName>,
    /// In lower case.
    pub prefixes: Vec<String>,
}

impl Spoken {
    /// Says that `caller` asks, whatever the client said.
    ///
    /// # Errors
    /// A name that no header can have.
    pub fn tell(&self, headers: &mut HeaderMap, caller: &Caller) -> Result<(), ProxyError> {
        self.hush(headers);
        headers.insert(USER, value(&USER, &caller.name)?);
        if !caller.uid.is_empty() {
            headers.insert(UID, value(&UID, &caller.uid)?);
        }
        for group in &caller.groups {
            append(headers, GROUP, group)?;
        }
        for (key, values) in &caller.extra {
            let name = HeaderName::from_bytes(format!("{EXTRA}{}", escaped(key)).as_bytes());
            let name = name.map_err(|_| unwritable(EXTRA))?;
            for text in values {
                append(headers, name.clone(), text)?;
            }
        }
        Ok(())
    }

    /// Takes away whatever says who asks.
    pub fn hush(&self, headers: &mut HeaderMap) {
        let is_spoken = |name: &HeaderName| {
            let name = name.as_str();
            PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || self.names.iter().any(|spoken| spoken == name)
                || self.prefixes.iter().any(|prefix| name.starts_with(&**prefix))
        };
        let gone: Vec<HeaderName> = headers.keys().filter(|name| is_spoken(name)).cloned().collect();
        for name in gone.iter().chain([&AUTHORIZATION]) {
            headers.remove(name);
        }
    }
}

fn append(headers: &mut HeaderMap, name: HeaderName, text: &str) -> Result<(), ProxyError> {
    let text = value(&name, text)?;
    headers.try_append(name, text).map(drop).map_err(|_| unwritable("X-Remote-*"))
}

fn value(name: &HeaderName, text: &str) -> Result<HeaderValue, ProxyError> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| unwritable(name.as_str()))
}

fn unwritable(name: &str) -> ProxyError {
    ProxyError::Broken(format!("net/http: invalid header field value for {name:?}"))
}

/// A key as a header's name may have it.
fn escaped(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'!' | b'#' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|'
            | b'~' => out.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(spoken: &Spoken, said: &[(&'static str, &'static str)], caller: &Caller) -> Vec<String> {
        let mut headers: HeaderMap = said
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        spoken.tell(&mut headers, caller).expect("writable");
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
        };
        let mut lines: Vec<String> = headers.iter().map(line).collect();
        lines.sort();
        lines
    }

    #[test]
    fn what_a_client_says_of_who_it_is_never_arrives() {
        let caller = Caller {
            name: "bob".into(),
            uid: "7".into(),
            groups: vec!["a".into(), "b".into()],
            extra: [("example.org/scope %".to_owned(), vec!["x".to_owned(), "y".to_owned()])].into(),
        };
        let spoken = Spoken {
            names: vec![HeaderName::from_static("x-own-user")],
            prefixes: vec!["x-own-extra-".to_owned()],
        };
        let said = [
            ("x-remote-user", "root"),
            ("x-remote-group", "system:masters"),
            ("x-remote-extra-scope", "all"),
            ("x-remote-uid", "0"),
            ("x-own-user", "root"),
            ("x-own-extra-scope", "all"),
            ("impersonate-user", "root"),
            ("authorization", "Bearer secret"),
            ("accept", "*/*"),
        ];
        assert_eq!(
            told(&spoken, &said, &caller),
            [
                "accept: */*",
                "x-remote-extra-example.org%2fscope%20%25: x",
                "x-remote-extra-example.org%2fscope%20%25: y",
                "x-remote-group: a",
                "x-remote-group: b",
                "x-remote-uid: 7",
                "x-remote-user: bob",
            ]
        );
    }

    #[test]
    fn who_has_no_uid_brings_none_along() {
        let caller = Caller { name: "jürgen".into(), ..Caller::default() };
        assert_eq!(told(&Spoken::default(), &[("x-remote-uid", "0")], &caller), ["x-remote-user: jürgen"]);
    }

    #[test]
    fn a_name_that_no_header_can_have_is_no_request() {
        let caller = Caller { name: "bob\nX-Remote-Group: system:masters".into(), ..Caller::default() };
        let refused = Spoken::default().tell(&mut HeaderMap::new(), &caller);
        let why = refused.expect_err("two lines").to_string();
        assert_eq!(why, "net/http: invalid header field value for \"x-remote-user\"");
    }
}
