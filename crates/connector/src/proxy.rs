//! A proxy that is asked to CONNECT.
//!
//! In: its URL, a connection to it, and where to go. Out: the connection, behind which the server is. Never:
//! a proxy that reads what is sent: plain HTTP goes through a tunnel as well.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Error;
use crate::dial::Place;
use crate::limits::PROXY_HEAD_BYTES_MAX;

#[derive(Debug)]
pub(crate) struct Proxy {
    at: Place,
    /// Name and password of the URL, as the header has them.
    authorization: Option<String>,
}

impl Proxy {
    /// # Errors
    /// When it is of another kind.
    pub fn new(url: &Uri) -> Result<Proxy, Error> {
        let authority = url.authority().map_or("", |it| it.as_str());
        let (secret, host) = match authority.rsplit_once('@') {
            Some((secret, host)) => (Some(secret), host),
            None => (None, authority),
        };
        if url.scheme_str() != Some("http") {
            return Err(Error::Proxy(format!("{}://{host}", url.scheme_str().unwrap_or_default())));
        }
        let authorization = secret.map(|it| format!("Basic {}", STANDARD.encode(unescaped(it))));
        Ok(Proxy { at: Place::of(url, 80)?, authorization })
    }

    pub fn place(&self) -> &Place {
        &self.at
    }

    /// # Errors
    /// When the proxy does not connect.
    pub async fn tunnel(&self, mut tcp: TcpStream, to: &Place) -> Result<TcpStream, Error> {
        let mut asks = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
        if let Some(authorization) = &self.authorization {
            asks += &format!("Proxy-Authorization: {authorization}\r\n");
        }
        asks += "\r\n";
        let failed = |source| Error::Connect { address: self.at.to_string(), source };
        tcp.write_all(asks.as_bytes()).await.map_err(failed)?;
        let mut head = Vec::new();
        // Byte for byte: what follows the head is the server's.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == PROXY_HEAD_BYTES_MAX {
                return Err(Error::ProxyRefused("a head without an end".into()));
            }
            head.push(tcp.read_u8().await.map_err(failed)?);
        }
        let line =
            String::from_utf8_lossy(head.split(|it| *it == b'\r').next().unwrap_or_default()).into_owned();
        match line.strip_prefix("HTTP/1.").and_then(|it| it.split(' ').nth(1)) {
            Some(code) if code.len() == 3 && code.starts_with('2') => Ok(tcp),
            _ => Err(Error::ProxyRefused(line)),
        }
    }
}

/// With each `%` and its two digits as the byte that they stand for.
fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let escaped = match (first, after) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|it| it as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_password_of_a_url_are_sent_unescaped() {
        let authorization = |url: &str| Proxy::new(&url.parse().expect("a URL")).map(|it| it.authorization);
        for (secret, sent) in
            [("me:se%63ret", "me:secret"), ("me:a%4", "me:a%4"), ("%40:%3A%zz%+1", "@::%zz%+1"), ("me", "me")]
        {
            let basic = format!("Basic {}", STANDARD.encode(sent));
            let said = authorization(&format!("http://{secret}@proxy:3128")).expect("http");
            assert_eq!(said, Some(basic), "{secret}");
        }
        assert_eq!(authorization("http://[::1]:3128").expect("http"), None);
    }

    #[test]
    fn a_proxy_of_another_kind_is_refused_without_its_password() {
        for (url, said) in
            [("socks5://me:secret@host:1080", "socks5://host:1080"), ("https://host", "https://host")]
        {
            let error = Proxy::new(&url.parse().expect("a URL")).expect_err("it is not known").to_string();
            assert!(error.contains(said) && !error.contains("secret"), "{error}");
        }
    }
}
