//! Headers that belong to one connection, what asks for another protocol, and for whom a request is sent on.
//!
//! In: headers. Out: those that are for whoever comes next. Never: who asks.
//!
//! Source: RFC 9110, 7.6.1; Go 1.26 `net/http/httputil/reverseproxy.go`; apimachinery v0.36.3
//! `pkg/util/net/http.go`.

use std::net::IpAddr;

use http::header::{
    CONNECTION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

const HOPS: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Takes away what belongs to the connection that it came on, and what `Connection` says does.
pub fn without_hops(headers: &mut HeaderMap) {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok());
    let named: Vec<HeaderName> = named.collect();
    for name in named.iter().chain(&HOPS) {
        headers.remove(name);
    }
}

/// Says for whom it is sent on: behind those for whom it was sent on before.
pub fn forwarded_for(headers: &mut HeaderMap, client: IpAddr) {
    let own = client.to_canonical().to_string();
    let before = headers.get_all(FORWARDED_FOR).iter().map(HeaderValue::as_bytes);
    let all: Vec<&[u8]> = before.chain([own.as_bytes()]).collect();
    // Of what was in headers already nothing is unfit for one.
    if let Ok(all) = HeaderValue::from_bytes(&all.join(&b", "[..])) {
        headers.insert(FORWARDED_FOR, all);
    }
}

/// The protocol that a request asks its connection to speak from then on.
pub fn asks_for_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asked = headers.get(UPGRADE).filter(|protocol| !protocol.is_empty())?;
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let mut options = values.flat_map(|value| value.split(','));
    options.any(|option| option.trim().eq_ignore_ascii_case("upgrade")).then(|| asked.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(pair).collect()
    }

    #[test]
    fn what_belongs_to_a_connection_stays_there() {
        let mut all = headers(&[
            ("connection", "close, X-Own , upgrade"),
            ("x-own", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("accept", "*/*"),
        ]);
        without_hops(&mut all);
        assert_eq!(all, headers(&[("accept", "*/*")]));
    }

    #[test]
    fn whoever_sent_it_on_before_is_named_before_who_sends_it_now() {
        let mut all = headers(&[("accept", "*/*")]);
        forwarded_for(&mut all, "10.0.0.1".parse().expect("an address"));
        assert_eq!(all, headers(&[("accept", "*/*"), ("x-forwarded-for", "10.0.0.1")]));
        let mut all = headers(&[("x-forwarded-for", "1.1.1.1, 2.2.2.2"), ("x-forwarded-for", "3.3.3.3")]);
        forwarded_for(&mut all, "::ffff:10.0.0.1".parse().expect("an address"));
        assert_eq!(all, headers(&[("x-forwarded-for", "1.1.1.1, 2.2.2.2, 3.3.3.3, 10.0.0.1")]));
    }

    #[test]
    fn an_upgrade_takes_both_headers() {
        for (lines, want) in [
            (vec![("upgrade", "SPDY/3.1"), ("connection", "Upgrade")], Some("SPDY/3.1")),
            (vec![("upgrade", "websocket"), ("connection", "keep-alive, upgrade")], Some("websocket")),
            (vec![("upgrade", "websocket")], None),
            (vec![("upgrade", "websocket"), ("connection", "upgraded")], None),
            (vec![("connection", "upgrade")], None),
        ] {
            let asked = asks_for_upgrade(&headers(&lines));
            assert_eq!(asked.as_ref().and_then(|value| value.to_str().ok()), want, "{lines:?}");
        }
    }
}
