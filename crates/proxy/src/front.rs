//! Whom a proxy in front of this server says that a request is from.
//!
//! In: the headers of a request whose connection is that of a proxy that is believed. Out: a caller, if it
//! names one; the headers that said so are gone. Never: looks who the proxy is.
//!
//! Source: apiserver v1.36.3 `authentication/request/headerrequest/requestheader.go`.

use std::collections::BTreeMap;

use forebay_apimachinery::Caller;
use forebay_apimachinery::caller::{ANONYMOUS, UNAUTHENTICATED};
use http::{HeaderMap, HeaderName};

use crate::identity::Spoken;

/// Which headers say it, in the order in which they count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteHeaders {
    pub usernames: Vec<HeaderName>,
    pub uids: Vec<HeaderName>,
    pub groups: Vec<HeaderName>,
    /// In lower case.
    pub extra_prefixes: Vec<String>,
}

impl RemoteHeaders {
    /// The caller that `headers` name, in the group of everyone who is known unless it is said to be nobody.
    ///
    /// # Errors
    /// A name that is no UTF-8: whoever that is meant to be, it is nobody else either.
    pub fn caller(&self, headers: &mut HeaderMap) -> Result<Option<Caller>, std::str::Utf8Error> {
        let name = first(headers, &self.usernames)?;
        if name.is_empty() {
            return Ok(None);
        }
        let uid = first(headers, &self.uids)?;
        let values = self.groups.iter().flat_map(|name| headers.get_all(name));
        let groups: Result<Vec<String>, _> =
            values.filter(|value| !value.is_empty()).map(|value| text(value.as_bytes())).collect();
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for prefix in &self.extra_prefixes {
            for (name, value) in headers.iter() {
                let Some(key) = name.as_str().strip_prefix(&**prefix) else { continue };
                extra.entry(unescaped(key)).or_default().push(text(value.as_bytes())?);
            }
        }
        let caller = Caller { name, uid, groups: groups?, extra };
        self.clear(headers);
        let is_unknown = caller.name == ANONYMOUS || caller.is_in(UNAUTHENTICATED);
        Ok(Some(if is_unknown { caller } else { caller.authenticated() }))
    }

    /// What of a request's headers is only for servers that believe whoever sends them.
    pub fn spoken(&self) -> Spoken {
        let names = self.usernames.iter().chain(&self.uids).chain(&self.groups).cloned().collect();
        Spoken { names, prefixes: self.extra_prefixes.clone() }
    }

    fn clear(&self, headers: &mut HeaderMap) {
        for name in self.usernames.iter().chain(&self.uids).chain(&self.groups) {
            headers.remove(name);
        }
        let is_extra =
            |name: &HeaderName| self.extra_prefixes.iter().any(|prefix| name.as_str().starts_with(&**prefix));
        let gone: Vec<HeaderName> = headers.keys().filter(|name| is_extra(name)).cloned().collect();
        gone.iter().for_each(|name| drop(headers.remove(name)));
    }
}

fn first(headers: &HeaderMap, names: &[HeaderName]) -> Result<String, std::str::Utf8Error> {
    let value = names.iter().filter_map(|name| headers.get(name)).find(|value| !value.is_empty());
    value.map_or(Ok(String::new()), |value| text(value.as_bytes()))
}

fn text(bytes: &[u8]) -> Result<String, std::str::Utf8Error> {
    std::str::from_utf8(bytes).map(str::to_owned)
}

/// A key as it was before it was made fit for a header's name; one that cannot have been is taken as it
/// stands.
fn unescaped(key: &str) -> String {
    let mut out = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let Some((&[high, low], tail)) = rest.split_first_chunk() else { return key.to_owned() };
        let (Some(high), Some(low)) = (digit(high), digit(low)) else { return key.to_owned() };
        out.push((high << 4 | low) as u8);
        rest = tail;
    }
    String::from_utf8(out).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn usual() -> RemoteHeaders {
        RemoteHeaders {
            usernames: vec![HeaderName::from_static("x-own-user"), HeaderName::from_static("x-remote-user")],
            uids: vec![HeaderName::from_static("x-remote-uid")],
            groups: vec![HeaderName::from_static("x-remote-group")],
            extra_prefixes: vec!["x-remote-extra-".to_owned()],
        }
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_bytes(value.as_bytes()).expect("a value"))
        };
        lines.iter().map(pair).collect()
    }

    #[test]
    fn the_first_header_that_names_somebody_counts_and_none_stays() {
        let mut said = headers(&[
            ("x-own-user", ""),
            ("x-remote-user", "jürgen"),
            ("x-remote-uid", "7"),
            ("x-remote-group", "a"),
            ("x-remote-group", ""),
            ("x-remote-group", "b"),
            ("x-remote-extra-example.org%2fscope", "x"),
            ("x-remote-extra-bad%2", "y"),
            ("accept", "*/*"),
        ]);
        let caller = usual().caller(&mut said).expect("UTF-8").expect("somebody");
        assert_eq!((&*caller.name, &*caller.uid), ("jürgen", "7"));
        assert_eq!(caller.groups, ["a", "b", "system:authenticated"]);
        let extra: Vec<_> = caller.extra.iter().map(|(key, values)| (&**key, values.join(","))).collect();
        assert_eq!(extra, [("bad%2", "y".to_owned()), ("example.org/scope", "x".to_owned())]);
        assert_eq!(said, headers(&[("accept", "*/*")]));
    }

    #[test]
    fn who_is_not_named_is_nobody() {
        let mut said = headers(&[("x-remote-group", "system:masters")]);
        assert_eq!(usual().caller(&mut said), Ok(None));
    }

    #[test]
    fn a_name_that_is_no_text_is_an_error() {
        let mut said = HeaderMap::new();
        said.insert("x-remote-user", HeaderValue::from_bytes(b"j\xfcrgen").expect("a value"));
        assert!(usual().caller(&mut said).is_err());
    }
}
