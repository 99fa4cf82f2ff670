//! Documents of providers, over HTTPS.
//!
//! In: a URL, who vouches for the server. Out: the document whole, or why there is none, in the words of Go's
//! HTTP client. Redirects are followed as far as Go's client does, and to HTTPS alone. Never: more of a
//! document than a limit says, or longer than one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use forebay_apimachinery::json::go_quote;
use forebay_connector::{Body, Pool, PoolOptions, connect};
use forebay_rt::Clock;
use http::header::{ACCEPT, AUTHORIZATION, LOCATION, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt as _;
use kube::client::Body as RequestBody;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::limits::{ANSWER_MAX, CLAIM_BYTES_MAX, ORIGINS_MAX, REDIRECTS_MAX, SAID_BYTES_MAX};
use forebay_webhook_client::words;

/// Fetches documents of one provider.
pub struct Fetcher {
    clock: Clock,
    authorities: Option<Vec<Vec<u8>>>,
    // By scheme and authority, <= ORIGINS_MAX.
    pools: Mutex<BTreeMap<String, Pool>>,
}

/// Whether a text holds authorities that can vouch for a server.
///
/// # Errors
/// In upstream's words.
pub fn check_authorities(pem: &str) -> Result<(), String> {
    authorities(pem).map(drop)
}

/// # Errors
/// There is none in it.
fn authorities(pem: &str) -> Result<Vec<Vec<u8>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all.into_iter().map(|one| one.to_vec()).collect()),
        _ => Err("data does not contain any valid RSA or ECDSA certificates".to_owned()),
    }
}

impl Fetcher {
    /// - `authority`: who vouches for its servers, PEM; whom the system believes, if empty.
    ///
    /// # Errors
    /// [`check_authorities`].
    pub fn new(clock: Clock, authority: &str) -> Result<Fetcher, String> {
        let authorities = if authority.is_empty() { None } else { Some(authorities(authority)?) };
        Ok(Fetcher { clock, authorities, pools: Mutex::default() })
    }

    /// The document at `url`.
    ///
    /// - `bytes_max`: a longer one is refused.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn get(&self, url: &str, bytes_max: usize) -> Result<Vec<u8>, String> {
        tokio::select! {
            got = async { read(self.follow(url, None).await?, bytes_max).await } => got,
            () = self.clock.sleep(ANSWER_MAX) => Err(late(url)),
        }
    }

    /// The token that a source of claims answers with at `url`, within its caller's time. Cancel-safe.
    ///
    /// - `access_token`: shown to the server of that URL, and to none that it sends on to; nothing, if empty.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn claim(&self, url: &str, access_token: &str) -> Result<String, String> {
        let authorization = match access_token {
            "" => None,
            token => {
                let value = HeaderValue::from_str(&format!("Bearer {token}"));
                let mut value =
                    value.map_err(|_| "its access token cannot be sent in a header".to_owned())?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let answer = self.follow(url, authorization.as_ref()).await?;
        let status = answer.status();
        if !matches!(status.as_u16(), 200..=226) {
            return Err(format!("error while getting distributed claim JWT: {status}"));
        }
        let whole = whole(answer.into_body(), CLAIM_BYTES_MAX).await;
        let whole = whole.map_err(|why| format!("could not decode distributed claim response: {why}"))?;
        String::from_utf8(whole).map_err(|_| "could not decode distributed claim response".to_owned())
    }

    /// The answer at `url`, or at where that sends whoever asks.
    ///
    /// - `authorization`: for the server of `url` alone.
    async fn follow(&self, url: &str, authorization: Option<&HeaderValue>) -> Result<Response<Body>, String> {
        let own: Option<Uri> = url.parse().ok();
        let mut at = url.to_owned();
        for _ in 0..=REDIRECTS_MAX {
            let failed = |why: String| format!("Get {}: {why}", go_quote(&at));
            let uri: Uri = at.parse().map_err(|why: http::uri::InvalidUri| failed(why.to_string()))?;
            let mut request = request(&uri);
            let is_own = own.as_ref().is_some_and(|own| own.authority() == uri.authority());
            if let Some(value) = authorization.filter(|_| is_own) {
                request.headers_mut().insert(AUTHORIZATION, value.clone());
            }
            let answer = self.pool(&uri).map_err(failed)?.send(request).await;
            let answer = answer.map_err(|error| failed(words::of(&error)))?;
            let Some(next) = redirected(&answer, &uri).map_err(failed)? else { return Ok(answer) };
            at = next;
        }
        Err(format!("Get {}: stopped after {REDIRECTS_MAX} redirects", go_quote(url)))
    }

    /// The connections to a server. Must be called within a runtime.
    fn pool(&self, uri: &Uri) -> Result<Pool, String> {
        if uri.scheme_str() != Some("https") {
            return Err("only https is spoken with providers".to_owned());
        }
        let origin = uri.authority().map(ToString::to_string).unwrap_or_default();
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&origin) {
            return Ok(pool.clone());
        }
        if pools.len() >= ORIGINS_MAX {
            return Err(format!("the provider's documents are on more than {ORIGINS_MAX} servers"));
        }
        let base =
            format!("https://{origin}").parse().map_err(|why: http::uri::InvalidUri| why.to_string())?;
        let mut config = kube::Config::new(base);
        config.root_cert.clone_from(&self.authorities);
        let options = PoolOptions { clock: self.clock.clone(), ..PoolOptions::default() };
        let pool = connect(config, options).map_err(|why| words::of(&why))?.pool;
        pools.insert(origin, pool.clone());
        Ok(pool)
    }
}

/// What is said where nothing came in time, as Go's client does.
pub fn late(url: &str) -> String {
    let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    format!("Get {}: {why}", go_quote(url))
}

fn request(uri: &Uri) -> Request<RequestBody> {
    let mut request = Request::new(RequestBody::from(Vec::new()));
    *request.method_mut() = Method::GET;
    *request.uri_mut() = uri.clone();
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
    request.headers_mut().insert(USER_AGENT, HeaderValue::from_static("forebay"));
    request
}

/// Where the answer sends whoever asks, if it does.
///
/// # Errors
/// It says not where, or to what is no URL.
fn redirected(answer: &Response<Body>, from: &Uri) -> Result<Option<String>, String> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let code = answer.status().as_u16();
    let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
    let to = to.ok_or_else(|| format!("{code} response missing Location header"))?;
    let authority = from.authority().map(ToString::to_string).unwrap_or_default();
    let is_whole = to.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '?', '#']));
    Ok(Some(match to {
        _ if is_whole => to.to_owned(),
        _ if to.starts_with("//") => format!("https:{to}"),
        _ if to.starts_with('/') => format!("https://{authority}{to}"),
        _ => {
            let parent = from.path().rsplit_once('/').map_or("", |(parent, _)| parent);
            format!("https://{authority}{parent}/{to}")
        }
    }))
}

async fn read(answer: Response<Body>, bytes_max: usize) -> Result<Vec<u8>, String> {
    let status = answer.status();
    let whole = whole(answer.into_body(), bytes_max).await;
    if status != StatusCode::OK {
        let said = whole.map(|body| beginning(&body)).unwrap_or_default();
        return Err(format!("{status}: {said}"));
    }
    whole.map_err(|why| format!("unable to read response body: {why}"))
}

/// The beginning of what was said, as text.
pub fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(SAID_BYTES_MAX)]).trim().to_owned()
}

/// A body, not longer than it may be.
///
/// # Errors
/// It is longer, or ends before its end.
async fn whole(mut body: Body, bytes_max: usize) -> Result<Vec<u8>, String> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| words::of(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > bytes_max {
            return Err(format!("it is longer than {bytes_max} bytes"));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole)
}
