//! One request to another server, in the name of who asks, and what it says.
//!
//! In: a method, a path, perhaps a body. Out: a code, and a body of bounded length, in bounded time. Never:
//! asks twice.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::{Caller, Status};
use forebay_proxy::{Forwarded, ProxiedAnswer, ProxyRoute, RequestBody};
use forebay_rt::{Clock, Duration};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use serde::Deserialize;

/// Who asks, as an aggregated server is told it.
pub const AGENT: HeaderValue = HeaderValue::from_static("kube-controller-manager");

/// Who is asked, and in whose name.
pub struct AskingOther<'a> {
    pub route: Arc<ProxyRoute>,
    pub caller: &'a Caller,
    pub clock: &'a Clock,
    /// Of an answer.
    pub bytes_max: usize,
    /// How long an answer may take.
    pub wait: Duration,
}

/// A body, and what it is.
pub type SentBody = (&'static str, Bytes);

impl AskingOther<'_> {
    /// What is answered: the code, and the body, if that is not too long.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn ask(
        &self,
        method: Method,
        target: &str,
        accept: &'static str,
        sent: Option<SentBody>,
    ) -> Result<(StatusCode, Result<Bytes, Status>), Status> {
        let target: Uri = target.parse().map_err(Status::internal)?;
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(USER_AGENT, AGENT);
        let mut body = Bytes::new();
        if let Some((content_type, bytes)) = sent {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
            body = bytes;
        }
        let user = Some(Arc::from(&*self.caller.name));
        let forwarded = Forwarded { method, target, headers, client: None, user };
        let answered = async {
            match self.route.send(forwarded, RequestBody::Right(body.into()), self.caller).await {
                Ok(ProxiedAnswer::Carried(head, carried)) => {
                    let body = carried.whole(self.bytes_max).await.map_err(Status::internal);
                    Ok((head.status, body))
                }
                Ok(_) => Err(Status::internal("it speaks another protocol")),
                Err(why) => Err(Status::internal(why)),
            }
        };
        tokio::select! {
            biased;
            answered = answered => answered,
            () = self.clock.sleep(self.wait) => Err(Status::internal("it does not answer in time")),
        }
    }
}

/// What a server says in place of doing what it was asked for.
pub fn refused(path: &str, code: StatusCode, body: &Result<Bytes, Status>) -> Status {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Said {
        message: String,
    }
    let said = body.as_ref().ok().and_then(|body| serde_json::from_slice::<Said>(body).ok());
    match said.map(|said| said.message).filter(|message| !message.is_empty()) {
        Some(message) => Status::internal(message),
        None => Status::internal(format!("{path}: {code}")),
    }
}

/// A name, or what stands for a page, if that is a part of a URL as it is.
///
/// # Errors
/// It is not.
pub fn segment(name: &str) -> Result<&str, Status> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b':' | b'=');
    match name {
        "" | "." | ".." => Err(Status::internal(format!("{name:?} is no name"))),
        name if name.bytes().all(is_plain) => Ok(name),
        name => Err(Status::internal(format!("{name:?} is no name"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_but_to_its_object() {
        for name in ["a", "a.b-c_d:e~1"] {
            assert_eq!(segment(name).ok(), Some(name));
        }
        for name in ["", ".", "..", "a/b", "a?b", "a#b", "a%2fb", "a b", "\u{e4}"] {
            assert!(segment(name).is_err(), "{name}");
        }
    }
}
