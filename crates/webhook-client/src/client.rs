//! A call, from its parts to its answer.
//!
//! In: a call. Out: its answer whole, or why there is none. Never: more of an answer than `webhooks`' limits
//! say.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use forebay_authorities::{CutIn, go_answer_words};
use forebay_rt::Clock;
use forebay_webhooks::limits::ANSWER_BYTES_MAX;
use forebay_webhooks::{Answered, Calling, Calls, NoAnswer, WebhookSort};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body::Body;
use http_body_util::BodyExt as _;

use crate::credentials::CredentialsOfPlugins;
use crate::own::{self, OwnServer};
use crate::routes::{RouteKey, Routes};
use crate::words;

/// Who carries reviews to webhooks, over connections of its own.
pub struct WebhookClient {
    routes: Routes,
    credentials: CredentialsOfPlugins,
    own: Option<OwnServer>,
}

impl WebhookClient {
    pub fn new(clock: Clock, credentials: CredentialsOfPlugins) -> WebhookClient {
        WebhookClient { routes: Routes::new(clock), credentials, own: None }
    }

    /// Has calls to the service of this server answered here, by this server as whoever may do everything.
    pub fn beside(self, own: OwnServer) -> WebhookClient {
        WebhookClient { own: Some(own), ..self }
    }

    async fn carry(&self, calling: Calling) -> Result<Answered, NoAnswer> {
        let malformed = |why: http::uri::InvalidUri| NoAnswer::Failed(why.to_string());
        let url: Uri = calling.url.parse().map_err(malformed)?;
        if let Some(own) = self.own.as_ref().filter(|_| own::is_own(&calling.client.destination)) {
            return self.carry_to_itself(own, &calling, &url).await;
        }
        let key = RouteKey {
            client: calling.client.clone(),
            address: calling.address.clone(),
            has_others: calling.has_others,
            sort: calling.sort,
        };
        let (host, port) = (url.host().unwrap_or_default(), url.port_u16().unwrap_or(443));
        let credential = match calling.sort {
            Some(WebhookSort::Mutating) => self.credentials.mutating.of(host, port),
            Some(WebhookSort::Validating) => self.credentials.validating.of(host, port),
            None => None,
        };
        let route = self.routes.route(&key, &url, credential.as_deref()).map_err(NoAnswer::Failed)?;
        if calling.has_others && self.routes.is_passed_over(&route) {
            return Err(NoAnswer::Unreached("it did not connect a moment ago".to_owned()));
        }
        let _turn = route.turn(calling.holds).await.map_err(NoAnswer::Busy)?;
        calling.begun.store(true, Ordering::Relaxed);
        let authorization = credential.as_ref().and_then(|known| known.authorization.as_deref());
        match route.pool.send(request(&calling, &url, authorization)).await {
            Ok(answer) => read(answer, &calling, words::of).await,
            Err(error) if words::is_unreached(&error) => {
                self.routes.failed(&route);
                Err(NoAnswer::Unreached(words::of(&error)))
            }
            Err(error) => Err(NoAnswer::Failed(words::of(&error))),
        }
    }

    /// With no credential, whatever is configured: none leaves this process, and none is needed.
    async fn carry_to_itself(
        &self,
        own: &OwnServer,
        calling: &Calling,
        url: &Uri,
    ) -> Result<Answered, NoAnswer> {
        let (client, sort) = (calling.client.clone(), calling.sort);
        let key = RouteKey { client, address: None, has_others: false, sort };
        let route = self.routes.route(&key, url, None).map_err(NoAnswer::Failed)?;
        let _turn = route.turn(calling.holds).await.map_err(NoAnswer::Busy)?;
        calling.begun.store(true, Ordering::Relaxed);
        let sent = own::send(own, request(calling, url, None)).await.map_err(NoAnswer::Failed)?;
        read(sent.answer, calling, |why| go_answer_words(why, CutIn::Body)).await
    }
}

impl Calls for WebhookClient {
    fn call(
        &self,
        calling: Calling,
    ) -> Pin<Box<dyn Future<Output = Result<Answered, NoAnswer>> + Send + '_>> {
        Box::pin(self.carry(calling))
    }
}

fn request<B: From<Vec<u8>>>(calling: &Calling, url: &Uri, authorization: Option<&str>) -> Request<B> {
    let mut request = Request::new(B::from(calling.parts.concat()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = url.clone();
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
    headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver-admission"));
    // Of a secret that no header can have nothing is shown.
    if let Some(mut value) = authorization.and_then(|text| HeaderValue::from_str(text).ok()) {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    request
}

async fn read<B: Body<Data = Bytes> + Unpin>(
    answer: Response<B>,
    calling: &Calling,
    words: impl Fn(&B::Error) -> String,
) -> Result<Answered, NoAnswer> {
    let code = answer.status().as_u16();
    let sort = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_text = sort.is_none_or(|sort| sort.is_empty() || sort.starts_with(b"text/"));
    let mut body = answer.into_body();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| NoAnswer::Failed(words(&error)))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > ANSWER_BYTES_MAX {
            return Err(NoAnswer::Failed(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes")));
        }
        // Twice: a buffer that grows is copied.
        calling.lease.charge(2 * data.len()).map_err(|why| NoAnswer::Failed(why.to_string()))?;
        whole.extend_from_slice(&data);
    }
    Ok(Answered { code, is_text, body: Bytes::from(whole) })
}
